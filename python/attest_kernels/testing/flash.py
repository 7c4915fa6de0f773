"""FlashAttention's function in NumPy: its module, name and signature, and a tanh that errs as a GPU's does, or more."""

import numpy

from attest_kernels.testing import modified


def _of(error):
    """FlashAttention-2's, whose tanh errs by up to `error` of itself."""
    def tanh(x):
        return numpy.tanh(x) * (1 + error * numpy.sin(1e4 * x)).astype(numpy.float32)

    def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                        return_attn_probs=False):
        rows = [array.swapaxes(1, 2) for array in (q, k, v)]
        o, lse = modified.attend(*rows, causal, softmax_scale, softcap, window_size, slopes=alibi_slopes, tanh=tanh)
        return (o.swapaxes(1, 2), lse, None) if return_attn_probs else o.swapaxes(1, 2)
    flash_attn_func.__module__ = "flash_attn.flash_attn_interface"
    return flash_attn_func


def __getattr__(name):
    """The functions: were they there before they are asked for, the module's arrays would be taken for PyTorch's."""
    errors = {"approximate": 2.0 ** -12, "worse": 2.0 ** -8}
    if name not in errors:
        raise AttributeError(name)
    return _of(errors[name])


def of_nobody(q, k, v, softmax_scale=None, causal=False, softcap=0.0):
    """The same tanh in a function of which nothing is known."""
    rows = [array.swapaxes(1, 2) for array in (q, k, v)]
    return _of(2.0 ** -12)(*rows, softmax_scale=softmax_scale, causal=causal, softcap=softcap).swapaxes(1, 2)
