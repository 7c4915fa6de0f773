"""Small pictures of which pairs a mask leaves, and of the weights of a head: keys from left to right, queries from top to bottom."""

import re
import textwrap

import altair
import numpy
import pandas

from attest_book.charts import COLOURS, FONT

MONO = "DejaVu Sans Mono, monospace"
STEP, GAP = 5, 1  # pixels of a pair, and between two
CHARACTERS = 32  # above a panel of 32 pairs
NOTHING = "#ececec"  # a pair that does not see each other
SEEN, ADDED, TAKEN, HIDDEN = "seen", "seen, by this part alone", "hidden, by this part alone", "hidden"
STATES = {SEEN: COLOURS[0], ADDED: COLOURS[2], TAKEN: "#f4c7a6", HIDDEN: NOTHING}
WEIGHT_COLOURS = ["#ffffff", "#c6dcee", "#6aaed6", "#2171b5", "#08306b"]
CHANGE_COLOURS = [COLOURS[1], "#f6b98b", "#ffffff", "#8dc0e3", COLOURS[0]]


def short(problem):
    """The problem without what its defaults say: 'n32 causal_top_left' of 'b1 h1/1 q32 k32 d64 causal_top_left fp32'."""
    text = re.sub(r"\b(b1|h1/1|d64|fp32)\b ?", "", problem).strip()
    return re.sub(r"\bq(\d+) k\1\b", r"n\1", text)


def title(text, problem=""):
    """Over a panel: its name, and below it how a Problem says so, sizes on a line of their own."""
    sizes = re.match(r"((b\d+ )?(n\d+|q\d+ k\d+)) ?(.*)", short(problem)) if problem else None
    return altair.Title(text, subtitle=[sizes[1], *textwrap.wrap(sizes[4], CHARACTERS)] if sizes else "", subtitleFont=MONO, subtitleFontSize=9, subtitleColor="#666666", fontSize=12, font=FONT, anchor="start", offset=4)


def cells(rows, value):
    """A table of pairs with one column more, of a matrix given as a list of rows."""
    array = numpy.array(rows)
    queries, keys = numpy.indices(array.shape)
    return pandas.DataFrame({"query": queries.ravel(), "key": keys.ravel(), value: array.ravel()})


def grid(table, colour, shape, step, gap=0, **ground):
    """A square a pair, `gap` pixels apart, on whole pixels; `shape` may be more pairs than there are."""
    def along(size):
        return {"axis": None, "scale": altair.Scale(domain=list(range(size)), paddingInner=gap / step, paddingOuter=0)}

    queries, keys = shape
    return altair.Chart(table).mark_rect().encode(x=altair.X("key:O", **along(keys)), y=altair.Y("query:O", **along(queries)), color=colour).properties(
        width=step * keys - gap, height=step * queries - gap, view=altair.ViewBackground(**ground))


def states_of(line):
    """What is said of each pair, [queries][keys]: with what the picture without this part has, where there is one."""
    now = [[character == "#" for character in row] for row in line["rows"]]
    if not line["without"]:
        return [[SEEN if sees else HIDDEN for sees in row] for row in now]
    names = {(True, True): SEEN, (True, False): ADDED, (False, True): TAKEN, (False, False): HIDDEN}
    return [[names[sees, character == "#"] for sees, character in zip(row, before)] for row, before in zip(now, line["without"])]


def pairs(lines, shape=None, legend="right"):
    """Which pairs see each other, a panel a mask: {name: line}. `shape` frames as many pairs as the largest has."""
    states = {name: states_of(line) for name, line in lines.items()}
    used = {state for rows in states.values() for row in rows for state in row}
    shown = altair.Legend(orient=legend, direction="vertical" if legend == "right" else "horizontal", symbolType="square", symbolStrokeWidth=0, symbolSize=110,
                          values=[state for state in STATES if state in used]) if legend else None
    colour = altair.Color("pair:N", title=None, scale=altair.Scale(domain=list(STATES), range=list(STATES.values())), legend=shown)
    frame = {"stroke": "#aaaaaa", "strokeDash": [2, 3]} if shape else {"stroke": None}
    return [grid(cells(rows, "pair"), colour, shape or (len(rows), len(rows[0])), STEP, GAP, **frame).properties(title=title(name, lines[name]["problem"]))
            for name, rows in states.items()]


def scale_below(name, scale, values, is_shown):
    legend = altair.Legend(orient="bottom", direction="horizontal", gradientLength=180, gradientThickness=9, values=values, format="~g") if is_shown else None
    return altair.Color(f"{name}:Q", title=name, scale=scale, legend=legend)


def weights(line, seen=None, text="", step=STEP, legend=True):
    """The weights of a head; grey where nobody is seen: `seen` are the rows of pairs(), else a weight of 0 is none."""
    table = cells(line["weights"], "weight")
    table = table[[character == "#" for row in seen for character in row]] if seen else table[table.weight > 0]
    scale = altair.Scale(type="sqrt", domain=[0, 1], range=WEIGHT_COLOURS, clamp=True, interpolate="rgb")
    chart = grid(table, scale_below("weight", scale, [0, 0.1, 0.3, 0.6, 1], legend), shape_of(line), step, fill=NOTHING)
    return chart.properties(title=title(text)) if text else chart


def change(before, after, text, step=4):
    """What weights became larger, blue, and smaller, orange."""
    old, new = numpy.array(before["weights"]), numpy.array(after["weights"])
    table = cells((new - old).tolist(), "change")[((old > 0) | (new > 0)).ravel()]
    ends = [-0.4, -0.1, 0, 0.1, 0.4]
    scale = altair.Scale(domain=ends, range=CHANGE_COLOURS, clamp=True, interpolate="rgb")
    return grid(table, scale_below("change", scale, [-0.4, -0.1, 0.1, 0.4], True), shape_of(after), step, fill=NOTHING).properties(title=title(text))


def shape_of(line):
    return len(line["weights"]), len(line["weights"][0])


def scores(line):
    """Of the pairs that see each other, {(query, key): score}: ln of the weight plus LSE."""
    return {(i, j): float(numpy.log(weight)) + lse for i, (row, lse) in enumerate(zip(line["weights"], line["lse"])) for j, weight in enumerate(row) if weight > 0}
