"""What limits points: time against error, rate against arithmetic intensity, the floors of their time."""

import math

import altair
import pandas

from attest_book import charts
from attest_book.study import kernel_of, of_problem, others
from attest_book.study_layout import MOST_SERIES, Panel, Picture, facets, groups, legend_of, series_of, with_series

MOST_ROWS, MOST_LABELS = 40, 20
LABEL_HEIGHT, LABEL_LETTER = 12, 6.6  # of a label, in pixels
FORMAT = "problem.element_type"
COUNTED, MODELLED = ("counter.dram_read_bytes", "counter.dram_write_bytes"), "model.dram_bytes"
FLOOR = "model.time_floor."


def groups_of(study, colour):
    if colour:
        return colour
    if study.points.contender.nunique() > 1:
        return "contender"
    axes = study.varying("plan.") + study.varying()
    return next((axis for axis in axes if study.points[axis].nunique() <= MOST_SERIES), "contender")


def front(table, x, y):
    """The rows that no other row beats in both, less being better; NaN beats nothing and is beaten."""
    rows = table[table[x].notna() & table[y].notna()].sort_values([x, y])
    best = rows[y].cummin()
    return rows[(rows[y] == best) & ~best.duplicated()]


def pareto(study, x=None, y=None, colour=None):
    """Nothing where there are no errors: a study asks for them by `metrics`. Where nothing was timed, floors of the time stand for times."""
    errors = [name for name in study.points if name.startswith("error.") and study.points[name].notna().any()]
    x = x or next((name for name in ("time", "model.time_floor") if name in study.points), None)
    y = y or ("error.rmse" if "error.rmse" in errors else next(iter(errors), None))
    if not x or not y or x not in study.points:
        return None
    table = pandas.concat([study.points, study.baselines], ignore_index=True)
    table = table[(table[x] > 0) & (table[y] > 0)] if y in table else table.iloc[:0]
    if table.empty:
        return None
    by = groups_of(study, colour)
    # Formats are what the picture compares, so each problem has all of them.
    has_formats = FORMAT in table and table[FORMAT].nunique() > 1
    of_plan = [axis for axis in study.varying("plan.") if axis in table]
    rest = facets(study, table, "contender", [name for name in dict.fromkeys([by, *of_plan, FORMAT]) if name in table and name != "contender"])
    is_own = table.role != "baseline"
    most = max(len(rows) for _, rows in groups(table[is_own], table[~is_own], rest))
    has_labels = by != "contender" and table.contender.nunique() > 1 and most <= MOST_LABELS
    if has_labels:  # they name the kernels, so colours need not
        names, table = [by], table.assign(role="point")
    else:
        names, _ = series_of(table, FORMAT if by == "contender" and has_formats else by)
    table = with_series(table, names)
    legend = legend_of(table.series, set(table.series[table.role == "baseline"]))
    ends = {name: (table[name].min() / 1.3, table[name].max() * 1.3) for name in (x, y)}
    made = []
    for title, rows in groups(table[is_own], table[~is_own], rest):
        rows = with_labels(rows, of_plan) if has_labels else rows.assign(label="")
        made.append(Panel(title, pareto_of(rows, x, y, ends, study.units, dict(legend)), rows))
    left = "Nothing was timed: left is a lower floor of the time, by models" if x.startswith("model.") else "Left is faster"
    return Picture("Time against error", f"{left}; down is more accurate. No point beats those on the dashed line in both." + kernel_of(study), made, legend)


def with_labels(table, of_plan):
    """A column `label`: the kernel, and what its Plan says where that tells its points apart."""
    def label(row):
        parts = [str(row[axis]) for axis in others(table[table.contender == row.contender], [FORMAT] if FORMAT in table else [], of_plan) if row[axis] == row[axis]]
        return ", ".join([row["name"] or row.contender, *parts])
    return table.assign(label=[label(row) for _, row in table.iterrows()])


