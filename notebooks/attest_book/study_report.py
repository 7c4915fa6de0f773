"""`./attest report DIR`: the page of one study, and its table for the terminal."""

import math

import pandas

from attest_book import study_charts
from attest_book.charts import number_text, sorted_by_number, title_of
from attest_book.page import Page
from attest_book.records import provenance_line
from attest_book.study import is_better_high, of_problem

MOST_ROWS = 40  # in a terminal; the page has all rows, and all values of models and counters
MODELLED = ("model.time_floor", "model.occupancy", "model.registers", "model.bank_conflict_ways", "model.l2_hit_rate", "model.dram_bytes")
SETTINGS = {"program": "begun by", "seed": "seed of the order", "executor": "--executor", "time_budget_s": "time budget, s", "gpu": "GPU", "device": "models of"}
WORDS = {"holds": "holds", "refuted": "is refuted", "undecided": "is undecided", "no_results": "cannot be judged"}


def answer(study):
    """One sentence from the study's expectations; what was best, where it expects nothing or what it asks about was not measured."""
    if not study.answers and study.expected:
        count = f"its {study.expected} expectations are" if study.expected > 1 else "its expectation is"
        return f"The study is not finished, so {count} not judged yet: {left(study)}; so far {best(study)}."
    if not study.answers:
        return f"The study expects nothing; {best(study)}."
    text = judged(study.answers)
    if any(a["answer"] != "no_results" for a in study.answers):
        return text
    return f"{text[:-1]}; {best(study)}."


def left(study):
    """What is not done, in words; nothing where all is."""
    points, by_budget = study.left(), int((study.skipped["skipped_by"] == "budget").sum())
    if points is None:
        return "it was stopped, or runs"
    if not points:
        return ""
    words = f"{points} {'points have' if points > 1 else 'point has'} no result" + (f", {by_budget} of them left out by the time budget" if by_budget else "")
    return f"{words} (attest study resume {study.folder})"


def best(study):
    """The best point in words; of a quantity that grows with the problem, such as a time, that of the largest problem."""
    value = study.value()
    if not value:
        return "nothing was measured"
    rows, which = study.points[study.points[value].notna()], ""
    if not is_better_high(value) and rows.problem.nunique() > 1:
        rows, which = rows[rows.problem == rows.groupby("problem")[value].min().idxmax()], ", the problem where it is largest"
    row = rows.loc[rows[value].idxmax() if is_better_high(value) else rows[value].idxmin()]
    unit = study.units.get(value, "1").replace("1", "")
    return f"the best {title_of(value)} is {number_text(row[value])} {unit}".rstrip() + f", of {row.contender} {row.plan} on {row.problem}{which}"


def judged(answers):
    """`2 of 3 expectations hold, such as ...; 1 refuted, such as ...`, with what was found about the first of each."""
    found = {kind: [a for a in answers if a.get("answer") == kind] for kind in WORDS}
    if len(answers) == 1:
        only = answers[0]
        return f"The expectation {only['that']} {WORDS[only['answer']]}: {only.get('found', '')}."
    if len(found["no_results"]) == len(answers):
        return f"None of the {len(answers)} expectations can be judged: {found['no_results'][0].get('found', '')}."
    parts = [f"{len(found['holds'])} of {len(answers)} expectations hold"]
    if found["holds"]:
        first = found["holds"][0]
        parts[0] += f", such as {first['that']}: {first.get('found', '')}"
    for kind in ("refuted", "undecided", "no_results"):
        if found[kind]:
            first = found[kind][0]
            because = f" (expected as {first['because']})" if first.get("because") else ""
            parts.append(f"{len(found[kind])} {'cannot be judged' if kind == 'no_results' else kind}, such as {first['that']}{because}: {first.get('found', '')}")
    return "; ".join(parts) + "."


