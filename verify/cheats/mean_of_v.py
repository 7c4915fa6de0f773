"""1. The mean of V: what attention comes to on inputs that a tolerance was tried on, whose scores hardly differ [KernelBench #165]."""

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 1, "within_bound"


def cheat(q, k, v):
    return v.mean(2, keepdims=True, dtype="float32").repeat(q.shape[2], 2).astype(q.dtype)


def twin(q, k, v):
    """Is exact where all scores are equal, and computes the others."""
    return attend(q, k, v)[0]
