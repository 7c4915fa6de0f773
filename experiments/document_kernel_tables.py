"""Tables of the kernels' own READMEs, as document_tables.py makes those of the others."""

from document_tables import INPUTS, MASKS, RESULTS, markdown, timed
from records import read, values

SHAPES = {64: "b8 h12 n4096 d64", 128: "b4 h12 n4096 d128"}
TF32 = "h200/tf32_speed.jsonl"


def tf32_speeds():
    """TFLOP/s and speed over PyTorch, full / causal."""
    rows = [("N 4096, H 12", "D 64, B 8", "", "D 128, B 4", "")]
    for title, kernel, plan in (("`tf32_x3`", "tf32_mma", "products=tf32_x3"), ("`tf32`", "tf32_mma", "products=tf32"),
                                ("`k10_wide_tiles`, FFMA", "k10_wide_tiles", ""), ("PyTorch, memory-efficient", "torch_sdpa_efficient", "")):
        cells = []
        for shape in SHAPES.values():
            # The longer name of products begins like the shorter one, so the Plan must end there.
            found = [timed(TF32, kernel, f"{shape} {mask} fp32", plan, whole_end=True) for mask in MASKS]
            cells += [" / ".join(f"{row['rate']:.1f}" for row in found),
                      "1" if kernel.startswith("torch") else " / ".join(f"{row['speed_over_baseline']:.2f}x" for row in found)]
        rows.append((title, *cells))
    return markdown(*rows)


def error_cell(name, contender, plan, inputs):
    """RMSE and largest error over bound of O."""
    for record in read(RESULTS / name):
        labels = record["labels"]
        if (labels["contender"], labels["inputs"], labels["tensor"]) == (contender, inputs, "O") and plan in labels["plan"]:
            row = values(record)
            mantissa, exponent = f"{float(row['rmse']):.1e}".split("e")
            over = float(row["error_over_bound_max"])
            return f"{mantissa}e{int(exponent)}, {over:.3f}" if over < 0.1 else f"{mantissa}e{int(exponent)}, {over:.2f}"
    raise LookupError(f"results/{name}: no error of {contender} on {inputs}")


def tf32_errors():
    rows = [("", *INPUTS.values())]
    for title, name, kernel, plan in (("`tf32_x3`", "h200/errors_tf32.jsonl", "tf32_mma", "tf32_x3"),
                                      ("`k10_wide_tiles`, FFMA", "h200/errors_tf32.jsonl", "k10_wide_tiles", ""),
                                      ("`tf32`", "xeon-2core/errors_tf32.jsonl", "tf32_mma", "products=tf32")):
        rows.append((title, *(error_cell(name, kernel, plan, inputs) for inputs in INPUTS)))
    return markdown(*rows)


def fp32_wgmma_speeds():
    """Beside PyTorch and K10 in the same rounds."""
    rows = [("", "`fp32_wgmma`", "PyTorch", "", "K10")]
    for shape in SHAPES.values():
        for mask, name in MASKS.items():
            ours, peer, k10 = (timed("h200/fp32_speed.jsonl", kernel, f"{shape} {mask} fp32", plan) for kernel, plan in
                               (("fp32_wgmma", "products=automatic"), ("torch_sdpa_efficient", ""), ("k10_wide_tiles", "")))
            over = f"{ours['speed_over_baseline']:.2f}x"
            rows.append((shape if name == "full" else name, f"{ours['rate']:.0f}{' TFLOP/s' if len(rows) == 1 else ''}", f"{peer['rate']:.1f}",
                         f"**{over}**" if name == "full" else over, f"{k10['rate']:.1f}"))
    return markdown(*rows)


KERNEL_TABLES = {"tf32_speeds": tf32_speeds, "tf32_errors": tf32_errors, "fp32_wgmma_speeds": fp32_wgmma_speeds}
