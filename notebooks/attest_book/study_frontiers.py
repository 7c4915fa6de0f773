"""What limits points: time against error, rate against arithmetic intensity, the floors of their time."""

import altair
import pandas

from attest_book import charts
from attest_book.study import of_problem, others, with_series

MOST_COLOURS, MOST_PANELS, MOST_ROWS = 8, 4, 40
COUNTED, MODELLED = ("counter.dram_read_bytes", "counter.dram_write_bytes"), "model.dram_bytes"
FLOOR = "model.time_floor."


def groups_of(study, colour):
    if colour:
        return colour
    if study.points.contender.nunique() > 1:
        return "contender"
    axes = study.varying("plan.") + study.varying()
    return next((axis for axis in axes if study.points[axis].nunique() <= MOST_COLOURS), "contender")


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
    table = pandas.concat([study.points, study.baselines])
    table = table[(table[x] > 0) & (table[y] > 0)] if y in table else table.iloc[:0]
    if table.empty:
        return None
    by = groups_of(study, colour)
    table[by] = table[by].astype(object).where(table[by].notna(), table.contender)  # a baseline has no axes of the Plan
    panels = [pareto_of(group, x, y, by, study.units, problem) for problem, group in list(table.groupby("problem", sort=False))[-MOST_PANELS:]]
    left = "Nothing was timed: left is a lower floor of the time, by models" if x.startswith("model.") else "Left is faster"
    text = f"{left}; down is more accurate. No point beats those on the dashed line in both."
    if table.problem.nunique() > len(panels):
        text += f" Of {table.problem.nunique()} problems the last {len(panels)} are drawn."
    return "Time against error", altair.concat(*panels, columns=2 if len(panels) > 1 else 1), text


def pareto_of(table, x, y, by, units, title):
    columns = list(dict.fromkeys([x, y, by, "contender", "plan"]))
    at_x = altair.X(charts.field(x, "Q"), scale=altair.Scale(type="log", nice=False, padding=12), title=charts.title_of(x, units))
    digits = 1 if table[y].max() > 2 * table[y].min() else 3  # so that ticks differ
    at_y = altair.Y(charts.field(y, "Q"), scale=altair.Scale(type="log", nice=False, padding=12), title=charts.title_of(y, units),
                    axis=altair.Axis(format=f".{digits}e"))
    points = altair.Chart(table[columns]).mark_point(opacity=0.8).encode(
        x=at_x, y=at_y, color=altair.Color(charts.field(by, "N"), title=charts.title_of(by)), tooltip=[charts.tip(name) for name in columns])
    step = altair.Chart(front(table, x, y)[[x, y]]).mark_line(interpolate="step-after", color="#888888", strokeDash=[4, 3]).encode(x=at_x, y=at_y)
    return (step + points).properties(width=360, height=240, title=title)


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
    by = groups_of(study, colour)
    columns = list(dict.fromkeys(["FLOP per byte", "rate", by, "contender", "plan", "problem"]))
    points = altair.Chart(table[columns]).mark_point(opacity=0.8).encode(
        x=at_x, y=altair.Y("rate:Q", scale=altair.Scale(type="log"), title="TFLOP/s" if is_timed else "TFLOP/s at best, by models"),
        color=altair.Color(charts.field(by, "N"), title=charts.title_of(by)), tooltip=[charts.tip(name) for name in columns])
    line = altair.Chart(pandas.DataFrame(roofs)).mark_line(color="#000000").encode(x=at_x, y="roof:Q", detail="peak:N", tooltip=["peak"])
    return ("Roofline", (line + points).properties(width=560, height=340),
            f"The line is what memory and arithmetic allow ({'; '.join(dict.fromkeys(roof['peak'] for roof in roofs))}). Traffic comes from {source}. " + ("Points far below the line wait for something else." if is_timed else
               "Nothing was timed: a point stands where the floor of its time puts it, and no launch can be above it."))


def floors(study):
    """Times that no launch can beat, by cause: of models, so on machines without a GPU too."""
    names = [name for name in study.points if name.startswith(FLOOR)]
    table = study.points.dropna(subset=names, how="all") if names else study.points.iloc[:0]
    if table.empty:
        return None
    is_estimate = table["model.counts_are_exact"] == 0 if "model.counts_are_exact" in table else pandas.Series(False, table.index)
    if FLOOR + "shared" in table:
        table = table.assign(**{FLOOR + "shared": table[FLOOR + "shared"].mask(is_estimate)})
    table = with_series(table, others(table, [], of_problem(study) + study.varying("plan.")))
    table = table.sort_values("model.time_floor").drop_duplicates("series").head(MOST_ROWS)
    long = table.melt(id_vars="series", value_vars=names, var_name="cause", value_name="ms").dropna()
    long["cause"] = long["cause"].str.removeprefix(FLOOR)
    chart = altair.Chart(long[long.ms > 0]).mark_point(size=70).encode(
        x=altair.X("ms:Q", scale=altair.Scale(type="log"), title="ms (log scale)"),
        y=altair.Y("series:N", sort=table.series.tolist(), title=None, axis=altair.Axis(labelLimit=520)),
        color=altair.Color("cause:N", title=None), tooltip=["series", "cause", altair.Tooltip("ms:Q", format=".4g")])
    text = "What each cause takes at best, by the models of attest explain. The rightmost point of a row is a floor of the time: the likely bottleneck."
    if is_estimate.any():
        text += f" Shared memory is left out for {is_estimate.sum()} points whose counts are estimates."
    if len(study.points) > len(table):
        text += f" The {len(table)} points with the lowest floors are drawn."
    return "Time at best", chart.properties(width=460, height=18 * len(table)), text
