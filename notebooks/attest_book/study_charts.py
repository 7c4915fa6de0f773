"""The pictures of a study: those that its file asks for, and those that its points offer themselves for."""

import dataclasses

import pandas

from attest_book import charts
from attest_book.study_frontiers import floors, pareto, roofline
from attest_book.study_layout import (MOST_SERIES, Panel, Picture, domain_of, facets, groups, is_wide, legend_of, series_of, untied,
                                      with_series)
from attest_book.study import TELLING, best_of, is_better_high, kernel_of, of_problem, others, with_values

MOST_BARS = 40
NEEDS = {"heat_map": "two axes and a value", "lines": "an axis and a value", "bars": "a value", "pareto": "times, or floors of them by models, and errors, such as metrics: [error.rmse]",
         "roofline": "times, counters of the group dram, and metrics: [model]; or, where nothing was timed, models"}


def pictures(study):
    """What the file asks for, or where nothing of it can be drawn what the points offer themselves for;
    then time against error, a roofline and the floors of models, where the records have what they need. No panels where the text says
    that it cannot be drawn."""
    made = [made_of_plot(study, plot) for plot in study.plots]
    drawn = {plot["kind"] for plot, picture in zip(study.plots, made) if picture.panels}
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
        return Picture(title or kind, f"Not drawn: the records have no '{missing[0]}'.")
    picture = DRAWN[plot["kind"]](study, found.get("x"), found.get("y"), found.get("value"), found.get("color"))
    if not picture:
        return Picture(title or kind, f"Not drawn: no two points have all that it needs, {NEEDS[plot['kind']]}.")
    return dataclasses.replace(picture, heading=title or picture.heading, text=picture.text + remark)


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


def note(study, is_choice, left_out=0, missing=0, x=""):
    parts = []
    if is_choice:
        parts.append("Where several Plans share a place the best is shown.")
    if left_out:
        parts.append(f"{left_out} {'problems' if left_out > 1 else 'problem'} of a single {charts.title_of(x)} {'are' if left_out > 1 else 'is'} left out; the table below has all points.")
    if missing:
        parts.append(f"{missing} {'points have' if missing > 1 else 'point has'} no {charts.title_of(x)}.")
    return kernel_of(study) + "".join(" " + part for part in parts)


def interval_of(table, value):
    return tuple(f"{value}_{end}" if f"{value}_{end}" in table else None for end in ("low", "high"))


def heat_maps(study, x, y, value):
    """A heat map for each kernel, problem and inputs."""
    is_high = is_better_high(value)
    table = with_values(study.points, x, y, value)
    kernels = ["contender"] if table.contender.nunique() > 1 else []
    made, is_choice = [], False
    scale = "log" if len(table) and table[value].min() > 0 and table[value].max() > 8 * table[value].min() else "linear"
    for title, rows in groups(table, table.iloc[:0], kernels + facets(study, table, x, [y, *kernels])):
        best, chosen = best_of(rows, value, [x, y])
        if len(best) > 1:
            is_choice = is_choice or chosen
            made.append(Panel(title, charts.heat_map(best[[x, y, value]], x, y, value, value_title=charts.title_of(value, study.units),
                                                     is_better="high" if is_high else "low", scale=scale), best))
    if not made:
        return None
    text = f"Each cell is {charts.title_of(value, study.units)}; the framed cell is the best of its panel, and {'more' if is_high else 'less'} is better."
    if len(made) > 1:
        text += " Each panel has its own colours."
    return Picture(f"{charts.title_of(value)} by {charts.title_of(x)} and {charts.title_of(y)}", text + note(study, is_choice), made)


