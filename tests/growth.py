"""What a build and its tests cost, and how many instances kernels are compiled to: a table for CONTRIBUTING.md.

    python3 tests/growth.py build/release            prints the table; fails where a count grew past the committed one
    python3 tests/growth.py build/release --write    puts it into CONTRIBUTING.md

Reads ninja's log, the executor's objects and tests.xml, which ./attest test without arguments leaves in the build folder. Seconds are
shown and not judged. Exit codes: 0 nothing grew, 1 a count grew, 2 bad input.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "CONTRIBUTING.md"
MARK = re.compile(r"(?<=<!-- table: growth -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
EXECUTOR = "gpu/simt/CMakeFiles/attest_simt_kernels.dir/__/"  # objects of gpu/
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\(")
SLOW, LONG = 20, 5  # seconds of a test: how many are slow has a limit, the long ones are named
SHOWN = 0.01  # of all seconds: targets with less share a row
INSTANCES, SLOW_TESTS = "instances", f"tests over {SLOW} s"


class InvalidInput(Exception):
    """One line: what, got, allowed, where."""


# Seconds a target

def steps(log):
    """{output: (start, end, hash)} of ninja's log: the last time that each was made. Milliseconds of wall-clock time."""
    lines = log.read_text(errors="replace").splitlines()
    if not lines or not re.fullmatch(r"# ninja log v[5-7]", lines[0]):
        raise InvalidInput(f"the first line is '{lines[0] if lines else ''}', but must be '# ninja log v5', 6 or 7: {log}")
    made = {}
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 5 or not (fields[0].isdigit() and fields[1].isdigit()):
            raise InvalidInput(f"'{line}' is no step; wanted: start, end, time, output, hash: {log}, line {number}")
        made[fields[3]] = int(fields[0]), int(fields[1]), fields[4]
    return made


def seconds_of_targets(build):
    """{target: (steps, seconds)}; what is no object counts as `linking, generating, finding tests`. Outputs that are gone are left out."""
    seconds, seen = collections.defaultdict(list), set()
    for output, step in steps(build / ".ninja_log").items():
        if step in seen or not (build / output).exists():  # a step with several outputs has a line for each
            continue
        seen.add(step)
        target = re.search(r"CMakeFiles/(\w[\w.-]*)\.dir/", output)
        seconds[target[1] if target else "linking, generating, finding tests"].append((step[1] - step[0]) / 1000)
    return {target: (len(all_of_it), sum(all_of_it)) for target, all_of_it in seconds.items()}


# Instances a kernel

def without_arguments(symbol):
    """A demangled name without what stands in <>."""
    depth, kept = 0, []
    for character in symbol:
        depth += character == "<"
        if depth == 0:
            kept.append(character)
        depth -= character == ">"
    return "".join(kept)


def function_of(symbol):
    """The last name of a function that nm -C shows; None: it is something else, or within a function."""
    name = without_arguments(symbol.replace("(anonymous namespace)", "unnamed"))
    match = re.fullmatch(r"(?:void )?(?:\w+::)*(\w+)\([^()]*\)", name)
    return match[1] if match else None


def symbols(found):
    """[demangled name] of the functions that an object defines."""
    listed = subprocess.run(["nm", "-C", "--defined-only", str(found)], capture_output=True, text=True)
    if listed.returncode != 0:
        raise InvalidInput(f"nm reads no object: {listed.stderr.strip().splitlines()[-1] if listed.stderr.strip() else found}")
    return [line.split(" ", 2)[2] for line in listed.stdout.splitlines() if re.match(r"[0-9a-f]+ [TtWw] ", line)]


def instances_of_kernels(root, build, symbols=symbols):
    """{kernel: how many __global__ functions its objects hold}. A kernel is a file or a folder of gpu/kernels; an instance that several
    objects hold was compiled several times and counts so often. Objects whose source is gone are left out."""
    sources = [path for folder in ("kernels", "primitives") for path in (root / "gpu" / folder).glob("**/*.cu*")]
    names = {name for path in sources for name in KERNEL.findall(re.sub(r"//.*", "", path.read_text()))}
    counts = collections.Counter()
    for found in sorted((build / EXECUTOR / "kernels").glob("**/*.cu.o")):
        source = found.relative_to(build / EXECUTOR / "kernels").with_suffix("")
        if (root / "gpu/kernels" / source).exists():
            counts[source.parts[0].removesuffix(".cu")] += sum(function_of(symbol) in names for symbol in symbols(found))
    if not counts:
        raise InvalidInput(f"no object of a kernel; wanted: a build of everything (./attest test), in {build / EXECUTOR}")
    return dict(counts)