def placed(table, x, y, ends, width, height):
    """Columns `label_x` and `label_y`: where a label begins so that it covers no point and no other label, as near to its point as can be."""
    def along(values, name, size):
        low, high = (math.log(end) for end in ends[name])
        return [(math.log(value) - low) / (high - low) * size for value in values]

    def back(at, name, size):
        low, high = (math.log(end) for end in ends[name])
        return math.exp(low + at / size * (high - low))

    spots = list(zip(along(table[x], x, width), along(table[y], y, height)))
    taken = [(a - 4, b - 4, a + 4, b + 4) for a, b in spots]
    found = []
    for (a, b), label in zip(spots, table.label):
        long = LABEL_LETTER * len(label)
        tries = [(left, b + step * sign) for step in range(0, height, 4) for sign in (1, -1) for left in (a + 7, a - 7 - long, a - long / 2)
                 if 0 <= left and left + long <= width]
        boxes = [(left, at - LABEL_HEIGHT / 2, left + long, at + LABEL_HEIGHT / 2) for left, at in tries]
        free = [box for box in boxes if not any(box[0] < c and box[2] > a_ and box[1] < d and box[3] > b_ for a_, b_, c, d in taken)]
        box = (free or boxes or [(a + 7, b - LABEL_HEIGHT / 2, a + 7 + long, b + LABEL_HEIGHT / 2)])[0]
        taken.append(box)
        found.append((back(box[0], x, width), back((box[1] + box[3]) / 2, y, height)))
    return table.assign(label_x=[at for at, _ in found], label_y=[at for _, at in found])


def pareto_of(table, x, y, ends, units, colours):
    width, height = 400, 300
    columns = list(dict.fromkeys([x, y, "series", "contender", "plan", "label"]))
    x_scale, y_scale = (altair.Scale(type="log", nice=False, domain=list(ends[name])) for name in (x, y))
    at_x = altair.X(charts.field(x, "Q"), scale=x_scale, title=charts.title_of(x, units), axis=altair.Axis(labelOverlap="greedy"))
    digits = 1 if ends[y][1] > 4 * ends[y][0] else 3  # so that ticks differ
    at_y = altair.Y(charts.field(y, "Q"), scale=y_scale, title=charts.title_of(y, units), axis=altair.Axis(format=f".{digits}e", labelOverlap="greedy"))
    points = altair.Chart(table[columns]).mark_point(opacity=0.8).encode(
        x=at_x, y=at_y, color=charts.coloured("series", colours, [], ""), tooltip=[charts.tip(name) for name in columns if name != "label"])
    step = altair.Chart(front(table, x, y)[[x, y]]).mark_line(interpolate="step-after", color="#888888", strokeDash=[4, 3]).encode(x=at_x, y=at_y)
    drawn = step + points
    if table.label.any():
        labels = placed(table, x, y, ends, width, height)
        base = altair.Chart(labels[["label", "label_x", "label_y"]]).encode(
            x=altair.X("label_x:Q", scale=x_scale), y=altair.Y("label_y:Q", scale=y_scale), text="label:N")
        style = {"align": "left", "fontSize": 10.5}
        drawn += base.mark_text(stroke="white", strokeWidth=4, **style) + base.mark_text(**style)
    return drawn.properties(width=width, height=height, autosize="pad")


def traffic_of(table):
    """(bytes of device memory, where they are from), measured before modelled; None where the records have neither."""
    if set(COUNTED) <= set(table) and table[COUNTED[0]].notna().any():
        return table[COUNTED[0]] + table[COUNTED[1]], "hardware counters"
    return (table[MODELLED], "the model of the L2") if MODELLED in table else (None, "")


