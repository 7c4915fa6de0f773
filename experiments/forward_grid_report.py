"""Makes the forward grid's tables and picture from its records.

    python3 experiments/forward_grid_report.py --records forward_grid.jsonl --out experiments/results/h200

Writes forward_grid.md and forward_grid.png. Rates and ratios are those of the records; computed here are only geometric
means, and which ratio is the smallest.
"""

import argparse
import pathlib

import altair

from grid_shapes import DIMS, GROUP, LENGTHS
from records import geometric_mean, read, values

KERNEL = "fa2_mma"
PEERS = {"torch_sdpa_flash": "FA2", "torch_sdpa_cudnn": "cuDNN", "torch_sdpa_efficient": "efficient"}
MASKS = {"none": "full", "causal_top_left": "causal"}


def by_set(records):
    """{set: {shape: {contender: (labels, values)}}}; a later record of the same contender replaces an earlier one."""
    sets = {}
    for record in records:
        labels = record["labels"]
        sets.setdefault(labels["set"], {}).setdefault(labels["shape"], {})[labels["contender"]] = (labels, values(record))
    return sets


def mask_of(shape):
    return next(name for mask, name in MASKS.items() if mask in shape.split())


def with_interval(found, name):
    return f"{found[name]:.3f} ({found[name + '_low']:.3f}-{found[name + '_high']:.3f})" if name in found else ""


def rate(contenders, name):
    return f"{contenders[name][1]['rate']:.0f}" if name in contenders else ""


def table(shapes):
    lines = ["| shape | mask | plan | TFLOP/s | " + " | ".join(PEERS.values()) + " | of FA2 (95 %) | of cuDNN |",
             "| --- | --- | --- | --- |" + " --- |" * (len(PEERS) + 2)]
    for shape, contenders in shapes.items():
        labels, own = contenders[KERNEL]
        peers = " | ".join(rate(contenders, peer) for peer in PEERS)
        of_cudnn = f"{own['speed_over_torch_sdpa_cudnn']:.3f}" if "speed_over_torch_sdpa_cudnn" in own else ""
        lines.append(f"| {' '.join(shape.split()[:4])} | {mask_of(shape)} | {labels['plan']} | {own['rate']:.0f} | {peers} | "
                     f"{with_interval(own, 'speed_over_baseline')} | {of_cudnn} |")
    return "\n".join(lines)


def summary(shapes):
    """Geometric mean and smallest ratio, of everything and by head dim and mask."""
    ratios = {shape: contenders[KERNEL][1] for shape, contenders in shapes.items()}
    lines = ["| over | shapes | geomean of FA2 | smallest | at | geomean of cuDNN |", "| --- | --- | --- | --- | --- | --- |"]
    groups = [("all", lambda shape: True)]
    groups += [(f"D {dim}, {name}", lambda shape, dim=dim, name=name: f"d{dim}" in shape.split() and mask_of(shape) == name)
               for dim in DIMS for name in MASKS.values()]
    for title, holds in groups:
        chosen = {shape: found for shape, found in ratios.items() if holds(shape)}
        if not chosen:
            continue
        smallest = min(chosen, key=lambda shape: chosen[shape]["speed_over_baseline"])
        cudnn = [found["speed_over_torch_sdpa_cudnn"] for found in chosen.values() if "speed_over_torch_sdpa_cudnn" in found]
        lines.append(f"| {title} | {len(chosen)} | {geometric_mean([f['speed_over_baseline'] for f in chosen.values()]):.3f} | "
                     f"{chosen[smallest]['speed_over_baseline']:.3f} | {smallest} | "
                     f"{f'{geometric_mean(cudnn):.3f}' if cudnn else ''} |")
    return "\n".join(lines)


def causal_table(shapes):
    lines = ["| shape | causal / full (95 %) | tiles visited | over tiles | FA2 | cuDNN |", "| --- | --- | --- | --- | --- | --- |"]
    for shape, contenders in shapes.items():
        own = contenders[KERNEL][1]
        if "causal_over_full" not in own:
            continue
        peers = [f"{contenders[peer][1]['causal_over_full']:.3f}" if peer in contenders else ""
                 for peer in ("torch_sdpa_flash", "torch_sdpa_cudnn")]
        lines.append(f"| {' '.join(shape.split()[:4])} | {with_interval(own, 'causal_over_full')} | {own['causal_tiles_over_full']:.3f} | "
                     f"{own['causal_over_full'] / own['causal_tiles_over_full']:.3f} | {' | '.join(peers)} |")
    return "\n".join(lines)


