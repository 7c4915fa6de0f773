"""The records of `attest errors` as tables: which precision a row is of, and what of it varies."""

import itertools
import math
import re

import altair
import pandas

from attest_book import charts, records

# (kernel, products in its plan, element type): the name of a precision, in the order of tables and legends.
PRECISIONS = {("k10_wide_tiles", "", "fp32"): "fp32, FFMA (K10)", ("k7_shuffled_rows", "", "fp32"): "fp32, FFMA (K7)",
              ("fp32_wgmma", "bf16_x6", "fp32"): "fp32, six bf16 products", ("fp32_wgmma", "automatic", "fp32"): "fp32, three fp16 products",
              ("tf32_mma", "tf32_x3", "fp32"): "fp32, three TF32 products", ("tf32_mma", "tf32", "fp32"): "TF32",
              ("fa2_mma", "", "fp16"): "fp16 (FA2)", ("fa3_wgmma", "", "fp16"): "fp16 (FA3)",
              ("fa2_mma", "", "bf16"): "bf16 (FA2)", ("fa3_wgmma", "", "bf16"): "bf16 (FA3)"}
COLOURS = dict(zip(PRECISIONS.values(), ("#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#8c564b", "#e69f00", "#d55e00", "#f4a582", "#000000", "#7f7f7f")))
# Emulations of a precision have its colour.
COLOURS |= {name: COLOURS[of] for name, of in {"bf16": "bf16 (FA2)", "fp16": "fp16 (FA2)", "fp32 FMA": "fp32, FFMA (K10)", "three TF32 products": "fp32, three TF32 products",
                                               "three fp16 products": "fp32, three fp16 products", "six bf16 products": "fp32, six bf16 products"}.items()}
ULP = {"ulp_0": "correctly rounded", "ulp_1": "1 step off", "ulp_2": "2 steps", "ulp_3_to_4": "3 to 4", "ulp_5_to_8": "5 to 8",
       "ulp_more": "more"}


def choice(plan, name):
    """The value of a plan's field: choice("qt64 kt32 products=tf32", "products") is "tf32", and "kt" gives "32"; "" without it."""
    found = re.search(rf"(?:^| ){name}(?:=(\w+)|(\d+))(?: |$)", plan)
    return (found[1] or found[2]) if found else ""


def precision_of(labels):
    key = labels["contender"], choice(labels["plan"], "products"), labels["element_type"]
    return PRECISIONS.get(key, f"{labels['contender']}, {labels['element_type']}" + (f", {key[1]}" if key[1] else ""))


def in_order(names):
    """Precisions from the finest to the coarsest, others behind them by name."""
    known = list(PRECISIONS.values())
    return sorted(set(names), key=lambda name: (known.index(name) if name in known else len(known), name))


def frame(found):
    """A row a tensor, or a part of one: the labels and measurements of the records and `precision`, `length`, `head_dim`,
    `family`, `magnitude`, `key_tile`, `key_splits`. Maps are left out (map_frame)."""
    table = records.frame([record for record in found if record.kind == "errors"])
    labels = table[["contender", "plan", "element_type"]].to_dict("records")
    table["precision"] = [precision_of(row) for row in labels]
    table["length"] = [records.sizes(problem).get("k") for problem in table.problem]
    table["head_dim"] = [records.sizes(problem).get("d") for problem in table.problem]
    table["family"] = [inputs.partition(":")[0] for inputs in table.inputs]
    table["magnitude"] = [float(inputs.partition(":")[2] or 1) for inputs in table.inputs]
    for name, short in (("key_tile", "kt"), ("key_splits", "ks")):
        table[name] = [int(choice(plan, short) or 0) for plan in table.plan]
    if "by" not in table:
        table["by"] = None
    return table.sort_values("precision", key=lambda column: column.map({name: i for i, name in enumerate(in_order(column))}),
                             kind="stable").reset_index(drop=True)


def committed(*paths):
    """`frame` of files under experiments/results, the whole tensors only."""
    table = frame(records.committed(*paths))
    return table[table.by.isna()].reset_index(drop=True)


