"""`./attest report A B`: what became slower or faster from one results folder to another."""

import math

import altair
import pandas

from attest_book import charts
from attest_book.charts import number_text
from attest_book.records import BadInput
from attest_book.page import Page
from attest_book.records import provenance_line
from attest_book.statistics import geometric_mean, ratio_interval, side
from attest_book.study_report import MOST_ROWS, text_table

MODELLED = ("model.time_floor", "model.dram_bytes", "model.shared_passes")  # where nothing was timed; they have no interval
WORDS = {1: "slower", -1: "faster", 0: "no difference shown"}
NOTE = ("Ratio: B over A, so above 1 is a regression. Its interval goes from low over high to high over low of both medians' 95 % "
        "intervals; a point is called slower or faster only when it leaves out 1. Models have no interval.")


def what(row):
    inputs = [f"{name.removeprefix('inputs.')} {number_text(row[name])}" for name in row.index if name.startswith("inputs.") and not name.endswith("_of_b") and row[name] == row[name]]
    return " ".join(part for part in (row.contender, row.plan if row.plan not in ("", "-") else "", "on", row.problem, *inputs) if part)


def measured(study, name):
    """What has a value of `name`, by point id; baselines too, for they ran in both."""
    table = pandas.concat([study.points, study.baselines])
    if name not in table or "point" not in table:
        return table.iloc[:0].assign(key=[])
    table = table[table[name].notna()].copy()
    table["key"] = table["point"] + " " + table["role"]
    for how in ("cache", "launch"):  # hot and cold, in the stream and in a graph: no pair
        table["key"] += " " + table.get(how, pandas.Series("", table.index)).fillna("")
    return table.drop_duplicates("key", keep="last")


def metric_of(a, b):
    """Times where both have them; else a value of the model that both have."""
    for name in ("time", *MODELLED):
        if len(measured(a, name)) and len(measured(b, name)):
            return name
    raise BadInput(f"{a.folder} and {b.folder} have no measurement in common that could be compared: neither times nor values of the model")


def matched(a, b):
    """(metric, table): a row for each point in both: what, a, b, ratio, low, high, side. Regressions first, the worst on top."""
    metric = metric_of(a, b)
    left, right = measured(a, metric), measured(b, metric)
    both = left.merge(right, on="key", suffixes=("_of_a", "_of_b"))
    rows, unknown = [], 0
    for _, row in both.iterrows():
        def median(end, metric=metric, row=row):
            value = row[f"{metric}_of_{end}"]
            low, high = (row.get(f"{metric}_{bound}_of_{end}") for bound in ("low", "high"))
            return (value, value if low is None or low != low else low, value if high is None or high != high else high)
        if not (median("a")[0] > 0 and median("b")[0] > 0):
            unknown += 1
            continue
        ratio, low, high = ratio_interval(median("b"), median("a"))
        named = row.rename(lambda name: name.removesuffix("_of_a"))
        rows.append({"what": what(named), "a": median("a")[0], "b": median("b")[0], "ratio": ratio, "low": low, "high": high,
                     "side": side(low, high), "flags": ",".join(sorted({row.get("flags_of_a", ""), row.get("flags_of_b", "")} - {""}))})
    if not rows:
        raise BadInput(f"{a.folder} and {b.folder} have no point in common: a point is a kernel, executor, problem, Plan, inputs and seed")
    table = pandas.DataFrame(rows).sort_values(["side", "ratio"], ascending=False, kind="stable").reset_index(drop=True)
    table.attrs["unknown"] = unknown
    return metric, table, len(left) - len(both), len(right) - len(both)


def verdict(table, metric):
    counts = table.side.value_counts()
    text = f"{counts.get(1, 0)} of {len(table)} matched points are slower in B, {counts.get(-1, 0)} faster"
    return f"{text}; geometric mean of {metric}, B over A, {geometric_mean(table.ratio):.4g}."


