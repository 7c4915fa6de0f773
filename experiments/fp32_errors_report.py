"""Makes a table of fp32 errors side by side from the records of `attest errors`.

    python3 experiments/fp32_errors_report.py --records errors_fp32.jsonl --out experiments/results/h200/errors_fp32.md

Nothing is computed anew but ratios.
"""

import argparse
import math
import pathlib
import statistics

from records import read, values

OURS, OTHERS = "fp32_wgmma", {"k10_wide_tiles": "K10", "torch_sdpa_efficient": "PyTorch"}
MEASURES = {"rmse": "RMSE", "max_abs_error": "largest error"}


def tables(records):
    """{(problem, inputs): {contender: values}} of O."""
    found = {}
    for record in records:
        labels = record["labels"]
        if labels["tensor"] == "O":
            found.setdefault((labels["problem"], labels["inputs"]), {})[labels["contender"]] = values(record)
    return found


def ratio(row, other, measure):
    ours, theirs = float(row[OURS][measure]), float(row[other][measure])
    return ours / theirs if theirs > 0 else 1.0 if ours == 0 else math.inf


def summary(found):
    lines = ["| against | of inputs | RMSE smaller or equal | largest error smaller or equal | median ratio of RMSE | the others: RMSE, largest error |",
             "| --- | --- | --- | --- | --- | --- |"]
    for other, name in OTHERS.items():
        rows = {key: row for key, row in found.items() if other in row}
        ratios = {measure: {key: ratio(row, other, measure) for key, row in rows.items()} for measure in MEASURES}
        worse = [f"{inputs}, {problem.removesuffix(' fp32')}: {ratios['rmse'][key]:.2f}x, {ratios['max_abs_error'][key]:.2f}x"
                 for key in rows for problem, inputs in [key] if max(ratios[measure][key] for measure in MEASURES) > 1]
        counts = [sum(value <= 1 for value in ratios[measure].values()) for measure in MEASURES]
        lines.append(f"| {name} | {len(rows)} | {counts[0]} | {counts[1]} | {statistics.median(ratios['rmse'].values()):.2f} "
                     f"| {'; '.join(worse) or 'none'} |")
    return "\n".join(lines)


def details(found):
    lines = ["| inputs | problem | RMSE: `fp32_wgmma` | K10 | PyTorch | largest error: `fp32_wgmma` | K10 | PyTorch |",
             "| --- |" + " --- |" * 7]
    for (problem, inputs), row in found.items():
        cells = [f"{float(row[contender][measure]):.3g}" if contender in row else ""
                 for measure in MEASURES for contender in (OURS, *OTHERS)]
        lines.append(f"| {inputs} | {problem.removesuffix(' fp32')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def report(paths):
    """The tables of record files, as Markdown."""
    records = [record for path in paths for record in read(path)]
    commits = sorted({record["provenance"]["commit"] for record in records})
    devices = sorted({record["provenance"]["device"] or record["labels"].get("outputs_made_by", "") for record in records})
    found = tables(records)
    return (
        f"# Errors of fp32 attention\n\n{'; '.join(devices)}; commit {', '.join(commits)}, {records[0]['provenance']['date'][:10]}. "
        "Errors of O against the f64 reference, rows of which the\n113-bit oracle certified; `attest errors` made the records, "
        "`fp32_errors_report.py` this table. Magnitudes are 1 or what `attest list\ninputs` gives first, unless named.\n\n"
        f"{summary(found)}\n\n{details(found)}\n")



def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--records", required=True, nargs="+")
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    options.out.write_text(report(options.records))


if __name__ == "__main__":
    main()
