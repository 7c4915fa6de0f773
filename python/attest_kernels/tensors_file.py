"""safetensors files: what the program reads, and what it answers with (https://github.com/huggingface/safetensors)."""

import json
import struct

import numpy

_NUMPY_TYPES = {"F64": numpy.float64, "F32": numpy.float32}


def write(path, tensors):
    """`tensors`: {name: arrays.Host}."""
    header, end = {}, 0
    for name, host in tensors.items():
        begin, end = end, end + host.values.nbytes
        header[name] = {"dtype": host.format, "shape": list(host.values.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for host in tensors.values():
            file.write(numpy.ascontiguousarray(host.values).data)


def read(path):
    """{name: array} of a file with F64 and F32."""
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(content[8 + size + begin:8 + size + end], _NUMPY_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