def header_and_rows(table, metric, units):
    unit = units.get(metric, "")
    header = ["ratio", "interval", "", f"{metric}, A, {unit}", f"B, {unit}", "point", "flags"]
    rows = [[(f"{row.ratio:.4f}", True), (f"{row.low:.4f} to {row.high:.4f}" if row.low < row.high else "none", True), (WORDS[row.side], False), (number_text(row.a), True),
             (number_text(row.b), True), (row.what, False), (row.flags, False)] for row in table.itertuples()]
    return header, rows


def regressions(a, b, limit):
    """Names of the points that are slower in B by more than `limit`, a share, and whose interval leaves out 1."""
    table = matched(a, b)[1]
    return [row.what for row in table.itertuples() if row.side == 1 and row.ratio > 1 + limit]


def others_line(table, only_a, only_b):
    text = f"Not compared: {only_a} points are in A alone, {only_b} in B alone"
    unknown, few = table.attrs["unknown"], int((table.high == math.inf).sum())
    text += f", {unknown} have no value above 0" if unknown else ""
    return text + (f". {few} were timed in fewer than 6 rounds in A or B, which says nothing about a difference." if few else ".")


def machines_line(a, b):
    """Where they were measured, if not on one machine; else nothing."""
    there = [study.machines() for study in (a, b)]
    return "" if there[0] == there[1] else f"A and B are not of one machine: {', '.join(there[0])}; {', '.join(there[1])}."


def terminal(a, b):
    metric, table, only_a, only_b = matched(a, b)
    header, rows = header_and_rows(table, metric, a.units)
    lines = [f"A: {a.folder}: {provenance_line(a.records)}", f"B: {b.folder}: {provenance_line(b.records)}", "", verdict(table, metric), "",
             text_table(header, rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        lines.append(f"... {len(rows) - MOST_ROWS} more rows; the page has all")
    return "\n".join(lines + ["", NOTE, others_line(table, only_a, only_b)] + [line for line in [machines_line(a, b)] if line])


def picture(table):
    """Of points that have an interval; nothing where none has."""
    table = table[table.high < math.inf]
    if table.empty:
        return None
    shown = table.head(60).assign(direction=[WORDS[side] for side in table.head(60).side])
    names = shown.what.tolist()
    colour = altair.Color("direction:N", title=None, scale=altair.Scale(domain=list(WORDS.values()), range=[charts.COLOURS[1], charts.COLOURS[2], "#888888"]), legend=altair.Legend(orient="bottom"))
    base = altair.Chart(shown).encode(y=altair.Y("what:N", sort=names, title=None, axis=altair.Axis(labelLimit=780, labelFontSize=10)), color=colour,
                                      tooltip=["what", "ratio", "low", "high", "flags"])
    at_x = altair.X("low:Q", title="B over A", scale=altair.Scale(zero=False))
    one = altair.Chart(pandas.DataFrame({"x": [1.0]})).mark_rule(strokeDash=[4, 3]).encode(x="x:Q")
    drawn = one + base.mark_rule(strokeWidth=2).encode(x=at_x, x2="high:Q") + base.mark_point().encode(x="ratio:Q")
    return drawn.properties(width=360, height=18 * len(shown))


def page(a, b):
    metric, table, only_a, only_b = matched(a, b)
    made = Page(f"B, {b.folder}, against A, {a.folder}")
    made.paragraph(verdict(table, metric), "answer")
    drawn = picture(table)
    if drawn:
        made.heading("Ratios")
        made.chart(drawn, "Regressions on top. A line that crosses the dashed one shows no difference. " + NOTE)
    made.heading("Points")
    header, rows = header_and_rows(table, metric, a.units)
    made.table(header, [[(text, "number") if is_number else text for text, is_number in row] for row in rows])
    made.paragraph(others_line(table, only_a, only_b))
    made.heading("Provenance")
    if machines_line(a, b):
        made.paragraph(machines_line(a, b))
    for name, study in (("A", a), ("B", b)):
        made.paragraph(f"{name}: {study.folder}: {provenance_line(study.records)}", "provenance")
    return made
