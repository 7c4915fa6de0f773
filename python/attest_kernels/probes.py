"""Small problems and their exact answers, in double: what a function that nobody knows yet is asked, and how near it comes."""

import math

import numpy

SIZES = ((2, 3, 5, 7, 16), (2, 3, 33, 65, 64), (1, 2, 64, 128, 32), (2, 4, 128, 256, 64))  # B, H, queries, keys, D
NO_KEY = -1  # what a list of keys goes on with
NEAR = 0.05  # of the largest number: what two conventions differ by is far more


def sizes(declared):
    """Sizes of probes that a function's declaration allows; their lengths are rounded up, and all sizes still differ."""
    multiples = declared.get("query_len_multiple", 1), declared.get("key_len_multiple", 1)
    dims = declared.get("head_dims")
    for batch, heads, *lengths, dim in SIZES:
        queries, keys = (-(-length // multiple) * multiple for length, multiple in zip(lengths, multiples))
        keys += multiples[1] if keys == queries else 0
        yield batch, heads, queries, keys, dim if not dims else min(dims, key=lambda one: abs(one - dim))  # noqa: B023


def drawn(batch, heads, kv_heads, queries, keys, dim):
    """{"q", "k", "v", "do"}: N(0, 1) in [B, H, N, D], numbers that fp16 has."""
    draw = numpy.random.default_rng(7)
    shapes = {"q": (batch, heads, queries, dim), "k": (batch, kv_heads, keys, dim), "v": (batch, kv_heads, keys, dim), "do": (batch, heads, queries, dim)}
    return {name: draw.standard_normal(shape).astype(numpy.float16).astype(numpy.float64) for name, shape in shapes.items()}


def _distance(queries, keys, corner):
    """Distances of keys from the one on a query's diagonal."""
    return numpy.arange(keys) - numpy.arange(queries)[:, None] - (keys - queries if corner == "bottom_right" else 0)


def _visible(distance, causal, window):
    left, right = (math.inf if reach < 0 else reach for reach in window)
    return (distance >= -left) & (distance <= (0 if causal else right))


def _weights(q, k, causal, scale, *, corner="bottom_right", softcap=None, window=(-1, -1), sinks=None, slopes=None, bias=None, mask=None):
    """(P, LSE) of heads that are as many. `causal`: None or a corner; `corner`: that of a window and of slopes under no mask."""
    queries, keys = q.shape[2], k.shape[2]
    scores = q @ k.swapaxes(2, 3) * scale
    scores = softcap * numpy.tanh(scores / softcap) if softcap else scores
    distance = _distance(queries, keys, causal or corner)
    scores = scores if slopes is None else scores - slopes[:, None, None] * abs(distance)
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else numpy.where(mask, scores, -numpy.inf)
    scores = numpy.where(_visible(distance, causal, window), scores, -numpy.inf)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        largest = scores.max(-1, keepdims=True, initial=-numpy.inf)
        shift = numpy.where(numpy.isfinite(largest), largest, 0)
        weights = numpy.exp(scores - shift)
        total = weights.sum(-1, keepdims=True) + (0 if sinks is None else numpy.exp(sinks[:, None, None] - shift))
        return weights / numpy.where(total > 0, total, 1), (shift + numpy.log(total))[..., 0]


def _as_many_heads(q, k, v):
    q, k, v = (array.astype(numpy.float64) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    return q, numpy.repeat(k, group, 1), numpy.repeat(v, group, 1)


def exact(q, k, v, causal, scale, *, gate=1.0, residual=0.0, **modified):
    """Attention: (gate o + residual, lse). `causal`: None or a corner. k and v may have fewer heads; a row that sees no key has o 0 and LSE -infinity,
    without a sink."""
    q, k, v = _as_many_heads(q, k, v)
    weights, lse = _weights(q, k, causal, scale, **modified)
    return gate * (weights @ v) + residual, lse


def exact_gradients(q, k, v, do, causal, scale, *, softcap=None, **modified):
    """The gradients of sum(do * O): (dq, dk, dv), each of its tensor's shape."""
    batch, kv_heads, keys, dim = k.shape
    group = q.shape[1] // kv_heads
    q, k, v = _as_many_heads(q, k, v)
    weights, _ = _weights(q, k, causal, scale, softcap=softcap, **modified)
    dweights = do @ v.swapaxes(2, 3)
    dscores = weights * (dweights - (weights * dweights).sum(-1, keepdims=True)) * scale
    if softcap:
        dscores = dscores * (1 - numpy.tanh(q @ k.swapaxes(2, 3) * scale / softcap) ** 2)

    def of_group(gradient):
        return gradient.reshape(batch, kv_heads, group, keys, dim).sum(2)
    return dscores @ k, of_group(dscores.swapaxes(2, 3) @ q), of_group(weights.swapaxes(2, 3) @ do)


def padded(array, columns, with_what):
    """[B, 1, N, columns] of [B, N, fewer]."""
    return numpy.pad(array, ((0, 0), (0, 0), (0, columns - array.shape[2])), constant_values=with_what)[:, None]


def exact_choice(q, k, weights, top_k, causal, scale, *, corner="bottom_right", window=(-1, -1), mask=None):
    """(keys, counts, scores), [B, 1, N, columns], of the top_k largest sums over heads of weights [B, H, N] * max(scale q.k, 0), in descending order;
    -1 and -infinity behind the last one."""
    q, k, _ = _as_many_heads(q, k, k)
    scores = (weights[..., None] * numpy.maximum(q @ k.swapaxes(2, 3) * scale, 0)).sum(1)
    visible = _visible(_distance(*scores.shape[1:], causal or corner), causal, window) & (True if mask is None else mask[:, 0])
    order = numpy.argsort(numpy.where(visible, -scores, numpy.inf), 2, kind="stable")[..., :top_k]
    counts = numpy.minimum(numpy.broadcast_to(visible, scores.shape).sum(-1), top_k)
    is_there = numpy.arange(order.shape[2]) < counts[..., None]
    keys = padded(numpy.where(is_there, order, NO_KEY), top_k, NO_KEY)
    return keys, counts[:, None, :, None], padded(numpy.where(is_there, numpy.take_along_axis(scores, order, 2), -numpy.inf), top_k, -numpy.inf)


def distance(got, want):
    """The largest difference by the largest number that is wanted; infinity for a NaN."""
    if got.shape != want.shape:
        return math.inf
    where = numpy.isfinite(want)
    error = numpy.abs(got[where] - want[where]).max(initial=0)
    return math.inf if not error == error else float(error / max(numpy.abs(want[where]).max(initial=0), 1e-30))
