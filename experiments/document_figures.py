"""Figures in the sentences of the documents: (document, sentence with a format in each place, the figures). See documents.py."""

import csv
import json
import math
import statistics

import forward_grid_tables
import fp32_errors_report
import hardware_check
from document_tables import POST, RESULTS, found, timed
from records import counters_by_run, geometric_mean, read, sizes, values

PAIRS = "qt32 kt32 tm4 tn4 loop_order={} normalise={} masked_tiles={} exp={} passes={}"
USUAL = ("queries_outside", "at_the_end", "boundary", "fast", "one")


def loss(mask, slower, than):
    """By how many percent a step of the ladder is slower than an earlier one, in rate."""
    slow, fast = (timed("h200/ladder.jsonl", name, f"b8 h12 n4096 d64 {mask} fp32")["rate"] for name in (slower, than))
    return 100 * (1 - slow / fast)


def pair_ratio(mask, **change):
    """Time with one choice of f_controlled_pairs changed, over that with the usual choices."""
    names = ("loop_order", "normalise", "masked_tiles", "exp", "passes")
    changed = [change.get(name, usual) for name, usual in zip(names, USUAL)]
    shape = f"b8 h12 n4096 d64 {mask} fp32"
    times = [timed("h200/pairs.jsonl", "f_controlled_pairs", shape, PAIRS.format(*plan))["time"] for plan in (changed, USUAL)]
    return times[0] / times[1]


def swizzle():
    """DRAM traffic of the worst order of blocks over the best, and by how many percent their times differ, 64 rows a tile."""
    runs = {plan: hardware_check.measured(run)["dram"] for (_, kernel, plan), run in
            counters_by_run(read(RESULTS / "h200/counters.jsonl")).items() if plan.startswith("qt64") and kernel == "fa2_mma"}
    bytes_of = {order: next(dram for plan, dram in runs.items() if order in plan) for order in ("q_slowest", "q_fastest")}
    times = {order: timed("h200/grid_orders.jsonl", "fa2_mma", POST, f"qt64 kt64 w4 st2 grid_order={order}")["time"] for order in bytes_of}
    return bytes_of["q_slowest"] / bytes_of["q_fastest"], 100 * abs(times["q_slowest"] / times["q_fastest"] - 1)


def grid(name="grid"):
    return forward_grid_tables.by_set(read(RESULTS / "h200/forward_grid.jsonl"))[name]


def over_fa2():
    return {shape: forward_grid_tables.speeds(shape, contenders)["FA2"] for shape, contenders in grid().items()}


def cudnn_over_ours():
    return 1 / geometric_mean([forward_grid_tables.speeds(shape, contenders)["cuDNN"] for shape, contenders in grid().items()])


def causal_over_tiles():
    rows = [(shape, contenders["fa2_mma"][1]) for shape, contenders in grid().items()]
    ratios = [row["causal_over_full"] / row["causal_tiles_over_full"] for shape, row in rows
              if "causal_over_full" in row and sizes(shape)["n"] >= 4096]
    return min(ratios), max(ratios)


def range_of(set_name, measure, contender="fa2_mma", scale=1.0):
    found_there = [contenders[contender][1][measure] * scale for contenders in grid(set_name).values()
                   if contender in contenders and measure in contenders[contender][1]]
    return min(found_there), max(found_there)


def fp32_speed(kernel, dim, plan, record="h200/fp32_speed.jsonl"):
    batch = {64: 8, 128: 4}[dim]
    row = timed(record, kernel, f"b{batch} h12 n4096 d{dim} none fp32", plan)
    return row["rate"], row["speed_over_baseline"]


def against(other):
    """Inputs that both were asked, and of those with a smaller or equal RMSE, and largest error; the median ratios of both."""
    rows = [row for row in fp32_errors_report.tables(read(RESULTS / "h200/errors_fp32.jsonl")).values() if other in row]
    ratios = [[fp32_errors_report.ratio(row, other, measure) for row in rows] for measure in fp32_errors_report.MEASURES]
    return len(rows), *(sum(ratio <= 1 for ratio in of) for of in ratios), statistics.median(ratios[0])