def map_frame(record):
    """A row a cell of an `error_map` record: the first row and column that it holds, and its RMSE."""
    shape = records.sizes(record.labels["problem"])
    length = shape["k" if record.labels["tensor"] in ("dK", "dV") else "q"]
    cells = {"row": int(record.values["row_cells"]), "column": int(record.values["column_cells"])}
    rows = []
    for name, value in record.values.items():
        found = re.fullmatch(r"rmse (\d+) (\d+)", name)
        if found:
            i, j = int(found[1]), int(found[2])
            rows.append({"row": i * length // cells["row"], "row_end": (i + 1) * length // cells["row"],
                         "column": j * shape["d"] // cells["column"], "column_end": (j + 1) * shape["d"] // cells["column"],
                         "rmse": value})
    return pandas.DataFrame(rows)


def map_chart(record, title):
    """Where the error of O or of a gradient sits: rows from top to bottom, columns from left to right."""
    cells, tensor = map_frame(record), record.labels["tensor"]
    # As many whole pixels for each cell: others would show seams between cells.
    sides = {side: max(1, round(220 / count)) * count for side, count in (("width", cells.column.nunique()), ("height", cells.row.nunique()))}
    return altair.Chart(cells).mark_rect().encode(
        x=altair.X("column:Q", title=f"column of {tensor}", scale=altair.Scale(nice=False)), x2="column_end:Q",
        y=altair.Y("row:Q", title=f"row of {tensor}", scale=altair.Scale(reverse=True, nice=False)), y2="row_end:Q",
        color=altair.Color("rmse:Q", title="RMSE", scale=altair.Scale(scheme="viridis", type="log"), legend=altair.Legend(format=".0e")),
        tooltip=["row", "column", altair.Tooltip("rmse:Q", format=".3g")]).transform_filter("datum.rmse > 0").properties(
            title=title, **sides)


def drawable(table, *columns):
    """The rows whose figures have a place on a logarithmic axis: above 0 and finite. Tables and sentences name the others."""
    for column in columns:
        table = table[(table[column] > 0) & (table[column] < math.inf)]
    return table


def colours_of(names):
    """Each precision has one colour in all pictures; other names take those that are left."""
    taken = [COLOURS.get(name) for name in names]
    left = itertools.cycle([colour for colour in dict.fromkeys([*charts.COLOURS, *COLOURS.values(), "#bcbd22", "#17becf"]) if colour not in taken])
    return [COLOURS.get(name) or next(left) for name in names]


def lines(table, x, value="relative_l2", color="precision", floor=None, x_log=True, title="", y_title="RMSE of O / RMS of O", x_title=None,
          y_format=".0e", columns=4, y_log=True):
    """A line for each precision, on logarithmic axes unless `x_log` or `y_log` says otherwise; `floor`, a column, dotted: what rounding the exact answer once would leave."""
    shown = table[[x, value, color, *([floor] if floor else [])]].copy()
    shown = drawable(shown, value) if y_log else shown[shown[value].abs() < math.inf]
    names = in_order(shown[color]) if color == "precision" else list(dict.fromkeys(shown[color]))
    colour = altair.Color(f"{color}:N", title=None, sort=names, scale=altair.Scale(domain=names, range=colours_of(names)),
                          legend=altair.Legend(orient="bottom", columns=columns))
    x_scale = altair.Scale(type="log", base=2, nice=False) if x_log else altair.Scale(zero=False)
    base = altair.Chart(shown).encode(
        x=altair.X(f"{x}:Q", title=x_title or charts.title_of(x), scale=x_scale,
                   axis=altair.Axis(values=sorted(shown[x].unique().tolist()), format="~g")), color=colour)
    drawn = base.mark_line(point={"filled": True, "size": 35}).encode(
        y=altair.Y(f"{value}:Q", title=y_title, scale=altair.Scale(type="log", nice=y_format == ".0e") if y_log else altair.Scale(),
                   axis=altair.Axis(format=y_format, **({"values": [10.0 ** e for e in range(-12, 3)]} if y_format == ".0e" and y_log else {}))),
        tooltip=[color, x, altair.Tooltip(f"{value}:Q", format=".3g")])
    if floor:
        drawn = base.transform_filter(f"datum['{floor}'] > 0").mark_line(strokeDash=[2, 3], strokeWidth=1.5).encode(y=f"{floor}:Q") + drawn
    return drawn.properties(title=title)


