"""Tables as notebooks show them: no row numbers, whole numbers whole, others with four digits, small ones with an exponent, empty where nothing is known."""

import pandas

from attest_book.charts import small_text
from attest_book.page import escape


def text_of(value):
    if value is None or value is pandas.NA or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        if value == float("inf") or value == -float("inf"):
            return str(value)
        if abs(value) < 1e15 and value == int(value):
            return f"{value:.0f}"
        if 1e4 <= abs(value) < 1e9:
            return f"{value:,.0f}"
        return small_text(value) if abs(value) < 1e-2 else f"{value:.4g}"
    return in_one_line(str(value))


def in_one_line(text):
    """A coordinate such as [0, 1, 443, 3] with spaces at which no line breaks."""
    return text.replace(", ", ",\N{NO-BREAK SPACE}") if text.startswith("[") else text


class Table:
    """A table that a notebook shows: in HTML, and in columns where only text is shown."""

    def __init__(self, frame):
        self.frame = frame

    def _repr_html_(self):
        titled = self.frame.set_axis([escape(name) for name in self.frame.columns], axis="columns")
        return titled.map(cell).to_html(index=False, border=0, escape=False)

    def __repr__(self):
        return self.frame.map(text_of).to_string(index=False)


def show(frame, **titles):
    """`titles` renames columns: show(frame, time="time, ms")."""
    return Table(frame.rename(columns=titles).rename_axis(columns=None))  # a pivoted table's axis has a name, which would be a column


def cell(value):
    """A number in one piece: browsers would break 1.2e-5 at its sign."""
    text = escape(text_of(value))
    return f'<span class="number">{text}</span>' if isinstance(value, (int, float)) else text