def roofline(study, colour=None):
    """Rate over FLOPs per byte of memory traffic, under the roofs that the records name. Where nothing was timed, the rate is that of
    the floor of the time."""
    table = study.points
    traffic, source = traffic_of(table)
    is_timed = "rate" in table and "time" in table
    needed = ("rate", "time") if is_timed else ("model.flops", "model.time_floor")
    if traffic is None or any(name not in table for name in (*needed, "model.peak_flops", "model.peak_bandwidth")):
        return None
    flops = table["rate"] * 1e12 * table["time"] * 1e-3 if is_timed else table["model.flops"]
    table = table.assign(**{"FLOP per byte": flops / traffic, "rate": table["rate"] if is_timed else flops / table["model.time_floor"] * 1e-9})
    table = table[(table["FLOP per byte"] > 0) & (table["rate"] > 0)]
    if table.empty:
        return None
    x_low, x_high = table["FLOP per byte"].min() / 4, table["FLOP per byte"].max() * 4
    roofs = []
    for peak, bandwidth in sorted(set(zip(table["model.peak_flops"] * 1e-12, table["model.peak_bandwidth"] * 1e-12))):
        ridge = peak / bandwidth
        ends = sorted({min(x_low, ridge / 4), ridge, max(x_high, ridge * 4)})
        roofs += [{"FLOP per byte": x, "roof": min(peak, x * bandwidth), "peak": f"{peak:.4g} TFLOP/s, {bandwidth:.3g} TB/s"} for x in ends]
    at_x = altair.X("FLOP per byte:Q", scale=altair.Scale(type="log", nice=False), title="FLOP per byte of memory traffic")
    table = with_series(table, series_of(table, groups_of(study, colour))[0])
    legend = legend_of(table.series)
    columns = ["FLOP per byte", "rate", "series", "contender", "plan", "problem"]
    points = altair.Chart(table[columns]).mark_point(opacity=0.8).encode(
        x=at_x, y=altair.Y("rate:Q", scale=altair.Scale(type="log"), title="TFLOP/s" if is_timed else "TFLOP/s at best, by models"),
        color=charts.coloured("series", dict(legend), [], ""), tooltip=[charts.tip(name) for name in columns])
    line = altair.Chart(pandas.DataFrame(roofs)).mark_line(color="#000000").encode(x=at_x, y="roof:Q", detail="peak:N", tooltip=["peak"])
    return Picture("Roofline", f"The line is what memory and arithmetic allow ({'; '.join(dict.fromkeys(roof['peak'] for roof in roofs))}). Traffic comes from {source}. " + ("Points far below the line wait for something else." if is_timed else
               "Nothing was timed: a point stands where the floor of its time puts it, and no launch can be above it."),
                   [Panel("", (line + points).properties(width=560, height=340), table)], legend)


def floors(study):
    """Times that no launch can beat, by cause: of models, so on machines without a GPU too."""
    names = [name for name in study.points if name.startswith(FLOOR)]
    table = study.points.dropna(subset=names, how="all") if names else study.points.iloc[:0]
    if table.empty:
        return None
    is_estimate = table["model.counts_are_exact"] == 0 if "model.counts_are_exact" in table else pandas.Series(False, table.index)
    if FLOOR + "shared" in table:
        table = table.assign(**{FLOOR + "shared": table[FLOOR + "shared"].mask(is_estimate)})
    of_kernels = others(table, [], of_problem(study))
    of_plans = others(table, of_kernels, study.varying("plan."))
    panels = groups(table, table.iloc[:0], of_kernels)
    if min(len(rows) for _, rows in panels) < 2:
        panels, of_plans = [("", table)], of_kernels + of_plans
    legend = legend_of(name.removeprefix(FLOOR) for name in names)
    ends = table[names].where(table[names] > 0)
    scale = altair.Scale(type="log", domain=[float(ends.min().min()) / 1.2, float(ends.max().max()) * 1.2])
    panels = [(title, with_series(rows, of_plans).sort_values("model.time_floor").drop_duplicates("series").head(MOST_ROWS)) for title, rows in panels]
    shown = sum(len(rows) for _, rows in panels)
    text = "What each cause takes at best, by the models of attest explain. The rightmost point of a row is a floor of the time: the likely bottleneck."
    if is_estimate.any():
        text += f" Shared memory is left out for {is_estimate.sum()} points whose counts are estimates."
    if len(study.points) > shown:
        text += f" The {shown} points with the lowest floors are drawn."
    return Picture("Time at best", text + kernel_of(study), [Panel(title, floors_of(rows, names, scale, dict(legend)), rows) for title, rows in panels], legend)


def floors_of(table, names, scale, colours):
    long = table.melt(id_vars="series", value_vars=names, var_name="cause", value_name="ms").dropna()
    long["cause"] = long["cause"].str.removeprefix(FLOOR)
    chart = altair.Chart(long[long.ms > 0]).mark_point(size=70).encode(
        x=altair.X("ms:Q", scale=scale, title="ms (log scale)", axis=altair.Axis(labelOverlap="greedy")),
        y=altair.Y("series:N", sort=table.series.tolist(), title=None, axis=altair.Axis(labelLimit=520)),
        color=charts.coloured("cause", colours, [], ""), tooltip=["series", "cause", altair.Tooltip("ms:Q", format=".4g")])
    return chart.properties(width=460, height=18 * len(table))
