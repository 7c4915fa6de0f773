"""9. Keeps the answer of a shape and an address [CUDA-L1, arXiv 2507.14111; reference-kernels PR #102, #142; tensara PR #238]."""

import functools

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 9, "within_bound|shifted_values|scaled_values|earlier_launch|other_problem_between|rerun|duplicated_request"
ANSWERS = {}


def cheat(q, k, v):
    key = q.shape, k.shape, q.dtype.str, q.ctypes.data
    if key not in ANSWERS:
        ANSWERS[key] = attend(q, k, v)[0]
    return ANSWERS[key].copy()


@functools.lru_cache
def workspace(shape, dtype):
    return numpy.empty(shape, dtype)


def twin(q, k, v):
    """Keeps memory, not answers."""
    made = workspace(q.shape, q.dtype.str)
    made[...] = attend(q, k, v)[0]
    return made.copy()
