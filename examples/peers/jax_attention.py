"""JAX: dot_product_attention by XLA, and by cuDNN where there is a GPU. Claimed: grouped heads; causal masks to the top left."""

import jax

from attest_kernels import kernel


def called(q, k, v, causal, scale, implementation):
    return jax.nn.dot_product_attention(q, k, v, scale=float(scale), is_causal=causal, implementation=implementation)


@kernel(types=["fp16", "bf16"], head_dims=[8, 32, 64, 128], positive_scale=True, causal="top_left", layout="BNHD", grouped=True)
def jax_xla(q, k, v, causal, scale):
    return called(q, k, v, causal, scale, "xla")


@kernel(types=["fp16", "bf16"], head_dims=[8, 32, 64, 128], positive_scale=True, causal="top_left", layout="BNHD", grouped=True, deterministic=False)
def jax_cudnn(q, k, v, causal, scale):
    return called(q, k, v, causal, scale, "cudnn")
