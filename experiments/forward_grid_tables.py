"""The tables of forward_grid_report.py, as Markdown, from the records of forward_grid.py."""

from fa3_over_cudnn import fa3_over_cudnn
from grid_shapes import DIMS
from records import geometric_mean, values

PEERS = {"torch_sdpa_cudnn": "cuDNN", "torch_sdpa_flash": "FA2", "torch_sdpa_efficient": "efficient"}
FA3 = "FA3 (est.)"
BETTER = "the better"  # of cuDNN and FA3 (est.)
MASKS = {"none": "full", "causal_top_left": "causal"}
STATIONS = (0.8, 0.9, 1.0, 1.05)


def kernel_named(records):
    """The name of the one kernel that is no backend of PyTorch. ValueError: there are none or several."""
    names = sorted({record["labels"]["contender"] for record in records} - set(PEERS))
    if len(names) != 1:
        raise ValueError(f"records of one kernel beside PyTorch's backends are wanted; these are of {', '.join(names) or 'none'}")
    return names[0]


def by_set(records):
    """{set: {shape: {contender: (labels, values)}}}; a later record of the same contender replaces an earlier one."""
    sets = {}
    for record in records:
        labels = record["labels"]
        sets.setdefault(labels["set"], {}).setdefault(labels["shape"], {})[labels["contender"]] = (labels, values(record))
    return sets


def kernel_of(contenders):
    return next(name for name in contenders if name not in PEERS)


def mask_of(shape):
    return next(name for mask, name in MASKS.items() if mask in shape.split())


def with_interval(found, name):
    return f"{found[name]:.3f} ({found[name + '_low']:.3f}-{found[name + '_high']:.3f})" if name in found else ""


def rates(shape, contenders):
    """{name: TFLOP/s} of the kernel, under its own name, of the peers, and of FA3 where it can be estimated."""
    found = {PEERS.get(name, name): measured["rate"] for name, (_, measured) in contenders.items()}
    ratio = fa3_over_cudnn(shape)
    if ratio and "cuDNN" in found:
        found[FA3] = found["cuDNN"] * ratio
    return found


def speeds(shape, contenders):
    """{name: the kernel's speed over it}; of peers measured in the same rounds, of FA3 through cuDNN."""
    own = contenders[kernel_of(contenders)][1]
    found = {}
    if "speed_over_torch_sdpa_cudnn" in own:
        found["cuDNN"] = own["speed_over_torch_sdpa_cudnn"]
        ratio = fa3_over_cudnn(shape)
        if ratio:
            found[FA3] = found["cuDNN"] / ratio
            found[BETTER] = min(found["cuDNN"], found[FA3])
    if "speed_over_baseline" in own:
        found["FA2"] = own["speed_over_baseline"]
    return found


def in_order(shapes, find):
    """Of cuDNN, FA3, the better, FA2 and efficient, the names that `find` has for any of the shapes."""
    present = {name for shape, contenders in shapes.items() for name in find(shape, contenders)}
    return [name for name in ("cuDNN", FA3, BETTER, "FA2", "efficient") if name in present]


def row(cells):
    return f"| {' | '.join(cells)} |"


def head(cells):
    return [row(cells), row(["---"] * len(cells))]


def table(shapes):
    peers, compared = in_order(shapes, rates), in_order(shapes, speeds)
    lines = head(["shape", "mask", "plan", "TFLOP/s", *peers,
                  *(f"of {name} (95 %)" if name in ("cuDNN", "FA2") else f"of {name}" for name in compared)])
    for shape, contenders in shapes.items():
        labels, own = contenders[kernel_of(contenders)]
        found, over = rates(shape, contenders), speeds(shape, contenders)
        over = {name: f"{ratio:.3f}" for name, ratio in over.items()}
        over.update({"cuDNN": with_interval(own, "speed_over_torch_sdpa_cudnn"), "FA2": with_interval(own, "speed_over_baseline")})
        lines.append(row([" ".join(shape.split()[:4]), mask_of(shape), labels["plan"], f"{own['rate']:.0f}",
                          *(f"{found[name]:.0f}" if name in found else "" for name in peers),
                          *(over.get(name, "") for name in compared)]))
    return "\n".join(lines)


def summary(shapes):
    """Geometric mean and smallest ratio, of everything and by head dim and mask."""
    compared = in_order(shapes, speeds)
    lines = head(["over", "shapes", *(f"{name}: geomean, smallest" for name in compared)])
    groups = [("all", lambda shape: True)]
    groups += [(f"D {dim}, {name}", lambda shape, dim=dim, name=name: f"d{dim}" in shape.split() and mask_of(shape) == name)
               for dim in DIMS for name in MASKS.values()]
    for title, holds in groups:
        chosen = {shape: speeds(shape, contenders) for shape, contenders in shapes.items() if holds(shape)}
        if not chosen:
            continue
        cells = []
        for name in compared:
            found = {shape: over[name] for shape, over in chosen.items() if name in over}
            at = min(found, key=found.get, default=None)
            missing = f", {len(found)} of {len(chosen)} shapes" if len(found) < len(chosen) else ""
            cells.append(f"{geometric_mean(list(found.values())):.3f}, {found[at]:.3f} at {' '.join(at.split()[2:4])} {mask_of(at)}{missing}"
                         if found else "")
        lines.append(row([title, str(len(chosen)), *cells]))
    return "\n".join(lines)


def stations(shapes):
    """How many shapes reach a part of a peer's speed."""
    found = [speeds(shape, contenders) for shape, contenders in shapes.items()]
    compared = in_order(shapes, speeds)
    lines = head(["stations: shapes at or above", *(f"of {name}" for name in compared)])
    for least in STATIONS:
        of = {name: [over[name] for over in found if name in over] for name in compared}
        lines.append(row([f"{least:g}", *(f"{sum(ratio >= least for ratio in of[name])} of {len(of[name])}" for name in compared)]))
    return "\n".join(lines)


def causal_table(shapes):
    lines = ["| shape | causal / full (95 %) | tiles visited | over tiles | FA2 | cuDNN |", "| --- | --- | --- | --- | --- | --- |"]
    for shape, contenders in shapes.items():
        own = contenders[kernel_of(contenders)][1]
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
        labels, own = contenders[kernel_of(contenders)]
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
        labels, own = shapes[shape][kernel_of(shapes[shape])]
        if "rate_over_dense" not in own:
            continue
        flash = shapes[shape].get("torch_sdpa_flash", ({}, {}))[1]
        lines.append(f"| {shape} | {mask_of(shape)} | {labels['plan']} | {own['rate']:.0f} | {with_interval(own, 'rate_over_dense')} | "
                     + (f"{flash['rate_over_dense']:.3f} | {own['speed_over_baseline']:.3f}" if flash else " | ")
                     + f" | {dense}, {shapes[dense][kernel_of(shapes[dense])][1]['rate']:.0f} |")
    return "\n".join(lines)
