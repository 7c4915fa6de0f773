"""Makes the pictures of the documents from committed studies: `cd notebooks && ../build/venv/bin/python -m attest_book.pictures`."""

import altair

from attest_book import charts, study
from attest_book.records import RESULTS

GRID = {"fa3_wgmma": "fa3_wgmma (ours)", "fa2_mma": "fa2_mma (ours)", "cudnn_sdpa": "cuDNN 9.19", "flash_attention_3": "FlashAttention-3",
        "torch_flash": "FlashAttention-2"}


def grid(name="h200/studies/forward_grid"):
    """TFLOP/s by length, a panel for each head dim and mask: bf16, as many key heads as query heads."""
    rows = study.committed(name).timed()
    heads = rows.problem.str.extract(r" h(\d+)/(\d+) ")
    rows = rows[rows.problem.str.endswith("bf16") & (heads[0] == heads[1])].copy()
    rows["length"] = rows.problem.str.extract(r" q(\d+) ")[0].astype(int)
    rows["panel"] = "D " + rows.problem.str.extract(r" d(\d+) ")[0] + rows.problem.map(lambda text: ", causal" if "causal" in text else ", full")
    rows["kernel"] = rows.contender.map(GRID)
    names, lengths = list(GRID.values()), sorted(rows.length.unique())
    base = altair.Chart().encode(
        x=altair.X("length:Q", title="keys", scale=altair.Scale(type="log", base=2), axis=altair.Axis(values=lengths, format=",d", labelOverlap=True)),
        y=altair.Y("rate:Q", title="TFLOP/s"),
        color=altair.Color("kernel:N", sort=names, title=None, scale=altair.Scale(domain=names, range=charts.COLOURS), legend=altair.Legend(orient="bottom")))
    layers = altair.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=30), data=rows[["length", "panel", "kernel", "rate"]])
    order = [f"D {dim}, {mask}" for dim in (64, 128, 256) for mask in ("full", "causal")]
    return layers.properties(width=300, height=170).facet(facet=altair.Facet("panel:N", sort=order, title=None), columns=2)


def ladder(name="h200/studies/ladder"):
    """TFLOP/s of each rung, full and causal."""
    rows = study.committed(name).timed()
    rows = rows[~rows.plan.str.contains("row_reduce=shuffle")].copy()
    rows["mask"] = rows.problem.map(lambda text: "causal" if "causal" in text else "full")
    names = sorted(rows.contender.unique(), key=lambda text: (not text.startswith("k"), int("".join(filter(str.isdigit, text.split("_")[0])) or 0), text))
    base = altair.Chart(rows[["contender", "mask", "rate"]]).encode(
        y=altair.Y("contender:N", sort=names, title=None), yOffset=altair.YOffset("mask:N", sort=["full", "causal"]), x=altair.X("rate:Q", title="TFLOP/s"))
    bars = base.mark_bar().encode(color=altair.Color("mask:N", sort=["full", "causal"], title=None, scale=altair.Scale(range=charts.COLOURS[:2])))
    return (bars + base.mark_text(align="left", dx=3, fontSize=9).encode(text=altair.Text("rate:Q", format=".3g"))).properties(width=480, height=altair.Step(13))


def main():
    for name, picture in (("forward_grid", grid()), ("ladder", ladder())):
        picture.save(RESULTS / "h200/studies" / name / f"{name}.png", scale_factor=1.5)


if __name__ == "__main__":
    main()