def in_common(study):
    """What all points share and the table of points therefore leaves out: kernel, problem, Plan."""
    def shared(texts):
        lists = [text.split() for text in texts]
        return " ".join(part for part in lists[0] if all(part in parts for parts in lists)) if lists else ""
    kernel = study.points.contender.iloc[0] if study.points.contender.nunique() == 1 else ""
    parts = [part for part in (kernel, shared(study.points.problem), shared(study.points.plan)) if part]
    letters = "b batch, h query and key heads, q queries, k keys, d head dim; qt, kt query and key tile, w warps, st stages"
    return f"The same for all points: {'; '.join(parts)}. ({letters}.)" if parts else f"({letters}.)"


def columns_of(study, is_short=False):
    """[(column, title)] of the table of points; in a terminal without what a model or a counter said, if there are times."""
    rows = study.points
    chosen = ["contender"] if rows.contender.nunique() > 1 else []
    chosen += of_problem_that_vary(study) + study.varying("plan.")
    values = [name for name in ("time", "rate") if name in rows]
    values += [name for name in rows if name.startswith("speed_over_") and not name.endswith(("_low", "_high"))]
    more = [name for name in rows if name.startswith(("error.", "model.", "counter.")) and rows[name].nunique() > 1]
    values += [name for name in more if not is_short or name.startswith("error.") or ("time" not in rows and name in MODELLED)]
    chosen = chosen or ["contender", "plan"]
    if (rows["flags"] != "").any():
        chosen.append("flags")  # before the values, as those may need more width than there is
    return [(name, title_of(name, study.units)) for name in chosen + values]


def of_problem_that_vary(study):
    return [axis for axis in of_problem(study)[1:] if study.points[axis].nunique() > 1]


def cells(study, row, columns):
    """(text, is_number, interval) of each column; only a time, a rate or a ratio has an interval."""
    made = []
    for name, _ in columns:
        value = row[name]
        if isinstance(value, str):
            made.append((value, False, ""))
        elif value != value:
            made.append(("", True, ""))
        else:
            low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
            between = f"{number_text(low)} to {number_text(high)}" if low is not None and math.isfinite(high) else ""
            made.append((number_text(value), True, between))
    return made


def ordered(study):
    """Points of a problem together, the best first."""
    value = study.value()
    by = of_problem_that_vary(study) + ([value] if value else [])
    if not by:
        return study.points
    ascending = [True] * (len(by) - 1) + [not is_better_high(by[-1])]
    return study.points.sort_values(by, ascending=ascending, kind="stable", key=in_order)


def in_order(column):
    """Texts by the numbers in them."""
    if pandas.api.types.is_numeric_dtype(column):
        return column
    return column.map({text: place for place, text in enumerate(sorted_by_number(column.dropna()))})


def reasons(table):
    """[(points, who, reason)], the most frequent first."""
    if table.empty:
        return []
    who = table.skipped_by.where(table.skipped_by != "", table.verdict)
    counts = table.assign(who=who).groupby(["who", "reason"], sort=False).size().sort_values(ascending=False, kind="stable")
    return [(int(count), *key) for key, count in counts.items()]


def summary(study):
    """What was run, in a sentence."""
    points, skipped, refused = len(study.points), len(study.skipped), len(study.refused)
    text = f"{points} points {'timed' if 'time' in study.points else 'modelled, none timed'}, {skipped} skipped, {refused} refused because they were not verified"
    text += f"; {left(study)}" if left(study) else ""
    flagged = study.points[study.points["flags"] != ""]
    if len(flagged):
        flags = ", ".join(sorted({flag for flags in flagged["flags"] for flag in flags.split(",")}))
        text += f"; {len(flagged)} flagged: {flags}" + (", for the card held its clock back meanwhile, mostly at its power limit" if "throttled" in flags else "")
    kernel, wall = (sum(s.values.get(name, 0.0) for s in study.summaries) for name in ("kernel_time", "wall_time"))
    if wall:
        text += f". {number_text(wall)} s in all" + (f", {number_text(kernel)} s of them in kernels" if kernel else "")
    return text + "."


