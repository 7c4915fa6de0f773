"""Attention of packed sequences and of keys in pages, in NumPy for tests: right, and wrong in one way each."""

import numpy

from attest_kernels.testing import modified
from attest_kernels.testing.functions import attend


def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
           softcap=0.0, alibi_slopes=None, return_attn_probs=False, block_table=None):
    """The signature of flash_attn_varlen_func: [T, H, D], LSE [H, T]."""
    o, lse = numpy.zeros_like(q), numpy.zeros((q.shape[1], q.shape[0]), numpy.float32)
    for b in range(len(cu_seqlens_q) - 1):
        rows, keys = slice(*cu_seqlens_q[b:b + 2]), slice(*cu_seqlens_k[b:b + 2])
        arrays = (array.swapaxes(0, 1) for array in (q[rows], k[keys], v[keys]))
        entry, of_entry = modified.attend(*arrays, causal, softmax_scale, softcap, window_size, slopes=alibi_slopes)
        o[rows], lse[:, rows] = entry.swapaxes(0, 1), of_entry
    return (o, lse, None) if return_attn_probs else o


def varlen_with_lengths_of_queries(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, softmax_scale=None):
    """Each entry has as many keys as queries where it has more."""
    o = numpy.zeros_like(q)
    for b in range(len(cu_seqlens_q) - 1):
        rows, keys = slice(*cu_seqlens_q[b:b + 2]), slice(*cu_seqlens_k[b:b + 2])
        if b > 0:
            keys = slice(keys.start, min(keys.stop, keys.start + rows.stop - rows.start))
        o[rows] = attend(*(array.swapaxes(0, 1) for array in (q[rows], k[keys], v[keys])), causal, softmax_scale)[0].swapaxes(0, 1)
    return o


def _of_pages(pool, pages, length):
    return pool[pages].reshape(-1, *pool.shape[2:])[:length].swapaxes(0, 1)  # [H, keys, D]


def with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, cache_seqlens=None, cache_batch_idx=None, block_table=None, softmax_scale=None,
                 causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, num_splits=0):
    """The signature of flash_attn_with_kvcache: [B, N, H, D], pools [pages, page_size, H, D]."""
    o, size = numpy.zeros_like(q), k_cache.shape[1]
    for b, length in enumerate(cache_seqlens):
        pages = block_table[b, :-(-length // size)]
        keys, values = (_of_pages(pool, pages, length) for pool in (k_cache, v_cache))
        arrays = q[b].swapaxes(0, 1), keys, values
        o[b] = modified.attend(*arrays, causal, softmax_scale, softcap, window_size, slopes=alibi_slopes)[0].swapaxes(0, 1)
    return o


def with_kvcache_of_whole_pages(q, k_cache, v_cache, cache_seqlens, block_table, softmax_scale=None, causal=False):
    """A second page counts as full: what is past the last key is zero, and weighs."""
    o, size = numpy.zeros_like(q), k_cache.shape[1]
    for b, length in enumerate(cache_seqlens):
        pages = block_table[b, :-(-length // size)]
        counted = 2 * size if len(pages) == 2 else length
        keys, values = (_of_pages(pool, pages, counted).copy() for pool in (k_cache, v_cache))
        keys[:, length:] = values[:, length:] = 0
        o[b] = attend(q[b].swapaxes(0, 1), keys, values, causal, softmax_scale)[0].swapaxes(0, 1)
    return o


def of_page_list(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale=None, causal=False):
    """FlashInfer's form of a table; pools [pages, H, page_size, D]."""
    o, size = numpy.zeros_like(q), k_cache.shape[2]
    for b, in_last in enumerate(kv_last_page_len):
        pages = kv_indices[kv_indptr[b]:kv_indptr[b + 1]]
        length = max(0, len(pages) - 1) * size + in_last
        keys, values = (_of_pages(pool.swapaxes(1, 2), pages, length) for pool in (k_cache, v_cache))
        o[b] = attend(q[b].swapaxes(0, 1), keys, values, causal, sm_scale)[0].swapaxes(0, 1)
    return o


def with_kvcache_of_64(q, k_cache, v_cache, cache_seqlens, block_table, softmax_scale=None, causal=False):
    """Pages of 64 keys, and no others."""
    if k_cache.shape[1] != 64:
        raise ValueError("pages of 64 keys only")
    return with_kvcache(q, k_cache, v_cache, cache_seqlens=cache_seqlens, block_table=block_table, softmax_scale=softmax_scale, causal=causal)


def without_lengths(q, k_cache, v_cache, block_table):
    return q
