"""Indexers and their top-k in NumPy for tests: right, and wrong in one way each."""

import numpy

import attest_kernels


def scores_of(q, k, weights, scale, causal=False, mask=None):
    """[B, N, keys] in fp32, -infinity for a key that is hidden, and which are, [N, keys] or [B, N, keys]."""
    group = q.shape[1] // k.shape[1]
    products = q.astype(numpy.float32) @ numpy.repeat(k, group, 1).astype(numpy.float32).swapaxes(2, 3)
    found = (weights[..., None] * numpy.maximum(products * numpy.float32(scale), 0)).sum(1, dtype=numpy.float32)
    queries, keys = found.shape[1:]
    hidden = numpy.triu(numpy.ones((queries, keys), bool), 1 + keys - queries) if causal else numpy.zeros((queries, keys), bool)
    hidden = hidden if mask is None else hidden | ~mask[:, 0]
    return numpy.where(hidden, numpy.float32(-numpy.inf), found), hidden


def largest(scores, hidden, top_k):
    """Keys and scores of the largest, -1 and -infinity behind them; a NaN is larger than all."""
    rank = numpy.where(numpy.isnan(scores), numpy.inf, scores)
    order = numpy.lexsort((-rank, numpy.broadcast_to(hidden, rank.shape)), axis=-1)[..., :top_k]
    is_there = ~numpy.take_along_axis(numpy.broadcast_to(hidden, rank.shape), order, -1)
    return (numpy.where(is_there, order, -1),
            numpy.where(is_there, numpy.take_along_axis(scores, order, -1), numpy.float32(-numpy.inf)).astype(numpy.float32))


@attest_kernels.kernel(mask="mask")
def right(q, k, weights, top_k, scale, causal=False, mask=None):
    """Keys and their scores."""
    return largest(*scores_of(q, k, weights, scale, causal, mask), top_k)


def indexer(q, k, weights, top_k, scale):
    products = numpy.maximum(q.astype("f4") @ k.astype("f4").swapaxes(2, 3) * numpy.float32(scale), 0)
    scores = (weights[..., None] * products).sum(1)
    keys = numpy.argsort(-numpy.where(numpy.isnan(scores), numpy.inf, scores), -1)[..., :top_k]
    return keys, numpy.take_along_axis(scores, keys, -1)


def of_one_head(query, key, head_weights, topk, sm_scale):
    """K [B, N, D], Q [B, N, H, D] and weights [B, N, H], as DeepSeek's indexer has them; scores, then keys, as torch.topk returns them, and no more
    columns than there are keys."""
    keys, scores = largest(*scores_of(query.swapaxes(1, 2), key[:, None], head_weights.swapaxes(1, 2), sm_scale), topk)
    return scores, keys


def keys_alone(q, k, weights, top_k):
    """Without a scale, counted by itself, in ascending order."""
    keys, _ = right(q, k, weights, top_k, q.shape[-1] ** -0.5)
    return numpy.sort(keys, -1).astype(numpy.int32), (keys >= 0).sum(-1)


def last_one_twice(q, k, weights, top_k, scale):
    """Where there are two keys or more the last is the one before."""
    keys, scores = right(q, k, weights, top_k, scale)
    for one in (keys, scores):
        one[..., 1:][..., -1:] = one[..., :-1][..., -1:]
    return keys, scores


def weights_after_the_sum(q, k, weights, top_k, scale):
    """Negative products are not cut before they are weighed. Keys alone."""
    scores = (weights[..., None] * (q.astype(numpy.float32) @ numpy.repeat(k, q.shape[1] // k.shape[1], 1).astype(numpy.float32).swapaxes(2, 3))).sum(1)
    return largest(scores * numpy.float32(scale), numpy.zeros(scores.shape[1:], bool), top_k)[0]


def one_too_few(q, k, weights, top_k, scale):
    """No key is returned where one is asked for."""
    keys, scores = right(q, k, weights, top_k, scale)
    return keys[..., :max(top_k - 1, 0)], scores[..., :max(top_k - 1, 0)]


def scores_of_the_next(q, k, weights, top_k, scale):
    keys, scores = right(q, k, weights, top_k, scale)
    return keys, numpy.roll(scores, 1, -1)


def without_number(q, k, weights):
    return q
