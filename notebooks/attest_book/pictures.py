"""Makes the pictures of the documents from committed studies: `cd notebooks && ../build/venv/bin/python -m attest_book.pictures`."""

import re

import altair
import pandas

from attest_book import charts, errors, png, records, study
from attest_book.records import RESULTS

# Kernels of the grid: the name, and what its records' label `library` says before the version.
GRID = {"fa3_wgmma": ("fa3_wgmma (ours)", ""), "fa2_mma": ("fa2_mma (ours)", ""), "cudnn_sdpa": ("cuDNN", "cuDNN"),
        "flash_attention_3": ("FlashAttention-3, fa3_fwd", "fa3_fwd"), "torch_flash": ("FlashAttention-2, PyTorch", "PyTorch")}
WIDE = 3  # maps side by side


def with_version(rows, kernel):
    """`cuDNN 9.14.0`: the name of a kernel, and the version of its library that its records say."""
    name, library = GRID[kernel]
    found = {version for text in rows.library[rows.contender == kernel] for version in re.findall(rf"\b{library} (\d[\d.]*)", text)} if library else ()
    return " and ".join([f"{name} {version}" for version in sorted(found)]) or name


def grid(name="h200/studies/forward_grid"):
    """TFLOP/s by length, a panel for each head dim and mask: bf16, as many key heads as query heads."""
    return grid_of(study.committed(name).timed())


def grid_of(rows):
    sizes = rows.problem.map(records.sizes)
    rows = rows[rows.problem.str.endswith("bf16") & sizes.map(lambda size: size["h"] == size["kv"])].copy()
    rows["length"] = sizes.map(lambda size: size["q"])
    rows["panel"] = sizes.map(lambda size: f"D {size['d']}") + rows.problem.map(lambda text: ", causal" if "causal" in text else ", full")
    titles = {kernel: with_version(rows, kernel) for kernel in GRID}
    rows["kernel"] = rows.contender.map(titles)
    names, lengths = list(titles.values()), sorted(rows.length.unique())
    base = altair.Chart().encode(
        x=altair.X("length:Q", title="keys", scale=altair.Scale(type="log", base=2), axis=altair.Axis(values=lengths, format=",d", labelOverlap=True)),
        y=altair.Y("rate:Q", title="TFLOP/s"),
        color=altair.Color("kernel:N", sort=names, title=None, scale=altair.Scale(domain=names, range=charts.COLOURS), legend=altair.Legend(orient="bottom", columns=3)))
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


def map_title(labels):
    mask = labels["problem"].split()[-2]
    return f"{errors.precision_of(labels)}: {labels['inputs']}, {'no mask' if mask == 'none' else mask.replace('_', ' ')}"


def error_maps(name="xeon-2core/errors_map.jsonl"):
    """RMSE of O by row and column, of the records of `attest errors --map`."""
    found = records.committed(name)
    maps = [errors.map_chart(record, map_title(record.labels)) for record in found if record.kind == "error_map"]
    rows = [altair.hconcat(*maps[first:first + WIDE]).resolve_scale(color="independent") for first in range(0, len(maps), WIDE)]
    return altair.vconcat(*rows).properties(title="RMSE of O by row and column, each map with its own colours")


LINKS = {"nvlink4": "NVLink 4", "pcie5": "PCIe 5.0 x16", "ndr": "a card of 400 Gb/s a GPU"}


def ring(name="model/ring.jsonl"):
    """What the model of ranks says: efficiency of a causal zigzag ring by tokens a GPU, and of 1 Mi and 10 Mi tokens by GPUs, beside Ulysses. Nothing
    of it is measured."""
    found = [line for line in records.json_lines(RESULTS / name) if "causal" in line["problem"]]
    rows, rules = [], []
    for line in found:
        size, link = records.sizes(line["problem"]), LINKS[line["link"]]
        tokens = size["q"] // 2**20
        by_length = len(line["rows"]) == 1
        heads = f"{size['h']} heads, {size['kv']} of keys"
        panel = f"{line['rows'][0]['ranks']} GPUs, {heads}" if by_length else f"{tokens} Mi tokens, {heads}"
        if by_length:
            rules.append({"panel": panel, "link": link, "x": line["break_even_queries"]["zigzag"]})
        for row in line["rows"]:
            for method in ("zigzag",) if by_length else ("zigzag", "ulysses"):
                rows.append({"panel": panel, "link": link, "method": {"zigzag": "ring, zigzag", "ulysses": "Ulysses"}[method],
                             "x": row["queries_a_rank" if by_length else "ranks"], "efficiency": row[method]})

    def panel(name, title):
        data = [row for row in rows if row["panel"] == name]
        base = altair.Chart(pandas.DataFrame(data)).encode(
            x=altair.X("x:Q", title=title, scale=altair.Scale(type="log", base=2), axis=altair.Axis(values=sorted({row["x"] for row in data}), format=",d", labelOverlap=True)),
            y=altair.Y("efficiency:Q", title="efficiency", scale=altair.Scale(domain=[0, 1]), axis=altair.Axis(format="%")),
            color=altair.Color("link:N", sort=list(LINKS.values()), title=None, scale=altair.Scale(domain=list(LINKS.values()), range=charts.COLOURS)),
            strokeDash=altair.StrokeDash("method:N", title=None, scale=altair.Scale(domain=["ring, zigzag", "Ulysses"], range=[[1, 0], [4, 3]])))
        layers = [base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=22)]
        lines = {row["link"]: row for row in rules if row["panel"] == name}
        if lines:
            breaks = altair.Chart(pandas.DataFrame(list(lines.values()))).encode(x="x:Q", color="link:N")
            layers.append(breaks.mark_rule(strokeDash=[2, 2]))
            for line, (link, row) in enumerate(lines.items()):  # one below the other: slow links lie near each other
                text = altair.Chart(pandas.DataFrame([row])).mark_text(align="left", dx=12, y=92 + 14 * line, fontSize=10)
                layers.append(text.encode(x="x:Q", color="link:N", text=altair.Text("x:Q", format=",.0f")))
        return altair.layer(*layers).properties(width=300, height=190, title=name)

    names = list(dict.fromkeys(row["panel"] for row in rows))
    by_length = [panel(name, "tokens a GPU") for name in names if "GPUs" in name]
    by_ranks = [panel(name, "GPUs") for name in names if "GPUs" not in name and "8 of keys" in name]
    return altair.vconcat(altair.hconcat(*by_length), altair.hconcat(*by_ranks)).configure_legend(orient="bottom", columns=3).properties(
        title="Modelled, not measured: causal attention, D 128, bf16, 800 TFLOP/s a GPU")


def main():
    for name, picture in (("forward_grid", grid()), ("ladder", ladder())):
        picture.save(RESULTS / "h200/studies" / name / f"{name}.png", scale_factor=1.5)
    path = RESULTS / "model/ring.png"
    ring().save(path, scale_factor=1.5)
    path.write_bytes(png.in_few_colours(path.read_bytes()))
    error_maps().save(RESULTS / "xeon-2core/errors_map.png", scale_factor=1)


if __name__ == "__main__":
    main()
