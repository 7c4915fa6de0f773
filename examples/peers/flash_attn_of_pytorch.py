"""FlashAttention-2 as PyTorch has it, under the names of the package flash_attn, of which there is no wheel for PyTorch 2.11: what libraries of several
ranks call on each rank. What is judged through it is their exchange, their schedule and their merge; the kernel is PyTorch's, which `sdpa_flash` of
pytorch_attention.py judges alone. Without a GPU it is PyTorch's for the CPU.

Causal masks are of as many queries as keys there. Dropout, windows, a softcap, ALiBi and packed sequences are refused; `deterministic` is PyTorch's to
choose."""

import importlib
import importlib.machinery
import sys
import types

import torch

aten = torch.ops.aten


def refused(*_, **__):
    raise NotImplementedError("PyTorch's FlashAttention-2 stands in for flash_attn, for dense attention alone")


def plain(dropout_p, softcap, alibi_slopes, *window):
    if dropout_p or softcap or alibi_slopes is not None or any(reach >= 0 for reach in window):
        refused()


def heads_first(*arrays):
    return [array.transpose(1, 2) for array in arrays]


def forward(q, k, v, causal, scale):
    """(O [B, N, H, D], LSE [B, H, N])."""
    if q.is_cuda:
        return aten._flash_attention_forward(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, causal, False, scale=scale)[:2]
    o, lse = aten._scaled_dot_product_flash_attention_for_cpu(*heads_first(q, k, v), 0.0, causal, scale=scale)
    return o.transpose(1, 2), lse


def _flash_attn_forward(q, k, v, dropout_p, softmax_scale, causal, window_size_left=-1, window_size_right=-1, softcap=0.0, alibi_slopes=None,
                        return_softmax=False):
    plain(dropout_p, softcap, alibi_slopes, window_size_left, window_size_right)
    return *forward(q, k, v, causal, softmax_scale), None, None


def _flash_attn_backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, dropout_p, softmax_scale, causal, window_size_left=-1, window_size_right=-1,
                         softcap=0.0, alibi_slopes=None, deterministic=False, rng_state=None):
    plain(dropout_p, softcap, alibi_slopes, window_size_left, window_size_right)
    if q.is_cuda:
        no_dropout = torch.zeros(2, dtype=torch.uint64, device=q.device), torch.empty(0, dtype=torch.uint64, device=q.device)
        made = aten._flash_attention_backward(dout, q, k, v, out, softmax_lse, None, None, q.shape[1], k.shape[1], 0.0, causal, *no_dropout,
                                              scale=softmax_scale)
    else:
        made = heads_first(*aten._scaled_dot_product_flash_attention_for_cpu_backward(*heads_first(dout, q, k, v, out), softmax_lse, 0.0, causal,
                                                                                      scale=softmax_scale))
    for to, gradient in zip((dq, dk, dv), made):
        to.copy_(gradient)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                    deterministic=False, return_attn_probs=False):
    plain(dropout_p, softcap, alibi_slopes, *window_size)
    o, lse = forward(q, k, v, causal, softmax_scale)
    return (o, lse, None) if return_attn_probs else o


def serve():
    """Stands in for flash_attn where that is not installed."""
    try:
        importlib.import_module("flash_attn.flash_attn_interface")
        return
    except ImportError:
        pass
    made = {name: types.ModuleType(name) for name in ("flash_attn", "flash_attn.flash_attn_interface")}
    for name, module in made.items():
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__version__ = "2.8.3"  # whose signatures these are
        module.flash_attn_func = flash_attn_func
        module._flash_attn_forward, module._flash_attn_backward = _flash_attn_forward, _flash_attn_backward
        module._flash_attn_varlen_forward = module._flash_attn_varlen_backward = refused
    made["flash_attn"].flash_attn_interface = made["flash_attn.flash_attn_interface"]
    sys.modules.update(made)
