"""Every measure of an error along every axis: a grid of small pictures, a row a measure, a column an axis."""

import altair

from attest_book import errors

# column: (title, tensor, is the axis logarithmic); `lse_` is left out of the column's name
MEASURES = {"rmse": ("RMSE of O", "O", True), "max_abs_error": ("largest error of O", "O", True), "share_within_1_ulp": ("share of O within 1 ulp", "O", False),
            "bias": ("bias of O, t", "O", False), "outward_bias": ("outward bias of O, t", "O", False), "error_over_bound_max": ("error / bound, max", "O", True),
            "error_over_bound_p99": ("error / bound, p99", "O", True), "error_over_bound_median": ("error / bound, median", "O", True),
            "lse_rmse": ("RMSE of LSE", "LSE", True), "lse_bias": ("bias of LSE, t", "LSE", False), "lse_error_over_bound_max": ("LSE: error / bound, max", "LSE", True)}
WIDTH, HEIGHT = 205, 112


def grid(axes):
    """`axes`: {title: (column, rows of errors.frame)}. One legend for all, below."""
    names = errors.in_order({name for _, table in axes.values() for name in table.precision})
    colour = altair.Color("precision:N", title=None, sort=names, scale=altair.Scale(domain=names, range=errors.colours_of(names)),
                          legend=altair.Legend(orient="bottom", columns=4))
    rows = []
    for i, (measure, (title, tensor, is_log)) in enumerate(MEASURES.items()):
        panels = [panel(axis, name, table[table.tensor == tensor], measure.removeprefix("lse_"), is_log, colour,
                        title if j == 0 else "", is_first=i == 0, is_last=i == len(MEASURES) - 1)
                  for j, (name, (axis, table)) in enumerate(axes.items())]
        rows.append(altair.hconcat(*panels, spacing=12).resolve_scale(y="shared"))
    return altair.vconcat(*rows, spacing=8).resolve_scale(color="shared")


def panel(axis, name, table, measure, is_log, colour, title, is_first, is_last):
    shown = table[["precision", axis, measure]].groupby(["precision", axis], as_index=False, sort=False).median()
    shown = errors.drawable(shown, measure) if is_log else shown.dropna()
    ticks = sorted(table[axis].unique().tolist())
    scale = altair.Scale(type="log", nice=False) if is_log else altair.Scale()
    marks = {"format": ".0e", "values": [10.0 ** e for e in range(-12, 3)]} if is_log else {"format": ".1f" if measure.startswith("share") else "d", "tickCount": 4}
    return altair.Chart(shown).mark_line(point={"filled": True, "size": 16}, strokeWidth=1.5).encode(
        x=altair.X(f"{axis}:Q", title=name if is_last else None, scale=altair.Scale(type="log", base=2, nice=False, domain=[ticks[0], ticks[-1]]),
                   axis=altair.Axis(values=ticks, format="~g", labels=is_last, labelOverlap=True)),
        y=altair.Y(f"{measure}:Q", title=title or None, scale=scale, axis=altair.Axis(**marks, labels=bool(title))),
        color=colour, tooltip=["precision", axis, altair.Tooltip(f"{measure}:Q", format=".3g")]).properties(
            width=WIDTH, height=HEIGHT, **({"title": name} if is_first else {}))
