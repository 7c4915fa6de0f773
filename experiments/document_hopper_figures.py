"""Figures in sentences about fa3_wgmma and about studies: (document, sentence with a format in each place, the figures). See documents.py."""

import functools

import forward_grid_tables
from document_error_figures import layer_over_floor, layers, over_floor
from document_tables import RESULTS
from forward_grid_tables import BETTER
from records import geometric_mean, read, values

STUDIES = RESULTS / "h200/studies"


def range_of(figures):
    return min(figures), max(figures)


@functools.cache
def fa3_speeds():
    """{shape: {peer: fa3_wgmma's speed over it}} on FlashAttention-3's grid."""
    shapes = forward_grid_tables.by_set(read(RESULTS / "h200/forward_grid_fa3_wgmma.jsonl"))["grid"]
    return {shape: forward_grid_tables.speeds(shape, contenders) for shape, contenders in shapes.items()}


def fa3_over(peer):
    return [speeds[peer] for speeds in fa3_speeds().values()]


def largest_error_over_flash():
    """Of any shape: the largest error of fa3_wgmma over that of PyTorch's FlashAttention-2."""
    errors = {}
    for record in read(RESULTS / "h200/forward_grid_fa3_wgmma.jsonl"):
        errors.setdefault(record["labels"]["shape"], {})[record["labels"]["contender"]] = values(record)["largest_error"]
    return max(of["fa3_wgmma"] / of["torch_sdpa_flash"] for of in errors.values())


def fa3_at(dim, length):
    return next(speeds[BETTER] for shape, speeds in fa3_speeds().items() if {f"n{length}", f"d{dim}", "causal_top_left"} <= set(shape.split()))


def tensor_active(contender, *dims):
    """Smallest and largest share of the time in which the tensor pipe is active, in percent."""
    found = [values(record)["tensor_active"] for record in read(RESULTS / "h200/counters_fa3_wgmma.jsonl")
             if (record["labels"]["contender"], record["labels"]["source"]) == (contender, "cupti") and record["labels"]["shape"].split()[3] in dims]
    return range_of(found)


def slices_lose():
    """By how many percent slices of the head dim (K6) are slower than none (K5), least and most."""
    times = {(record["labels"]["contender"], record["labels"]["axis.problem.batch"]): values(record)["time"]
             for record in read(STUDIES / "occupancy_controlled/records.jsonl") if record["kind"] == "study" and record["verdict"] == "passed"}
    losses = [100 * (1 - times["k5_padded_tiles", batch] / times["k6_sliced_dims", batch]) for batch in ("4", "32")]
    return range_of(losses)


def flash_lengths():
    """The rate of PyTorch's FlashAttention-2 on mixed lengths over its rate on as much dense work, in percent."""
    found = [100 * contenders["torch_sdpa_flash"][1]["rate_over_dense"]
             for contenders in forward_grid_tables.by_set(read(RESULTS / "h200/forward_grid.jsonl"))["lengths"].values()
             if "rate_over_dense" in contenders.get("torch_sdpa_flash", ({}, {}))[1]]
    return range_of(found)


FEW_KERNELS, OTHER_PROCESS = "occupancy_controlled", "peers_forward"
OLDER_BUILD = ("short_sequence", "speed_and_error")


def overheads():
    """{study: what else than kernels took time over the time of timed launches, in percent, of each of its runs}."""
    return {folder.name: [100 * values(record)["overhead"] for record in read(folder / "records.jsonl") if record["kind"] == "study_summary"]
            for folder in STUDIES.iterdir()}


def is_as_usual(name):
    return name not in (FEW_KERNELS, OTHER_PROCESS, *OLDER_BUILD)


def usual_overheads():
    return [overhead for name, runs in overheads().items() if is_as_usual(name) for overhead in runs]