def deviations(quantity):
    """[(kernel, plan, mask, measured over predicted - 1, measured - predicted)] of the launches that were counted."""
    runs = counters_by_run(read(RESULTS / "h200/counters.jsonl"))
    rows = []
    for ((shape, kernel, plan), run), explanation in zip(runs.items(), read(RESULTS / "h200/hardware_check.jsonl"), strict=True):
        expected, counted = hardware_check.predicted(explanation)[quantity], hardware_check.measured(run)[quantity]
        rows.append((kernel, plan, "causal" if "causal" in shape else "full", counted / expected - 1, counted - expected))
    return rows


MERGED = ("k4_register_tile", "k5_padded_tiles")  # nvcc merges loads that the source has apart


def largest_deviation(quantity, but_for):
    """In percent, or points of a percentage, rounded up, of the launches that `but_for` does not except."""
    in_points = quantity == "l2_hit"
    return math.ceil(max(abs(apart if in_points else 100 * over) for *launch, over, apart in deviations(quantity) if not but_for(*launch)))


def extremes(quantity, holds):
    found_there = [100 * abs(over) for *launch, over, _ in deviations(quantity) if holds(*launch)]
    return min(found_there), max(found_there)


def of_l2_exceptions(kernel, plan, mask):
    return kernel in ("k0_standard", "k1_naive") or (kernel == "k10_wide_tiles" and mask == "causal")


def tensor_instructions():
    with open(RESULTS / "h200/sdpa_fp32_ncu.csv", newline="") as file:
        return int(next(csv.DictReader(file))["sm__inst_executed_pipe_tensor.sum"].replace(",", ""))


def readings(part, unit, benchmark=""):
    """{reading: {measurement: value}} of microbench records whose reading has `part` in it."""
    return {record["labels"]["reading"]: values(record) for record in read(RESULTS / "h200/microbench.jsonl")
            if part in record["labels"]["reading"] and benchmark in record["labels"]["benchmark"] and record["measurements"][0]["unit"] == unit}


def reading(name, unit):
    return readings(name, unit)[name]["median"]


def best_of_loop(tile, kind):
    """The fastest order of the inner loop of a tile whose softmax is of this kind: lazy or unchecked."""
    return max(row["median"] for name, row in readings(f"{tile}, ", "FLOP/clk/SM", "mainloop_orders").items()
               if name.endswith(kind))


def in_loop(tile, order):
    return reading(f"{tile}, {order}", "FLOP/clk/SM")


def lazy_over_eager(tile):
    return in_loop(tile, "overlap, lazy") / in_loop(tile, "overlap")


def emulated_exponentials():
    """Percent: what exponentials on FMA gain in a softmax alone, lose in the inner loop, least and most, and gain there without maximum."""
    alone = readings(" emulated, ", "scores/clk/SM")
    best = {is_some: max(row["median"] for name, row in alone.items() if name.startswith("0.0 %") != is_some) for is_some in (True, False)}
    kept = [in_loop("D64 192x128", f"{order}, 12.5 % emulated") / in_loop("D64 192x128", order)
            for order in ("turns, lazy", "overlap, lazy", "turns, unchecked")]
    return 100 * (best[True] / best[False] - 1), 100 * (1 - kept[0]), 100 * (1 - kept[1]), 100 * (kept[2] - 1)


def l2_bandwidths():
    """Bytes a clk and SM that TMA brings from the L2 in boxes of 16 KB to 132 SMs: distinct data, least and most, and the same for all."""
    found = {int(name.split(" x ")[0]): row["median"] for name, row in readings(" MiB, 132 SMs, 16 KB boxes", "B/clk/SM").items()}
    distinct = [rate for parts, rate in found.items() if parts >= 8]
    return min(distinct), max(distinct), found[1]


def sustained(measurement):
    found_there = [row[measurement] for row in readings("normal values, 0.5 s", "TFLOP/s").values()]
    return min(found_there), max(found_there)


