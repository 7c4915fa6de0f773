"""Makes the plot of speed against error, and its table, from records of speeds and of `attest errors`.

    cd experiments/results/h200
    python3 ../../speed_error_report.py --speeds fp32_speed.jsonl tf32_speed.jsonl forward_grid.jsonl forward_grid_fa3_wgmma.jsonl \\
        --errors errors.jsonl errors_fp32.jsonl errors_tf32.jsonl errors_torch.jsonl errors_precision.jsonl \\
        ../xeon-2core/errors_timed.jsonl --out .

Writes speed_against_error.md and .png. Every figure is one of the records; which speed stands beside which error is
speed_error_pairs.py's choice.
"""

import argparse
import math
import pathlib
import statistics

from label_places import place
from speed_error_pairs import DIMS, INPUTS, LENGTH, missing_lines, pairs, read_all, table

PLOTTED = next(iter(INPUTS))
WIDTH, HEIGHT = 430, 430
UNKNOWN = "no error"
COLOURS = {"torch_sdpa_efficient": "#4c78a8", "k10_wide_tiles": "#8c6d31", "tf32_mma": "#54a24b", "fp32_wgmma": "#e45756",
           "fa2_mma": "#b279a2", "fa3_wgmma": "#6b3d7a", UNKNOWN: "#999999"}
TICKS = (10, 20, 50, 100, 200, 500, 1000, 2000)


class Scale:
    """Logarithmic, between two values, over a number of pixels; `flipped` counts pixels from the top."""

    def __init__(self, low, high, length, flipped=False):
        self.domain, self.length, self.flipped = (low, high), length, flipped

    def pixels(self, value):
        low, high = map(math.log, self.domain)
        share = (math.log(value) - low) / (high - low)
        return self.length * (1 - share if self.flipped else share)

    def value(self, pixels):
        low, high = map(math.log, self.domain)
        share = pixels / self.length
        return math.exp(low + (high - low) * (1 - share if self.flipped else share))


def points_of(rows, missing):
    """(points, the usual length of their errors, what was timed but has no error). A speed stands there once, whatever
    errors are held against."""
    usual = statistics.mode(error.length for _, error in rows.values())
    points = []
    for precision, (speed, error) in rows.items():
        notes = [f"N {error.length}"] if error.length != usual else []
        notes += ["executor"] if error.on_executor else []
        points.append({"rate": speed.value("rate"), "error": error.value("relative_l2"), "kernel": precision.kernel,
                       "executor": error.on_executor, "label": precision.name + (f" ({', '.join(notes)})" if notes else "")})
    timed = [{"rate": speed.value("rate"), "label": precision.name} for precision, (_, speed) in missing.items()
             if speed and not precision.inputs_suffix]
    return points, usual, timed


def panel(dim, points, usual, timed, x, y):
    import altair  # here, for the tables do without it

    middle = y.value(HEIGHT / 2)
    every = points + [{**one, "error": middle, "kernel": UNKNOWN} for one in timed]
    places = place([(x.pixels(p["rate"]), y.pixels(p["error"]), p["label"]) for p in every], WIDTH, HEIGHT,
                   [x.pixels(one["rate"]) for one in timed])
    labels = [{**p, "rate": x.value(left), "error": y.value(line)} for p, (left, line) in zip(every, places)]
    colours = altair.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    along = altair.X("rate:Q", title=f"TFLOP/s at N {LENGTH} (log scale)",
                     scale=altair.Scale(type="log", domain=list(x.domain), nice=False),
                     axis=altair.Axis(values=[t for t in TICKS if x.domain[0] <= t <= x.domain[1]], format="d"))
    decades = [10.0**e for e in range(-12, 3) if y.domain[0] <= 10.0**e <= y.domain[1]]
    up = altair.Y("error:Q", title="RMSE of O / RMS of O (log scale)", axis=altair.Axis(format=".0e", values=decades),
                  scale=altair.Scale(type="log", domain=list(y.domain), nice=False))
    colour = altair.Color("kernel:N", legend=None, scale=colours)
    rules = altair.Chart(altair.Data(values=timed)).mark_rule(strokeDash=[4, 4], color=COLOURS[UNKNOWN]).encode(x=along)
    marks = altair.Chart(altair.Data(values=points)).mark_point(size=75, strokeWidth=2, opacity=1).encode(
        x=along, y=up, color=colour, fill=altair.Fill("kernel:N", legend=None, scale=colours),
        fillOpacity=altair.condition("datum.executor", altair.value(0), altair.value(1)))
    words = altair.Chart(altair.Data(values=labels)).encode(x=along, y=up, text="label:N")
    halo = words.mark_text(align="left", baseline="middle", fontSize=11, stroke="white", strokeWidth=4)
    text = words.mark_text(align="left", baseline="middle", fontSize=11).encode(color=colour)
    title = altair.Title(f"D {dim}", subtitle=f"errors at N {usual} unless named")
    return (rules + halo + marks + text).properties(width=WIDTH, height=HEIGHT, title=title)


