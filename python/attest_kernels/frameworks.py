"""The arrays that a function takes: NumPy's, PyTorch's or JAX's, made of memory that another process shares with this one."""

import importlib
import sys

import numpy

NUMPY_TYPES = {"fp32": numpy.float32, "fp16": numpy.float16, "bool": numpy.bool_, "int32": numpy.int32}


class NumPy:
    types = ("fp32", "fp16")
    words = f"NumPy {numpy.__version__}"
    plain = numpy.ndarray  # arrays that hold their numbers, which what is derived from them may put off

    def view(self, memory, format_name, shape, at):
        count = int(numpy.prod(shape))
        return numpy.frombuffer(memory, NUMPY_TYPES[format_name], count, at).reshape(shape)

    def array(self, values, format_name):
        return values.astype(NUMPY_TYPES[format_name])

    def given(self, array, axes):
        """What the function sees: contiguous, its axes in this order, where it computes."""
        return numpy.ascontiguousarray(array.transpose(axes))

    def back(self, array, axes):
        return numpy.asarray(array).transpose(axes)

    def indices(self, values):
        """Whole numbers of 32 bits where the function computes."""
        return numpy.asarray(values, numpy.int32)

    def numbers(self, array):
        return numpy.asarray(array, dtype=numpy.float64)

    def store(self, place, array):
        place[...] = array

    def row_sums(self, one, other):
        """Sums over the last axis of the product, in fp32."""
        return (one.astype(numpy.float32) * other.astype(numpy.float32)).sum(-1)

    def zeros(self, shape, like):
        return numpy.zeros(shape, like.dtype)

    def integers(self, numbers):
        """int32, where it computes."""
        return numpy.asarray(numbers, numpy.int32)

    def gradients(self, function, arrays, gradient):
        """The gradients of sum(gradient * function(*arrays)), an array each. Raises TypeError where the framework has none."""
        raise TypeError("a function of NumPy has no gradients of its own; allowed: one of PyTorch or JAX, or a backward pass, a function that takes do")


class PyTorch:
    types = ("fp32", "fp16", "bf16")

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.dtypes = {"fp32": self.torch.float32, "fp16": self.torch.float16, "bf16": self.torch.bfloat16, "bool": self.torch.bool, "int32": self.torch.int32}
        self.plain = self.torch.Tensor
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        name = self.torch.cuda.get_device_name() if self.device == "cuda" else "the CPU"
        self.words = f"PyTorch {self.torch.__version__} on {name}"

    def view(self, memory, format_name, shape, at):
        count = int(numpy.prod(shape))
        flat = (self.torch.frombuffer(memory, dtype=self.dtypes[format_name], count=count, offset=at) if count
                else self.torch.empty(0, dtype=self.dtypes[format_name]))
        return flat.reshape(shape)

    def array(self, values, format_name):
        return self.torch.from_numpy(numpy.ascontiguousarray(values)).to(self.dtypes[format_name])

    def given(self, array, axes):
        return array.permute(axes).contiguous().to(self.device)

    def back(self, array, axes):
        return array.detach().permute(axes)

    def indices(self, values):
        return self.torch.tensor(values, dtype=self.torch.int32, device=self.device)

    def numbers(self, array):
        return array.detach().to("cpu", self.torch.float64).numpy()

    def store(self, place, array):
        place.copy_(array)

    def row_sums(self, one, other):
        return (one.float() * other.float()).sum(-1)

    def zeros(self, shape, like):
        return like.new_zeros(shape)

    def integers(self, numbers):
        return self.torch.tensor(numbers, dtype=self.torch.int32, device=self.device)

    def gradients(self, function, arrays, gradient):
        leaves = [array.detach().requires_grad_() for array in arrays]
        found = self.torch.autograd.grad(function(*leaves), leaves, gradient, allow_unused=True)
        return [self.torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found)]


class Jax(NumPy):
    types = ("fp32", "fp16", "bf16")

    def __init__(self):
        self.jax = importlib.import_module("jax")
        bfloat16 = importlib.import_module("ml_dtypes").bfloat16
        self.dtypes = {**NUMPY_TYPES, "bf16": bfloat16}
        self.plain = type(self.jax.numpy.zeros(0))
        self.words = f"JAX {self.jax.__version__} on {self.jax.default_backend()}"

    def view(self, memory, format_name, shape, at):
        return numpy.frombuffer(memory, self.dtypes[format_name], int(numpy.prod(shape)), at).reshape(shape)

    def array(self, values, format_name):
        return values.astype(self.dtypes[format_name])

    def indices(self, values):
        return self.jax.numpy.asarray(values, dtype=numpy.int32)

    def given(self, array, axes):
        return self.jax.numpy.asarray(numpy.ascontiguousarray(array.transpose(axes)))

    def integers(self, numbers):
        return self.jax.numpy.asarray(numbers, numpy.int32)

    def gradients(self, function, arrays, gradient):
        _, pulled_back = self.jax.vjp(function, *arrays)
        return pulled_back(gradient)


def used_by(module):
    """The framework that a module's functions take arrays of: the first that it has imported of PyTorch (Triton's arrays are its), JAX, NumPy."""
    packages = {getattr(value, "__name__", "").partition(".")[0] for value in vars(module).values() if isinstance(value, type(sys))}
    packages |= {(getattr(value, "__module__", "") or "").partition(".")[0] for value in vars(module).values() if callable(value)}
    packages.add(module.__name__.partition(".")[0])
    if packages & {"torch", "triton", "flash_attn", "fa3_fwd_interface", "xformers", "flashinfer", "sageattention"}:
        return PyTorch()
    if packages & {"jax", "jaxlib"}:
        return Jax()
    return NumPy()
