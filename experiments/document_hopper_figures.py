"""Figures in sentences about fa3_wgmma and about studies: (document, sentence with a format in each place, the figures). See documents.py."""

import functools

import forward_grid_tables
from document_error_figures import layer_over_floor, layers, over_floor
from document_tables import RESULTS
from forward_grid_tables import BETTER
from records import geometric_mean, read, values

STUDIES = RESULTS / "h200/studies"


@functools.cache
def fa3_speeds():
    """{shape: {peer: fa3_wgmma's speed over it}} on FlashAttention-3's grid."""
    shapes = forward_grid_tables.by_set(read(RESULTS / "h200/forward_grid_fa3_wgmma.jsonl"))["grid"]
    return {shape: forward_grid_tables.speeds(shape, contenders) for shape, contenders in shapes.items()}


def fa3_over(peer):
    return [speeds[peer] for speeds in fa3_speeds().values()]


def fa3_at(dim, length, peer=BETTER):
    return next(speeds[peer] for shape, speeds in fa3_speeds().items() if {f"n{length}", f"d{dim}", "causal_top_left"} <= set(shape.split()))


def below_better():
    """Shapes of fa3_wgmma that are slower than the better of cuDNN and FlashAttention-3: how many, of how many, smallest and largest."""
    below = [ratio for ratio in fa3_over(BETTER) if ratio < 1]
    return len(below), len(fa3_speeds()), min(below), max(below)


def tensor_active(contender, *dims):
    """Smallest and largest share of the time in which the tensor pipe is active, in percent."""
    found = [values(record)["tensor_active"] for record in read(RESULTS / "h200/counters_fa3_wgmma.jsonl")
             if (record["labels"]["contender"], record["labels"]["source"]) == (contender, "cupti") and record["labels"]["shape"].split()[3] in dims]
    return min(found), max(found)


def slices_lose():
    """By how many percent slices of the head dim (K6) are slower than none (K5), least and most."""
    times = {(record["labels"]["contender"], record["labels"]["axis.problem.batch"]): values(record)["time"]
             for record in read(STUDIES / "occupancy_controlled/records.jsonl") if record["kind"] == "study" and record["verdict"] == "passed"}
    losses = [100 * (1 - times["k5_padded_tiles", batch] / times["k6_sliced_dims", batch]) for batch in ("4", "32")]
    return min(losses), max(losses)


def flash_lengths():
    """The rate of PyTorch's FlashAttention-2 on mixed lengths over its rate on as much dense work, in percent."""
    found = [100 * contenders["torch_sdpa_flash"][1]["rate_over_dense"]
             for contenders in forward_grid_tables.by_set(read(RESULTS / "h200/forward_grid.jsonl"))["lengths"].values()
             if "rate_over_dense" in contenders.get("torch_sdpa_flash", ({}, {}))[1]]
    return min(found), max(found)


SLOW_TO_JUDGE = ("short_sequence", "peers_forward")  # their baselines run in a PyTorch process


def overheads():
    """{study: what else than kernels took time over the time of timed launches, in percent, of each of its runs}."""
    return {folder.name: [100 * values(record)["overhead"] for record in read(folder / "records.jsonl") if record["kind"] == "study_summary"]
            for folder in STUDIES.iterdir()}


def of_overheads(is_of):
    found = [overhead for name, runs in overheads().items() if is_of(name) for overhead in runs]
    return min(found), max(found)


def budgets():
    """How long the shipped studies may take together, in s."""
    texts = [path.read_text() for path in (RESULTS.parent / "studies").glob("*.yaml")]
    return sum(int(line.removeprefix("time_budget: ").removesuffix("s")) for text in texts for line in text.splitlines()
               if line.startswith("time_budget: "))


README, FA3 = "README.md", "gpu/kernels/fa3_wgmma/README.md"
HOPPER_FIGURES = [
    (README, "beside cuDNN in the same rounds: {:.3f}x its speed in the geometric mean of FlashAttention-3's {} bf16 shapes.",
     lambda: [geometric_mean(fa3_over("cuDNN")), len(fa3_speeds())]),
    (README, "| {} bf16 shapes: geomean **{:.3f}x** cuDNN, {:.3f}x the better of cuDNN",
     lambda: [len(fa3_speeds()), geometric_mean(fa3_over("cuDNN")), geometric_mean(fa3_over(BETTER))]),
    (README, "timed in the same rounds: {:.3f}x cuDNN (N 512, D 256, causal) to {:.3f}x. FlashAttention-3",
     lambda: [fa3_at(256, 512, "cuDNN"), max(fa3_over("cuDNN"))]),
    (README, "Against the better of the two, {} of {} shapes are below 1, all causal and short: {:.3f}x to {:.3f}x (", below_better),
    (README, "(FA2: {:.0f} to {:.0f} %).", flash_lengths),
    (README, "In 16 bits FlashAttention errs {:.1f} times what rounding the exact answer once would leave, and up to {:.2f} times on",
     lambda: [over_floor("fa2_mma", "", "bf16"), layers(layer_over_floor)[1]]),
    (README, "All {} error records that both have are the same", lambda: [len(read(RESULTS / "h200/errors_precision.jsonl"))]),
    (README, "Shipped are {}, [{} with records from an H200]",
     lambda: [len(list((RESULTS.parent / "studies").glob("*.yaml"))), len(list(STUDIES.glob("*/run.json")))]),
    (README, "slices of the head dim (K6) lose {:.0f} to {:.0f} % to whole ones (K5).", slices_lose),
    (README, "keeps the tensor pipe active for {:.0f} to {:.0f} % (D 64) and {:.0f} to {:.0f} % (D 128, 256) of the time, cuDNN for {:.0f} to {:.0f} % (",
     lambda: [*tensor_active("fa3_wgmma", "d64"), *tensor_active("fa3_wgmma", "d128", "d256"), *tensor_active("torch_sdpa_cudnn", "d64", "d128", "d256")]),
    ("experiments/studies/README.md", "Together they may take {} s of an H200.", lambda: [budgets()]),
    ("experiments/study/README.md", "On an H200 it is {:.1f} to {:.1f} % in {} of {} shipped studies (",
     lambda: [*of_overheads(lambda name: name not in SLOW_TO_JUDGE), len(overheads()) - len(SLOW_TO_JUDGE), len(overheads())]),
    ("experiments/study/README.md", "`study_summary`), {:.1f} to {:.1f} % in `short_sequence` and {:.0f} to {:.0f} % in `peers_forward`,",
     lambda: [*of_overheads(lambda name: name == "short_sequence"), *of_overheads(lambda name: name == "peers_forward")]),
    (FA3, "geometric mean {:.3f}x cuDNN, {:.3f}x the better of cuDNN", lambda: [geometric_mean(fa3_over(peer)) for peer in ("cuDNN", BETTER)]),
    (FA3, "D 128 at N 512 and 1024 ({:.3f}x, {:.3f}x), D 256 at 512 and 2048 ({:.3f}x, {:.3f}x); the second to last is below cuDNN too ({:.3f}x).",
     lambda: [fa3_at(128, 512), fa3_at(128, 1024), fa3_at(256, 512), fa3_at(256, 2048), fa3_at(256, 512, "cuDNN")]),
]
