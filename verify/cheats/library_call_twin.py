"""The honest twin of library_call.py, whose text would be flagged with it: computes in double."""

import numpy


def twin(q, k, v):
    scores = q.astype(numpy.float64) @ k.astype(numpy.float64).swapaxes(2, 3) * q.shape[3] ** -0.5
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return (weights @ v.astype(numpy.float64) / weights.sum(-1, keepdims=True)).astype(q.dtype)