def budgets():
    """How long the shipped studies may take together, in s."""
    texts = [path.read_text() for path in (RESULTS.parent / "studies").glob("*.yaml")]
    return sum(int(line.removeprefix("time_budget: ").removesuffix("s")) for text in texts for line in text.splitlines()
               if line.startswith("time_budget: "))


README, MEASURED, FA3 = "README.md", "experiments/results/README.md", "gpu/kernels/fa3_wgmma/README.md"
HOPPER_FIGURES = [
    (README, "beside cuDNN in the same rounds: {:.3f}x its speed in the geometric mean of FlashAttention-3's {} bf16 shapes.",
     lambda: [geometric_mean(fa3_over("cuDNN")), len(fa3_speeds())]),
    (MEASURED, "| {} bf16 shapes: geomean **{:.3f}x** cuDNN, {:.3f}x the better of cuDNN",
     lambda: [len(fa3_speeds()), geometric_mean(fa3_over("cuDNN")), geometric_mean(fa3_over(BETTER))]),
    (MEASURED, "timed in the same rounds: {:.3f}x to {:.3f}x cuDNN, shape by shape. FlashAttention-3", lambda: range_of(fa3_over("cuDNN"))),
    (MEASURED, "Against the better of the two, it is {:.3f}x to {:.3f}x (", lambda: range_of(fa3_over(BETTER))),
    (MEASURED, "(FA2: {:.0f} to {:.0f} %).", flash_lengths),
    (MEASURED, "In 16 bits FlashAttention errs {:.1f} times what rounding the exact answer once would leave, and up to {:.2f} times on",
     lambda: [over_floor("fa2_mma", "", "bf16"), layers(layer_over_floor)[1]]),
    (MEASURED, "All {} error records that both have are the same", lambda: [len(read(RESULTS / "h200/errors_precision.jsonl"))]),
    (MEASURED, "Shipped are {}, [{} with records from an H200]",
     lambda: [len(list((RESULTS.parent / "studies").glob("*.yaml"))), len(list(STUDIES.glob("*/run.json")))]),
    (MEASURED, "slices of the head dim (K6) lose {:.0f} to {:.0f} % to whole ones (K5).", slices_lose),
    (MEASURED, "keeps the tensor pipe active for {:.0f} to {:.0f} % (D 64) and {:.0f} to {:.0f} % (D 128, 256) of the time, cuDNN for {:.0f} to {:.0f} % (",
     lambda: [*tensor_active("fa3_wgmma", "d64"), *tensor_active("fa3_wgmma", "d128", "d256"), *tensor_active("torch_sdpa_cudnn", "d64", "d128", "d256")]),
    ("experiments/studies/README.md", "Together they may take {} s of an H200.", lambda: [budgets()]),
    ("experiments/study/README.md", "On an H200 it is {:.1f} to {:.1f} % in {} of {} shipped studies (",
     lambda: [*range_of(usual_overheads()), sum(map(is_as_usual, overheads())), len(overheads())]),
    ("experiments/study/README.md", "`study_summary`), {:.1f} % in `occupancy_controlled`, which times kernels for 0.9 s in all, and {:.1f} % in `peers_forward`,",
     lambda: [overheads()[name][0] for name in (FEW_KERNELS, OTHER_PROCESS)]),
    ("experiments/study/README.md", "`speed_and_error` ({:.1f} and {:.1f} %) were timed by a build", lambda: [overheads()[name][0] for name in OLDER_BUILD]),
    (FA3, "geometric mean {:.3f}x cuDNN, {:.3f}x the better of cuDNN", lambda: [geometric_mean(fa3_over(peer)) for peer in ("cuDNN", BETTER)]),
    (FA3, "No shape is below that better one; the nearest, D 256 causal at N 2048 and 512, are at {:.3f}x and {:.3f}x.",
     lambda: [fa3_at(256, 2048), fa3_at(256, 512)]),
    (FA3, "the largest error was up to {:.1f} times that of FlashAttention-2", lambda: [largest_error_over_flash()]),
]
