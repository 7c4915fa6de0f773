"""ring-flash-attn: its ring, zigzag and stripes, one process a GPU (ranks.py) under PyTorch's FlashAttention-2 (flash_attn_of_pytorch.py). Parts of O come in
the type of the inputs and are merged in fp32. Zigzag and stripes are for causal masks alone: what has none goes through the ring.

Gradients: `ring_flash` with `--operation backward`, and `_gradients` of bf16 alone of the others, since the ring rounds dQ to bf16 whatever the inputs are."""

import functools
import sys
import types

import torch

import flash_attn_of_pytorch
import ranks


@functools.cache
def library():
    flash_attn_of_pytorch.serve()
    # Its adapter of Hugging Face's models needs names that newer transformers no longer have.
    sys.modules["ring_flash_attn.adapters"] = types.SimpleNamespace(substitute_hf_flash_attn=None, update_ring_flash_attn_params=None)
    import ring_flash_attn
    return ring_flash_attn


ORDERS = {"ring_flash_attn_func": "neighbours", "zigzag_ring_flash_attn_func": "zigzag", "stripe_flash_attn_func": "stripes"}


def answer(q, k, v, do, causal, name, scale):
    """Of a rank, as ranks.of_rank."""
    name = name if causal else "ring_flash_attn_func"

    def take(array):
        return array[:, ranks.share(ORDERS[name], array.shape[1], torch.distributed.get_rank())]

    def attend(*parts):
        made = getattr(library(), name)(*parts, softmax_scale=scale, causal=causal, return_attn_probs=True)
        return made[:2] if ranks.DEVICE == "cuda" else made[:1]  # LSE of PyTorch's kernel for the CPU errs by 5e-5
    return ranks.of_rank(take, attend, q, k, v, do)


takes = functools.partial(ranks.takes, types=["fp16", "bf16"], grouped=True, rounds_parts=True)


@takes()
def ring_flash(q, k, v, causal, scale):
    return ranks.attention(__file__, q, k, v, causal, "ring_flash_attn_func", scale)


@takes(masks=["causal_top_left"])
def zigzag_ring_flash(q, k, v, causal, scale):
    return ranks.attention(__file__, q, k, v, causal, "zigzag_ring_flash_attn_func", scale)


@takes(masks=["causal_top_left"])
def stripe_flash(q, k, v, causal, scale):
    return ranks.attention(__file__, q, k, v, causal, "stripe_flash_attn_func", scale)


@takes(masks=["causal_top_left"], operation="backward", types=["bf16"])
def zigzag_ring_flash_gradients(q, k, v, causal, scale):
    return zigzag_ring_flash(q, k, v, causal, scale)


@takes(masks=["causal_top_left"], operation="backward", types=["bf16"])
def stripe_flash_gradients(q, k, v, causal, scale):
    return stripe_flash(q, k, v, causal, scale)


if __name__ == "__main__":
    ranks.work(answer)
