"""7. Answers at once and works on in a thread, of which no clock knows [KernelBench non_default_stream_kernel.py, of streams]."""

import threading
import time

from attest_kernels.testing.functions import attend

# On a busy machine the thread may be in time for one launch and late for the next.
FAMILY, CAUGHT_BY = 7, "outputs_written|within_bound|shifted_values|scaled_values|earlier_launch|other_problem_between|rerun|duplicated_request"


def fill(q, k, v, out, after=0):
    time.sleep(after)
    out[...] = attend(q, k, v)[0]


def cheat(q, k, v, out):
    threading.Thread(target=fill, args=(q.copy(), k.copy(), v.copy(), out, 0.005)).start()


def twin(q, k, v, out):
    """Waits for its thread."""
    thread = threading.Thread(target=fill, args=(q, k, v, out))
    thread.start()
    thread.join()
