"""FlashAttention-3's forward pass, as the wheel fa3_fwd has it: bf16, no windows, no pages.

Claimed: head dims that are multiples of 8 up to 256, of which these are asked for; causal masks to the bottom right; rows that see no key are 0. It takes
scales of 0 or below for what they are not (FINDINGS.md, P3), and does not claim them."""

from fa3_fwd_interface import flash_attn_func, flash_attn_varlen_func

from attest_kernels import kernel

takes = kernel(types=["bf16"], head_dims=[8, 64, 72, 96, 128, 192, 256], positive_scale=True, causal="bottom_right", layout="BNHD", grouped=True)


@takes
def flash_attention_3(q, k, v, causal, softmax_scale):
    return flash_attn_func(q, k, v, softmax_scale=softmax_scale, causal=causal, return_attn_probs=True)


@kernel(types=["bf16"], head_dims=[64, 128], positive_scale=True, causal="bottom_right", grouped=True)
def flash_attention_3_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, softmax_scale):
    return flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=softmax_scale, causal=causal,
                                  return_attn_probs=True)
