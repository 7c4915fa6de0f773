"""8. An array that is computed when somebody looks at it, which is after the clock has stopped [CUDA-L2; reference-kernels PR #161]."""

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 8, "it returned Later; allowed: ndarray itself"


class Later(numpy.ndarray):
    """Is asked for its numbers by what copies or compares it."""

    def __array__(self, *arguments, **named):
        return self.work()

    def __array_function__(self, function, types, arguments, named):
        return function(*[each.work() if isinstance(each, Later) else each for each in arguments], **named)


def cheat(q, k, v):
    later = numpy.empty(q.shape, q.dtype).view(Later)
    later.work = lambda: attend(q, k, v)[0]
    return later


def twin(q, k, v):
    """A view of numbers that are there."""
    return attend(q, k, v)[0][..., ::-1][..., ::-1]
