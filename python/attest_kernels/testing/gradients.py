"""Backward passes of attention in NumPy for tests: right, and wrong in one way each."""

import numpy

import attest_kernels


def of_pairs(q, k, v, lse, do, delta, causal, scale, corner="bottom_right", softcap=None, window=(-1, -1)):
    """(P, dS) in fp32; LSE and delta = sum(dO * O) as they are given."""
    q, k, v, do = (array.astype(numpy.float32) for array in (q, k, v, do))
    scale = numpy.float32(scale)
    scores = q @ k.swapaxes(-1, -2) * scale
    queries, keys = scores.shape[-2:]
    slope = numpy.float32(1)
    if softcap:
        capped = numpy.tanh(scores / numpy.float32(softcap))
        scores, slope = numpy.float32(softcap) * capped, (1 - capped) * (1 + capped)
    distance = numpy.arange(keys) - numpy.arange(queries)[:, None] - (keys - queries if corner == "bottom_right" else 0)
    left, right = (numpy.inf if reach < 0 else reach for reach in window)
    scores = numpy.where((distance >= -left) & (distance <= (0 if causal else right)), scores, numpy.float32(-numpy.inf))
    with numpy.errstate(invalid="ignore"):
        weights = numpy.exp(scores - lse[..., None])
    weights = numpy.where(numpy.isneginf(scores), 0, weights)  # LSE of an empty row is -infinity, too
    return weights, weights * (do @ v.swapaxes(-1, -2) - delta[..., None]) * slope


def gradients(q, k, v, lse, do, delta, causal, scale, corner="bottom_right", **more):
    """(dQ, dK, dV) in fp32."""
    q, k, v, do = (array.astype(numpy.float32) for array in (q, k, v, do))
    scale = numpy.float32(scale)
    weights, dscores = of_pairs(q, k, v, lse, do, delta, causal, scale, corner, **more)
    return dscores @ k * scale, dscores.swapaxes(-1, -2) @ q * scale, weights.swapaxes(-1, -2) @ do


def of_saved(q, k, v, o, lse, do, causal, scale, **more):
    return gradients(q, k, v, lse, do, (do.astype(numpy.float32) * o.astype(numpy.float32)).sum(-1), causal, scale, **more)


def right(q, k, v, o, lse, do, causal=False, scale=None):
    return tuple(array.astype(q.dtype) for array in of_saved(q, k, v, o, lse, do, causal, scale))


def capped_in_windows(q, k, v, o, lse, do, causal=False, scale=None, softcap=0.0, window_size=(-1, -1)):
    return tuple(array.astype(q.dtype) for array in of_saved(q, k, v, o, lse, do, causal, scale, softcap=softcap, window=window_size))


def softcap_ignored(q, k, v, o, lse, do, causal=False, scale=None, softcap=0.0):
    return right(q, k, v, o, lse, do, causal, scale)


def without_scale(q, k, v, o, lse, do, causal=False, scale=None):
    """dQ is not scaled."""
    dq, dk, dv = of_saved(q, k, v, o, lse, do, causal, scale)
    return tuple(array.astype(q.dtype) for array in (dq / numpy.float32(scale), dk, dv))


def last_key_without_dk(q, k, v, o, lse, do, causal=False, scale=None):
    """dK of the last of more than 40 keys stays 0."""
    dq, dk, dv = of_saved(q, k, v, o, lse, do, causal, scale)
    if k.shape[2] > 40:
        dk[:, :, -1] = 0
    return tuple(array.astype(q.dtype) for array in (dq, dk, dv))


def of_ranks(q, k, v, o, lse, do, causal, scale, ranks=8):
    """What ranks have of dQ by their keys, and of dK and dV by their rows, is rounded before it is added."""
    type_, delta = q.dtype, (do.astype(numpy.float32) * o.astype(numpy.float32)).sum(-1)
    q, k, do = (array.astype(numpy.float32) for array in (q, k, do))
    weights, dscores = of_pairs(q, k, v, lse, do, delta, causal, scale)

    def summed(left, right, factor=numpy.float32(1)):
        parts = [slice(rank, None, ranks) for rank in range(ranks)]
        return sum((left[..., part] @ right[..., part, :] * factor).astype(type_).astype(numpy.float32) for part in parts).astype(type_)
    scale = numpy.float32(scale)
    return summed(dscores, k, scale), summed(dscores.swapaxes(-1, -2), q, scale), summed(weights.swapaxes(-1, -2), do)


@attest_kernels.kernel(types=["fp16"], rounds_parts=True)
def rounds_parts(q, k, v, o, lse, do, causal=False, scale=None):
    return of_ranks(q, k, v, o, lse, do, causal, scale)


@attest_kernels.kernel(types=["fp16"])
def rounds_parts_unsaid(q, k, v, o, lse, do, causal=False, scale=None):
    return of_ranks(q, k, v, o, lse, do, causal, scale)


def into(query, key, value, dout, softmax_lse, delta, dq, dk, dv, is_causal, sm_scale):
    """[B, N, H, D], LSE in base 2, a top-left mask; writes where it is told to."""
    swapped = [array.swapaxes(1, 2) for array in (query, key, value)]
    lse, of_rows = (array.swapaxes(1, 2) for array in (softmax_lse * numpy.float32(numpy.log(2)), delta))
    made = gradients(*swapped, lse, dout.swapaxes(1, 2), of_rows, is_causal, sm_scale, "top_left")
    for place, array in zip((dq, dk, dv), made):
        place[...] = array.swapaxes(1, 2)


def two_of_three(q, k, v, o, lse, do):
    return of_saved(q, k, v, o, lse, do, False, 1)[:2]
