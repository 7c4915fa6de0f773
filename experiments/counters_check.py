"""Reads the same counters of the same launches twice: in this process, through CUPTI, and under Nsight Compute.

    PYTHONPATH=experiments python3 experiments/counters_check.py --library build/release/lib/libattest_kernels.so \
        --set fa3 --out counters.jsonl
    python3 experiments/counters_check.py --report counters.jsonl --out counters.md

Needs a GPU whose counters may be read, PyTorch, CUPTI and ncu. Both flush the caches before each pass, and leave the clocks alone.
A record for each launch and source (`source`: cupti, ncu). --report holds one against the other and needs no GPU.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

import ncu_csv
from records import read, values

GROUPS = ["dram", "l2", "tensor", "shared", "occupancy", "stalls"]
DURATION = "gpu__time_duration.sum"
DIMS = ["b2 h32 n8192 d64", "b2 h16 n8192 d128", "b2 h8 n8192 d256"]
SHORT = ["b32 h16 n512 d128", "b16 h16 n1024 d128", "b32 h8 n512 d256", "b8 h8 n2048 d256"]
SETS = {
    "fa3": [(f"{shape} {mask} bf16", contender) for shape in DIMS for mask in ("none", "causal_top_left")
            for contender in ("fa3_wgmma", "torch_sdpa_cudnn")],
    "short": [(f"{shape} causal_top_left bf16", contender) for shape in SHORT for contender in ("fa3_wgmma", "torch_sdpa_cudnn")],
    "ladder": [("b8 h12 n4096 d64 none fp32", kernel) for kernel in ("k5_padded_tiles", "k10_wide_tiles")]
              + [("b4 h16 n4096 d128 causal_top_left bf16", "fa2_mma"), ("b4 h16 n4096 d128 none fp32", "fp32_wgmma")],
}


def contenders(library, launches):
    """(shape, contender, plan, call) each, one at a time."""
    import timing  # PyTorch: not for reports

    shape_text, tensors = None, None
    for text, contender in launches:
        if text != shape_text:
            shape_text, tensors = text, timing.Shape(text).tensors()
        if contender in timing.PEERS:
            yield text, contender, "-", timing.PEERS[contender](timing.Shape(text), *tensors)
            continue
        run = library.prepare(contender, text, "", *tensors)
        yield text, contender, run.plan, run
        run.close()


def launch_each(library, launches):
    """The child that ncu watches, from each marker on: a fill of a complex number by PyTorch, which nobody else makes."""
    import torch

    marker = torch.empty(1, device="cuda", dtype=torch.complex64)
    for _, _, _, call in contenders(library, launches):
        call()  # builds plans, loads code
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        marker.fill_(0)
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def of_run(counters, kernels):
    """[(name, value, unit)] of the counters from what ncu said of the run's kernels: sums, or of shares means by time."""
    total = math.fsum(found[DURATION] for _, found in kernels)

    def value(metric):
        is_share = "pct" in metric.rsplit(".", 1)[-1]
        return math.fsum(found[metric] * (found[DURATION] / total if is_share else 1) for _, found in kernels)

    rows = []
    for counter in counters:
        number = value(counter["metric"])
        if counter["per"] or counter["rest"]:
            per = number + value(counter["rest"]) if counter["rest"] else value(counter["per"])
            number = math.nan if per == 0 else number / per * (100 if counter["unit"] == "%" else 1)
        rows.append((counter["name"], number, counter["unit"]))
    return rows


def under_ncu(options, counters, launches):
    """What ncu said of each of the launches: [(name, metrics)] of its kernels."""
    metrics = {metric for counter in counters for metric in (counter["metric"], counter["per"], counter["rest"]) if metric} | {DURATION}
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--profile-from-start", "off",
               "--metrics", ",".join(sorted(metrics)), sys.executable, os.path.abspath(__file__),
               "--library", options.library, "--out", options.out, "--set", options.set, "--child"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"counters_check: ncu exited with {ran.returncode}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    groups = ncu_csv.launches_between_markers(ncu_csv.kernels(ran.stdout, metrics), marker="complex")
    if len(groups) != len(launches):
        sys.exit(f"counters_check: {len(groups)} launches seen under ncu, {len(launches)} made")
    return groups


