"""Figures of experiments/README.md: where predictions and counters differ, and errors known before: (document, sentence, figures). See documents.py."""

import math

from document_error_figures import errors, short
from document_tables import RESULTS
from hardware_check import measured, predicted
from records import counters_by_run, read, values

SHAPE = "b8 h12 n4096 d64 {} fp32"


def both(quantity, kernel, mask="none", plan=""):
    """What was predicted for the launches of a kernel, and what was counted; of several Plans the first that has the words."""
    runs = counters_by_run(read(RESULTS / "h200/counters.jsonl"))
    for ((shape, name, own), run), explanation in zip(runs.items(), read(RESULTS / "h200/hardware_check.jsonl"), strict=True):
        if name == kernel and mask in shape and set(plan.split()) <= set(own.split()):
            return predicted(explanation)[quantity], measured(run)[quantity]
    raise LookupError(f"no counters of {kernel}, {mask}, {plan}")


def millions(pair):
    return [value * 1e-6 for value in pair]


def gigabytes(pair):
    return [value * 1e-9 for value in pair]


def launch(which, counter, mask="none"):
    """A counter of one of k0_standard's three launches: scores, softmax, values."""
    return next(values(record)[counter] for record in read(RESULTS / "h200/counters.jsonl")
                if record["labels"]["shape"] == SHAPE.format(mask) and f"k0_{which}" in record["labels"].get("function", ""))


def softmax(counter, mask):
    return launch("softmax", counter, mask)


def softmax_predicted(mask):
    """Sectors that the softmax reads, as the executor counts them."""
    explanation = next(e for e in read(RESULTS / "h200/hardware_check.jsonl") if e["kernel"] == "k0_standard" and mask in e["problem"])
    kernel = next(k for k in explanation["counters"]["kernels"] if "softmax" in k["kernel"])
    return sum(line["sectors"] for line in kernel["lines"] if line["access"] == "read" and "sectors" in line)


def matrix_bytes():
    return next(e for e in read(RESULTS / "h200/hardware_check.jsonl") if e["kernel"] == "k0_standard")["work"]["score_matrix_bytes"]


def grouped(tile):
    return both("dram", "fa2_mma", plan=f"{tile} grid_order=grouped g4")


def torch(who, inputs, measure="rmse", tensor="O"):
    return errors("h200/errors_torch", who, measure, tensor=tensor, inputs=inputs)


def correctly_rounded(*who):
    """Smallest and largest share of fp16 results on N(0, 1), in percent."""
    found = [100 * torch(name, "normal_fp16", "ulp_0") for name in who]
    return min(found), max(found)


def largest_bias(measure):
    """Of O on an H200, in standard errors, rounded up to a tenth."""
    found = [abs(values(record)[measure]) for record in read(RESULTS / "h200/errors.jsonl") if record["labels"]["tensor"] == "O"]
    return math.ceil(10 * max(found)) / 10


def lse(name, kernel, element, measure="mean_signed_error"):
    return errors(name, kernel, measure, tensor="LSE", element_type=element, inputs="normal")


