"""yunchang (long-context-attention): DeepSpeed-Ulysses, its rings and both together (USP), one process a GPU (ranks.py) under PyTorch's FlashAttention-2
in flash_attn's place (flash_attn_of_pytorch.py), or under the kernels of PyTorch that it calls itself (AttnType.TORCH_...).

Ulysses shares heads out, so heads that the ranks do not divide are followed by copies of the last one. Zigzag and stripes are for causal masks alone: what
has none goes through the ring. Gradients: `--operation backward`, of what is not AttnType.TORCH_..., which has none."""

import functools

import torch

import flash_attn_of_pytorch
import ranks


@functools.cache
def library():
    flash_attn_of_pytorch.serve()
    import yunchang
    import yunchang.globals
    import yunchang.kernels
    return yunchang


@functools.cache
def groups(ulysses):
    """Its groups of processes for this many ranks of Ulysses, and a ring of the others."""
    shared = library().globals.PROCESS_GROUP
    library().set_seq_parallel_pg(ulysses, ranks.RANKS // ulysses, torch.distributed.get_rank(), ranks.RANKS)
    return shared.ULYSSES_PG, shared.RING_PG


def answer(q, k, v, do, causal, ulysses, ring, attn_type, scale):
    """Of a rank, as ranks.of_rank. `ring`: which of its rings; "": its layer of Ulysses alone."""
    attn_type = library().kernels.AttnType.from_string(attn_type)
    shared = library().globals.PROCESS_GROUP
    shared.ULYSSES_PG, shared.RING_PG = groups(ulysses)
    ring = "basic" if ring in ("zigzag", "strip") and not causal else ring
    if ring:
        layer = library().LongContextAttention(ring_impl_type=ring, attn_type=attn_type)
    else:
        layer = library().UlyssesAttention(shared.ULYSSES_PG, attn_type=attn_type)

    def take(array):
        return library().EXTRACT_FUNC_DICT[ring or "basic"](array, torch.distributed.get_rank(), ranks.RANKS, rd=ranks.RANKS // ulysses, ud=ulysses)

    def attend(*parts):
        return [layer(*parts, softmax_scale=scale, causal=causal)]
    return ranks.of_rank(take, attend, q, k, v, do)


def attention(q, k, v, causal, scale, ulysses, ring, attn_type="fa"):
    heads = q.shape[2]
    more = -heads % ulysses
    q, k, v = (torch.cat([array, *[array[:, :, -1:]] * more], dim=2) for array in (q, k, v))
    o, = ranks.attention(__file__, q, k, v, causal, ulysses, ring, attn_type, scale)
    return o[:, :, :heads]


takes = functools.partial(ranks.takes, types=["fp16", "bf16"])
merges = functools.partial(takes, rounds_parts=True)


@takes()
def yunchang_ulysses(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, ranks.RANKS, "")


@merges()
def yunchang_ring(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, 1, "basic")


@merges(masks=["causal_top_left"])
def yunchang_zigzag(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, 1, "zigzag")


@merges(masks=["causal_top_left"])
def yunchang_stripes(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, 1, "strip")


@merges(masks=["causal_top_left"])
def yunchang_usp(q, k, v, causal, scale):
    """Two ranks of Ulysses, times a zigzag ring of the others: on two GPUs a ring of one."""
    return attention(q, k, v, causal, scale, 2, "zigzag")


@merges()
def yunchang_ring_torch(q, k, v, causal, scale):
    """What its test calls --attn_impl torch."""
    return attention(q, k, v, causal, scale, 1, "basic_pytorch", "torch_flash")


@merges()
def yunchang_ring_torch_flash(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, 1, "basic", "torch_flash")


# Its LSE is padded to a multiple of 32.
@merges(types=["fp32", "fp16", "bf16"], query_len_multiple=32 * ranks.RANKS, key_len_multiple=32 * ranks.RANKS)
def yunchang_ring_torch_efficient(q, k, v, causal, scale):
    """What its README advises where there is no flash_attn."""
    return attention(q, k, v, causal, scale, 1, "basic", "torch_efficient")


@merges()
def yunchang_ring_torch_cudnn(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, 1, "basic", "torch_cudnn")


@merges(types=["fp32", "fp16", "bf16"])
def yunchang_ring_torch_math(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, 1, "basic", "torch_math")


@takes()
def yunchang_ulysses_torch(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, ranks.RANKS, "", "torch_flash")


if __name__ == "__main__":
    ranks.work(answer)
