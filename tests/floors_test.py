#!/usr/bin/env python3
"""No time that was measured on an H200 lies below what `attest explain` says is needed at best.
Arguments: the source tree, the binary. Of each kernel's recorded times: the one with the most FLOP/s."""
import json
import pathlib
import re
import subprocess
import sys

tree, attest = pathlib.Path(sys.argv[1]), sys.argv[2]


def timed(path):
    """(kernel, problem, plan, time in ms, TFLOP/s) of the records that have them."""
    for line in path.read_text().splitlines():
        record = json.loads(line)
        labels = record.get("labels", {})
        values = {m["name"]: m["value"] for m in record.get("measurements", [])}
        problem = labels.get("shape") or labels.get("problem")
        if problem and " shared" in problem:
            continue  # models do not know that entries may share pages
        if labels.get("contender") == "read_once":
            continue  # it computes nothing
        if problem and {"contender", "plan"} <= labels.keys() and values.get("time", 0) > 0 and "rate" in values:
            yield labels["contender"], problem, labels["plan"], values["time"], values["rate"]


def floors(kernel, problem, plan):
    """In ms, by name; nothing where the binary has no such kernel or no model of it."""
    command = [attest, "explain", kernel, "--problem", problem, "--plan", plan, "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        reasons = ("is unknown", "cannot run plan", "explain is about")
        assert any(reason in run.stderr for reason in reasons), run.stderr
        return {}
    found = json.loads(run.stdout)["time_floors_s"]
    del found["largest"]  # a name
    del found["shared_memory_as_written"]  # what the source says: nvcc may merge accesses
    ranks = max([1, *(int(size) for size in re.findall(r"\br(\d+)\b", plan))])  # floors are those of one GPU
    return {name: 1e3 * seconds / ranks for name, seconds in found.items() if seconds is not None}


kernels = set(subprocess.run([attest, "list", "kernels"], capture_output=True, text=True).stdout.split())
of_kernel = {}
for path in sorted((tree / "experiments/results/h200").rglob("*.jsonl")):
    for row in timed(path):
        if row[0] in kernels:
            of_kernel.setdefault(row[0], []).append(row)
chosen = [max(rows, key=lambda row: row[4]) for rows in of_kernel.values()]
checked = failures = 0
for kernel, problem, plan, time, _ in sorted(chosen):
    for name, floor in floors(kernel, problem, plan).items():
        checked += 1
        if not floor <= time:
            failures += 1
            print(f"FAILED: {kernel} {problem} {plan}: {name} needs {floor:.4g} ms, measured {time:.4g} ms")
print(f"{checked} floors of {len(chosen)} measured times, {failures} above them")
sys.exit(failures > 0 or checked == 0)
