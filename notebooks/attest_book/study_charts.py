"""The pictures of a study: those that its file asks for, and those that its points offer themselves for."""

import altair
import pandas

from attest_book import charts
from attest_book.study_frontiers import floors, pareto, roofline
from attest_book.study import TELLING, best_of, is_better_high, of_problem, others, said, with_series, with_values

MOST_PANELS, MOST_SERIES, MOST_BARS = 6, 8, 40
NEEDS = {"heat_map": "two axes and a value", "lines": "an axis and a value", "bars": "a value", "pareto": "times, or floors of them by models, and errors, such as metrics: [error.rmse]",
         "roofline": "times, counters of the group dram, and metrics: [model]; or, where nothing was timed, models"}
WIDTH_ALONE, WIDTH_OF_PANEL = 560, 380


def pictures(study):
    """[(heading, chart, sentence)]: what the file asks for, or where nothing of it can be drawn what the points offer themselves for;
    then time against error, a roofline and the floors of models, where the records have what they need. No chart where the sentence says
    that it cannot be drawn."""
    made = [made_of_plot(study, plot) for plot in study.plots]
    drawn = {plot["kind"] for plot, (_, chart, _) in zip(study.plots, made) if chart}
    if not drawn - {"pareto", "roofline"} and study.value():
        made += offered(study, study.value())
    made += [frontier(study) for kind, frontier in (("pareto", pareto), ("roofline", roofline)) if kind not in drawn]
    return [picture for picture in [*made, floors(study)] if picture]


def offered(study, value):
    """A heat map of the first two axes of the Plan, lines over the problem's most telling number, else bars."""
    plan_axes, made = study.varying("plan."), []
    if len(plan_axes) >= 2:
        made.append(heat_maps(study, plan_axes[0], plan_axes[1], value))
    numeric = [axis for axis in study.varying("problem.") if pandas.api.types.is_numeric_dtype(study.points[axis])]
    telling = [axis for axis in TELLING if axis in numeric] or numeric
    if telling:
        made.append(line_plot(study, telling[0], value))
    return [picture for picture in made if picture] or [bar_plot(study, value)]


def made_of_plot(study, plot):
    """A plot of study.yaml. Where its value was not measured it shows what the study has instead, and says so."""
    title, kind = str(plot.get("title") or ""), plot["kind"].replace("_", " ").capitalize()
    asked = {key: str(plot[key]) for key in ("x", "y", "value", "color") if plot.get(key)}
    found = {key: study.column(name) for key, name in asked.items()}
    remark = ""
    for key in ("value", "y"):  # y is a value too, but in heat maps
        if key in asked and not found[key] and study.value() and (key == "value" or plot["kind"] in ("lines", "bars")):
            found[key], remark = study.value(), f" '{asked[key]}' was not measured; {study.value()} stands in its place."
    missing = [asked[key] for key in found if not found[key]]
    if missing:
        return title or kind, None, f"Not drawn: the records have no '{missing[0]}'."
    picture = DRAWN[plot["kind"]](study, found.get("x"), found.get("y"), found.get("value"), found.get("color"))
    if not picture:
        return title or kind, None, f"Not drawn: no point has all that it needs, {NEEDS[plot['kind']]}."
    return title or picture[0], picture[1], picture[2] + remark


def asked_heat_map(study, x, y, value, colour):
    axes = study.varying("plan.") + study.varying()
    x = x or next(iter(axes), None)
    y = y or next((axis for axis in axes if axis != x), None)
    value = value or colour or study.value()
    return heat_maps(study, x, y, value) if x and y and value else None


def asked_lines(study, x, y, value, colour):
    value = value or y or study.value()  # y is where the value stands in a plot of lines
    return line_plot(study, x or next(iter(study.varying()), None), value, colour) if value else None


def asked_bars(study, x, y, value, colour):
    value = value or next((name for name in (y, x) if name in study.units), None) or study.value()
    category = next((name for name in (x, y) if name and name != value), None)
    return bar_plot(study, value, colour, category) if value else None


DRAWN = {"heat_map": asked_heat_map, "lines": asked_lines, "bars": asked_bars,
         "pareto": lambda study, x, y, value, colour: pareto(study, x, y or value, colour),
         "roofline": lambda study, x, y, value, colour: roofline(study, colour)}


def panels(study, table, used, draw):
    """(chart, number of panels left out): `draw(rows, title, width)` for each kernel, problem and inputs that `used` does not tell apart."""
    rest = others(table, used, of_problem(study))
    groups = list(table.groupby(rest, dropna=False)) if rest else [((), table)]
    width = WIDTH_ALONE if len(groups) == 1 else WIDTH_OF_PANEL
    drawn = [draw(rows, said(zip(rest, key)), width) for key, rows in groups[:MOST_PANELS]]
    chart = altair.concat(*drawn, columns=2) if len(drawn) > 1 else drawn[0]
    if len(drawn) > 1:
        chart = chart.resolve_scale(color="shared" if used[-1] else "independent", x="independent", y="independent")
    return chart, len(groups) - len(drawn)


