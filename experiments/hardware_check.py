"""Holds what `attest explain` predicts without a GPU against the counters that ncu read on one.

    python3 experiments/hardware_check.py --attest build/release/bin/attest --counters counters.jsonl --out experiments/results/h200

Reads records of counters, one a launch, as Nsight Compute gave them, asks `attest explain --json --device h200` for each of their kernels, and writes
hardware_check.md and hardware_check.jsonl (the predictions, one JSON object a line).
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "notebooks"))
from attest_book.records import json_lines, read  # noqa: E402

# Of a run of several launches these are those of the longest one; other counters are sums.
OF_LONGEST = ("achieved_occupancy", "occupancy_limit", "registers", "shared_per_block", "blocks", "threads")


def counters_by_run(records):
    """{(shape, kernel, plan): counters}, from records of counters, one a launch."""
    runs, longest = {}, {}
    for record in records:
        labels, found = record.labels, record.values
        key = (labels["shape"], labels["contender"], labels["plan"])
        run = runs.setdefault(key, {})
        for name, value in found.items():
            if name not in OF_LONGEST:
                run[name] = run.get(name, 0.0) + value
        if found["duration_under_profiler"] > longest.get(key, -1.0):
            longest[key] = found["duration_under_profiler"]
            run.update({name: found[name] for name in OF_LONGEST if name in found})
    return runs


def explained(attest, shape, kernel, plan):
    command = [attest, "explain", kernel, "--problem", shape, "--device", "h200", "--json"]
    if plan != "-":
        command += ["--plan", plan]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"hardware_check: {' '.join(command)}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


def predicted(explanation):
    """The same quantities as the GPU's counters, under the same names."""
    values = {}
    l2 = explanation["traffic"].get("l2_model")
    if l2:
        values["dram"] = l2["read_bytes"] + l2["written_bytes"]
        values["l2_hit"] = 100 * l2["hit_rate"]
    largest = max(explanation["launches"], key=lambda launch: launch["grid"][0] * launch["grid"][1], default=None)
    if largest:
        values["occupancy"] = 100 * largest.get("occupancy_of_the_grid", largest["occupancy"])
        values["registers"] = largest["registers"]
        values["blocks"] = largest["grid"][0] * largest["grid"][1] * largest["grid"][2]
    for kernel in explanation["counters"].get("kernels", []):
        for line in kernel["lines"]:
            if "sectors" in line and line["access"] in ("read", "write"):
                key = "global_load_sectors" if line["access"] == "read" else "global_store_sectors"
                values[key] = values.get(key, 0) + line["sectors"]
            elif line.get("passes") is not None and line["access"] == "read":
                values["shared_load_passes"] = values.get("shared_load_passes", 0) + line["passes"]
                values["shared_load_requests"] = values.get("shared_load_requests", 0) + line["requests"]
    return values


def measured(run):
    values = {"dram": run["dram_read"] + run["dram_written"], "occupancy": run.get("achieved_occupancy"),
              "registers": run.get("registers"), "blocks": run.get("blocks"),
              "global_load_sectors": run["global_load_sectors"] + run.get("global_async_sectors", 0), "global_store_sectors": run["global_store_sectors"],
              "shared_load_passes": run["shared_load_wavefronts"], "shared_load_requests": run["shared_load_requests"]}
    if run.get("l2_sectors"):
        values["l2_hit"] = 100 * run["l2_sector_hits"] / run["l2_sectors"]
    return values


COLUMNS = [("dram", "DRAM, GB", 1e-9, "{:.3g}"), ("l2_hit", "L2 hit, %", 1, "{:.1f}"),
           ("global_load_sectors", "global load sectors, M", 1e-6, "{:.4g}"),
           ("global_store_sectors", "store sectors, M", 1e-6, "{:.4g}"),
           ("shared_load_requests", "shared load requests, M", 1e-6, "{:.4g}"),
           ("shared_load_passes", "shared load passes, M", 1e-6, "{:.4g}"),
           ("occupancy", "occupancy, %", 1, "{:.1f}"), ("registers", "registers", 1, "{:.0f}")]


def cell(values, name, scale, pattern):
    value = values.get(name)
    return "?" if value is None else pattern.format(value * scale)


def report(counters_path, explanations_path):
    """The table of two record files, as Markdown: what was counted, and what was said of each of its runs, in the same order."""
    records = read(counters_path)
    explanations = json_lines(explanations_path)
    rows = {}
    for ((shape, kernel, plan), run), explanation in zip(counters_by_run(records).items(), explanations, strict=True):
        if explanation["kernel"] != kernel:
            raise ValueError(f"{explanations_path}: {kernel} is wanted, this explains {explanation['kernel']}")
        expected, found = predicted(explanation), measured(run)
        row = [f"`{kernel}` {plan}"] + [f"{cell(expected, n, s, p)} \\| {cell(found, n, s, p)}" for n, _, s, p in COLUMNS]
        rows.setdefault(shape, []).append("| " + " | ".join(row) + " |")
    where = records[0].provenance
    text = ["# Predicted and measured\n\n"
            f"In each cell: what `attest explain` says without a GPU, then what ncu read on the GPU. {where['device']}; commit "
            f"{where['commit']}, {where['date'][:10]}.\nCounted by Nsight Compute, held against predictions by `hardware_check.py`. Shared loads are "
            "predicted as the source has them, one request an access;\nnvcc merges neighbours into 64- and 128-bit loads. L2 hits are "
            "sectors that SMs asked for.\n"]
    for shape, lines in rows.items():
        head = "| kernel, plan | " + " | ".join(title for _, title, _, _ in COLUMNS) + " |"
        text.append(f"## {shape}\n\n{head}\n|{' --- |' * (len(COLUMNS) + 1)}\n" + "\n".join(lines) + "\n")
    return "\n".join(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--attest", required=True)
    arguments.add_argument("--counters", required=True)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    explanations = [explained(options.attest, *run) for run in counters_by_run(read(options.counters))]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "hardware_check.jsonl").write_text("".join(json.dumps(e) + "\n" for e in explanations))
    (options.out / "hardware_check.md").write_text(report(options.counters, options.out / "hardware_check.jsonl"))


if __name__ == "__main__":
    main()
