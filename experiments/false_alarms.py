#!/usr/bin/env python3
"""How often the judge rejects a correct kernel: `attest verify` over many seeds, counted by kernel and layer.

    python3 experiments/false_alarms.py --seeds 101-110 --record false_alarms.jsonl -- --jobs 16

What stands behind `--` goes to attest verify. Every seed runs in a folder of its own beside the record; what it printed of an alarm stays there.
One record a kernel and executor: cases judged, cases with nothing decided, and alarms by layer, summed over the seeds. A kernel gets no
more cases of a seed after its first alarm. Negative controls are left out. Exit code 1: there was an alarm.
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "notebooks"))
from attest_book.records import read, record_of  # noqa: E402

LAYERS = ("exact", "bound", "statistics", "no answer")  # no answer: crashed or timed out


def upper_rate(alarms, cases):
    """Largest rate that still gives so few alarms in one campaign of twenty: the exact binomial limit, by bisection."""
    if alarms >= cases:
        return 1.0

    def chance(rate):  # of at most `alarms`
        term = (1.0 - rate) ** cases
        total = term
        for k in range(alarms):
            term *= (cases - k) / (k + 1) * rate / (1.0 - rate)
            total += term
        return total

    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > 0.05 else (low, middle)
    return high


def is_negative_control(record):
    return record.verdict != "passed" and record.labels["expected"] == "yes"


def layer_of(record):
    return record.labels.get("layer", "no answer") if record.verdict == "failed" else "no answer"


def summed(records, seeds):
    """Records of many campaigns as one a kernel and executor, as JSON objects."""
    sums = {}
    for record in records:
        if record.kind != "verify" or is_negative_control(record):
            continue
        of, key = record.values, (record.labels["kernel"], record.labels["executor"])
        row = sums.setdefault(key, {"cases": 0.0, "vacuous_cases": 0.0, **{f"alarms.{layer}": 0.0 for layer in LAYERS},
                                    "provenance": record.provenance})
        row["cases"] += of["cases"]
        row["vacuous_cases"] += of["vacuous_cases"]
        if record.verdict in ("failed", "crashed", "timed_out"):
            row[f"alarms.{layer_of(record)}"] += 1
    return [{"schema": 1, "kind": "false_alarms", "case": None, "verdict": "",
             "labels": {"kernel": kernel, "executor": executor, "seeds": seeds},
             "measurements": [{"name": name, "value": value, "unit": "1"} for name, value in row.items() if name != "provenance"],
             "provenance": row["provenance"]} for (kernel, executor), row in sorted(sums.items())]


def totals(records):
    """Judged cases in which something was decided, and alarms by layer."""
    of = [record.values for record in records]
    return (int(sum(row["cases"] - row["vacuous_cases"] for row in of)),
            {layer: int(sum(row[f"alarms.{layer}"] for row in of)) for layer in LAYERS})


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", required=True, help="FIRST-LAST: one campaign a seed")
    parser.add_argument("--program", default="build/release/bin/attest")
    parser.add_argument("--record", required=True, type=pathlib.Path)
    parser.add_argument("verify", nargs="*", help="arguments of attest verify, behind --")
    options = parser.parse_args()
    records = []
    for seed in seeds_of(options.seeds):
        out = options.record.with_name(f"{options.record.stem}_{seed}")
        done = subprocess.run([options.program, "verify", "--seed", str(seed), "--out", str(out), *options.verify],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / "printed.txt").write_text(done.stdout)
        if done.returncode not in (0, 1, 4):
            print(f"seed {seed}: attest verify ended with exit code {done.returncode}", file=sys.stderr)
            return done.returncode
        records += read(out / "verify.jsonl")
        lines = summed(records, f"{options.seeds.partition('-')[0]}-{seed}")
        options.record.write_text("".join(json.dumps(line) + "\n" for line in lines))  # so far: it may be stopped
        cases, alarms = totals(record_of(line, "a sum") for line in lines)
        print(f"seed {seed}: {cases} cases so far, alarms {alarms}", flush=True)
    for layer, count in alarms.items():
        print(f"{layer}: {count} alarms in {cases} cases, rate at most {upper_rate(count, cases):.2g}")
    return 1 if any(alarms.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
