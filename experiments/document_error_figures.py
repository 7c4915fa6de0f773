"""Figures of README.md's section on errors by precision: (document, sentence with a format in each place, the figures). See documents.py."""

import functools
import math

import fp32_errors_report
from document_tables import RESULTS
from records import read, values

GPU, TIED = "h200/errors_precision", "h200/errors_tied"
ON_EXECUTOR = "xeon-2core/errors_"
PARTS = (("tf32_mma", "tf32_x3"), ("fp32_wgmma", "automatic"), ("fp32_wgmma", "bf16_x6"))


@functools.cache
def whole_tensors(name):
    return [(record["labels"], values(record)) for record in read(RESULTS / f"{name}.jsonl")
            if record["kind"] == "errors" and "by" not in record["labels"]]


def errors(name, kernel, measure="relative_l2", plan="", problem="", tensor="O", **labels):
    """One figure of the one record of a kernel whose plan and problem have these parts and whose labels are these."""
    found = [figures[measure] for own, figures in whole_tensors(name)
             if (own["contender"], own["tensor"]) == (kernel, tensor) and labels.items() <= own.items()
             and set(plan.split()) <= set(own["plan"].split()) and set(problem.split()) <= set(own["problem"].split())]
    if len(found) != 1:
        raise LookupError(f"results/{name}.jsonl: {len(found)} records of {kernel}, {tensor}, plan '{plan}', problem '{problem}', {labels}")
    return float(found[0])


def short(value, digits=1):
    """6.5e-7, as the documents write it."""
    digits, exponent = f"{value:.{digits}e}".split("e")
    return f"{digits}e{int(exponent)}"


def on_gpu(kernel, products="", element="fp32", measure="relative_l2"):
    return errors(GPU, kernel, measure, plan=f"products={products}" if products else "", problem="q1024 d64 none", inputs="normal", element_type=element)


def over_floor(kernel, products="", element="fp32"):
    return on_gpu(kernel, products, element, "rmse") / on_gpu(kernel, products, element, "rounded_rmse")


def along(axis, kernel, element="fp32", plan="", problem="", inputs="normal", **more):
    return errors(ON_EXECUTOR + axis, kernel, plan=plan, problem=problem, inputs=inputs, element_type=element, **more)


def choice(name, element="bf16", inputs="normal", tensor="O", measure="relative_l2"):
    return errors(ON_EXECUTOR + "choice", f"choice/{name}", measure, tensor=tensor, element_type=element, inputs=inputs)


def choice_over_floor(name, inputs):
    return choice(name, inputs=inputs, measure="rmse") / choice(name, inputs=inputs, measure="rounded_rmse")


def lse_of_rounded_sum(element):
    rounded, flash = (choice(name, element, tensor="LSE", measure="rmse") for name in ("sum_of_rounded_weights", "flash"))
    return rounded / flash


def layers(of):
    """Smallest and largest of a figure over the captured layers."""
    names = sorted({labels["inputs"] for labels, _ in whole_tensors(ON_EXECUTOR + "layer")})
    found = [figure for name in names for figure in of(name)]
    return min(found), max(found)


def layer_over_floor(name, kernel="fa2_mma"):
    return [along("layer", kernel, element, inputs=name, measure="rmse") / along("layer", kernel, element, inputs=name, measure="rounded_rmse")
            for element in ("fp16", "bf16")]


def tf32_over_fp16(name):
    return [along("layer", "tf32_mma", plan="products=tf32", inputs=name) / along("layer", "fa2_mma", "fp16", inputs=name)]


def unrounded_over_rounded():
    names = [labels["inputs"] for labels, _ in whole_tensors(GPU)
             if labels["inputs"].startswith("smollm2") and not labels["inputs"].endswith("_unrounded")]
    ratios = [errors(GPU, "fa2_mma", element_type="bf16", inputs=f"{name}_unrounded") / errors(GPU, "fa2_mma", element_type="bf16", inputs=name)
              for name in sorted(set(names))]
    return min(ratios), max(ratios)


def mean_error(who):
    return errors(TIED, who, "mean_signed_error", inputs="tied2_negative")


def parts_in_16_bits():
    """By how many percent key splits whose parts are rounded to 16 bits err more than no splits, least and most."""
    name, kernel = ON_EXECUTOR + "key_splits", "choice/partials_in_16_bits"
    found = [errors(name, kernel, plan=f"ks{parts}", inputs=inputs, element_type=element)
             / errors(name, kernel, plan="ks1", inputs=inputs, element_type=element)
             for parts in (2, 4, 8, 16) for inputs in ("normal", "normal:4") for element in ("fp16", "bf16")]
    return 100 * (min(found) - 1), 100 * (max(found) - 1)


