"""Draws the maps of `attest errors --map`: RMSE of O by row and column.

    PYTHONPATH=notebooks build/venv/bin/python experiments/error_maps.py --records experiments/results/xeon-2core/errors_map.jsonl \\
        --out experiments/results/xeon-2core/errors_map.png
"""

import argparse
import pathlib

import altair

from attest_book import errors, records

WIDE = 3  # maps side by side


def title(labels):
    mask = labels["problem"].split()[-2]
    return f"{errors.precision_of(labels)}: {labels['inputs']}, {'no mask' if mask == 'none' else mask.replace('_', ' ')}"


def picture(found):
    maps = [errors.map_chart(record, title(record.labels)) for record in found if record.kind == "error_map"]
    rows = [altair.hconcat(*maps[first:first + WIDE]).resolve_scale(color="independent") for first in range(0, len(maps), WIDE)]
    return altair.vconcat(*rows).properties(title="RMSE of O by row and column, each map with its own colours")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--records", required=True, type=pathlib.Path)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    picture(records.read(options.records)).save(options.out, scale_factor=1)


if __name__ == "__main__":
    main()
