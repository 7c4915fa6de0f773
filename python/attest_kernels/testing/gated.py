"""Attention whose O has a gate and a residual, in NumPy for tests: right, wrong in one way each, and functions whose parameters of these names are
something else."""

import numpy

import attest_kernels
from attest_kernels.testing import caches
from attest_kernels.testing.modified import attend

ONE, NONE = numpy.float32(1), numpy.float32(-0.0)


def in_fp32(o, gate, residual):
    """gate o + residual, of what there is; fp32."""
    made = o.astype(numpy.float32) * (ONE if gate is None else gate.astype(numpy.float32))
    return made + (NONE if residual is None else residual.astype(numpy.float32))


def stored(o, gate, residual):
    """The same in O's format, rounded at each step."""
    made = o if gate is None else o * gate
    return made if residual is None else made + residual


def right(q, k, v, causal=False, scale=None, gate=None, residual=None):
    """O is stored, multiplied, stored, and added to."""
    o, lse = attend(q, k, v, causal, scale)
    return stored(o, gate, residual), lse


@attest_kernels.kernel(fuses_epilogue=True)
def fused(q, k, v, causal=False, scale=None, gate=None, residual=None):
    o, lse = attend(q.astype(numpy.float32), k.astype(numpy.float32), v.astype(numpy.float32), causal, scale)
    return in_fp32(o, gate, residual).astype(q.dtype), lse


@attest_kernels.kernel(fuses_epilogue=True)
def stored_as_if_fused(q, k, v, causal=False, scale=None, gate=None, residual=None):
    return right(q, k, v, causal, scale, gate, residual)


@attest_kernels.kernel(gate="G", residual="x")
def of_required_ones(q, k, v, G, x, causal=False, scale=None):
    """[B, N, H, D], and names of its own."""
    q, k, v, gate, residual = (array.swapaxes(1, 2) for array in (q, k, v, G, x))
    return stored(attend(q, k, v, causal, scale)[0], gate, residual).swapaxes(1, 2)


def packed(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, softmax_scale=None, gate=None, residual=None):
    o, lse = caches.varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=causal, softmax_scale=softmax_scale,
                           return_attn_probs=True)[:2]
    return stored(o, gate, residual), lse


def of_pages(q, k_cache, v_cache, cache_seqlens, block_table, causal=False, softmax_scale=None, output_gate=None):
    o = caches.with_kvcache(q, k_cache, v_cache, cache_seqlens=cache_seqlens, block_table=block_table, causal=causal, softmax_scale=softmax_scale)
    return stored(o, output_gate, None)


def residual_is_gated(q, k, v, causal=False, scale=None, gate=None, residual=None):
    o, lse = attend(q, k, v, causal, scale)
    return stored(stored(o, None, residual), gate, None), lse


def gate_of_the_next_head(q, k, v, causal=False, scale=None, gate=None, residual=None):
    return right(q, k, v, causal, scale, None if gate is None else numpy.roll(gate, -1, 1), residual)


def gate_is_ignored(q, k, v, causal=False, scale=None, gate=None):
    return right(q, k, v, causal, scale)


def gate_through_a_sigmoid(q, k, v, causal=False, scale=None, gate=None):
    return right(q, k, v, causal, scale, None if gate is None else (1 / (1 + numpy.exp(-gate.astype(numpy.float32)))).astype(q.dtype))


def residual_twice(q, k, v, causal=False, scale=None, residual=None):
    o, lse = right(q, k, v, causal, scale, None, residual)
    return stored(o, None, residual), lse


def residual_of_rows_with_keys(q, k, v, causal=False, scale=None, residual=None):
    """A row that sees no key is 0, whatever its residual."""
    o, lse = right(q, k, v, causal, scale, None, residual)
    return numpy.where(numpy.isneginf(lse)[..., None], numpy.zeros((), o.dtype), o), lse


def of_other_parameters(q, k, v, gate=None, residual=0.5):
    """A gate of a head, [H]; a residual that is one number, a share of O."""
    o, lse = attend(q, k, v)
    shares = numpy.full(q.shape[1], 1 + float(residual) - 0.5, numpy.float32) if gate is None else gate
    return (o * shares.reshape(q.shape[1], 1, 1)).astype(q.dtype), lse


def of_a_switch(q, k, v, gate=True, residual="none"):
    return attend(q, k, v)
