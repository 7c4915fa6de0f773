"""2. Writes nothing: memory may still hold what the reference left there [KernelBench PR #82, result_reuse_kernel.py]."""

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 2, "outputs_written"


def cheat(q, k, v, out):
    pass


def reuses(q, k, v):
    """For a rule that runs in the same process: memory that was just freed."""
    return numpy.empty(q.shape, q.dtype)


def twin(q, k, v, out):
    """Its buffer is as empty, and then full."""
    made = numpy.empty(q.shape, q.dtype)
    made[...] = attend(q, k, v)[0]
    out[...] = made
