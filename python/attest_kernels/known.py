"""Functions of libraries whose signatures do not say enough: how their arrays lie, which corner their causal mask has, what must be translated."""

import dataclasses
import importlib
import inspect
import math
import typing


@dataclasses.dataclass(frozen=True)
class Known:
    """`parameters`: roles besides q, k and v that it has, each with its own name. `translated`: makes of the library's function one that takes
    q, k, v and the roles by their own names; None: it is called as it is. `newer`: roles that some versions have. `softcap_error`: what its softcap errs
    by over the cap. `not_asked`: parameters of which no case tells it, though problems have what they say: softcaps whose tanh nobody has read, masks
    of JAX, which leave weights to a row that sees no key."""
    package: str
    name: str
    layout: str
    corner: str
    parameters: dict
    translated: typing.Optional[typing.Callable] = None  # Python 3.9 knows no | of types
    newer: dict = dataclasses.field(default_factory=dict)
    softcap_error: typing.Optional[float] = None
    not_asked: tuple = ()

    def called(self, function):
        """(What is called, {role: its own name})."""
        one = function if self.translated is None else self.translated(function)
        return one, {**self.parameters, **{role: own for role, own in self.newer.items() if has(one, [own])}}

    def left_out(self, function):
        """Names of `not_asked` that this version has, as far as Python knows its signature."""
        return [own for own in self.not_asked if has(function, [own])]


def with_one_mask(function):
    """PyTorch's scaled_dot_product_attention as a function that takes a bias in fp32 and a mask of booleans apart, true for a key that is seen. attn_mask is one
    or the other, and refused beside is_causal: what a call has of the three becomes one."""
    def scaled_dot_product_attention(q, k, v, causal, scale, grouped, bias=None, mask=None):
        like = bias if mask is None else mask
        if like is None:
            return function(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)
        torch = importlib.import_module("torch")
        if causal:
            query, key = (torch.arange(array.shape[2], device=like.device) for array in (q, k))
            diagonal = key[None, :] <= query[:, None]
            mask = diagonal if mask is None else mask & diagonal
        told = mask if bias is None else bias if mask is None else torch.where(mask, bias, -math.inf)
        return function(q, k, v, attn_mask=told, scale=scale, enable_gqa=grouped)
    return scaled_dot_product_attention


def _memory_efficient_attention(function):
    """A causal mask is an object; heads are as many."""
    def memory_efficient_attention(q, k, v, causal, scale):
        bias = importlib.import_module("xformers.ops.fmha.attn_bias").LowerTriangularFromBottomRightMask() if causal else None
        return function(q, k, v, attn_bias=bias, scale=scale)
    return memory_efficient_attention


def _single_prefill(function):
    """One request a call, [N, H, D]."""
    def single_prefill_with_kv_cache(q, k, v, causal, scale, window_left=-1):
        torch = importlib.import_module("torch")
        made = [function(*request, causal=causal, sm_scale=scale, window_left=window_left, return_lse=True) for request in zip(q, k, v)]
        return tuple(torch.stack(parts) for parts in zip(*made))
    return single_prefill_with_kv_cache


# The GPU's tanh.approx.f32 errs by 2^-11 of itself [PTX ISA], and its argument was rounded twice; a bound of fp32 has no room for it.
_TANH_APPROX = 2.0 ** -11 + 4 * 2.0 ** -24
_THEIR_NAMES = {"causal": "causal", "scale": "scale"}
KNOWN = (
    Known("torch", "scaled_dot_product_attention", "BHND", "top_left", {**_THEIR_NAMES, "grouped": "grouped", "bias": "bias", "mask": "mask"},
          with_one_mask),
    Known("jax", "dot_product_attention", "BNHD", "top_left", {"causal": "is_causal", "scale": "scale"}, not_asked=("bias", "mask")),
    Known("flash_attn", "flash_attn_func", "BNHD", "bottom_right",
          {"causal": "causal", "scale": "softmax_scale", "return_lse": "return_attn_probs"},
          newer={"window": "window_size", "slopes": "alibi_slopes", "softcap": "softcap"}, softcap_error=_TANH_APPROX),
    Known("flash_attn", "flash_attn_func", "BNHD", "bottom_right",  # FlashAttention-4, flash_attn.cute
          {"causal": "causal", "scale": "softmax_scale", "return_lse": "return_lse"}, newer={"window": "window_size"},
          not_asked=("softcap", "learnable_sink")),
    Known("fa3_fwd_interface", "flash_attn_func", "BNHD", "bottom_right",
          {"causal": "causal", "scale": "softmax_scale", "return_lse": "return_attn_probs"},
          newer={"window": "window_size", "softcap": "softcap"}, softcap_error=_TANH_APPROX),
    Known("sageattention", "sageattn", "BHND", "top_left", {"scale": "sm_scale"}),  # its causal mask is for as many queries as keys
    Known("xformers", "memory_efficient_attention", "BNHD", "bottom_right", _THEIR_NAMES, _memory_efficient_attention),
    Known("flashinfer", "single_prefill_with_kv_cache", "BNHD", "bottom_right", _THEIR_NAMES, _single_prefill,
          newer={"window_left": "window_left"}, not_asked=("logits_soft_cap",)),
)


def has(function, parameters):
    """Has it parameters of these names, as far as Python knows its signature?"""
    try:
        return set(parameters) <= set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return True


def row_of(function):
    """What is known of it, or None. Builtins have no module; PyTorch's say so or nothing."""
    package, name = (getattr(function, "__module__", None) or "torch").partition(".")[0], getattr(function, "__name__", "")
    return next((known for known in KNOWN if (known.package, known.name) == (package, name)
                 and (known.translated is not None or has(function, known.parameters.values()))), None)
