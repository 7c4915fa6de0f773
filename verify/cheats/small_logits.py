"""18. Assumes that scores are small, as those of normal inputs are: no maximum is subtracted [KernelGuard INPUT_STRUCTURE_TRUNCATION_DISPATCH]."""

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY, CASES = 18, "within_bound", 40


def cheat(q, k, v):
    with numpy.errstate(all="ignore"):
        weights = numpy.exp(q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(2, 3) * numpy.float32(q.shape[3] ** -0.5))
        return (weights @ v.astype(numpy.float32) / weights.sum(-1, keepdims=True)).astype(q.dtype)


def twin(q, k, v):
    """Assumes it where it has looked."""
    with numpy.errstate(all="ignore"):
        largest = numpy.abs(q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(2, 3)).max(initial=0) * q.shape[3] ** -0.5
    return cheat(q, k, v) if largest < 1 else attend(q, k, v)[0]
