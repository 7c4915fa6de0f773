"""PyTorch: context_parallel, a ring of as many GPUs as there are, one process each (ranks.py), under scaled_dot_product_attention by one backend."""

import functools

import torch
import torch.distributed
from torch.nn.attention import SDPBackend, sdpa_kernel

import ranks


def context_parallel_parts():
    """(context_parallel, context_parallel_unshard, options): its modules have moved."""
    from torch.distributed.tensor.experimental import context_parallel
    try:
        from torch.distributed.tensor.experimental import _context_parallel as package
        from torch.distributed.tensor.experimental._context_parallel import _attention as module
    except ImportError:
        from torch.distributed.tensor.experimental import _attention as module
        package = module
    return context_parallel, getattr(package, "context_parallel_unshard", None) or module.context_parallel_unshard, module._cp_options


@functools.cache
def mesh():
    return torch.distributed.device_mesh.init_device_mesh(ranks.DEVICE, (ranks.RANKS,))


def answer(q, k, v, _, causal, scale, backend):
    """Of a rank: (tokens, its part). Of the O that it has put together it shows what the next rank computed."""
    context_parallel, unshard, options = context_parallel_parts()
    options.enable_load_balance = causal  # without a mask all ranks have as much to do, and it refuses
    q, k, v = (array.transpose(1, 2).contiguous() for array in (q, k, v))
    with sdpa_kernel(getattr(SDPBackend, backend)), context_parallel(mesh(), buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
        o, = unshard(mesh(), [o], [2])
    o = o.contiguous()
    others = [torch.empty_like(o) for _ in range(ranks.RANKS)]
    torch.distributed.all_gather(others, o)
    if not all(torch.equal(other.nan_to_num(), o.nan_to_num()) for other in others):
        raise RuntimeError("ranks have put together different answers")
    next_rank = (torch.distributed.get_rank() + 1) % ranks.RANKS
    tokens = torch.tensor(ranks.share("zigzag" if causal else "neighbours", o.shape[2], next_rank))
    return [(tokens, o[:, :, tokens.to(o.device)].transpose(1, 2))]


def attention(q, k, v, causal, scale, backend):
    return ranks.attention(__file__, q, k, v, causal, scale, backend)[0]


takes = functools.partial(ranks.takes, rounds_parts=True)


@takes(types=["fp16", "bf16"])
def context_parallel_flash(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, "FLASH_ATTENTION")


@takes(types=["fp16", "bf16"], deterministic=False)  # FINDINGS.md, P6
def context_parallel_cudnn(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, "CUDNN_ATTENTION")


# Its LSE is padded to a multiple of 32.
@takes(types=["fp32", "fp16", "bf16"], query_len_multiple=32 * ranks.MULTIPLE, key_len_multiple=32 * ranks.MULTIPLE)
def context_parallel_efficient(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, "EFFICIENT_ATTENTION")


if __name__ == "__main__":
    ranks.work(answer)
