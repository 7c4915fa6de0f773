"""Reads the GPU's own counters of our kernels with Nsight Compute, to hold against what `attest explain` predicts.

    PYTHONPATH=experiments python3 experiments/hardware_counters.py --library build/release/lib/libattest_kernels.so \
        --out counters.jsonl [--set ladder|orders]

Needs a GPU whose counters may be read, PyTorch and ncu. A launch under ncu is replayed once for each group of counters
with cold caches (ncu's default), so its duration is no timing: experiments/ladder.py measures that.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import torch

import grid_orders
import ladder
import ncu_csv
import timing

# ncu's name, ours, the unit we record.
METRICS = [
    ("gpu__time_duration.sum", "duration_under_profiler", "ns"),
    ("dram__bytes_read.sum", "dram_read", "B"),
    ("dram__bytes_write.sum", "dram_written", "B"),
    ("lts__t_sectors_srcunit_tex.sum", "l2_sectors", "1"),
    ("lts__t_sectors_srcunit_tex_lookup_hit.sum", "l2_sector_hits", "1"),
    ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "shared_load_conflicts", "1"),
    ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "shared_store_conflicts", "1"),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "shared_load_wavefronts", "1"),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "shared_store_wavefronts", "1"),
    ("smsp__sass_inst_executed_op_shared_ld.sum", "shared_load_requests", "1"),
    ("smsp__sass_inst_executed_op_shared_st.sum", "shared_store_requests", "1"),
    ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "global_load_requests", "1"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "global_load_sectors", "1"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum", "global_async_sectors", "1"),  # cp.async
    ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "global_store_requests", "1"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "global_store_sectors", "1"),
    ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "ffma", "1"),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "achieved_occupancy", "%"),
    ("sm__maximum_warps_per_active_cycle_pct", "occupancy_limit", "%"),
    ("launch__registers_per_thread", "registers", "1"),
    ("launch__shared_mem_per_block_dynamic", "shared_per_block", "B"),
    ("launch__grid_size", "blocks", "1"),
    ("launch__block_size", "threads", "1"),
]

# Kernels that take seconds: counted without a mask only, since ncu repeats a launch for each group of counters.
SLOW = ("k1_naive", "k2_coalesced", "k3_sequence_parallel")


def launches_of(name):
    """(shape, kernel, plan) each."""
    if name == "orders":
        return grid_orders.launches()
    return [(f"{ladder.LEDGER} {mask} fp32", kernel, plan) for mask in ("none", "causal_top_left")
            for kernel, plan in ladder.RUNGS if mask == "none" or kernel not in SLOW]


def launch_each(library_path, launches):
    """The child: what ncu watches. A fill by PyTorch stands before each of ours, so that the parent can tell them apart."""
    library = timing.open_library(library_path)
    marker = torch.empty(1, device="cuda")
    shape, tensors = None, None
    for text, kernel, plan in launches:
        if text != shape:
            shape, tensors = text, timing.Shape(text).tensors()
        run = library.prepare(kernel, text, plan, *tensors)
        marker.fill_(0)
        run()
        torch.cuda.synchronize()
        run.close()


def known_metrics():
    """Those of METRICS that this version of ncu has for the chip."""
    listed = subprocess.run(["ncu", "--query-metrics", "--chips", "gh100"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in listed.splitlines() if line.strip()}
    return [name for name, _, _ in METRICS if name.split(".")[0] in names or name.startswith("launch__")]


def main():
    arguments = timing.parser(__doc__.splitlines()[0])
    arguments.add_argument("--set", choices=("ladder", "orders"), default="ladder")
    arguments.add_argument("--raw", help="keep what ncu printed in this file")
    arguments.add_argument("--child", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.child:
        launch_each(options.library, json.loads(options.child))
        return
    launches = launches_of(options.set)
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--metrics", ",".join(known_metrics()),
               sys.executable, os.path.abspath(__file__), "--library", options.library, "--out", options.out,
               "--child", json.dumps(launches)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"hardware_counters: ncu exited with {ran.returncode}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    if options.raw:
        pathlib.Path(options.raw).write_text(ran.stdout)
    groups = ncu_csv.launches_between_markers(ncu_csv.kernels(ran.stdout, {name for name, _, _ in METRICS}))
    if len(groups) != len(launches):
        sys.exit(f"hardware_counters: {len(groups)} launches seen, {len(launches)} made")
    library = timing.open_library(options.library)
    for (shape, kernel, plan), group in zip(launches, groups):
        for name, values in group:
            rows = [(ours, values[theirs], unit) for theirs, ours, unit in METRICS if theirs in values]
            labels = {"contender": kernel, "function": name, "shape": shape, "plan": plan or "-"}
            library.append_record(options.out, "counters", labels, rows)
        print(f"{shape:32} {kernel:24} {plan:40} {len(group)} launches", flush=True)


if __name__ == "__main__":
    main()
