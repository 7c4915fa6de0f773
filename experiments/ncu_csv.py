"""Reads what `ncu --csv --page raw --print-units base` prints."""

import csv
import io

# ncu's base units that are multiples of ours.
SCALE = {"": 1, "%": 1, "ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9,
         "second": 1e9, "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "byte/block": 1, "Kbyte/block": 1e3,
         "register/thread": 1, "sector": 1, "request": 1, "inst": 1, "cycle": 1, "ratio": 1, "thread": 1, "block": 1}


def kernels(text, wanted):
    """[(kernel name, {metric: number in ns, bytes, % or plain counts})], in the order of the launches, of the wanted metrics.

    Raises ValueError for a unit that is not known here, KeyError when the text holds no table.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise KeyError("ncu printed no table")
    units, *rows = csv.DictReader(io.StringIO("\n".join(lines[start:])))  # the first row names the units
    return [(row["Kernel Name"], {name: _number(value, units[name], name) for name, value in row.items()
                                  if value and name in wanted})
            for row in rows]


def _number(value, unit, metric):
    if unit not in SCALE:
        raise ValueError(f"{metric} comes in '{unit}', which is not known here")
    return float(value.replace(",", "")) * SCALE[unit]


def launches_between_markers(rows, marker="at::"):
    """Splits kernels() at those with `marker` in their names, PyTorch's: [[(name, metrics), ...], ...], empty parts left out."""
    groups = [[]]
    for name, metrics in rows:
        if marker in name:
            groups.append([])
        else:
            groups[-1].append((name, metrics))
    return [group for group in groups if group]
