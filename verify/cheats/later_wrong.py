"""11. Right while it is being checked, wrong when it is timed [llm.c PR #851; pygpubench _warmup]: here from its eighth call on."""

import itertools

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 11, "within_bound|shifted_values|scaled_values|earlier_launch|other_problem_between|rerun|duplicated_request"
CALLS = itertools.count()


def cheat(q, k, v):
    return attend(q, k, v)[0] if next(CALLS) < 7 else numpy.zeros_like(q)


def twin(q, k, v):
    """Another path after its warm-up, and as right."""
    if next(CALLS) < 7:
        return attend(q, k, v)[0]
    return attend(q[..., ::-1], k[..., ::-1], v)[0]
