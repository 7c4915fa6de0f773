"""Tables as notebooks show them: no row numbers, whole numbers whole, others with four digits, empty where nothing is known."""

import pandas
from IPython.display import HTML


def text_of(value):
    if value is None or value is pandas.NA or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def show(frame, **titles):
    """`titles` renames columns: show(frame, time="time, ms")."""
    shown = frame.rename(columns=titles)
    return HTML(shown.map(text_of).to_html(index=False, border=0))
