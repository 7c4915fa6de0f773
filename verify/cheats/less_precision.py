"""13. Computes in half precision what was asked in single [CUDA-L2; kernelbench.com hard/DEVLOG.md]."""

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY, DTYPE = 13, "within_bound", "float32"


def cheat(q, k, v):
    with numpy.errstate(over="ignore", invalid="ignore"):
        return attend(*(each.astype(numpy.float16) for each in (q, k, v)))[0].astype(q.dtype)


def twin(q, k, v):
    """Computes in more than was asked."""
    scores = q.astype(numpy.float64) @ k.astype(numpy.float64).swapaxes(2, 3) * q.shape[3] ** -0.5
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return (weights @ v.astype(numpy.float64) / weights.sum(-1, keepdims=True)).astype(q.dtype)
