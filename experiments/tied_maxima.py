"""Makes inputs in which several keys tie at the maximum of a row, and attention of them with one rounding more than needed.

    python3 experiments/tied_maxima.py --out tied.safetensors
    attest errors --outputs tied.safetensors
    attest errors --inputs tied.safetensors --family 'tied*' --problem 'h256 q1 k128 d64 bf16' --kernel fa2_mma

Is low-precision FlashAttention biased? Qiu and Yao (arXiv 2510.04212) found errors of one sign where several weights of a row are
exactly 1 and V has one sign. A row here is a head of its own, so that rows are independent. T keys are one vector; all others
together have 0.002 of the weight of one of them, so that sums lie just beside the middle of two bf16 values. `tied<T>_negative`: V
in -[1, 2). `tied<T>_mixed`: the same with random signs.
`rounded_at_the_end` divides P V in double by l and rounds once to bf16; `rounded_before_division` rounds P V to bf16 first.
`--torch` adds what PyTorch makes of them on a GPU.
"""

import argparse
import json
import math
import pathlib
import struct

import numpy

HEADS, KEYS, DIM = 256, 128, 64
REST = 0.002  # weight of all keys that do not tie, over that of one that does
TIES = (1, 2, 3, 4)


def bf16(values):
    """The nearest bf16 values, as float32; exact ties to even."""
    bits = numpy.ascontiguousarray(values, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


def layer(ties, is_mixed, generator):
    """q, k, v in bf16 values. The first column of Q and K moves the scores of keys that tie above the others', by ln(KEYS / REST)
    give or take the noise of the other columns; keys that tie are one vector, so that their scores are one number."""
    root = math.sqrt(math.log(KEYS / REST) * math.sqrt(DIM))  # scores are scaled by 1 / sqrt(DIM)
    q, k = (0.1 * generator.standard_normal((1, HEADS, rows, DIM)) for rows in (1, KEYS))
    q[..., 0], k[..., 0] = root, 0
    k[:, :, :ties] = k[:, :, :1]
    k[:, :, :ties, 0] = root
    v = -generator.uniform(1, 2, (1, HEADS, KEYS, DIM))
    if is_mixed:
        v *= generator.choice((-1, 1), v.shape)
    return [bf16(tensor) for tensor in (q, k, v)]


def by_hand(name, q, k, v):
    """{tensor name: (type, array)} of attention in double with P in bf16."""
    q, k, v = (tensor.astype(numpy.float64) for tensor in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(DIM)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    total, product = weights.sum(-1, keepdims=True), bf16(weights).astype(numpy.float64) @ v
    found = {"rounded_at_the_end": bf16(product / total), "rounded_before_division": bf16(bf16(product) / total)}
    return {f"{name}.{who}.o": ("BF16", (o.view(numpy.uint32) >> 16).astype(numpy.uint16)) for who, o in found.items()}


def inputs():
    generator = numpy.random.default_rng(20261122)
    return {f"tied{ties}_{'mixed' if is_mixed else 'negative'}": layer(ties, is_mixed, generator)
            for ties in TIES for is_mixed in (False, True)}


def with_torch(name, q, k, v):
    """{tensor name: (type, array of its bits)} of PyTorch's backends; "eager" is attention written out in bf16."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q, k, v = (torch.from_numpy(tensor).to("cuda", torch.bfloat16) for tensor in (q, k, v))
    found = {"torch_eager": torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(DIM), -1) @ v}
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(backend):
            who = "torch_sdpa_" + backend.name.removesuffix("_ATTENTION").lower()
            found[who] = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return {f"{name}.{who}.o": ("BF16", o.contiguous().cpu().view(torch.int16).numpy()) for who, o in found.items()}


def save(path, tensors, made_by):
    header, data = {"__metadata__": {"attest.made_by": made_by}}, bytearray()
    for name, (kind, array) in tensors.items():
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    arguments.add_argument("--torch", action="store_true", help="also what PyTorch makes of them; needs a GPU")
    options = arguments.parse_args()
    tensors, made_by = {}, "tied_maxima.py"
    for name, (q, k, v) in inputs().items():
        tensors |= {f"{name}.{part}": ("F32", tensor) for part, tensor in zip("qkv", (q, k, v))}
        tensors |= by_hand(name, q, k, v)
        if options.torch:
            tensors |= with_torch(name, q, k, v)
    if options.torch:
        import torch
        made_by = f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
    save(options.out, tensors, made_by)


if __name__ == "__main__":
    main()
