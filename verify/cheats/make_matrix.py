"""Writes cheat_matrix.md: every cheat and its honest twin by the rules of three projects (rules.py) and by `attest judge`. Arguments: the program.
The Python that runs this has NumPy."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import judge_test  # noqa: E402
import rules  # noqa: E402

HEAD = """# Cheats and rules

Made by `make_matrix.py build/*/bin/attest`. A row is a file here. The first word of a cell is about the cheat, the second about its honest twin; the rules of
other projects are NumPy's form of what their sources say at the commit that is named ([rules.py](rules.py)). They see numbers: what a project forbids
by reading a solution is not in the table, and where a cheat is accepted that says nothing of the time that would be reported. Numbers are fp16, fp32
where a file says so (`DTYPE`). `-`: the cheat speaks the words of our judge alone; what it would write to another is not known.

"""


def by_us(file):
    verdict, twin = (answer[0] for answer in judge_test.both(file))
    what = judge_test.named(file)["CAUGHT_BY"]
    if what == "time_ms":
        said = "accepted, and its time is true" if verdict["time_ms"] >= judge_test.named(file)["AT_LEAST_MS"] else "accepted"
    elif what.startswith("flag "):
        said = f"accepted, and said: {what.removeprefix('flag ')}" if what.removeprefix("flag ") in verdict["flags"] else "accepted"
    else:
        said = "accepted" if verdict["verdict"] == "passed" else f"caught: {verdict['reason'].partition(',')[0].partition(';')[0]}"
    return f"{said} / {'accepted' if twin['verdict'] == 'passed' else 'rejected: ' + twin['reason']}"


def main():
    rows = ["| family | cheat | " + " | ".join(rules.RULES) + " | attest judge |", "| --- " * (len(rules.RULES) + 3) + "|"]
    totals, others = dict.fromkeys([*rules.RULES, "us"], 0), 0
    for file in sorted(judge_test.CHEATS, key=lambda each: (judge_test.named(each)["FAMILY"], each.name)):
        cells, dtype = [], judge_test.type_of(file)
        for rule in rules.RULES:
            cheat, twin = rules.applied(rule, file, "cheat", dtype), rules.applied(rule, judge_test.twin_of(file), "twin", dtype)
            is_about_it = "ONLY_HERE" not in judge_test.named(file)
            totals[rule] += is_about_it and cheat.startswith("caught")
            cells.append(f"{cheat if is_about_it else '-'} / {'accepted' if twin == 'accepted' else 'rejected'}")
        ours = by_us(file)
        totals["us"] += not ours.startswith("accepted /")
        others += "ONLY_HERE" not in judge_test.named(file)
        rows.append(f"| {judge_test.named(file)['FAMILY']} | [{file.stem}]({file.name}) | " + " | ".join([*cells, ours]) + " |")
    rows.append("| | caught | " + " | ".join(f"{total} of {len(judge_test.CHEATS) if who == 'us' else others}" for who, total in totals.items()) + " |")
    rows += ["", "Shared objects, which the rules of the others do not take:", "", "| family | cheat | attest judge |", "| --- | --- | --- |"]
    for file in sorted(judge_test.PLUGINS, key=lambda each: (judge_test.named(each)["FAMILY"], each.name)):
        rows.append(f"| {judge_test.named(file)['FAMILY']} | [{file.stem}]({file.name}) | {by_us(file)} |")
    left = "\n".join(f"- {family}: {why}" for family, why in judge_test.NOT_EXPRESSIBLE.items())
    tail = f"\n\nFamilies that take a GPU or several, and are not here:\n\n{left}\n- of 7 and 14 what is about streams and the L2\n"
    (HERE / "cheat_matrix.md").write_text(HEAD + "\n".join(rows) + tail)


if __name__ == "__main__":
    main()