def picture(found, missing):
    import altair

    parts = {dim: points_of(found[PLOTTED, dim], missing.get((PLOTTED, dim), {})) for dim in DIMS if (PLOTTED, dim) in found}
    rates = [p["rate"] for points, _, timed in parts.values() for p in points + timed]
    errors = [p["error"] for points, _, _ in parts.values() for p in points]
    x = Scale(min(rates) / 1.4, max(rates) * 1.6, WIDTH)
    y = Scale(10.0 ** math.floor(math.log10(min(errors))), 10.0 ** math.ceil(math.log10(max(errors))), HEIGHT, flipped=True)
    return altair.hconcat(*(panel(dim, *part, x, y) for dim, part in parts.items())).properties(
        title=altair.Title(f"Speed against error of attention: {PLOTTED} inputs, no mask",
                           subtitle="Open: the error is the executor's, not the GPU's. Dashed: timed, its error is not recorded.")
    ).configure_view(stroke="#dddddd")


def report(speeds, errors):
    """The tables of record files, as Markdown. ValueError: no kernel has both a speed and an error on the plotted inputs."""
    found, missing = pairs(read_all(speeds), read_all(errors))
    if not any(title == PLOTTED for title, _ in found):
        raise ValueError(f"no kernel has both a speed and an error on {PLOTTED}; needed: records of fp32_speed.py or forward_grid.py "
                         "and of attest errors")
    devices = sorted({speed.record["provenance"]["device"] for rows in found.values() for speed, _ in rows.values()})
    text = [f"# Speed against error\n\n{'; '.join(devices)}; commits and records stand in each row.\n`speed_error_report.py` made this of "
            "committed records; every figure is one of them.\n\n"
            "- *TFLOP/s*: 4 B H D FLOPs for each visible pair of query and key over the median time, splitting of fp32 numbers included; of "
            "N(0, 1) inputs.\n"
            "- *Relative RMSE*: of O against the f64 reference, over the RMS of O. The judged problem is not the timed one where the last column says so.\n"
            "- One Plan of each precision: timed with the tiles that were judged, at the same commit if there is one, else the newest.\n"
            "- *on gpu*: `attest errors` ran the kernel; *on file*: it judged what PyTorch's process made on the GPU, by the kernel's default "
            "plan; *on simt*:\n  on the **executor**, on the CPU, so nothing is known of the GPU's error (open points).\n"
            "- *fp16*, *bf16*: `fa2_mma`, and *Hopper* `fa3_wgmma`, against the exact attention of the inputs rounded to 16 bits. *Of fp32 inputs*: of the inputs before "
            "they were\n  rounded, which is what the other precisions are held against.\n"
            "- *fp16 x3*: `products=automatic`, which leaves rows out of fp16's range to bf16 x6.\n\n"
            "![speed against error](speed_against_error.png)\n"]
    text += [f"## {title}, D {dim}\n\n{table(rows)}\n" for (title, dim), rows in found.items()]
    text.append(f"## Missing\n\nNot plotted as points, and not estimated:\n\n{missing_lines(missing)}\n")
    return "\n".join(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--speeds", required=True, nargs="+")
    arguments.add_argument("--errors", required=True, nargs="+")
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    try:
        text = report(options.speeds, options.errors)
    except ValueError as error:
        arguments.error(f"--speeds {' '.join(options.speeds)} --errors {' '.join(options.errors)}: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "speed_against_error.md").write_text(text)
    picture(*pairs(read_all(options.speeds), read_all(options.errors))).save(options.out / "speed_against_error.png", scale_factor=2)


if __name__ == "__main__":
    main()
