"""Saves what fp32 attention kernels make of the same inputs, to be judged by `attest errors --outputs`.

    PYTHONPATH=experiments python3 experiments/fp32_outputs.py --library build/release/lib/libattest_kernels.so --out DIR
    attest errors --outputs DIR/full.safetensors
    attest errors --outputs DIR/causal.safetensors --mask causal_top_left

Two of our kernels, fp32_wgmma and k10_wide_tiles, and PyTorch's memory-efficient SDPA. full.safetensors: N(0, 1) with logits of
standard deviation 1, 4 and 16, FlashAttention-3's mix with outliers of standard deviation 10 and 100, one dominant key, equal
logits, V around 1, heads of very different sizes; causal.safetensors: N(0, 1) and real layers (data/). Needs a GPU, PyTorch and
safetensors.
"""

import argparse
import pathlib

import torch
from safetensors.torch import load_file, save_file

import timing
from torch_outputs import REAL, mix, put

KERNELS = ("fp32_wgmma", "k10_wide_tiles")
PEER = "torch_sdpa_efficient"


def outputs(library, text, q, k, v):
    shape = timing.Shape(text)
    found = {}
    for kernel in KERNELS:
        run = library.prepare(kernel, text, "", q, k, v)
        run()
        found |= {f"{kernel}.o": run.o, f"{kernel}.lse": run.lse}
    k, v = (tensor.repeat_interleave(shape.heads // shape.key_heads, dim=1) for tensor in (k, v))
    found[f"{PEER}.o"] = timing.PEERS[PEER](shape, q, k, v)()
    return found


def drawn(size, generator):
    """{name: (q, k, v)}"""
    def normal():
        return torch.randn(size, generator=generator, device="cuda")
    layers = {"normal": (normal(), normal(), normal())}
    for deviation in (4, 16):
        layers[f"normal_logits{deviation}"] = (deviation * normal(), normal(), normal())
    for deviation in (10.0, 100.0):
        layers[f"outliers_sd{deviation:.0f}"] = tuple(mix(size, deviation, generator) for _ in "qkv")
    q, k, v = normal(), normal(), normal()
    k[:, :, size[2] // 3] = 2 * q.mean(dim=2) * size[2] ** 0.5
    layers["dominant_key"] = (q, k, v)
    layers["zero_q"] = (torch.zeros(size, device="cuda"), normal(), normal())
    layers["positive_v"] = (normal(), normal(), 1 + 0.1 * normal())
    sizes = 2.0 ** (8 * torch.arange(size[1], device="cuda") - 8)[None, :, None, None]
    layers["scaled_v"] = (normal(), normal(), sizes * normal())
    return layers


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--library", required=True, help="libattest_kernels.so")
    arguments.add_argument("--out", required=True, type=pathlib.Path, help="folder for the two files")
    arguments.add_argument("--shape", nargs="+", default=["b1 h2 n1024 d64", "b1 h2 n512 d128"], help="of the drawn inputs")
    options = arguments.parse_args()
    library = timing.open_library(options.library)
    options.out.mkdir(parents=True, exist_ok=True)
    full, causal, generator = {}, {}, torch.Generator(device="cuda").manual_seed(0)
    for text in options.shape:
        shape = timing.Shape(text)
        layers = drawn((shape.batch, shape.heads, shape.length, shape.dim), generator)
        for name, inputs in layers.items():
            put(full, f"{name}_d{shape.dim}", inputs, outputs(library, f"{text} none fp32", *inputs))
        put(causal, f"normal_d{shape.dim}", layers["normal"], outputs(library, f"{text} causal_top_left fp32", *layers["normal"]))
    captured = load_file(REAL, device="cuda")
    for layer in sorted({name.rsplit(".", 1)[0] for name in captured if name.startswith("smollm2")}):
        q, k, v = (captured[f"{layer}.{name}"][None].float().contiguous() for name in "qkv")
        text = f"b1 h{q.shape[1]}/{k.shape[1]} n{q.shape[2]} d{q.shape[3]} causal_top_left fp32"
        put(causal, layer, (q, k, v), outputs(library, text, q, k, v))
    made_by = {"attest.made_by": f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"}
    save_file(full, options.out / "full.safetensors", made_by)
    save_file(causal, options.out / "causal.safetensors", made_by)


if __name__ == "__main__":
    main()