def note(is_choice, left_out):
    text = " Where several Plans share a place the best is shown." if is_choice else ""
    return text + (f" {left_out} more panels are left out; the table below has their points." if left_out else "")


def heat_maps(study, x, y, value):
    """A heat map for each kernel, problem and inputs."""
    is_high = is_better_high(value)
    table = with_values(study.points, x, y, value)
    if table.empty:
        return None
    choices, scale = [], "log" if table[value].min() > 0 and table[value].max() > 8 * table[value].min() else "linear"

    def draw(rows, title, _):
        best, is_choice = best_of(rows, value, [x, y])
        choices.append(is_choice)
        return charts.heat_map(best[[x, y, value]], x, y, value, title=title, value_title=charts.title_of(value, study.units),
                               is_better="high" if is_high else "low", scale=scale)

    chart, left_out = panels(study, table, [x, y, None], draw)
    text = f"Each cell is {charts.title_of(value, study.units)}; the framed cell is the best of its panel, and {'more' if is_high else 'less'} is better."
    return f"{charts.title_of(value)} by {charts.title_of(x)} and {charts.title_of(y)}", chart, text + note(any(choices), left_out)


def line_plot(study, x, value, colour=None):
    """Of one panel where no colour is asked for: a line for whatever tells points apart."""
    if not x or x not in study.points or value not in study.points:
        return None
    table = with_values(study.points, x, value)
    if table.empty:
        return None
    names = [colour] if colour else others(table, [x], of_problem(study) + study.varying("plan."))
    table = with_series(table, names)
    shown = best_of(table, value, ["series"])[0].series.tolist()[:MOST_SERIES]
    drawn = pandas.concat([table[table.series.isin(shown)], rivals_of(study, x, value)])
    low, high = (f"{value}_{end}" if f"{value}_{end}" in table else None for end in ("low", "high"))
    columns = [name for name in ("series", x, value, low, high) if name]
    is_numeric = pandas.api.types.is_numeric_dtype(drawn[x])
    order = charts.sorted_by_number(table.series[table.series.isin(shown)]) + charts.sorted_by_number(drawn.series[~drawn.series.isin(shown)])
    y_log = is_numeric and (drawn[value] > 0).all() and drawn[value].max() > 30 * drawn[value].min()
    choices = []

    def draw(rows, title, width):
        best, is_choice = best_of(rows, value, ["series", x])
        choices.append(is_choice)
        return charts.lines(best[columns].sort_values(x), x, value, "series", low, high, title=title, units=study.units, colour_title="",
                            x_log=is_numeric and drawn[x].min() > 0, y_log=y_log, is_numeric=is_numeric, order=order).properties(width=width, height=width // 2)

    chart, left_out = panels(study, drawn, [x, "series"], draw) if colour else (draw(drawn, "", WIDTH_ALONE), 0)
    text = f"{charts.title_of(value, study.units)} against {charts.title_of(x)}" + ("; the band is the 95 % interval of the median." if low and high else ".") + (
        "" if y_log or value not in ("rate", "time") else " The vertical axis need not begin at 0.")
    if table.series.nunique() > len(shown):
        text += f" Of {table.series.nunique()} lines the best {len(shown)} are drawn."
    return f"{charts.title_of(value)} by {charts.title_of(x)}", chart, text + note(any(choices), left_out)


def rivals_of(study, x, value):
    """Baselines as lines of their own."""
    rivals = study.baselines
    if value not in rivals or x not in rivals:
        return rivals.iloc[:0].assign(series="")
    rivals = with_values(rivals, x, value)
    return rivals.assign(series=rivals["name"].where(rivals["name"] != "", rivals.contender) + " (baseline)")


def bar_plot(study, value, colour=None, category=None):
    """A bar for each value of the category; without one, for each point, the best first."""
    table = with_values(study.points, value, category)
    if table.empty:
        return None
    if not category:
        names = others(table, [], of_problem(study) + study.varying("plan."))
        best = best_of(with_series(table, names), value, ["series"])[0].head(MOST_BARS)
        columns = list(dict.fromkeys(["series", value] + ([colour] if colour else [])))
        return (f"{charts.title_of(value)} of each point", charts.bars(best[columns], value, "series", color=colour, units=study.units),
                f"{charts.title_of(value, study.units)}, the best first; at most {MOST_BARS} bars.")
    choices = []
    low, high = (f"{value}_{end}" for end in ("low", "high")) if {f"{value}_low", f"{value}_high"} <= set(table) else (None, None)

    def draw(rows, title, _):
        best, is_choice = best_of(rows, value, [name for name in (category, colour) if name])
        choices.append(is_choice)
        return charts.grouped_bars(best, value, category, colour, title=title, units=study.units, low=low, high=high)

    chart, left_out = panels(study, table, [category, colour], draw)
    return (f"{charts.title_of(value)} by {charts.title_of(category)}", chart,
            f"{charts.title_of(value, study.units)} by {charts.title_of(category)}"
            + ("; thin lines are 95 % intervals of the medians." if low else ".") + (" At the dashed line both are as fast." if charts.is_ratio(value) else "")
            + note(any(choices), left_out))