def measure(options):
    import torch

    import timing

    launches = SETS[options.set]
    library = timing.open_library(options.library)
    if options.child:
        launch_each(library, launches)
        return
    counters = library.counters(GROUPS)
    plans = {}
    for shape, contender, plan, call in contenders(library, launches):
        call()
        torch.cuda.synchronize()
        plans[shape, contender] = plan
        rows = library.count(GROUPS, call)
        labels = {"shape": shape, "contender": contender, "plan": plan, "source": "cupti", "cache": "flushed"}
        library.append_record(options.out, "counters", labels, rows)
        said = {name: value for name, value, _ in rows}
        print(f"{shape:44} {contender:18} tensor {said['tensor_active']:5.1f} %  DRAM {said['dram_read_bytes'] * 1e-9:7.3f} GB read"
              f"  L2 hits {said['l2_hit_rate']:5.1f} %", flush=True)
    for (shape, contender), kernels in zip(launches, under_ncu(options, counters, launches)):
        labels = {"shape": shape, "contender": contender, "plan": plans[shape, contender], "source": "ncu", "cache": "flushed",
                  "functions": "; ".join(name for name, _ in kernels)}
        library.append_record(options.out, "counters", labels, of_run(counters, kernels))


COLUMNS = [("tensor_active", "tensor pipe active, %", 1, "{:.1f}"), ("dram_read_bytes", "DRAM read, GB", 1e-9, "{:.3f}"),
           ("dram_write_bytes", "written, GB", 1e-9, "{:.3f}"), ("l2_hit_rate", "L2 hits, %", 1, "{:.1f}"),
           ("shared_passes", "shared memory passes, M", 1e-6, "{:.2f}"),
           ("shared_conflict_passes", "of them conflicts, M", 1e-6, "{:.2f}"),
           ("achieved_occupancy", "occupancy, %", 1, "{:.1f}"), ("sm_balance", "SM balance, %", 1, "{:.1f}")]


SHARES = ("l2_hit_rate", "tensor_active", "achieved_occupancy", "sm_balance")


def difference(name, ours, theirs):
    """Of a share in points, of a sum in percent."""
    if name in SHARES or name.startswith("stall_"):
        return abs(ours - theirs)
    return abs(ours / theirs - 1) * 100 if theirs else 0.0 if ours == 0 else math.inf


def table(records):
    """Markdown: each launch, its counters in process, and what ncu said in parentheses."""
    runs = {}
    for record in records:
        labels = record["labels"]
        runs.setdefault((labels["shape"], labels["contender"], labels["plan"]), {})[labels["source"]] = values(record)
    lines = ["| shape | kernel | " + " | ".join(title for _, title, _, _ in COLUMNS) + " |",
             "| --- | --- | " + " | ".join(["---"] * len(COLUMNS)) + " |"]
    worst = {}
    for (shape, contender, plan), sources in runs.items():
        cells = []
        for name, _, scale, pattern in COLUMNS:
            ours, theirs = (float(sources[source][name]) for source in ("cupti", "ncu"))
            cells.append(f"{pattern.format(ours * scale)} ({pattern.format(theirs * scale)})")
        lines.append(f"| {shape} | {contender}{'' if plan == '-' else f' `{plan}`'} | {' | '.join(cells)} |")
        for name, theirs in sources["ncu"].items():
            worst[name] = max(worst.get(name, 0.0), difference(name, float(sources["cupti"][name]), float(theirs)))
    for title, are_shares in (("Largest difference of a share, in points", True), ("Of a sum, in percent", False)):
        found = [f"{name} {worst[name]:.2f}" for name in worst if (name in SHARES or name.startswith("stall_")) == are_shares]
        lines += ["", f"{title}: {', '.join(found)}."]
    return "\n".join(lines)


def report(paths):
    """The whole table of record files."""
    return "\n".join(["# Counters in process, and under Nsight Compute", "",
                      "Of each launch what CUPTI's range profiler counted in this process, in parentheses what ncu said of the same launch in",
                      "a process of its own; both with flushed caches and the clocks as they are (`experiments/counters_check.py`).", "",
                      table([record for path in paths for record in read(path)]), ""])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--library", help="libattest_kernels.so")
    arguments.add_argument("--set", choices=sorted(SETS), default="fa3", help="which launches; default fa3")
    arguments.add_argument("--report", nargs="+", help="make a table of these records instead")
    arguments.add_argument("--out", required=True, help="records are appended to this file (JSONL); with --report, the table")
    arguments.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.report:
        pathlib.Path(options.out).write_text(report(options.report))
    elif not options.library:
        arguments.error("--library is needed where something is to be measured")
    else:
        measure(options)


if __name__ == "__main__":
    main()
