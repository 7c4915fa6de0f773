"""Attention with a softcap, a window, learned sinks, ALiBi and a bias in NumPy for tests: right, and wrong in one way each."""

import numpy

import attest_kernels


def attend(q, k, v, causal=False, scale=None, softcap=None, window=(-1, -1), sinks=None, slopes=None, bias=None, corner="bottom_right",
           tanh=numpy.tanh):
    """(O, LSE), as core/attention/problem.hpp defines them; under no mask the diagonal is that of bottom right."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(-1, -2) * numpy.float32(scale)
    queries, keys = scores.shape[-2:]
    if softcap:
        scores = numpy.float32(softcap) * tanh(scores / numpy.float32(softcap))
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


def of_required_arrays(q, k, v, sink, slopes, attn_mask, logits_soft_cap, window_left, causal):
    """Windows to the left alone; what a case has not it is told by numbers that change nothing."""
    window = (window_left, 0 if causal else -1)
    return attend(q, k, v, softcap=logits_soft_cap, window=window, sinks=sink, slopes=slopes, bias=attn_mask)


def of_local_attention(q, k, v, window_left=None, window_right=None):
    """Windows from the top left, None for no end."""
    window = tuple(-1 if reach is None else reach for reach in (window_left, window_right))
    return attend(q, k, v, window=window, corner="top_left")


def of_whole_bias(q, k, v, bias=None, sinks=None):
    """A bias of every pair of every head alone; sinks are not there yet."""
    if sinks is not None:
        raise NotImplementedError("sinks")
    if bias is not None and bias.shape != (*q.shape[:3], k.shape[2]):
        raise ValueError("a bias of every pair of every head only")
    return attend(q, k, v, bias=bias)


def of_top_left(q, k, v, causal=False, slopes=None):
    """Its mask, and so ALiBi, count from the key of a query's own number."""
    return attend(q, k, v, causal, slopes=slopes, corner="top_left")


@attest_kernels.kernel(sinks="learned", softcap=False, empty_rows=False)
def declared(q, k, v, causal=False, window=(-1, -1), learned=None, softcap=3.0, bias=None):
    """Rows that see no key are not its business."""
    o, lse = attend(q, k, v, causal, window=window, bias=bias)
    if numpy.isneginf(lse).any():
        raise ValueError("a row without keys")
    return attend(q, k, v, causal, window=window, sinks=learned, bias=bias)


def with_hidden(bias, mask):
    """The bias, and -infinity where the mask of booleans says so."""
    bias = numpy.float32(0) if bias is None else bias
    return bias if mask is None else numpy.where(mask, bias, numpy.float32(-numpy.inf))


@attest_kernels.kernel(mask="attn_mask")
def of_booleans(q, k, v, causal=False, scale=None, attn_mask=None, bias=None):
    """A mask of booleans, and a bias for which there must be as many numbers as Q's type has, those of fp32."""
    if attn_mask is not None and attn_mask.dtype != bool:
        raise TypeError("a mask of numbers")
    if bias is not None and q.dtype != numpy.float32:
        raise TypeError("a bias beside 16 bits")
    return attend(q, k, v, causal, scale, bias=with_hidden(bias, attn_mask))


@attest_kernels.kernel(mask="mask")
def mask_turned_round(q, k, v, causal=False, scale=None, mask=None):
    """True hides."""
    return attend(q, k, v, causal, scale, bias=with_hidden(None, None if mask is None else ~mask))


@attest_kernels.kernel(mask="mask")
def mask_of_the_first_entry(q, k, v, causal=False, scale=None, mask=None):
    return attend(q, k, v, causal, scale, bias=with_hidden(None, None if mask is None else mask[:1]))


def of_other_parameters(q, k, v, mask=None, window_size=7, bias=None, sinks_=None):
    """No window: a size of tiles. No bias that is added: a row of numbers behind O. Sinks by another name."""
    return attend(q, k, v, sinks=sinks_)[0] + (0 if bias is None else bias)


def softcap_of_dot_products(q, k, v, causal=False, softmax_scale=None, softcap=None):
    """Dot products are capped, and scaled then."""
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    return attend(q, k, v, causal, scale, softcap and softcap * abs(scale))


def window_from_top_left(q, k, v, causal=False, softmax_scale=None, window_size=(-1, -1)):
    """Its causal mask is that of bottom right."""
    return attend(q, k, v, causal, softmax_scale, window=window_size, corner="top_left" if max(window_size) >= 0 else "bottom_right")


def sinks_ignored(q, k, v, causal=False, softmax_scale=None, sinks=None):
    return attend(q, k, v, causal, softmax_scale)


def alibi_from_top_left(q, k, v, alibi_slopes=None):
    return attend(q, k, v, slopes=alibi_slopes, corner="top_left")


def bias_is_scaled(q, k, v, attn_bias=None):
    return attend(q, k, v, bias=None if attn_bias is None else attn_bias * numpy.float32(q.shape[-1] ** -0.5))
