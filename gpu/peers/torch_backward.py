"""Backward passes that torch_worker.py runs. Each gives (run, results) as those in torch_worker.py do; the results are dQ, dK, dV.

O and LSE are those of the request. The forward operator of each backend is run once, outside the time, for what else the
backward operator takes: seeds, and an LSE with its padding.
"""

import torch

aten = torch.ops.aten


def as_forward_leaves_it(tensor):
    """[batch, heads, rows, columns] whose memory is [batch, rows, heads, columns], as these backends' forward passes lay out O:
    otherwise each backward pass would copy O and dO first."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def flash(p):
    o, do = as_forward_leaves_it(p.o), as_forward_leaves_it(p.d_o)
    made = aten._scaled_dot_product_flash_attention(p.q, p.k, p.v, 0.0, p.is_causal, False, scale=p.scale)
    starts_and_lengths, seeds = made[2:6], made[6:8]

    def run():
        return aten._scaled_dot_product_flash_attention_backward(do, p.q, p.k, p.v, o, p.lse, *starts_and_lengths, 0.0,
                                                                 p.is_causal, *seeds, scale=p.scale)
    return run, tuple


def cudnn(p):
    made = aten._scaled_dot_product_cudnn_attention(p.q, p.k, p.v, None, True, 0.0, p.is_causal, False, scale=p.scale)
    lse = p.lse.reshape(made[1].shape)
    starts_and_lengths, seeds, bias = made[2:6], made[6:8], None

    def run():
        return aten._scaled_dot_product_cudnn_attention_backward(p.d_o, p.q, p.k, p.v, p.o, lse, *seeds, bias, *starts_and_lengths,
                                                                 0.0, p.is_causal, scale=p.scale)
    return run, tuple


def efficient(p):
    # The operator wants O and dO contiguous, rows before heads.
    q, k, v, o, do = (tensor.transpose(1, 2) for tensor in (p.q, p.k, p.v, as_forward_leaves_it(p.o), as_forward_leaves_it(p.d_o)))
    mask = {"none": 0, "causal_top_left": 1, "causal_bottom_right": 2}[p.mask]
    made = aten._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, mask, True, scale=p.scale)
    lse = made[1]  # padded to a multiple of 32 rows
    lse[:, :, :q.shape[1]].copy_(p.lse)
    bias, starts = None, (None, None)

    def run():
        return aten._efficient_attention_backward(do, q, k, v, bias, o, *starts, q.shape[1], k.shape[1], lse, 0.0, *made[2:4],
                                                  mask, False, scale=p.scale)
    return run, lambda made: tuple(gradient.transpose(1, 2) for gradient in made[:3])


def flash_attention_4(p):
    from flash_attn.cute.interface import _flash_attn_bwd
    q, k, v, o, do = (tensor.transpose(1, 2) for tensor in (p.q, p.k, p.v, as_forward_leaves_it(p.o), as_forward_leaves_it(p.d_o)))

    def run():
        return _flash_attn_bwd(q, k, v, o, do, p.lse, p.scale, p.is_causal)
    return run, lambda made: tuple(gradient.transpose(1, 2) for gradient in made)


def math(p):
    # PyTorch's math backend has no such operator: autograd goes back through its own softmax and reads neither O nor LSE. This
    # is the formula as PyTorch's operators compute it, in fp32, with S, P and their gradients in memory.
    hidden = p.hidden()
    group = p.q.shape[1] // p.k.shape[1]
    columns, rows = p.lse[..., None], (2, 3)

    def visible(scores):
        return scores if hidden is None else scores.masked_fill_(hidden, 0)

    def of_group(gradient):
        batch, heads, keys, dim = gradient.shape
        return gradient.view(batch, heads // group, group, keys, dim).sum(2)

    def run():
        q, o, do = (tensor.float() for tensor in (p.q, p.o, p.d_o))
        k, v = (tensor.float().repeat_interleave(group, dim=1) for tensor in (p.k, p.v))
        weights = visible(torch.exp((q @ k.transpose(*rows)) * p.scale - columns))
        delta = (do * o).sum(-1, keepdim=True)
        of_scores = visible(weights * (do @ v.transpose(*rows) - delta))
        return ((of_scores @ k) * p.scale, of_group((of_scores.transpose(*rows) @ q) * p.scale),
                of_group(weights.transpose(*rows) @ do))
    return run, tuple