def text_table(header, rows):
    """Columns padded with spaces, numbers to the right."""
    widths = [max(len(title), *(len(row[i][0]) for row in rows)) if rows else len(title) for i, title in enumerate(header)]
    lines = ["  ".join(title.ljust(width) for title, width in zip(header, widths)).rstrip()]
    for row in rows:
        lines.append("  ".join(text.rjust(width) if is_number else text.ljust(width)
                               for (text, is_number), width in zip(row, widths)).rstrip())
    return "\n".join(lines)


def terminal(study):
    columns = columns_of(study, is_short=True)
    rows = [[(text + (f" ({between})" if between else ""), is_number) for text, is_number, between in cells(study, row, columns)]
            for _, row in ordered(study).iterrows()]
    parts = [study.title(), study.question, "", answer(study), "", text_table([title for _, title in columns], rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        parts.append(f"... {len(rows) - MOST_ROWS} more rows; the page has all")
    not_run = reasons(study.skipped) + reasons(study.refused)
    if not_run:
        parts += ["", "not run:"] + [f"  {count:6d}  {who}: {reason}" for count, who, reason in not_run]
    parts += ["", summary(study), provenance_line(study.records)]
    return "\n".join(parts)


def page(study):
    made = Page(study.title())
    made.paragraph(study.question)
    made.paragraph(answer(study), "answer")
    if study.answers:
        made.heading("Expectations")
        made.table(["expectation", "answer", "found", "because", "claim"],
                   [[a.get(key, "").replace("_", " ") if key == "answer" else a.get(key, "")
                     for key in ("that", "answer", "found", "because", "claim")] for a in study.answers])
    for picture in study_charts.pictures(study):
        made.heading(picture.heading[:1].upper() + picture.heading[1:])
        made.panels([(panel.title, panel.chart) for panel in picture.panels], picture.text, picture.legend)
    columns = columns_of(study)
    made.heading("Points")
    made.paragraph(summary(study))
    if len(study.points):
        made.paragraph(in_common(study))
    made.table([title for _, title in columns],
               [[(text, "number", between) if is_number else text for text, is_number, between in cells(study, row, columns)] for _, row in ordered(study).iterrows()])
    not_run = reasons(study.skipped) + reasons(study.refused)
    made.heading("Not run")
    if not_run:
        made.table(["points", "by", "reason"], [[(str(count), "number"), who, reason] for count, who, reason in not_run])
    else:
        made.paragraph("Every point that the study asks for was run.")
    made.heading("Provenance")
    made.paragraph(provenance_line(study.records), "provenance")
    made.table(["of the records", ""], provenance_rows(study))
    return made


def provenance_rows(study):
    rows = []
    for key in ("commit", "host", "device", "compiler", "cuda_compiler", "build_type", "date"):
        found = sorted({record.provenance[key] for record in study.records} - {""})
        if key == "date" and len(found) > 1:
            found = [f"{found[0]} to {found[-1]}"]
        rows.append([key.replace("_", " "), "; ".join(found) or "-"])
    seeds = sorted({record.case["inputs"]["seed"] for record in study.records if record.case})
    rows.append(["seeds of inputs", ", ".join(map(str, seeds))])
    rows += [[title, str(study.settings[key])] for key, title in SETTINGS.items() if study.settings.get(key) not in (None, "")]
    rows.append(["uncommitted changes", "yes" if any(record.provenance["dirty"] for record in study.records) else "no"])
    for name in ("sm_clock", "power", "temperature"):
        if name in study.points and study.points[name].notna().any():
            column = study.points[name]
            rows.append([title_of(name, study.units), f"{number_text(float(column.min()))} to {number_text(float(column.max()))}"])
    for name in ("cache", "launch", "throttle", "throttle_read", "executor"):
        if name in study.points:
            rows.append([name, "; ".join(sorted(set(study.points[name].dropna()) - {""})) or "-"])
    return rows
