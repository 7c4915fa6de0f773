"""10. Works at every fourth call; the others get what the last one got [reference-kernels PR #104, where one launch does the work of many]."""

import itertools

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 10, "within_bound|shifted_values|scaled_values|earlier_launch|other_problem_between|rerun|duplicated_request"
CALLS, LAST = itertools.count(), []


def cheat(q, k, v):
    if next(CALLS) % 4 == 0:
        LAST[:] = [attend(q, k, v)[0]]
    return numpy.resize(LAST[0], q.shape).astype(q.dtype)


def twin(q, k, v):
    """Counts its calls, and works at each."""
    next(CALLS)
    return attend(q, k, v)[0]