def heat(table, x, y, value, title, pattern=".1e", x_order=None, y_order=None, is_log=True, value_title=None, low=None,
         around_0=False):
    """A cell for each pair, its number written into it; rows from the finest precision down unless `y_order` says otherwise. Colours begin
    at `low`: what is smaller looks like it. `around_0`: two colours, one a sign."""
    rows = y_order or in_order(table[y])
    columns = x_order or list(dict.fromkeys(table[x]))
    shown = table[[x, y, value]].copy()
    shown = drawable(shown, value) if is_log else shown
    ends = [max(shown[value].min(), low or -math.inf), shown[value].max()]
    middle = math.sqrt(ends[0] * ends[1]) if is_log else sum(ends) / 2
    if around_0:
        furthest = max(map(abs, ends))
        is_dark = (altair.datum[value] > 0.6 * furthest) | (altair.datum[value] < -0.6 * furthest)
        colours, words = altair.Scale(scheme="purpleorange", domain=[furthest, -furthest]), altair.condition(is_dark, altair.value("white"), altair.value("black"))
    else:
        colours = altair.Scale(scheme="viridis", type="log" if is_log else "linear", domain=ends, clamp=True)
        words = altair.condition(altair.datum[value] > middle, altair.value("black"), altair.value("white"))
    base = altair.Chart(shown).encode(x=altair.X(f"{x}:N", sort=columns, title=None, axis=altair.Axis(labelAngle=-25)),
                                      y=altair.Y(f"{y}:N", sort=rows, title=None))
    cells = base.mark_rect(stroke="white").encode(
        color=altair.Color(f"{value}:Q", title=value_title or value, legend=altair.Legend(format=pattern), scale=colours),
        tooltip=[x, y, altair.Tooltip(f"{value}:Q", format=".3g")])
    numbers = base.mark_text(fontSize=11).encode(text=altair.Text(f"{value}:Q", format=pattern), color=words)
    return (cells + numbers).properties(title=title, width=66 * len(columns), height=28 * len(rows))


def bars(table, value="relative_l2", floor="floor", title="", value_title="RMSE of O / RMS of O", whose=None):
    """A bar a precision on a logarithmic axis, and a tick at its floor. `whose`: a column of whose colours the bars have."""
    table = drawable(table, value, floor)
    start = 10.0 ** math.floor(math.log10(min(table[value].min(), table[floor].min())))
    base = altair.Chart(table).encode(y=altair.Y("precision:N", sort=in_order(table.precision), title=None))
    x = altair.X(f"{value}:Q", title=value_title, scale=altair.Scale(type="log", domain=[start, table[value].max() * 4], nice=False),
                 axis=altair.Axis(format=".0e", values=[10.0 ** e for e in range(-12, 3)]))
    drawn = base.mark_bar(color=charts.COLOURS[0], height=15).encode(x=x, x2=altair.datum(start))
    if whose:
        drawn = drawn.encode(color=altair.Color(f"{whose}:N", title=None, sort=list(dict.fromkeys(table[whose])), scale=altair.Scale(range=[charts.COLOURS[1], charts.COLOURS[0]])))
    words = base.mark_text(align="left", dx=4, fontSize=11).encode(x=x, text=altair.Text(f"{value}:Q", format=".1e"))
    ticks = base.mark_tick(color="#000000", thickness=2, size=19).encode(x=f"{floor}:Q")
    return (drawn + words + ticks).properties(title=title, height=22 * table.precision.nunique(), width=charts.WIDTH)


def over_first(table, axis, value="rmse"):
    """`value` over that of the smallest `axis`, precision by precision."""
    first = table.sort_values(axis, kind="stable").groupby("precision")[value].transform("first")
    return table.assign(ratio=table[value] / first)


def ulp_bars(table, name="precision", title=""):
    """For each row how many elements are how many steps from the correctly rounded result."""
    order = list(dict.fromkeys(table[name]))
    tall = table.melt(id_vars=[name], value_vars=list(ULP), var_name="steps", value_name="share")
    tall["steps"] = tall.steps.map(ULP)
    tall["place"] = tall.steps.map({text: i for i, text in enumerate(ULP.values())})
    return altair.Chart(tall).mark_bar().encode(
        y=altair.Y(f"{name}:N", sort=order, title=None),
        x=altair.X("share:Q", title="share of the elements", stack="normalize", axis=altair.Axis(format="%")),
        color=altair.Color("steps:N", sort=list(ULP.values()), title="from the exact result",
                           scale=altair.Scale(range=["#00441b", "#238b45", "#74c476", "#fdae6b", "#e6550d", "#7f2704"])),
        order="place:O", tooltip=[name, "steps", altair.Tooltip("share:Q", format=".2%")]).properties(
            height=22 * len(order), width=charts.WIDTH, title=title)


