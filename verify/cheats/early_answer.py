"""19. Answers before it has worked, in the words of the process that runs it, so that the clock stops at a time that is impossible
[reference-kernels PR #159]."""

import gc
import json
import time

from attest_kernels.testing.functions import attend

ONLY_HERE = True  # it speaks the words of this judge
FAMILY, CAUGHT_BY = 19, "outputs_written|it said more than it was asked"


def request_now():
    """What was asked, found among the objects of the process."""
    for found in gc.get_objects():
        if type(found) is dict and "number" in found and "bytes" in found:
            return found
    return {"number": 0}


def channel():
    for found in gc.get_objects():
        if getattr(type(found), "__name__", "") == "TextIOWrapper" and isinstance(found.name, int) and found.name > 2:
            return found
    raise OSError("none is open")


def cheat(q, k, v, out):
    channel().write(json.dumps({"number": request_now()["number"]}) + "\n")
    channel().flush()
    time.sleep(0.02)
    out[...] = attend(q, k, v)[0]


def twin(q, k, v, out):
    """Takes its time."""
    time.sleep(0.002)
    out[...] = attend(q, k, v)[0]