def causal_speeds_at_1024():
    """The least and the greatest speed under a causal mask over that without, a kernel and an order of tiles at a time."""
    times = {}
    for record in read(RESULTS / "h200/studies/causal_balance/records.jsonl"):
        labels = record["labels"]
        if record["kind"] == "study" and labels["axis.problem.length"] == "1024":
            times.setdefault((labels["contender"], labels["axis.plan.grid_order"]), {})[labels["axis.problem.mask"]] = values(record)["time"]
    ratios = [by_mask["none"] / by_mask["causal_bottom_right"] for by_mask in times.values()]
    return min(ratios), max(ratios)


README, DESIGN, MEASURED = "README.md", "DESIGN.md", "experiments/results/README.md"
FIGURES = [
    (MEASURED, "for {} launches `attest explain` gives registers exactly", lambda: [len(read(RESULTS / "h200/hardware_check.jsonl"))]),
    (MEASURED, "bank conflicts included, within {:.0f} % but for K4 and K5, where nvcc merges loads ({:.0f} to {:.0f} % fewer)",
     lambda: [largest_deviation("shared_load_passes", lambda kernel, *_: kernel in MERGED),
              *extremes("shared_load_passes", lambda kernel, *_: kernel in MERGED)]),
    (MEASURED, "DRAM bytes within {:.0f} % but for two launches in groups of four heads ({:.0f} and {:.0f} % more were measured)",
     lambda: [largest_deviation("dram", lambda kernel, plan, mask: "grouped" in plan),
              *extremes("dram", lambda kernel, plan, mask: "grouped" in plan)]),
    (MEASURED, "each kernel is\n{:.2f} to {:.2f} times as fast under the mask at N 1024", causal_speeds_at_1024),
    (MEASURED, "L2 hits within {:.0f} points but for K0, K1 and K10 causal", lambda: [largest_deviation("l2_hit", of_l2_exceptions)]),
    (MEASURED, "ncu counts {:,} tensor-core instructions", lambda: [tensor_instructions()]),
    (MEASURED, "asynchronous copies (K9) lost {:.0f} and {:.0f} %, at D 64 full",
     lambda: [loss("none", "k6_sliced_dims", "k5_padded_tiles"), loss("none", "k9_async_copy", "k8_padded_queries")]),
    (MEASURED, "`core/attention/grid_order_test.cpp`). {:.0f} times less DRAM traffic changes the time of this kernel by {:.0f} %: memory", swizzle),
    (MEASURED, "expf or exp2 instead of __expf each change the time by less than {:.0f} %;",
     lambda: [math.ceil(max(100 * abs(pair_ratio(mask, **change) - 1) for mask in ("none", "causal_top_left")
                            for change in ({"normalise": "every_step"}, {"masked_tiles": "all"}, {"exp": "library"}, {"exp": "exp2"})))]),
    (MEASURED, "forming Q K^T twice costs {:.2f}x full and {:.2f}x causal",
     lambda: [pair_ratio(mask, passes="two") for mask in ("none", "causal_top_left")]),
    (MEASURED, "FA1's loop order {:.1f}x and {:.1f}x.",
     lambda: [pair_ratio(mask, loop_order="keys_outside") for mask in ("none", "causal_top_left")]),
    (MEASURED, "Geomean {:.3f}x; {} of {} shapes are at 0.95x or more, `b32 h8 n512 d256` full is at {:.3f}x.",
     lambda: [geometric_mean(list(over_fa2().values())), sum(ratio >= 0.95 for ratio in over_fa2().values()), len(over_fa2()),
              over_fa2()["b32 h8 n512 d256 none bf16"]]),
    (MEASURED, "which uses Hopper's own instructions, is {:.2f}x as fast", lambda: [cudnn_over_ours()]),
    (MEASURED, "the causal mask takes {:.2f} to {:.2f} times its share of the tiles", causal_over_tiles),
    (MEASURED, "8 query heads a key head take {:.2f} to {:.2f} of the time", lambda: range_of("grouped", "grouped_over_all_heads")),
    (MEASURED, "Batches of mixed lengths are slow: {:.0f} to {:.0f} % of the rate",
     lambda: range_of("lengths", "rate_over_dense", scale=100)),
    (MEASURED, "D 64 {:.0f} TFLOP/s, **{:.2f}x** PyTorch's fp32 SDPA; D 128 {:.0f}, **{:.2f}x** (N 4096, full)",
     lambda: [*fp32_speed("fp32_wgmma", 64, "products=automatic"), *fp32_speed("fp32_wgmma", 128, "products=automatic")]),
    (MEASURED, "three: {:.0f} TFLOP/s, {:.2f}x (D 64), {:.0f}, {:.2f}x (D 128); one: {:.2f}x, {:.2f}x",
     lambda: [*fp32_speed("tf32_mma", 64, "tf32_x3", "h200/tf32_speed.jsonl"), *fp32_speed("tf32_mma", 128, "tf32_x3", "h200/tf32_speed.jsonl"),
              fp32_speed("tf32_mma", 64, "kt64", "h200/tf32_speed.jsonl")[1], fp32_speed("tf32_mma", 128, "kt64", "h200/tf32_speed.jsonl")[1]]),
    (MEASURED, "on all {} inputs asked, and less than K10, our fp32 FMA kernel, on {} of {} by RMSE and {} by the largest error",
     lambda: [against("torch_sdpa_efficient")[0], against("k10_wide_tiles")[1], against("k10_wide_tiles")[0], against("k10_wide_tiles")[2]]),
    (MEASURED, "medians {:.2f} and {:.2f} of their RMSE", lambda: [against(other)[3] for other in ("torch_sdpa_efficient", "k10_wide_tiles")]),
    (MEASURED, "700 W hold bf16 at {:.0f} to {:.0f} TFLOP/s; packed", lambda: sustained("median")),
    ("gpu/kernels/fp32_wgmma/README.md", "bf16 parts for all rows: {:.0f} and {:.0f} TFLOP/s, full.",
     lambda: [fp32_speed("fp32_wgmma", dim, "products=bf16_x6")[0] for dim in (64, 128)]),
    ("gpu/kernels/fp32_wgmma/README.md", "RMSE {:.2f} times K10's (median of {} pairs of inputs and problem), {:.2f} times PyTorch's ({}).",
     lambda: [against("k10_wide_tiles")[3], against("k10_wide_tiles")[0], against("torch_sdpa_efficient")[3],
              against("torch_sdpa_efficient")[0]]),
    (DESIGN, "| {:.2f} to {:.2f} GHz at 700 W on random values: {:.0f} to {:.0f} TFLOP/s |",
     lambda: [*(mhz * 1e-3 for mhz in sustained("sm_clock")), *sustained("median")]),
    (DESIGN, "a softmax alone gains {:.0f} %; in the inner loop it loses {:.0f} to {:.0f} %, one without maximum gains {:.0f} % |", emulated_exponentials),
    (DESIGN, "gains {:.0f} % at D128 128x128, {:.0f} % at D64 192x128, {:.0f} % at D256 128x80; loses {:.0f} % at D64 256x80",
     lambda: [*(100 * (lazy_over_eager(tile) - 1) for tile in ("D128 128x128", "D64 192x128", "D256 128x80")), 100 * (1 - lazy_over_eager("D64 256x80"))]),
    (DESIGN, "| {:.0f} to {:.0f} B of distinct data, {:.0f} B where SMs read the same;", l2_bandwidths),
    (DESIGN, "softmaxes of 1, 2, 3 WGs get {:.1f}, {:.1f}, {:.1f} scores",
     lambda: [reading(f"softmax, {n} WG beside 1 WG of SS m64n128k16", "scores/clk/SM") for n in (1, 2, 3)]),
    (DESIGN, "| D64 192x128 {:.0f}, D128 128x128 {:.0f}, 192x96 {:.0f}, D256 128x80 {:.0f} FLOP |",
     lambda: [best_of_loop(tile, "lazy") for tile in ("D64 192x128", "D128 128x128", "D128 192x96", "D256 128x80")]),
    (DESIGN, "| D64 192x128 {:.0f}, D128 128x128 {:.0f}, 192x80 {:.0f} FLOP |",
     lambda: [best_of_loop(tile, "unchecked") for tile in ("D64 192x128", "D128 128x128", "D128 192x80")]),
]
