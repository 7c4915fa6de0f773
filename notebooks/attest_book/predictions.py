"""What `attest explain` says without a GPU, beside what ncu counted on one."""

import sys

import pandas

from attest_book.records import RESULTS, json_lines, read

sys.path.append(str(RESULTS.parent))  # the scripts that made these files know how to read them
import hardware_check  # noqa: E402

UNITS = {"dram": "GB", "l2_hit": "%", "global_load_sectors": "M", "global_store_sectors": "M", "shared_load_requests": "M",
         "shared_load_passes": "M", "occupancy": "%", "registers": ""}


def explanations(path="h200/hardware_check.jsonl"):
    """One a run, as `attest explain --json` printed them."""
    return json_lines(RESULTS / path)


def runs(path="h200/counters.jsonl"):
    """[(shape, kernel, plan, counters)]: of a run of several launches the sums, in the order of explanations()."""
    return [(*key, counters) for key, counters in hardware_check.counters_by_run(read(RESULTS / path)).items()]


def table():
    """A row for each run and quantity: shape, kernel, plan, quantity, predicted, measured, in the units of UNITS."""
    scales = {name: scale for name, _, scale, _ in hardware_check.COLUMNS}
    rows = []
    for (shape, kernel, plan, counters), explanation in zip(runs(), explanations(), strict=True):
        expected, found = hardware_check.predicted(explanation), hardware_check.measured(counters)
        for name in UNITS:
            if expected.get(name) is not None and found.get(name) is not None:
                rows.append({"shape": shape, "kernel": kernel, "plan": plan, "quantity": name, "predicted": expected[name] * scales[name],
                             "measured": found[name] * scales[name]})
    return pandas.DataFrame(rows)
