"""FlashAttention-4's Hopper forward pass: the wheel flash-attn-4, compiled by CuTe DSL at the first call of each type, head dim, group and mask.

Claimed: fp16, bf16; head dims that are multiples of 8 up to 256, of which these are asked for; causal masks to the bottom right; rows that see no key
are 0. Nothing is said of scales that are 0 or below."""

import torch
from flash_attn.cute import flash_attn_func, flash_attn_varlen_func

from attest_kernels import kernel

takes = kernel(types=["fp16", "bf16"], head_dims=[8, 64, 72, 96, 128, 192, 256], positive_scale=True, causal="bottom_right", layout="BNHD", grouped=True)


@takes
def flash_attention_4(q, k, v, causal, softmax_scale):
    return flash_attn_func(q, k, v, softmax_scale=softmax_scale, causal=causal, return_lse=True)


@kernel(types=["fp16", "bf16"], head_dims=[64, 128], positive_scale=True, causal="bottom_right", grouped=True)
def flash_attention_4_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, softmax_scale):
    return flash_attn_varlen_func(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k,
                                  softmax_scale=softmax_scale, causal=causal, return_lse=True)


@kernel(types=["bf16"], head_dims=[64, 128], positive_scale=True, causal="bottom_right", layout="BNHD", grouped=True)
def flash_attention_4_paged(q, k_cache, v_cache, page_table, cache_seqlens, causal, softmax_scale):
    # Nothing is said of table entries that no key uses: they name pages that are there.
    table = torch.clamp(page_table, 0, k_cache.shape[0] - 1)
    return flash_attn_varlen_func(q, k_cache, v_cache, page_table=table, seqused_k=cache_seqlens, softmax_scale=softmax_scale, causal=causal,
                                  return_lse=True)