# Tests

def seconds_of_tests(report):
    """{test: seconds} of those that ran."""
    try:
        suite = xml.etree.ElementTree.parse(report).getroot()
        tests = {case.attrib["name"]: float(case.attrib["time"]) for case in suite.iter("testcase") if case.attrib["status"] in ("run", "fail")}
    except (xml.etree.ElementTree.ParseError, KeyError, ValueError) as wrong:
        raise InvalidInput(f"this is no report of ctest --output-junit ({wrong}): {report}") from None
    if not tests:
        raise InvalidInput(f"no test ran; wanted: the report of ./attest test: {report}")
    return tests


# The table

def markdown(*rows):
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join(["---"] * len(rows[0])) + " |", *lines[1:]])


def table(targets, instances, tests):
    everything = sum(seconds for _, seconds in targets.values())
    shown = {name: row for name, row in targets.items() if row[1] >= SHOWN * everything}
    rest = [row for name, row in targets.items() if name not in shown]
    by_seconds = [(name, count, f"{seconds:.0f}") for name, (count, seconds) in sorted(shown.items(), key=lambda row: -row[1][1])]
    if rest:
        by_seconds.append((f"others: {len(rest)}", sum(row[0] for row in rest), f"{sum(row[1] for row in rest):.0f}"))
    long = sorted(((seconds, name) for name, seconds in tests.items() if seconds > LONG), reverse=True)
    return "\n\n".join([
        markdown(("target", "steps", "seconds"), *by_seconds, ("all", sum(row[0] for row in targets.values()), f"{everything:.0f}")),
        markdown(("kernel on the executor", INSTANCES), *sorted(instances.items()), ("all", sum(instances.values()))),
        markdown(("tests", "number"), ("tests in all", len(tests)), (f"tests over {LONG} s", len(long)),
                 (SLOW_TESTS, sum(seconds > SLOW for seconds in tests.values()))),
        markdown((f"test over {LONG} s", "seconds"), *((name, f"{seconds:.0f}") for seconds, name in long))])


def counts_of(text):
    """{what: count} of the counts of a table that have a limit."""
    counts, is_kernel = {}, False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        is_kernel = line.startswith("|") and (is_kernel or cells[-1] == INSTANCES)
        if is_kernel and cells[1].isdigit() and cells[0] != "all":
            counts[f"{INSTANCES} of {cells[0]}"] = int(cells[1])
        elif cells[0] == SLOW_TESTS:
            counts[SLOW_TESTS] = int(cells[1])
    return counts


def grown(counts, committed):
    """[sentence]: what grew past the committed counts. Where none are committed nothing did; what is new grew from 0."""
    return [f"{what}: {count}, committed {committed.get(what, 0)}" for what, count in counts.items()
            if committed and count > committed.get(what, 0)]


def where(build, root):
    """The line above the table: the commit, the build, the machine."""
    commit = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "an unknown commit"
    processor = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"At {commit}, `{build}`, {os.cpu_count()} cores of {processor[1] if processor else 'an unknown processor'}:"


def committed_table(document):
    text = document.read_text()
    if len(MARK.findall(text)) != 1:
        raise InvalidInput(f"{len(MARK.findall(text))} tables between '<!-- table: growth -->' and '<!-- end of table -->', but must be 1: {document}")
    return MARK.search(text)[0]


def main(arguments, root=ROOT, document=DOCUMENT, symbols=symbols):
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="a folder that ninja built and ./attest test tested: build/release")
    parser.add_argument("--write", action="store_true", help="put the table into CONTRIBUTING.md: what grew is then allowed")
    parser.error = lambda message: parser.exit(2, f"growth: {message} (python3 tests/growth.py --help)\n")
    options = parser.parse_args(arguments)
    build = pathlib.Path(options.build)
    try:
        for name in (".ninja_log", "tests.xml"):
            if not (build / name).exists():
                raise InvalidInput(f"there is no {name}; wanted: a folder that ninja built and ./attest test tested: {build}")
        made = table(seconds_of_targets(build), instances_of_kernels(root, build, symbols), seconds_of_tests(build / "tests.xml"))
        before = committed_table(document)
    except (InvalidInput, OSError) as wrong:
        print(f"growth: {wrong}", file=sys.stderr)
        return 2
    made = f"{where(options.build, root)}\n\n{made}\n"
    if options.write:
        document.write_text(MARK.sub(lambda _: made, document.read_text()))
        print(f"wrote {document}")
        return 0
    print(made, end="")
    more = grown(counts_of(made), counts_of(before))
    for sentence in more:
        print(f"growth: {sentence}", file=sys.stderr)
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
