"""What tells the points of a study apart, and which of them stand for others."""

from attest_book.charts import number_text, title_of
from attest_book.study import is_better_high

TELLING = ["problem.length", "problem.key_len", "problem.query_len", "problem.head_dim"]  # before a batch that follows from them


def others(table, used, candidates):
    """Those candidates without which rows of the table that agree in `used` would still differ; not a batch that follows from the length."""
    chosen = []
    for name in candidates:
        keys = [key for key in (*used, *chosen) if key]
        if name in keys or table[name].nunique(dropna=False) < 2:
            continue
        counts = table.groupby(keys, dropna=False)[name].nunique(dropna=False) if keys else table[[name]].nunique(dropna=False)
        if (counts > 1).any():
            chosen.append(name)
    return chosen


def of_problem(study):
    """What a picture must not mix: kernels, problems, inputs. Of several Plans it may show the best."""
    axes = [axis for axis in study.axes if not axis.startswith("plan.")]
    return ["contender"] + sorted(axes, key=lambda axis: TELLING.index(axis) if axis in TELLING else len(TELLING))


def said(values):
    return ", ".join(number_text(value) if name == "contender" else f"{title_of(name)} {number_text(value)}"
                     for name, value in values if value == value)


def best_of(table, value, keys):
    """One row for each combination of the keys, the best; and whether there was a choice."""
    ordered = table.sort_values(value, ascending=not is_better_high(value), kind="stable")
    kept = ordered.drop_duplicates(keys)
    return kept, len(kept) < len(ordered)


def with_values(table, *names):
    return table[table[[name for name in names if name]].notna().all(axis=1)]


def with_series(table, names):
    """A column `series` that says what tells points apart, in words."""
    rows = table[names].itertuples(index=False, name=None) if names else [()] * len(table)
    return table.assign(series=[said(zip(names, row)) or "points" for row in rows])
