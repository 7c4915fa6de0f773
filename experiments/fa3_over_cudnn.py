"""FlashAttention-3's speed over cuDNN's on the forward grid, measured once side by side (fa3_over_cudnn.json says how).

Where FA3 is not installed, its rate in a run is estimated as cuDNN's in that run times this ratio.
"""

import functools
import json
import pathlib


@functools.cache
def _measured():
    return json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())


def provenance():
    """One sentence."""
    measured = _measured()
    return (f"{measured['machine']}, {measured['date']}; FA3: {measured['fa3']}; cuDNN: {measured['cudnn']}; {measured['how']}")


def fa3_over_cudnn(shape):
    """Of a shape as text, 'b4 h16 n4096 d128 none bf16'; None where it was not measured."""
    measured, parts = _measured(), shape.split()
    mask = {"none": "full", "causal_top_left": "causal"}.get(parts[4]) if len(parts) == 6 else None
    row = measured["rates"].get(f"{parts[3]} {mask}")
    length = int(parts[2][1:])
    is_of_the_grid = "/" not in parts[1] and int(parts[0][1:]) * length == 16384 and int(parts[1][1:]) * int(parts[3][1:]) == 2048
    if row is None or parts[5] != "bf16" or not is_of_the_grid or length not in measured["lengths"]:
        return None
    at = measured["lengths"].index(length)
    return row["fa3"][at] / row["cudnn"][at]
