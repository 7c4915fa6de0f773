"""A function of a shared library, library.so:name, by tvm-ffi (the package apache-tvm-ffi): what CuTe DSL, FlashInfer and TVM compile to. Such a
function writes its outputs where it is told to and has no parameters' names: their order is found by probes, which it refuses where types or their
number do not fit."""

import dataclasses
import importlib
import inspect
import itertools
import pathlib
import types

from attest_kernels import conventions

# Q, K and V, then outputs and numbers, or numbers and outputs.
OUTPUTS = (("o",), ("o", "lse"))
NUMBERS = ((), ("scale",), ("causal",), ("scale", "causal"), ("causal", "scale"))
ORDERS = tuple(dict.fromkeys(("q", "k", "v", *rest) for outputs, numbers in itertools.product(OUTPUTS, NUMBERS)
                             for rest in ((*outputs, *numbers), (*numbers, *outputs))))


class Function:
    """The library's function as one with parameters of these names."""

    def __init__(self, function, name, file, order=ORDERS[0]):
        self.function, self.file, self.order = function, file, order
        self.__name__ = name
        self.__doc__ = f"of {file}, by tvm-ffi"
        self.__signature__ = inspect.Signature([inspect.Parameter(role, inspect.Parameter.POSITIONAL_OR_KEYWORD) for role in order])

    def in_order(self, order):
        return Function(self.function, self.__name__, self.file, order)

    def __call__(self, *args, **kwargs):
        given = self.__signature__.bind_partial(**kwargs).arguments
        given.update(zip([role for role in self.order if role not in given], args))
        return self.function(*[given[role] for role in self.order])


@dataclasses.dataclass(frozen=True)
class Compiled(conventions.Convention):
    """Attention by a Function, whose order is among the candidates."""

    def candidates(self, declared):
        for order in ORDERS:
            one = conventions.attention(self.function.in_order(order), {})
            named = dataclasses.replace(self, function=one.function, names=one.names, positional=one.positional)
            yield from super(Compiled, named).candidates(declared)

    def parameters(self):
        return f"{', '.join(self.function.order)} [{','.join(self.layout)}]"


def load(where, name):
    """(A Function, a module that says by what it has which arrays the function takes: PyTorch's where there is a GPU, else NumPy's.) Raises LookupError
    where the library has no such function."""
    file = pathlib.Path(where).resolve()
    library = importlib.import_module("tvm_ffi").load_module(str(file))
    if not library.implements_function(name):
        raise LookupError(f"no function '{name}' of tvm-ffi in {file.name}, which exports it as __tvm_ffi_{name}")
    module = types.ModuleType(file.name)
    if pathlib.Path("/dev/nvidiactl").exists():
        module.torch = importlib.import_module("torch")
    return Function(library.get_function(name), name, file.name), module


def attention(function):
    return Compiled(function, {}, ("q", "k", "v", "o"))
