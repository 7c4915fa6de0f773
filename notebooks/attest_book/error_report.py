"""`./attest report --errors KERNEL`: how large the errors of kernels are, where they sit and what they grow with."""

import math

import altair
import pandas

from attest_book import error_tables, errors, records
from attest_book.charts import small_text
from attest_book.page import Page
from attest_book.tables import in_one_line

RESULTS = ("O", "dQ", "dK", "dV")  # each has pictures of its own; LSE stands beside O
OURS = {tensor: f"xeon-2core/errors_{'' if tensor == 'O' else 'backward_'}family.jsonl" for tensor in RESULTS}  # of our kernels, to compare with
GROWTH = {"length": ("Length", "keys", "A line that rises on the right grows with the number of keys: long chains of additions. Dotted: the floor of the "
                     "format."),
          "head_dim": ("Head dim", "head dim", "A score is a sum of so many products. A line that rises on the right: the sum, not the format, is what errs."),
          "magnitude": ("Size of the logits", "standard deviation of the logits", "N(0, 1) inputs scaled. Errors of scores grow with them; "
                        "roundings of P and O do not.")}
CAUSAL_ROWS = {"O": "Row n sees n keys. O is largest in the first rows, and with it the floor (dotted); a line that does not fall as the floor does is of long sums.",
               "each gradient": "Row n of dQ sees n keys. Rows of dK and dV are keys: key n is seen by the queries from n on, the first by all of them. Dotted: the floor of the format."}
ORDERS = {"drawn": "sink first", "falling": "falling scores", "rising": "rising scores", "reversed": "sink last"}
COLUMNS = {"precision": "kernel", "problem": "problem", "inputs": "inputs", "tensor": "of", "rmse": "RMSE", "relative_l2": "relative RMSE",
           "max_abs_error": "largest error", "largest_error_at": "at", "share_within_1_ulp": "within 1 ulp", "bias": "bias, t",
           "outward_bias": "outward bias, t", "error_over_bound_max": "error / bound, max", "error_over_bound_p99": "p99",
           "error_over_bound_median": "median"}


def number(value, digits=2):
    return "not a number" if math.isnan(value) else f"{value:.{digits}g}"


def cell(value):
    return "not a number" if math.isnan(value) else small_text(value)


def results(rows):
    return [tensor for tensor in RESULTS if (rows.tensor == tensor).any()]


def of_results(rows):
    """What captions speak of."""
    return "O" if results(rows) == ["O"] else "each gradient"


def panels(rows, draw):
    """A picture of every result, one below the other: `draw(rows of one tensor, its name)`. No two share a scale."""
    drawn = [draw(rows[rows.tensor == tensor].reset_index(drop=True), tensor) for tensor in results(rows)]
    return drawn[0] if len(drawn) == 1 else altair.vconcat(*drawn).resolve_scale(x="independent", y="independent", color="independent")


def listed(texts):
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def what_is_wrong(rows):
    """Sentences about elements above their bound, and NaN; none for a kernel that is right as far as these rows tell."""
    said = []
    for tensor, of_tensor in rows.groupby("tensor", sort=False):
        over = of_tensor[of_tensor.error_over_bound_max > 1] if "error_over_bound_max" in of_tensor else of_tensor.iloc[:0]
        if len(over):
            worst = over.loc[over.error_over_bound_max.idxmax()]
            said.append(f"IT IS WRONG: on {worst.inputs} an element of {tensor} is off by {number(worst.error_over_bound_max)} times the bound "
                        "that follows from the roundings it declares")
        no_number = of_tensor[of_tensor.rmse.isna()]
        if len(no_number):
            said.append(f"IT IS WRONG: {tensor} has NaN where numbers are due, on {', '.join(sorted(set(no_number.inputs)))}")
    return said


def sentence(who, both):
    """What the whole tensors of one kernel in one precision say, O and LSE or the gradients, on all inputs."""
    rows = both[both.tensor.isin(results(both))]
    usual = rows[rows.inputs == "normal"].drop_duplicates("tensor")
    said = []
    if len(usual):
        sizes = listed(f"{number(one.relative_l2)} of {one.tensor}" for one in usual.itertuples())
        said.append(f"on N(0, 1) its RMSE is {sizes}, {listed(map(number, errors.times_floor(usual)))} times what rounding the exact "
                    f"answer once leaves; {listed(f'{100 * share:.1f}' for share in usual.share_within_1_ulp)} % of its elements are within one step of it")
        said.append(f"its mean error is {listed(map(number, usual.bias))} standard errors, counted away from zero {listed(map(number, usual.outward_bias))}; "
                    "chance stays within 4")
    wrong = what_is_wrong(both)
    if not wrong and "error_over_bound_max" in rows and rows.error_over_bound_max.notna().any():
        worst = rows.loc[rows.error_over_bound_max.idxmax()]
        said.append(f"its largest error anywhere, in {worst.tensor}, is {number(worst.error_over_bound_max)} of its bound, on {worst.inputs}")
    said = wrong + said
    return f"{who}: {'; '.join(said)}."


