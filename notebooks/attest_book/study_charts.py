"""The pictures of a study: those that its file asks for, and those that its points offer themselves for."""

import altair
import pandas

from attest_book import charts
from attest_book.study import is_better_high
from attest_book.study_frontiers import floors, pareto, roofline

MOST_PANELS, MOST_SERIES = 6, 8


def pictures(study):
    """[(heading, chart, sentence)]: what the file asks for, then of each other kind the one that the points offer themselves for.
    No chart where the sentence says that it cannot be drawn."""
    made = [made_of_plot(study, plot) for plot in study.plots]
    drawn = {plot["kind"] for plot, (_, chart, _) in zip(study.plots, made) if chart}
    plan_axes, value = study.varying("plan."), study.value()
    if "heat_map" not in drawn and len(plan_axes) >= 2 and value:
        made.append(heat_maps(study, plan_axes[0], plan_axes[1], value))
    numeric = [axis for axis in study.varying("problem.") if pandas.api.types.is_numeric_dtype(study.points[axis])]
    if "lines" not in drawn and numeric and value:
        made.append(line_plot(study, numeric[0], value))
    if not any(made) and value:
        made.append(bar_plot(study, value))
    made += [frontier(study) for kind, frontier in (("pareto", pareto), ("roofline", roofline)) if kind not in drawn]
    made.append(floors(study))
    return [picture for picture in made if picture]


def made_of_plot(study, plot):
    """A plot of study.yaml. Where its value was not measured it shows what the study has instead, and says so."""
    heading = str(plot.get("title") or f"{plot['kind'].replace('_', ' ')}")
    asked = {key: str(plot[key]) for key in ("x", "y", "value", "color") if plot.get(key)}
    found = {key: study.column(name) for key, name in asked.items()}
    note = ""
    if "value" in asked and not found["value"] and study.value():
        found["value"], note = study.value(), f" '{asked['value']}' was not measured; {study.value()} stands in its place."
    missing = [asked[key] for key in found if not found[key]]
    if missing:
        return heading, None, f"Not drawn: the records have no '{missing[0]}'."
    picture = DRAWN[plot["kind"]](study, found.get("x"), found.get("y"), found.get("value"), found.get("color"))
    if not picture:
        return heading, None, "Not drawn: no point has all that it needs."
    return heading, picture[1], picture[2] + note


def asked_heat_map(study, x, y, value, colour):
    axes = study.varying("plan.") + study.varying()
    x = x or next(iter(axes), None)
    y = y or next((axis for axis in axes if axis != x), None)
    value = value or colour or study.value()
    return heat_maps(study, x, y, value) if x and y and value else None


def asked_lines(study, x, y, value, colour):
    value = value or y or study.value()
    return line_plot(study, x or next(iter(study.varying()), None), value, colour) if value else None


def asked_bars(study, x, y, value, colour):
    value = value or next((name for name in (y, x) if name in study.units), None) or study.value()
    return bar_plot(study, value, colour) if value else None


DRAWN = {"heat_map": asked_heat_map, "lines": asked_lines, "bars": asked_bars,
         "pareto": lambda study, x, y, value, colour: pareto(study, x, y or value, colour),
         "roofline": lambda study, x, y, value, colour: roofline(study, colour)}


def others(study, used):
    """What tells points apart besides the columns that a picture uses already."""
    kernels = ["contender"] if study.points.contender.nunique() > 1 and "contender" not in used else []
    return kernels + [axis for axis in study.varying() if axis not in used]


def said(values):
    return ", ".join(charts.number_text(value) if name == "contender" else f"{charts.title_of(name)} {charts.number_text(value)}"
                     for name, value in values if value == value)


def heat_maps(study, x, y, value):
    """A heat map for each combination of the other axes; of many combinations those with the best points."""
    is_high = is_better_high(value)
    table = study.points[study.points[value].notna() & study.points[x].notna() & study.points[y].notna()]
    if table.empty:
        return None
    rest = others(study, {x, y})
    groups = list(table.groupby(rest, dropna=False)) if rest else [((), table)]
    shown = groups[:MOST_PANELS]
    panels = []
    for key, group in shown:
        best = group.sort_values(value, ascending=not is_high).drop_duplicates([x, y])[[x, y, value]]
        panels.append(charts.heat_map(best, x, y, value, title=said(zip(rest, key)), value_title=charts.title_of(value, study.units),
                                      is_better="high" if is_high else "low"))
    chart = altair.concat(*panels, columns=2 if len(panels) > 1 else 1).resolve_scale(color="independent", x="independent", y="independent")
    text = f"Each cell is {charts.title_of(value, study.units)}; the framed cell is the best of its panel, and {'more' if is_high else 'less'} is better."
    if len(groups) > len(shown):
        text += f" {len(groups) - len(shown)} more panels are left out; the table below has their points."
    return f"{charts.title_of(value)} by {charts.title_of(x)} and {charts.title_of(y)}", chart, text


def with_series(table, names):
    """A column `series` that says what tells its lines apart, in words."""
    table = table.copy()
    table["series"] = [said(zip(names, row)) or "points" for row in
                       table[names].itertuples(index=False, name=None)] if names else table.get("contender", "points")
    return table


def line_plot(study, x, value, colour=None):
    if not x or x not in study.points or value not in study.points:
        return None
    names = [colour] if colour else others(study, {x})
    table = with_series(study.points[study.points[value].notna() & study.points[x].notna()], names)
    if table.empty:
        return None
    better = "max" if is_better_high(value) else "min"
    best = table.groupby("series")[value].agg(better).sort_values(ascending=better == "min")
    shown = list(best.index[:MOST_SERIES])
    rivals = study.baselines
    if value in rivals and x in rivals and rivals[x].notna().any():
        rivals = rivals[rivals[value].notna() & rivals[x].notna()].copy()
        rivals["series"] = rivals["name"].where(rivals["name"] != "", rivals.contender) + " (baseline)"
        rivals = rivals[~rivals.series.duplicated() | ~rivals.duplicated(["series", x])]
    else:
        rivals = table.iloc[:0]
    drawn = pandas.concat([table[table.series.isin(shown)], rivals])
    low, high = (f"{value}_{end}" if f"{value}_{end}" in table else None for end in ("low", "high"))
    drawn = drawn.sort_values(value, ascending=better == "min").drop_duplicates(["series", x])
    columns = [name for name in ("series", x, value, low, high) if name]
    is_numeric = pandas.api.types.is_numeric_dtype(drawn[x])
    drawing = charts.lines(drawn[columns], x, value, "series", low, high, units=study.units, x_log=is_numeric and drawn[x].min() > 0,
                           is_numeric=is_numeric, colour_title="")
    text = f"{charts.title_of(value, study.units)} against {charts.title_of(x)}, the best point of each line where several have the same"
    text += "; the band is the 95 % interval of the median." if low and high else "."
    if len(best) > len(shown):
        text += f" Of {len(best)} lines the best {len(shown)} are drawn."
    return f"{charts.title_of(value)} by {charts.title_of(x)}", drawing, text


def bar_plot(study, value, colour=None):
    names = others(study, set())
    table = with_series(study.points[study.points[value].notna()], names)
    if table.empty:
        return None
    table = table.sort_values(value, ascending=not is_better_high(value)).drop_duplicates("series").head(40)
    columns = list(dict.fromkeys(["series", value] + ([colour] if colour else [])))
    return (f"{charts.title_of(value)} of each point", charts.bars(table[columns], value, "series", color=colour, units=study.units),
            f"{charts.title_of(value, study.units)}, the best first; at most 40 bars.")
