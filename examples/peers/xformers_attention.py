"""xFormers: the operator that it dispatches to, and its own kernels in Triton, which split the keys of few queries. Without its compiled extension it
calls PyTorch's FlashAttention-2 and CUTLASS kernels.

Claimed: as many heads of K and V as of Q; causal masks to the bottom right are an object. Its documentation says nothing of rows that see no key, nor of scales
that are 0 or below."""

from xformers.ops import memory_efficient_attention_forward_requires_grad
from xformers.ops.fmha import cutlass, flash, triton_splitk
from xformers.ops.fmha.attn_bias import LowerTriangularFromBottomRightMask

from attest_kernels import kernel

takes = kernel(types=["fp16", "bf16"], head_dims=[8, 32, 64, 96, 128, 256], positive_scale=True, empty_rows=False, causal="bottom_right", layout="BNHD",
               grouped=False)


def called(q, k, v, causal, scale, operator=None):
    bias = LowerTriangularFromBottomRightMask() if causal else None
    return memory_efficient_attention_forward_requires_grad(q, k, v, attn_bias=bias, scale=scale, op=operator)


@takes
def xformers_dispatched(q, k, v, causal, scale):
    return called(q, k, v, causal, scale)


@takes
def xformers_flash(q, k, v, causal, scale):
    return called(q, k, v, causal, scale, flash.FwOp)


@takes
def xformers_cutlass(q, k, v, causal, scale):
    return called(q, k, v, causal, scale, cutlass.FwOp)


@kernel(types=["fp16", "bf16"], head_dims=[32, 64, 128], masks=["none"], positive_scale=True, layout="BNHD", grouped=False)
def xformers_triton_splitk(q, k, v, scale):
    return called(q, k, v, False, scale, triton_splitk.FwOp)