def whole(found):
    table = errors.frame(found)
    return table[table.by.isna()].reset_index(drop=True)


def tables_of(measured):
    """{axis: rows}; all families as one axis."""
    families = [record for axis, found in measured.items() if axis.startswith("inputs ") for record in found]
    tables = {axis: errors.frame(found) for axis, found in measured.items() if not axis.startswith("inputs ")}
    return ({"inputs": whole(families)} if families else {}) | tables, families


def answer(measured):
    tables, families = tables_of(measured)
    rows = tables["inputs"] if families else whole([record for found in measured.values() for record in found])
    return [sentence(name, rows[rows.precision == name]) for name in errors.in_order(rows.precision)]


def beside_ours(rows):
    """The rows of one tensor on N(0, 1), and those of our own kernels on the same problem."""
    usual = rows[rows.inputs == "normal"]
    tensor = rows.tensor.iloc[0]
    ours = errors.committed(OURS[tensor])
    ours = ours[(ours.tensor == tensor) & (ours.inputs == "normal") & ~ours.contender.str.startswith("choice/")]
    same = {records.sizes(problem)["k"] for problem in usual.problem} == {records.sizes(ours.problem.iloc[0])["k"]}
    ours = ours[~ours.precision.isin(usual.precision)] if same else ours.iloc[:0]
    both = usual.assign(whose="measured now")
    for _, row in ours.iterrows():
        both.loc[len(both) + 1000] = {**{name: row.get(name) for name in both.columns}, "whose": "kernels of this project"}
    return both.assign(floor=both.relative_l2 * both.rounded_rmse / both.rmse), len(ours)


def maps(found):
    def title(labels):
        words = labels["problem"].split()
        mask = words[words.index(labels["element_type"]) - 1]
        return f"{labels['tensor']} of {errors.precision_of(labels)}: {labels['inputs']}, {mask}"
    return [errors.map_chart(record, title(record.labels)).properties(width=200, height=180) for record in found
            if record.kind == "error_map" and any(value > 0 for name, value in record.values.items() if name.startswith("rmse "))]


def heats(rows, x, value, title, **looks):
    """Cells of every result; the title says which where it says {}."""
    return panels(rows, lambda of_one, tensor: errors.heat(of_one, x, "precision", value, title.format(tensor), **looks))


def add_inputs(page, table):
    rows = table[table.tensor.isin(results(table))].reset_index(drop=True)
    usual, name = rows[rows.inputs == "normal"], of_results(rows)
    if len(usual):
        beside = {tensor: beside_ours(of_one) for tensor, of_one in usual.groupby("tensor", sort=False)}
        compared = any(count for _, count in beside.values())
        page.chart(panels(usual, lambda _, tensor: errors.bars(beside[tensor][0], title="N(0, 1)", whose="whose" if beside[tensor][1] else None,
                                                               value_title=f"RMSE of {tensor} / RMS of {tensor}")),
                   f"RMSE of {name} over its RMS. Black ticks: what rounding the exact answer once to the output's format would leave; no kernel errs less."
                   + (" Blue: kernels of this project, measured before, for comparison." if compared else ""))
        page.chart(panels(usual, lambda of_one, tensor: errors.ulp_bars(of_one, title=tensor)),
                   f"How many elements of {name} are how many steps of their format from the correctly rounded result, on N(0, 1).")
    page.chart(heats(rows, "inputs", "relative_l2", "relative RMSE of {}", value_title="relative RMSE"),
               "Each kind of inputs. A cell that stands out in its row names inputs that the kernel handles worse than others.")
    if "error_over_bound_max" in rows:
        page.chart(heats(rows, "inputs", "error_over_bound_max", "largest error of {} / bound", pattern=".2~g", value_title="error / bound"),
                   "Above 1 the kernel is wrong. Far below 1 in 16 bits on all kinds of inputs: the kernel rounds less than it declares.")
    lse = table[table.tensor == "LSE"]
    if len(errors.drawable(lse, "rmse")):
        page.chart(errors.heat(lse, "inputs", "precision", "rmse", "RMSE of LSE", value_title="RMSE"),
                   "LSE is absolute: an error of 1e-3 in it is one of 0.1 % in every weight that a backward pass or a merge of parts forms of it.")


