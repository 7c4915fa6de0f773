"""Time against error, and rate against arithmetic intensity."""

import altair
import pandas

from attest_book import charts

MOST_COLOURS, MOST_PANELS = 8, 4
TRAFFIC = ("counter.dram_bytes", "model.dram_bytes")  # measured before modelled


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
    """Nothing where there are no errors: a study asks for them by `metrics`."""
    errors = [name for name in study.points if name.startswith("error.") and study.points[name].notna().any()]
    x = x or next((name for name in ("time", "model.time") if name in study.points), None)
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
    text = "Left is faster, down is more accurate. No point beats those on the dashed line in both."
    if table.problem.nunique() > len(panels):
        text += f" Of {table.problem.nunique()} problems the last {len(panels)} are drawn."
    return "Time against error", altair.concat(*panels, columns=2 if len(panels) > 1 else 1), text


def pareto_of(table, x, y, by, units, title):
    columns = list(dict.fromkeys([x, y, by, "contender", "plan"]))
    at_x = altair.X(charts.field(x, "Q"), scale=altair.Scale(type="log", nice=False, padding=12), title=charts.title_of(x, units))
    at_y = altair.Y(charts.field(y, "Q"), scale=altair.Scale(type="log", nice=False, padding=12), title=charts.title_of(y, units),
                    axis=altair.Axis(format=".1e"))
    points = altair.Chart(table[columns]).mark_point(opacity=0.8).encode(
        x=at_x, y=at_y, color=altair.Color(charts.field(by, "N"), title=charts.title_of(by)), tooltip=[charts.tip(name) for name in columns])
    step = altair.Chart(front(table, x, y)[[x, y]]).mark_line(interpolate="step-after", color="#888888", strokeDash=[4, 3]).encode(x=at_x, y=at_y)
    return (step + points).properties(width=360, height=240, title=title)


def roofline(study, colour=None):
    """Rate over FLOPs per byte of memory traffic, under the roofs that the records name."""
    table = study.points
    traffic = next((name for name in TRAFFIC if name in table and table[name].notna().any()), None)
    needed = ("model.flops", "model.peak_flops", "model.peak_bandwidth")
    if not traffic or any(name not in table for name in needed) or "rate" not in table:
        return None
    table = table[(table[traffic] > 0) & (table["rate"] > 0)].copy()
    if table.empty:
        return None
    table["FLOP per byte"] = table["model.flops"] / table[traffic]
    peak, bandwidth = table["model.peak_flops"].max() * 1e-12, table["model.peak_bandwidth"].max() * 1e-12
    ridge = peak / bandwidth
    ends = sorted([min(table["FLOP per byte"].min(), ridge) / 4, ridge, max(table["FLOP per byte"].max(), ridge) * 4])
    roof = pandas.DataFrame({"FLOP per byte": ends, "roof": [min(peak, x * bandwidth) for x in ends]})
    at_x = altair.X("FLOP per byte:Q", scale=altair.Scale(type="log", nice=False), title="FLOP per byte of memory traffic")
    by = groups_of(study, colour)
    columns = list(dict.fromkeys(["FLOP per byte", "rate", by, "contender", "plan", "problem"]))
    points = altair.Chart(table[columns]).mark_point(opacity=0.8).encode(
        x=at_x, y=altair.Y("rate:Q", scale=altair.Scale(type="log"), title="TFLOP/s"),
        color=altair.Color(charts.field(by, "N"), title=charts.title_of(by)), tooltip=[charts.tip(name) for name in ("contender", "plan", "problem", "rate", "FLOP per byte")])
    line = altair.Chart(roof).mark_line(color="black").encode(x=at_x, y="roof:Q")
    source = "hardware counters" if traffic.startswith("counter.") else "the model of the L2"
    return ("Roofline", (line + points).properties(width=560, height=340),
            f"The black line is what memory ({bandwidth:.2f} TB/s) and arithmetic ({peak:.0f} TFLOP/s) allow. Traffic comes from {source}. "
            "Points far below the line wait for something else.")
