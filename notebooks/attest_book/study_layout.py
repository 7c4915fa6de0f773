"""How a picture of a study is laid out: what is a colour, what has a panel of its own, and which scale its panels share."""

import dataclasses

import pandas

from attest_book import charts
from attest_book.study import of_problem, said

MOST_SERIES = len(charts.COLOURS)


@dataclasses.dataclass
class Panel:
    title: str
    chart: object            # of Altair
    table: pandas.DataFrame  # the points that it shows, those of baselines too


@dataclasses.dataclass
class Picture:
    heading: str
    text: str
    panels: list[Panel] = ()              # none where the text says why it cannot be drawn
    legend: list[tuple[str, str]] = ()    # (name, colour), of all panels


def series_of(table, colour=None, x=None):
    """(the axes that a colour stands for, those that were asked for and need panels): the kernel, if there are several, is always among
    the first, unless it stands along x. `table` holds all that the picture shows, of baselines too."""
    names = ["contender"] if table.contender.nunique() > 1 and x != "contender" else []
    if not colour or colour in ("contender", x):
        return names, []
    both = [*names, colour]
    is_too_much = names and len(table[[*both, "role"]].drop_duplicates()) > MOST_SERIES
    return (names, [colour]) if is_too_much else (both, [])


def with_series(table, names):
    """A column `series`, the entry of the legend: what `names` say of a point, or the kernel where they say nothing."""
    def label(row):
        is_baseline = row.role == "baseline"
        kernel = (row["name"] or row.contender) + " (baseline)" if is_baseline else row.contender
        rest = [name for name in names if name != "contender"]
        parts = [kernel] if "contender" in names or is_baseline else []
        parts += [said([(name, row[name])]) for name in rest if row[name] == row[name]]
        return ", ".join(parts) or (f"no {charts.title_of(rest[0])}" if rest else kernel)
    return table.assign(series=[label(row) for _, row in table.iterrows()])


def values_beside(table, axis, x):
    """How many values of x stand beside one of the axis, in the mean of the points."""
    return table.groupby(axis, dropna=False)[x].transform("nunique").mean()


def facets(study, table, x, shown):
    """The fewest axes that, with `x` and what a colour shows, tell apart all that must not be mixed. Never the kernel; an axis that x or
    another axis decides is not needed, and of those that could stand for each other the one that leaves most values of x in a panel stays."""
    candidates = [axis for axis in of_problem(study)[1:] if axis not in (x, *shown) and table[axis].nunique(dropna=False) > 1]

    def places(names):
        return len(table[[x, *shown, *names]].drop_duplicates())

    kept = candidates
    for axis in sorted(reversed(candidates), key=lambda axis: values_beside(table, axis, x)):
        fewer = [name for name in kept if name != axis]
        if places(fewer) == places(candidates):
            kept = fewer
    return kept


def untied(table, x, by):
    """(rows, axes, sentence): a number that goes with x, such as a batch that halves where the length doubles, gets no panels. The few points
    that have another one are left out, or x would mean two things, and the sentence says so."""
    tied = [axis for axis in by if pandas.api.types.is_numeric_dtype(table[axis]) and values_beside(table, axis, x) < 1.5]
    before = int((table.role != "baseline").sum())
    for axis in tied:
        usual = table.groupby(x)[axis].transform(lambda column: column.mode(dropna=False).iloc[0])
        table = table[(table[axis] == usual) | (table[axis].isna() & usual.isna())]
    names = " and ".join(charts.title_of(axis) for axis in tied)
    out = before - int((table.role != "baseline").sum())
    said = f" The {names} {'go' if len(tied) > 1 else 'goes'} with {charts.title_of(x)}" if tied else ""
    said += f"; {out} {'points' if out > 1 else 'point'} with another one {'are' if out > 1 else 'is'} left out." if tied and out else "." if tied else ""
    return table, [axis for axis in by if axis not in tied], said


def groups(points, baselines, by, x=None):
    """[(title, rows)] by the values of the axes `by`, those with most values of x first. What has none of an axis stands in each panel of
    it: a baseline of an axis of the Plan, contiguous keys of the order of pages along x."""
    if not by:
        return [("", pandas.concat([points, baselines]))]
    lacks = {axis: lacking(points, axis, x) for axis in by}
    of_some = pandas.concat(lacks, axis=1).any(axis=1)

    def fits(table, key, may_lack):
        fitting = pandas.Series(True, table.index)
        for axis, value in zip(by, key):
            fitting &= (table[axis] == value) | (table[axis].isna() & (value != value)) | may_lack(axis)
        return table[fitting]

    made = []
    for key, rows in points[~of_some].groupby(by, dropna=False):
        own = fits(points[of_some], key, lambda axis: lacks[axis][of_some])
        beside = fits(baselines, key, lambda axis: baselines[axis].isna().all())
        made.append((key, pandas.concat([rows, own, beside])))
    places = [{value: place for place, value in enumerate(charts.sorted_by_number(points[axis].dropna()))} for axis in by]
    made.sort(key=lambda group: [-group[1][x].nunique() if x else 0] + [place.get(value, -1) for place, value in zip(places, group[0])])
    return [(said(zip(by, key)), rows) for key, rows in made]


def lacking(points, axis, x):
    """Which points x decides to have no such axis. Not of a problem: what its file does not say it still has."""
    missing = points[axis].isna()
    if not x or axis.startswith("problem."):
        return pandas.Series(False, points.index)
    return missing & ~points[x].isin(points.loc[~missing, x])


def legend_of(series, baselines=()):
    """[(name, colour)], at most as many as there are colours, kernels of the study before baselines."""
    first = charts.sorted_by_number(set(series) - set(baselines))
    return list(zip(first + charts.sorted_by_number(baselines), charts.COLOURS))


def domain_of(table, names, log):
    """Ends of the scale that the panels of a picture share."""
    values = pandas.concat([table[name] for name in names if name]).dropna()
    values = values[(values > 0) & (values < float("inf"))] if log else values[values.abs() < float("inf")]
    low, high = float(values.min()), float(values.max())
    return [low / 1.1, high * 1.1] if log else [low - 0.05 * (high - low), high + 0.05 * (high - low)]


def is_wide(values):
    """Whether a scale has to be logarithmic for all of them to be seen."""
    return bool((values > 0).all() and values.max() > 30 * values.min())
