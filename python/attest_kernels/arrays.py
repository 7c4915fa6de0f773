"""Anybody's arrays as NumPy's: PyTorch, JAX, CuPy, NumPy and whatever speaks DLPack. bfloat16, which NumPy has not, is uint16 with a note."""

import ctypes

import numpy

# Element types as safetensors files call them, and how many bytes each has.
FORMATS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


class Host:
    """Values on the host: `values` is an array of NumPy with the bits, `format` the type as safetensors files call it."""

    def __init__(self, values, format_name):
        self.values, self.format = values, format_name


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _DLDataType), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


# dlpack.h: code and bits of a type; the devices whose memory this process reads.
_DLPACK_TYPES = {(2, 32): ("float32", numpy.float32), (2, 16): ("float16", numpy.float16), (4, 16): ("bfloat16", numpy.uint16)}
_HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost


def _from_dlpack(array, name):
    device = array.__dlpack_device__()[0]
    if device not in _HOST_DEVICES:
        raise TypeError(f"{name} lies in memory of DLPack's device type {int(device)}; allowed: the host's; copy it there")
    capsule = array.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents  # the first member of what the capsule holds
    found = _DLPACK_TYPES.get((tensor.dtype.code, tensor.dtype.bits))
    if found is None or tensor.dtype.lanes != 1:
        raise TypeError(f"{name} has DLPack's type code {tensor.dtype.code} of {tensor.dtype.bits} bits; allowed: {', '.join(FORMATS)}")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    size = numpy.dtype(found[1]).itemsize
    strides = ([tensor.strides[i] * size for i in range(tensor.ndim)] if tensor.strides
               else [size * int(numpy.prod(shape[i + 1:])) for i in range(tensor.ndim)])
    if 0 in shape:
        return Host(numpy.empty(shape, found[1]), FORMATS[found[0]])
    span = sum((count - 1) * stride for count, stride in zip(shape, strides)) + size
    memory = (ctypes.c_uint8 * span).from_address(tensor.data + tensor.byte_offset)
    flat = numpy.frombuffer(memory, numpy.uint8)
    values = numpy.lib.stride_tricks.as_strided(flat.view(found[1]) if span % size == 0 else flat, shape, strides)
    return Host(values.copy(), FORMATS[found[0]])  # the capsule, and so the memory, ends here


def _copied_to_host(array):
    """A framework's array in memory of the host; anything else as it is."""
    package = type(array).__module__.partition(".")[0]
    if package == "torch":
        return array.detach().cpu().resolve_neg().resolve_conj()
    if package == "cupy":
        return array.get()
    return numpy.asarray(array) if package in ("jax", "jaxlib") else array


def added(mask):
    """What a mask of booleans, true for a key that is seen, adds to scores; a mask of numbers as it is."""
    if str(getattr(mask, "dtype", "")).rpartition(".")[2] != "bool":
        return mask
    return numpy.where(numpy.asarray(_copied_to_host(mask)), numpy.float32(0), numpy.float32(-numpy.inf))


def on_host(array, name):
    """The values of `array`, which is `name` in a message. Raises TypeError with one line for what is no array of floating-point numbers."""
    array = _copied_to_host(array)
    if isinstance(array, numpy.ndarray):
        format_name = FORMATS.get(array.dtype.name)
        if format_name is None:
            raise TypeError(f"{name} has dtype {array.dtype.name}; allowed: {', '.join(FORMATS)}")
        return Host(array.view(numpy.uint16) if format_name == "BF16" else array, format_name)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, name)
    raise TypeError(f"{name} is a {type(array).__name__}; allowed: an array of PyTorch, JAX, CuPy or NumPy, or one with __dlpack__")
