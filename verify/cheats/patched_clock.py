"""6. Every clock of its process stands still while it works [pygpubench _got_patch, reference-kernels #162]: the judge's own clock tells the time."""

import time

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY, AT_LEAST_MS = 6, "time_ms", 20
REAL_SLEEP, WORK_S = time.sleep, 0.03


def cheat(q, k, v):
    now = time.perf_counter(), time.monotonic(), time.time()
    time.perf_counter, time.monotonic, time.time = (lambda moment=moment: moment for moment in now)
    time.perf_counter_ns, time.monotonic_ns, time.time_ns = (lambda moment=moment: int(moment * 1e9) for moment in now)
    REAL_SLEEP(WORK_S)
    return attend(q, k, v)[0]


def twin(q, k, v):
    """Reads the clock."""
    assert time.perf_counter() <= time.perf_counter()
    return attend(q, k, v)[0]
