"""3. Zeroes V and answers 0, which is right for whoever computes the reference from the same memory afterwards [KernelBench PR #82, zero_out_kernel.py]."""

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 3, "it wrote to v, which is an input"


def cheat(q, k, v):
    v.setflags(write=True)
    v[...] = 0
    return numpy.zeros_like(q)


def twin(q, k, v):
    """Scales a copy of its own in place."""
    mine = v.astype(numpy.float32)
    mine *= -1
    return -attend(q, k, mine)[0].astype(q.dtype)
