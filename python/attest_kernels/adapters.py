"""How contests call what is handed in to them: a row a format. Each makes of what a file holds a function of q, k and v in [B, H, N, D]."""

import dataclasses
import typing


def _function(found, module):
    return found


def _model(found, module):
    """KernelBench: a module of PyTorch, or what looks like one, whose forward is called; get_init_inputs() gives its arguments."""
    return found(*getattr(module, "get_init_inputs", tuple)()).forward


def _of_data(found, module):
    """GPU MODE: one argument, all inputs."""
    def custom_kernel(q, k, v):
        return found((q, k, v))
    return custom_kernel


@dataclasses.dataclass(frozen=True)
class Format:
    usual_name: str             # of what is called where the command names nothing
    called: typing.Callable     # of it and its module


FORMATS = {"numpy": Format("attention", _function), "kernelbench": Format("ModelNew", _model), "gpumode": Format("custom_kernel", _of_data)}