EXPERIMENTS = "experiments/README.md"
PREDICTION_FIGURES = [
    (EXPERIMENTS, "Store sectors, {:.0f} M predicted and {:,.0f} M measured.", lambda: millions(both("global_store_sectors", "k0_standard"))),
    (EXPERIMENTS, "of the warp: 4 x {:.1f} M for S and 4 x {:.1f} M for O. The softmax's {:.1f} M are as predicted.",
     lambda: millions((launch("scores", "global_store_sectors") / 4, launch("values", "global_store_sectors") / 4, launch("softmax", "global_store_sectors")))),
    (EXPERIMENTS, "1 - {:.3f} / 8 would be {:.1f} %. - L2 hits of `k10",
     lambda: [1 - both("l2_hit", "k1_naive")[0] / 100, 100 * (1 - (1 - both("l2_hit", "k1_naive")[0] / 100) / 8)]),
    (EXPERIMENTS, "even correctly rounded outputs have an outward bias of {:.1f} standard errors.",
     lambda: [torch("torch_sdpa_math", "outliers_sd100_fp16", "outward_bias")]),
    (EXPERIMENTS, "in fp32 inside: {:.1f} % of its fp16 results are correctly rounded, where kernels that round P to 16 bits give {:.0f} to {:.0f} %.",
     lambda: [correctly_rounded("torch_sdpa_math")[0], *correctly_rounded("fa2_mma", "torch_sdpa_flash", "torch_sdpa_cudnn", "torch_sdpa_efficient")]),
    (EXPERIMENTS, "Load sectors under the causal mask, {:.1f} M predicted and {:.1f} M measured; the difference is in the softmax alone, {:.1f} M and {:.1f} M.",
     lambda: [*millions(both("global_load_sectors", "k0_standard", "causal")),
              *millions((softmax_predicted("causal"), softmax("global_load_sectors", "causal_top_left")))]),
    (EXPERIMENTS, "Counting both loops in this way gives {:,.0f}, the measured number.", lambda: [softmax("global_load_sectors", "causal_top_left")]),
    (EXPERIMENTS, "Memory, {:.1f} GB predicted and {:.1f} GB measured; {:.1f} and {:.1f} under the causal mask.",
     lambda: [*gigabytes(both("dram", "k0_standard")), *gigabytes(both("dram", "k0_standard", "causal"))]),
    (EXPERIMENTS, "it from memory {:.2f} times ({:.1f} GB);",
     lambda: [softmax("dram_read", "none") / matrix_bytes(), softmax("dram_read", "none") * 1e-9]),
    (EXPERIMENTS, "Under the mask the softmax reads {:.1f} GB from memory", lambda: [softmax("dram_read", "causal_top_left") * 1e-9]),
    (EXPERIMENTS, "L2 hits of `k1_naive`, {:.1f} % predicted and {:.1f} % measured:", lambda: both("l2_hit", "k1_naive")),
    (EXPERIMENTS, "up to eight times ({:,.0f} M sectors for {:.1f} GB).",
     lambda: [both("global_load_sectors", "k1_naive")[1] * 1e-6, both("dram", "k1_naive")[1] * 1e-9]),
    (EXPERIMENTS, "L2 hits of `k10_wide_tiles` under the causal mask, {:.1f} % predicted and {:.1f} % measured,",
     lambda: both("l2_hit", "k10_wide_tiles", "causal")),
    (EXPERIMENTS, "with `grid_order=grouped g4`, {:.2f} GB predicted, {:.2f} and {:.2f} GB measured: not",
     lambda: [*gigabytes(grouped("qt64")), grouped("qt128")[1] * 1e-9]),
    (EXPERIMENTS, "PyTorch's flash backend has {} against the exact attention of the fp16 inputs, unfused fp16 {}. Against",
     lambda: [short(torch(who, "outliers_fp16")) for who in ("torch_sdpa_flash", "torch_eager")]),
    (EXPERIMENTS, "before they were rounded to fp16, they have {} and {}, which",
     lambda: [short(torch("torch_sdpa_flash", "outliers_fp16_unrounded"), 2), short(torch("torch_eager", "outliers_fp16_unrounded"))]),
    (EXPERIMENTS, "with it as the standard deviation the RMSE is {}. - The errors of O", lambda: [short(torch("torch_sdpa_flash", "outliers_sd100_fp16_unrounded"))]),
    (EXPERIMENTS, "its bias on the H200 is within {:.1f} standard errors, {:.1f} counted away from zero. LSE is low: by {:.0f} standard errors, {} on average, for",
     lambda: [largest_bias("bias"), largest_bias("outward_bias"), -lse("h200/errors", "fa2_mma", "fp16", "bias"), short(-lse("h200/errors", "fa2_mma", "fp16"))]),
    (EXPERIMENTS, "in fp16 on N(0, 1), and by {} in PyTorch's flash backend.",
     lambda: [short(-torch("torch_sdpa_flash", "normal_fp16", "mean_signed_error", "LSE"))]),
    (EXPERIMENTS, "cut off explain a part: {} lies between the emulations",
     lambda: [short(lse("xeon-2core/errors", "emulated_mma_sm90", "fp16") - lse("xeon-2core/errors", "emulated_fma", "fp16"), 0)]),
    (EXPERIMENTS, "K7 has no tensor cores and goes from +{} on the executor, which takes the C library's, to {}. (The",
     lambda: [short(lse("xeon-2core/errors", "k7_shuffled_rows", "fp32")), short(lse("h200/errors", "k7_shuffled_rows", "fp32"))]),
]