def line_plot(study, x, value, colour=None):
    """A line for each kernel and colour, in a panel for each problem and inputs; bars, where no problem has two values of x."""
    if not x or x not in study.points or value not in study.points:
        return None
    points = with_values(study.points, x, value)
    baselines = with_values(study.baselines, x, value) if {x, value} <= set(study.baselines) else study.baselines.iloc[:0]
    both = pandas.concat([points, baselines], ignore_index=True)
    names, by = series_of(both, colour, x)
    is_measured = x in study.units  # so it differs with all that tells points apart: no line mixes them
    goes_with = ""
    if not is_measured:
        both, by, goes_with = untied(both, x, by + facets(study, both, x, names + by))
    if not colour and len(names) < 2 and by and len(both[[*names, by[0], "role"]].drop_duplicates()) <= MOST_SERIES:
        names, by = [*names, by[0]], by[1:]
    low, high = interval_of(points, value)
    drawn, is_choice, left_out = [], False, 0
    both = with_series(both, names)
    for title, rows in groups(both[both.role != "baseline"], both[both.role == "baseline"], by, x):
        best, chosen = best_of(rows, value, ["series", x, *(of_problem(study) if is_measured else [])])
        if best[x].nunique() < 2:
            left_out += 1
            continue
        is_choice = is_choice or chosen
        drawn.append((title, best.sort_values(x)))
    if not drawn:
        return bar_plot(study, value, colour, x) if x in study.axes else bar_plot(study, value, colour)
    shown = pandas.concat([rows for _, rows in drawn])
    of_baselines = set(shown.series[shown.role == "baseline"])
    ranked = best_of(shown, value, ["series"])[0].series.tolist()
    legend = legend_of(ranked, of_baselines) if len(ranked) <= MOST_SERIES else legend_of(ranked[:MOST_SERIES], of_baselines & set(ranked[:MOST_SERIES]))
    shown = shown[shown.series.isin(dict(legend))]
    is_numeric, y_log = pandas.api.types.is_numeric_dtype(shown[x]), is_wide(shown[value])
    columns = [name for name in ("series", x, value, low, high) if name]
    panels = []
    for title, rows in drawn:
        rows = rows[rows.series.isin(dict(legend))]
        chart = charts.lines(rows[columns], x, value, "series", low, high, units=study.units, x_log=is_numeric and shown[x].min() > 0, y_log=y_log,
                             is_numeric=is_numeric, colours=dict(legend), domain=domain_of(shown, (value, low, high), y_log))
        panels.append(Panel(title, chart.properties(height=240), rows))
    text = f"{charts.title_of(value, study.units)} against {charts.title_of(x)}" + ("; the band is the 95 % interval of the median." if low and high else ".") + (
        "" if y_log or value not in ("rate", "time") else " The vertical axis need not begin at 0.")
    if len(ranked) > len(legend):
        text += f" Of {len(ranked)} lines the best {len(legend)} are drawn."
    return Picture(f"{charts.title_of(value)} by {charts.title_of(x)}", text + goes_with + note(study, is_choice, left_out, int(study.points[x].isna().sum()), x), panels, legend)


def bar_plot(study, value, colour=None, category=None):
    """A bar for each kernel, colour and value of the category, in a panel for each problem and inputs; without a category, or where that
    leaves no panel with two bars, for each point, the best first."""
    table = with_values(study.points, value, category)
    return (category and grouped_bars(study, table, value, colour, category)) or bars_of_points(study, with_values(study.points, value), value)


def grouped_bars(study, table, value, colour, category):
    names, by = series_of(table, colour, category)
    table, by, goes_with = untied(table, category, by + facets(study, table, category, names + by))
    low, high = interval_of(table, value)
    if not (low and high):
        low = high = None
    drawn, is_choice, left_out = [], False, 0
    for title, rows in groups(with_series(table, names), table.iloc[:0], by, category):
        best, chosen = best_of(rows, value, ["series", category])
        if len(best) < 2:
            left_out += 1
            continue
        is_choice = is_choice or chosen
        drawn.append((title, best))
    if not drawn:
        return None
    shown = pandas.concat([rows for _, rows in drawn])
    legend = legend_of(shown.series) if names else []
    is_log = len(drawn) > 1 and is_wide(shown[value])
    low_end, high_end = domain_of(shown, (value, low, high), is_log)
    domain = [low_end, high_end * 2] if is_log else [min(0.0, low_end) if (shown[value] < 0).any() else 0.0, high_end * 1.2]  # room for the numbers
    panels = [Panel(title, charts.grouped_bars(rows, value, category, "series" if names else None, units=study.units, low=low, high=high,
                                               colours=dict(legend), domain=domain, log=is_log), rows) for title, rows in drawn]
    return Picture(f"{charts.title_of(value)} by {charts.title_of(category)}",
                   f"{charts.title_of(value, study.units)} by {charts.title_of(category)}"
                   + ("; thin lines are 95 % intervals of the medians." if low else ".") + (" At the dashed line both are as fast." if charts.is_ratio(value) else "")
                   + goes_with + note(study, is_choice, left_out, int(study.points[category].isna().sum()), category), panels, legend)


def bars_of_points(study, table, value):
    if len(table) < 2:
        return None
    table = with_series(table, others(table, [], of_problem(study) + study.varying("plan.")))
    best = best_of(table, value, ["series"])[0].head(MOST_BARS)
    return Picture(f"{charts.title_of(value)} of each point", f"{charts.title_of(value, study.units)}, the best first; at most {MOST_BARS} bars." + note(study, False),
                   [Panel("", charts.bars(best[["series", value]], value, "series", units=study.units), best)])