def variant_over_deferred(kernel):
    """Errors of a form of softmax over those of the usual one (O5), on N(0, 1)."""
    return [along("variant", kernel, "fp32", problem=n) / along("variant", "o5_deferred", "fp32", problem=n) for n in ("k64", "k512", "k2048")]


def variants():
    """Percent: how far most forms are apart, rounded up; what O4 errs more and O6 less, least and most."""
    same = [ratio for kernel in ("o1_unshifted", "o2_three_pass", "o3_two_pass_online", "o7_two_pass_attention", "o8_exp2_skip_rescale")
            for ratio in variant_over_deferred(kernel)]
    o4, o6 = variant_over_deferred("o4_normalised_local_max"), variant_over_deferred("o6_split_combine")
    return (math.ceil(100 * max(abs(ratio - 1) for ratio in same)), *(100 * (pick(o4) - 1) for pick in (min, max)),
            *(100 * (1 - pick(o6)) for pick in (max, min)))


def variant_extremes():
    found = [figures["relative_l2"] for labels, figures in whole_tensors(ON_EXECUTOR + "variant") if labels["tensor"] == "O"]
    return short(min(found), 0), short(max(found))


def worse_than_k10():
    """Largest error of fp32_wgmma over K10's where it is larger, of causal problems, least and most."""
    rows = fp32_errors_report.tables(read(RESULTS / "h200/errors_fp32.jsonl"))
    worse = [ratio for (problem, _), row in rows.items() if "causal" in problem
             if (ratio := fp32_errors_report.ratio(row, "k10_wide_tiles", "max_abs_error")) > 1]
    return min(worse), max(worse)


def dominant_key(kernel):
    return short(errors("h200/errors_fp32", kernel, "rmse", problem="q512 d128 none", inputs="dominant_key:30"))


