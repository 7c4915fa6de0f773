"""Attention with a softcap, a window, learned sinks, ALiBi and a bias in NumPy for tests: right, and wrong in one way each."""

import numpy


def attend(q, k, v, causal=False, scale=None, softcap=None, window=(-1, -1), sinks=None, slopes=None, bias=None, corner="bottom_right"):
    """(O, LSE), as core/attention/problem.hpp defines them; under no mask the diagonal is that of bottom right."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(-1, -2) * numpy.float32(scale)
    queries, keys = scores.shape[-2:]
    if softcap:
        scores = numpy.float32(softcap) * numpy.tanh(scores / numpy.float32(softcap))
    distance = numpy.arange(keys) - numpy.arange(queries)[:, None] - (keys - queries if corner == "bottom_right" else 0)
    if slopes is not None:
        scores = scores - slopes[:, None, None] * numpy.abs(distance).astype(numpy.float32)
    if bias is not None:
        scores = scores + bias
    left, right = window
    hidden = (distance < -left if left >= 0 else False) | (distance > right if right >= 0 else False) | (distance > 0 if causal else False)
    scores = numpy.where(hidden, numpy.float32(-numpy.inf), scores)
    sinks = numpy.float32(-numpy.inf) if sinks is None else sinks[:, None, None]
    largest = numpy.maximum(numpy.maximum(scores.max(-1, keepdims=True, initial=-numpy.inf), sinks), numpy.float32(-1e30))
    weights = numpy.exp(scores - largest)
    total = weights.sum(-1, keepdims=True) + numpy.exp(sinks - largest)
    with numpy.errstate(divide="ignore"):
        lse = (largest + numpy.log(total))[..., 0]
    return (weights @ v.astype(numpy.float32) / numpy.where(total > 0, total, 1)).astype(q.dtype), lse


def right(q, k, v, causal=False, softmax_scale=None, softcap=0.0, window_size=(-1, -1), sinks=None, alibi_slopes=None, bias=None):
    """All of it."""
    return attend(q, k, v, causal, softmax_scale, softcap, window_size, sinks, alibi_slopes, bias)