def grouped_table(shapes):
    lines = ["| shape | mask | plan | time | of the time with all heads (95 %) | FA2 | cuDNN |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for shape, contenders in shapes.items():
        labels, own = contenders[KERNEL]
        if "grouped_over_all_heads" not in own:
            continue
        peers = [f"{contenders[peer][1]['grouped_over_all_heads']:.3f}"
                 if "grouped_over_all_heads" in contenders.get(peer, ({}, {}))[1] else ""
                 for peer in ("torch_sdpa_flash", "torch_sdpa_cudnn")]
        lines.append(f"| {' '.join(shape.split()[:4])} | {mask_of(shape)} | {labels['plan']} | {own['time']:.3f} ms | "
                     f"{with_interval(own, 'grouped_over_all_heads')} | {' | '.join(peers)} |")
    return "\n".join(lines)


def lengths_table(shapes):
    lines = ["| problem | mask | plan | TFLOP/s | rate over dense (95 %) | FA2, over dense | of FA2 | dense problem, TFLOP/s |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    names = list(shapes)
    for shape, dense in zip(names, names[1:]):
        labels, own = shapes[shape][KERNEL]
        if "rate_over_dense" not in own:
            continue
        flash = shapes[shape].get("torch_sdpa_flash", ({}, {}))[1]
        lines.append(f"| {shape} | {mask_of(shape)} | {labels['plan']} | {own['rate']:.0f} | {with_interval(own, 'rate_over_dense')} | "
                     + (f"{flash['rate_over_dense']:.3f} | {own['speed_over_baseline']:.3f}" if flash else " | ")
                     + f" | {dense}, {shapes[dense][KERNEL][1]['rate']:.0f} |")
    return "\n".join(lines)


def picture(shapes):
    """Rates over the length, a panel for each head dim and mask."""
    points = [{"length": int(next(part[1:] for part in shape.split() if part.startswith("n") and part[1:].isdigit())),
               "dim": next(part for part in shape.split() if part[0] == "d" and part[1:].isdigit()), "mask": mask_of(shape),
               "contender": PEERS.get(name, name), "rate": found["rate"]}
              for shape, contenders in shapes.items() for name, (_, found) in contenders.items()]
    names = [KERNEL, *PEERS.values()]
    rows = []
    for mask in MASKS.values():
        panels = []
        for dim in DIMS:
            data = altair.Data(values=[p for p in points if p["dim"] == f"d{dim}" and p["mask"] == mask])
            chart = altair.Chart(data).mark_line(point=True).encode(
                x=altair.X("length:Q", scale=altair.Scale(type="log", base=2, domain=[LENGTHS[0], LENGTHS[-1]]),
                           axis=altair.Axis(values=list(LENGTHS), format="d", labelAngle=-45), title="N"),
                y=altair.Y("rate:Q", title="TFLOP/s", scale=altair.Scale(zero=True)),
                color=altair.Color("contender:N", sort=names, title=None, legend=altair.Legend(orient="bottom"),
                                   scale=altair.Scale(domain=names, range=["#e45756", "#4c78a8", "#54a24b", "#bab0ac"])),
                strokeWidth=altair.condition(f"datum.contender == '{KERNEL}'", altair.value(3), altair.value(1.5)))
            panels.append(chart.properties(width=260, height=200, title=f"D {dim}, {mask}"))
        rows.append(altair.hconcat(*panels))
    return altair.vconcat(*rows).resolve_scale(y="shared").configure_view(stroke=None)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--records", required=True)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    records = read(options.records)
    sets, where = by_set(records), records[0]["provenance"]
    text = [f"# The forward grid\n\n{where['device']}; commit {where['commit']}, {where['date'][:10]}, PyTorch "
            f"{records[0]['labels']['torch']}.\n`forward_grid.py` made the records, `forward_grid_report.py` this table. 16,384 tokens and "
            "2,048 columns in all; TFLOP/s: 4 B H D FLOPs for each visible\npair of query and key over the median time. *FA2*, *cuDNN*, "
            "*efficient*: PyTorch's backends, timed in the same rounds. *Of FA2*, *of cuDNN*:\nspeed over theirs, median of the rounds' "
            "ratios, with the order statistics that hold the true median with 95 % confidence.\n"]
    for name, title in (("grid", "bf16"), ("fp16", "fp16")):
        if name in sets:
            text.append(f"## {title}\n\n{summary(sets[name])}\n\n{table(sets[name])}\n")
    if "grid" in sets:
        text.append("## Causal over full\n\nTime with the causal mask over time without, by rounds, beside the share of tiles that a causal "
                    "grid visits: (T + 1) / 2T for T x T\nsquare tiles.\n\n" + causal_table(sets["grid"]) + "\n")
        picture(sets["grid"]).save(options.out / "forward_grid.png", scale_factor=2)
    if "grouped" in sets:
        text.append(f"## {GROUP} query heads a key head\n\nTime over that of as many key heads as query heads, by rounds.\n\n"
                    + grouped_table(sets["grouped"]) + "\n")
    if "lengths" in sets:
        text.append("## Mixed lengths\n\nLengths of a batch are drawn: an eighth each 0, 1 and the longest, the others between. TFLOP/s over "
                    "those of a dense problem\nwith about the same FLOPs, by rounds.\n\n" + lengths_table(sets["lengths"]) + "\n")
    (options.out / "forward_grid.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