EXPERIMENTS, FP32 = "experiments/README.md", "gpu/kernels/fp32_wgmma/README.md"
ERROR_FIGURES = [
    (EXPERIMENTS, "fp32 by FFMA {}, three TF32 products {}, three fp16 products {}, six bf16 products {}, TF32 {}, fp16 {}, bf16 {}. In",
     lambda: [short(on_gpu("k10_wide_tiles")), *(short(on_gpu(*parts)) for parts in PARTS), short(on_gpu("tf32_mma", "tf32")),
              short(on_gpu("fa2_mma", "", "fp16")), short(on_gpu("fa2_mma", "", "bf16"))]),
    (EXPERIMENTS, "In 16 bits that is {:.1f} times the floor, in fp32 {:.0f} to {:.0f} times.",
     lambda: [over_floor("fa2_mma", "", "bf16"), over_floor("fp32_wgmma", "bf16_x6"), over_floor("k10_wide_tiles")]),
    (EXPERIMENTS, "fp32 by FFMA grows from {} to {}, its sums being one chain; three TF32 products from {} to {}, 16 bits by {:.0f} %.",
     lambda: [*(short(along("length", "k10_wide_tiles", problem=n)) for n in ("k64", "k4096")),
              *(short(along("length", "tf32_mma", plan="products=tf32_x3", problem=n)) for n in ("k64", "k4096")),
              100 * (along("length", "fa2_mma", "fp16", problem="k4096") / along("length", "fa2_mma", "fp16", problem="k64") - 1)]),
    (EXPERIMENTS, "`errors_magnitude.jsonl`): fp32 by FFMA {} to {}, TF32 {} to {}; fp16 goes *down* from {} to {}, {:.2f} times its floor",
     lambda: [*(short(along("magnitude", "k10_wide_tiles", inputs=f"normal:{m}")) for m in ("0.25", "64")),
              *(short(along("magnitude", "tf32_mma", plan="products=tf32", inputs=f"normal:{m}")) for m in ("0.25", "64")),
              *(short(along("magnitude", "fa2_mma", "fp16", inputs=f"normal:{m}")) for m in ("0.25", "64")),
              along("magnitude", "fa2_mma", "fp16", inputs="normal:64", measure="rmse")
              / along("magnitude", "fa2_mma", "fp16", inputs="normal:64", measure="rounded_rmse")]),
    (EXPERIMENTS, "average {:.0f} to {:.0f} standard errors at N 1024, FFMA's {:.0f} (",
     lambda: [max(on_gpu(*parts, measure="outward_bias") for parts in PARTS), min(on_gpu(*parts, measure="outward_bias") for parts in PARTS),
              on_gpu("k10_wide_tiles", measure="outward_bias")]),
    (EXPERIMENTS, "from 16 to 1,024 keys bf16 goes from {} to {}. Three TF32 products go from {} to {} where",
     lambda: [*(short(along("key_tile", "choice/flash", "bf16", tile), 2) for tile in ("kt16", "kt1024")),
              *(short(along("key_tile", "emulated_split_sm90", plan=f"{tile} products=tf32_x3")) for tile in ("kt16", "kt1024"))]),
    (EXPERIMENTS, "with an attention sink FFMA errs {} if the sink comes first and {} if it comes last",
     lambda: [short(along("key_order", "k10_wide_tiles", inputs="sink:8", key_order=order)) for order in ("drawn", "reversed")]),
    (EXPERIMENTS, "16 parts halve FFMA's error, {} to {}; parts",
     lambda: [short(along("key_splits", "emulated_fma", plan=parts)) for parts in ("ks1", "ks16")]),
    (EXPERIMENTS, "the whole excess over the floor, {:.2f} on N(0, 1) and {:.2f} on real activations; P in fp32 gives {:.2f}. If",
     lambda: [*(choice_over_floor("flash", inputs) for inputs in ("normal", "real")), choice_over_floor("weights_in_fp32", "normal")]),
    (EXPERIMENTS, "O is as good and LSE {:.0f} (fp16) to {:.0f} (bf16) times worse", lambda: [lse_of_rounded_sum("fp16"), lse_of_rounded_sum("bf16")]),
    (EXPERIMENTS, "so O of 8,192 keys is {:.0f} and {:.0f} times too large",
     lambda: [1 + along("choice", "mutant/c32_low_precision_sum", element, problem="k8192", inputs="zero_q") for element in ("bf16", "fp16")]),
    (EXPERIMENTS, "`fa2_mma` in fp16 and bf16 errs {:.2f} to {:.2f} times the floor", lambda: layers(layer_over_floor)),
    (EXPERIMENTS, "which rescales at every new maximum, errs {:.2f} to {:.2f} times the floor",
     lambda: layers(lambda name: layer_over_floor(name, "choice/flash"))),
    (EXPERIMENTS, "`fa2_mma` in bf16 errs {:.1f} to {:.1f} times as much as against those it got", unrounded_over_rounded),
    (EXPERIMENTS, "TF32 is {:.1f} to {:.1f} times fp16. Errors", lambda: layers(tf32_over_fp16)),
    (EXPERIMENTS, "mean error of `fa2_mma` +{}, `fa3_wgmma` +{}, PyTorch's flash, cuDNN and efficient +{} to +{}, all",
     lambda: [short(mean_error("fa2_mma")), short(mean_error("fa3_wgmma")),
              *(short(pick(mean_error(f"torch_sdpa_{who}") for who in ("flash", "cudnn", "efficient"))) for pick in (min, max))]),
    (EXPERIMENTS, "rounded to bf16 before the division {}, {:.0f} standard errors; and",
     lambda: [short(mean_error("rounded_before_division")), -errors(TIED, "rounded_before_division", "bias", inputs="tied2_negative")]),
    (EXPERIMENTS, "parts stored in 16 bits cost fp16 and bf16 {:.0f} to {:.0f} %.", parts_in_16_bits),
    (EXPERIMENTS, "(`errors_variant.jsonl`): the same to {} %, but for O kept normalised (O4: {:.0f} to {:.0f} % more) and combined parts (O6: {:.0f} to {:.0f} % less).",
     variants),
    (EXPERIMENTS, "What the inputs are matters more: {} to {}. - Real layers", variant_extremes),
    (FP32, "the largest error of three causal ones is {:.2f} to {:.2f} times K10's, and", worse_than_k10),
    (FP32, "at D 128 the RMSE is {} where K10 has {} (", lambda: [dominant_key(kernel) for kernel in ("fp32_wgmma", "k10_wide_tiles")]),
    (EXPERIMENTS, "FA2 and FA3 kernels in fp16 against the inputs as drawn, D 64: {} and {}; published",
     lambda: [short(errors(GPU, kernel, "rmse", problem="d64", element_type="fp16", inputs="outliers_unrounded")) for kernel in ("fa2_mma", "fa3_wgmma")]),
]
