"""How contests call what is handed in to them: a row a format. Each makes of what a file holds a function of q, k and v in [B, H, N, D], or in the layout
that its row says."""

import dataclasses
import math
import typing


def _function(found, module, framework):
    return found


def _model(found, module, framework):
    """KernelBench: a module of PyTorch, or what looks like one, whose forward is called; get_init_inputs() gives its arguments."""
    return found(*getattr(module, "get_init_inputs", tuple)()).forward


def _of_data(found, module, framework):
    """GPU MODE: one argument, all inputs."""
    def custom_kernel(q, k, v):
        return found((q, k, v))
    return custom_kernel


def _ragged(found, module, framework):
    """FlashInfer-Bench's gqa_ragged: entries of a batch lie one behind the other, [tokens, H, D], and begin where a list says; (O, LSE in base 2)."""
    def packed(array):
        return array.reshape(-1, *array.shape[2:]), framework.indices([entry * array.shape[1] for entry in range(array.shape[0] + 1)])

    def run(q, k, v, scale):
        (rows, row_starts), (keys, key_starts), (values, _) = packed(q), packed(k), packed(v)
        made = found(rows, keys, values, row_starts, key_starts, scale)
        o, *lse = made if isinstance(made, (tuple, list)) else (made,)
        return (o.reshape(*q.shape[:3], v.shape[3]), *(each.reshape(q.shape[:3]) for each in lse))
    return run


@dataclasses.dataclass(frozen=True)
class Format:
    usual_name: str          # of what is called where the command names nothing
    called: typing.Callable  # of it, its module and the framework of its arrays
    how: dict = dataclasses.field(default_factory=dict)  # of a Convention, where it is not the task's


FORMATS = {"numpy": Format("attention", _function), "kernelbench": Format("ModelNew", _model), "gpumode": Format("custom_kernel", _of_data),
           "flashinfer": Format("run", _ragged, {"layout": "BNHD", "lse_order": "BNH", "lse_base": 2.0})}
