"""PyTorch: scaled_dot_product_attention by the backend that it picks and by each one, with attn_mask, and flex_attention, eager and compiled.

Claimed: any scale, but flash and cuDNN give NaN for 0 and below (FINDINGS.md, P3), which is not asked for again here."""

import functools

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attest_kernels import kernel, known

types = ["fp16", "bf16"] if torch.cuda.is_available() else ["fp32", "fp16", "bf16"]
dims = [8, 64, 72, 96, 128, 256]
takes = kernel(types=types, head_dims=dims, positive_scale=True, causal="top_left", layout="BHND", grouped=True)


def sdpa(q, k, v, causal, scale):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1])


@takes
def sdpa_picked(q, k, v, causal, scale):
    return sdpa(q, k, v, causal, scale)


with_one_mask = known.with_one_mask(torch.nn.functional.scaled_dot_product_attention)


@kernel(types=types, head_dims=dims, positive_scale=True, causal="top_left", layout="BHND", grouped=True, mask="mask")
def sdpa_masked(q, k, v, causal, scale, bias=None, mask=None):
    """attn_mask: a bias in each of its shapes, or booleans. A row that sees no key is 0 from PyTorch 2.5 on."""
    return with_one_mask(q, k, v, causal, scale, q.shape[1] != k.shape[1], bias, mask)


@takes
def sdpa_flash(q, k, v, causal, scale):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return sdpa(q, k, v, causal, scale)


@kernel(types=types, head_dims=dims, positive_scale=True, causal="top_left", layout="BHND", grouped=True, deterministic=False)  # FINDINGS.md, P6
def sdpa_cudnn(q, k, v, causal, scale):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return sdpa(q, k, v, causal, scale)


@kernel(types=types, head_dims=dims, positive_scale=True, causal="top_left", layout="BHND", grouped=False)
def sdpa_efficient(q, k, v, causal, scale):
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        return sdpa(q, k, v, causal, scale)


def flex(attend, q, k, v, causal, scale):
    def sees(batch, head, row, key):
        return row + k.shape[2] - q.shape[2] >= key
    mask = create_block_mask(sees, None, None, q.shape[2], k.shape[2], device=q.device) if causal else None
    return attend(q, k, v, block_mask=mask, scale=scale, enable_gqa=q.shape[1] != k.shape[1], return_lse=True)


@functools.cache
def compiled():
    torch._dynamo.config.recompile_limit = 1000
    return torch.compile(flex_attention, dynamic=True)


@kernel(types=types, head_dims=[16, 64, 128], positive_scale=True, causal="bottom_right", layout="BHND", grouped=True)
def flex_eager(q, k, v, causal, scale):
    return flex(flex_attention, q, k, v, causal, scale)


@kernel(types=types, head_dims=[64, 128], positive_scale=True, causal="bottom_right", layout="BHND", grouped=True)
def flex_compiled(q, k, v, causal, scale):
    return flex(compiled(), q, k, v, causal, scale)