def times_floor(table):
    """RMSE over what rounding the exact answer once would leave; not a number where that leaves nothing."""
    return [value / floor if floor > 0 else math.nan for value, floor in zip(table.rmse, table.rounded_rmse)]


# column: (title, tensor, is the axis logarithmic); `lse_` is left out of the column's name
MEASURES = {"rmse": ("RMSE of O", "O", True), "max_abs_error": ("largest error of O", "O", True), "share_within_1_ulp": ("share of O within 1 ulp", "O", False),
            "bias": ("bias of O, t", "O", False), "outward_bias": ("outward bias of O, t", "O", False), "error_over_bound_max": ("error / bound, max", "O", True),
            "error_over_bound_p99": ("error / bound, p99", "O", True), "error_over_bound_median": ("error / bound, median", "O", True),
            "lse_rmse": ("RMSE of LSE", "LSE", True), "lse_bias": ("bias of LSE, t", "LSE", False), "lse_error_over_bound_max": ("LSE: error / bound, max", "LSE", True)}
WIDTH, HEIGHT = 205, 112


def measures_of(tensor):
    """MEASURES, or those of a gradient."""
    if tensor == "O":
        return MEASURES
    return {measure: (title.replace(" of O", f" of {tensor}"), tensor, is_log) for measure, (title, of, is_log) in MEASURES.items() if of == "O"}


def measures_grid(axes, result="O"):
    """Every measure of an error along every axis: a grid of small pictures, a row a measure, a column an axis. `axes`: {title: (column, rows of frame()}. One legend for all, below.
    `result`: O, with LSE beside it, or a gradient."""
    measures = measures_of(result)
    names = in_order({name for _, table in axes.values() for name in table.precision})
    colour = altair.Color("precision:N", title=None, sort=names, scale=altair.Scale(domain=names, range=colours_of(names)),
                          legend=altair.Legend(orient="bottom", columns=4))
    rows = []
    for i, (measure, (title, tensor, is_log)) in enumerate(measures.items()):
        panels = [measure_panel(axis, name, table[table.tensor == tensor], measure.removeprefix("lse_"), is_log, colour,
                        title if j == 0 else "", is_first=i == 0, is_last=i == len(measures) - 1)
                  for j, (name, (axis, table)) in enumerate(axes.items())]
        rows.append(altair.hconcat(*panels, spacing=12).resolve_scale(y="shared"))
    return altair.vconcat(*rows, spacing=8).resolve_scale(color="shared")


def measure_panel(axis, name, table, measure, is_log, colour, title, is_first, is_last):
    shown = table[["precision", axis, measure]].groupby(["precision", axis], as_index=False, sort=False).median()
    shown = drawable(shown, measure) if is_log else shown.dropna()
    ticks = sorted(table[axis].unique().tolist())
    scale = altair.Scale(type="log", nice=False) if is_log else altair.Scale()
    marks = {"format": ".0e", "values": [10.0 ** e for e in range(-12, 3)]} if is_log else {"format": ".1f" if measure.startswith("share") else "d", "tickCount": 4}
    return altair.Chart(shown).mark_line(point={"filled": True, "size": 16}, strokeWidth=1.5).encode(
        x=altair.X(f"{axis}:Q", title=name if is_last else None, scale=altair.Scale(type="log", base=2, nice=False, domain=[ticks[0], ticks[-1]]),
                   axis=altair.Axis(values=ticks, format="~g", labels=is_last, labelOverlap=True)),
        y=altair.Y(f"{measure}:Q", title=title or None, scale=scale, axis=altair.Axis(**marks, labels=bool(title))),
        color=colour, tooltip=["precision", axis, altair.Tooltip(f"{measure}:Q", format=".3g")]).properties(
            width=WIDTH, height=HEIGHT, **({"title": name} if is_first else {}))