def growth(rows, tensor, axis, x_title):
    absolute = errors.lines(rows, axis, "rmse", floor="rounded_rmse", y_title=f"RMSE of {tensor}", x_title=x_title, title="absolute")
    relative = errors.lines(rows, axis, x_title=x_title, title=f"relative to {tensor}", y_title=f"RMSE of {tensor} / RMS of {tensor}")
    return altair.hconcat(absolute.properties(width=330), relative.properties(width=330))


def page(measured, left_out, title):
    """`measured`, `left_out`: see measured_errors.measure."""
    tables, families = tables_of(measured)
    made = Page(title)
    for said in answer(measured):
        made.paragraph(said, "answer")
    every = [record for found in measured.values() for record in found]
    what = "attention" if any(record.labels["tensor"] == "O" for record in every) else "the gradients of attention, by the O and LSE that the kernel got,"
    made.paragraph("This page measures; whether a kernel is right on every shape, mask and layout is asked by attest verify. "
                   f"Exact answer: {what} in double of the inputs that the kernel got, rows of it certified in 113 bits." + asked_problem(families))
    made.paragraph(records.provenance_line(every), "provenance")
    if families:
        made.heading("Kinds of inputs")
        add_inputs(made, tables["inputs"])
    for axis, (heading, x_title, caption) in GROWTH.items():
        if axis in tables:
            rows = tables[axis]
            made.heading(heading)
            made.chart(panels(rows[rows.by.isna()], lambda of_one, tensor, axis=axis, x_title=x_title: growth(of_one, tensor, axis, x_title)), caption)
    if "key_order" in tables:
        rows = tables["key_order"]
        rows = rows[rows.by.isna()].assign(order=lambda table: table.key_order.map(ORDERS))
        made.heading("Order of the keys")
        made.chart(heats(rows, "order", "relative_l2", "relative RMSE of {}", x_order=list(ORDERS.values()), value_title="relative RMSE"),
                   "An attention sink: one key holds most of the weight. An error that is larger where it comes first is of a chain of additions that loses the small weights behind it.")
    if "row" in tables:
        rows = tables["row"]
        rows = rows[rows.by == "row"].assign(row=lambda table: table["first"] + 1)
        made.heading("Rows under a causal mask")
        made.chart(panels(rows, lambda of_one, tensor: errors.lines(of_one, "row", "rmse", floor="rounded_rmse", y_title=f"RMSE of {tensor}",
                                                                    x_title="first row of the part, counted from 1")), CAUSAL_ROWS[of_results(rows)])
    drawn = maps(every)
    if drawn:
        made.heading("Where the error sits")
        for start in range(0, len(drawn), 3):
            made.chart(altair.hconcat(*drawn[start:start + 3]).resolve_scale(color="independent"),
                       "RMSE by row and column, all heads and data sets together.")
    if axes := grid_axes(tables):
        made.heading("Every measure along every axis")
        for tensor in results(pandas.concat([table for _, table in axes.values()])):
            made.chart(errors.measures_grid(axes, tensor), f"{tensor}: a row a measure, a column an axis. Bias: the mean error over its standard error; outward: counted away from zero. "
                       "Error / bound above 1 is a violation.")
    made.heading("All figures")
    add_table(made, measured)
    for axis, reason in left_out.items():
        made.paragraph(f"Not measured, {axis}: {reason}")
    return made


def grid_axes(tables):
    """The axes of numbers that were measured with several values, and have something to draw."""
    def usable(table, axis):
        return table[axis].nunique() > 1 and not errors.drawable(table, "rmse").empty
    axes = {heading: (axis, tables[axis][tables[axis].by.isna()]) for axis, (heading, _, _) in GROWTH.items() if axis in tables}
    if "row" in tables:
        axes["Causal row"] = ("row", tables["row"][tables["row"].by == "row"].assign(row=lambda table: table["first"] + 1))
    return {heading: chosen for heading, chosen in axes.items() if usable(chosen[1], chosen[0])}


def asked_problem(families):
    problems = sorted({error_tables.without_type(record.labels["problem"]) for record in families if record.kind == "errors"})
    return f" Problem, where nothing else is said: {', '.join(problems)} (b batch, h query and key heads, q queries, k keys, d head dim, mask)." if problems else ""


def add_table(made, measured):
    table = errors.frame([record for found in measured.values() for record in found])
    table = table[table.by.isna()]
    names = [name for name in COLUMNS if name in table]
    made.table([COLUMNS[name] for name in names],
               [[in_one_line(row[name]) if isinstance(row[name], str) else (cell(row[name]), "number") for name in names] for _, row in table.iterrows()])


def terminal(measured):
    return "\n".join(answer(measured))
