"""Makes the forward grid's tables and picture from its records.

    python3 experiments/forward_grid_report.py --records forward_grid_fa3_wgmma.jsonl --out experiments/results/h200

Writes forward_grid_<kernel>.md and .png, for fa2_mma forward_grid.md and .png. Rates and ratios are those of the records;
computed here are FlashAttention-3's (fa3_over_cudnn.py), geometric means, and which ratio is the smallest.
"""

import argparse
import pathlib

import fa3_over_cudnn
from forward_grid_tables import (FA3, MASKS, by_set, causal_table, grouped_table, kernel_named, lengths_table, mask_of, rates,
                                 stations, summary, table)
from grid_shapes import DIMS, GROUP, LENGTHS
from records import read, sizes

COLOURS = {"cuDNN": "#54a24b", FA3: "#b279a2", "FA2": "#4c78a8", "efficient": "#bab0ac"}


def picture(kernel, shapes):
    """Rates over the length, a panel for each head dim and mask; the estimate is dashed."""
    import altair  # here, for the tables do without it

    points = []
    for shape, contenders in shapes.items():
        size = sizes(shape)
        points += [{"length": size["n"], "dim": size["d"], "mask": mask_of(shape), "contender": name, "rate": rate}
                   for name, rate in rates(shape, contenders).items()]
    present = {point["contender"] for point in points}
    colours = {kernel: "#e45756", **{name: colour for name, colour in COLOURS.items() if name in present}}
    legend = altair.Legend(orient="bottom", symbolType="stroke", symbolSize=600)
    names = list(colours)
    dashes = [[5, 4] if name == FA3 else [1, 0] for name in names]
    rows = []
    for mask in MASKS.values():
        panels = []
        for dim in DIMS:
            data = altair.Data(values=[p for p in points if p["dim"] == dim and p["mask"] == mask])
            chart = altair.Chart(data).mark_line(point=True).encode(
                x=altair.X("length:Q", scale=altair.Scale(type="log", base=2, domain=[LENGTHS[0], LENGTHS[-1]]),
                           axis=altair.Axis(values=list(LENGTHS), format="d", labelAngle=-45), title="N"),
                y=altair.Y("rate:Q", title="TFLOP/s", scale=altair.Scale(zero=True)),
                color=altair.Color("contender:N", sort=names, title=None, legend=legend,
                                   scale=altair.Scale(domain=names, range=list(colours.values()))),
                strokeDash=altair.StrokeDash("contender:N", sort=names, title=None, legend=legend,
                                             scale=altair.Scale(domain=names, range=dashes)),
                strokeWidth=altair.condition(f"datum.contender == '{kernel}'", altair.value(3), altair.value(1.5)))
            panels.append(chart.properties(width=260, height=200, title=f"D {dim}, {mask}"))
        rows.append(altair.hconcat(*panels))
    return altair.vconcat(*rows).resolve_scale(y="shared").configure_view(stroke=None)


def report(path):
    """The tables of a record file, as Markdown. ValueError: it has no one kernel beside PyTorch's backends."""
    records = read(path)
    kernel = kernel_named(records)
    sets, where = by_set(records), records[0]["provenance"]
    text = [f"# The forward grid: `{kernel}`\n\n{where['device']}; commit {where['commit']}, {where['date'][:10]}, PyTorch "
            f"{records[0]['labels']['torch']}.\n`forward_grid.py` made the records, `forward_grid_report.py` this table. 16,384 tokens and "
            "2,048 columns in all; TFLOP/s: 4 B H D FLOPs for each visible\npair of query and key over the median time. *FA2* (flash), *cuDNN*, "
            "*efficient*: PyTorch's backends, timed in the same rounds. *Of FA2*, *of cuDNN*:\nspeed over theirs, median of the rounds' "
            "ratios, with the order statistics that hold the true median with 95 % confidence.\n"]
    if "grid" in sets:
        text.append(f"*{FA3}* is an estimate, for FlashAttention-3 did not run: cuDNN's figure of this run times FA3 over cuDNN as measured "
                    f"before, side by side\n({fa3_over_cudnn.provenance()}).\nIt carries the error of both, supposes that both follow the clock alike, and has no interval.\n*The better*: of cuDNN and FA3 (est.), shape by shape.\n")
    for name in ("grid", "fp16"):
        if name in sets:
            title = {"grid": "bf16"}.get(name, name)
            text.append(f"## {title}\n\n{summary(sets[name])}\n\n{stations(sets[name])}\n\n{table(sets[name])}\n")
    if "grid" in sets:
        text.append("## Causal over full\n\nTime with the causal mask over time without, by rounds, beside the share of tiles that a causal "
                    "grid visits: (T + 1) / 2T for T x T\nsquare tiles.\n\n" + causal_table(sets["grid"]) + "\n")
    if "grouped" in sets:
        text.append(f"## {GROUP} query heads a key head\n\nTime over that of as many key heads as query heads, by rounds.\n\n"
                    + grouped_table(sets["grouped"]) + "\n")
    if "lengths" in sets:
        text.append("## Mixed lengths\n\nLengths of a batch are drawn: an eighth each 0, 1 and the longest, the others between. TFLOP/s over "
                    "those of a dense problem\nwith about the same FLOPs, by rounds.\n\n" + lengths_table(sets["lengths"]) + "\n")
    return "\n".join(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--records", required=True)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    records = read(options.records)
    try:
        kernel = kernel_named(records)
    except ValueError as error:
        arguments.error(f"--records {options.records}: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    stem = "forward_grid" if kernel == "fa2_mma" else f"forward_grid_{kernel}"
    (options.out / f"{stem}.md").write_text(report(options.records))
    sets = by_set(records)
    if "grid" in sets:
        picture(kernel, sets["grid"]).save(options.out / f"{stem}.png", scale_factor=2)


if __name__ == "__main__":
    main()
