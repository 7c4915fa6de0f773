"""Saves what attention backends make of the same inputs, to be judged by `attest errors --outputs`.

    PYTHONPATH=experiments python3 experiments/torch_outputs.py --library build/release/lib/libattest_kernels.so --out DIR
    attest errors --outputs DIR/full.safetensors
    attest errors --outputs DIR/causal.safetensors --mask causal_top_left

full.safetensors: N(0, 1), and FlashAttention-3's mix N(0, 1) + N(0, 100) Bernoulli(0.001) with 100 as the variance and as the
standard deviation [FA3 §4.3], in fp16 and bf16. Layers called `..._fp16_unrounded` hold the inputs before they were rounded
to fp16, with the same outputs: errors against them contain what rounding the inputs costs. causal.safetensors: real layers
of SmolLM2 (data/). Needs a GPU, PyTorch and safetensors.
"""

import argparse
import pathlib

import torch
from safetensors.torch import load_file, save_file

import timing

KERNEL = "fa2_mma"
PEERS = ["torch_sdpa_flash", "torch_sdpa_cudnn", "torch_sdpa_efficient", "torch_sdpa_math", "torch_eager"]
DTYPES = ("fp16", "bf16")
REAL = pathlib.Path(__file__).parent.parent / "data" / "real_qkv.safetensors"


def mix(size, deviation, generator):
    """N(0, 1) + N(0, deviation^2) Bernoulli(0.001)."""
    def normal():
        return torch.randn(size, generator=generator, device="cuda")
    chosen = torch.rand(size, generator=generator, device="cuda") < 0.001
    return normal() + deviation * normal() * chosen


def outputs(library, text, q, k, v):
    """{NAME.o, NAME.lse: tensor} of the kernel and the peers on one head layout; K and V may have fewer heads."""
    shape = timing.Shape(text)
    run = library.prepare(KERNEL, text, "", q, k, v)
    run()
    found = {f"{KERNEL}.o": run.o, f"{KERNEL}.lse": run.lse}
    k, v = (tensor.repeat_interleave(shape.heads // shape.key_heads, dim=1) for tensor in (k, v))
    for peer in PEERS:
        found[f"{peer}.o"] = timing.PEERS[peer](shape, q, k, v)()
    found["torch_sdpa_flash.lse"] = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, shape.is_causal)[1]
    return found


def put(file, layer, inputs, found):
    tensors = dict(zip((f"{layer}.q", f"{layer}.k", f"{layer}.v"), inputs)) | {f"{layer}.{name}": o for name, o in found.items()}
    file.update({name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()})


def drawn_layers(library, stem):
    file, generator = {}, torch.Generator(device="cuda").manual_seed(0)
    for name, deviation in (("normal", 0.0), ("outliers", 10.0), ("outliers_sd100", 100.0)):
        for dtype in DTYPES:
            text = f"{stem} none {dtype}"
            shape = timing.Shape(text)
            drawn = [mix((shape.batch, heads, shape.length, shape.dim), deviation, generator)
                     for heads in (shape.heads, shape.key_heads, shape.key_heads)]
            rounded = [tensor.to(shape.dtype) for tensor in drawn]
            found = outputs(library, text, *rounded)
            put(file, f"{name}_{dtype}", rounded, found)
            if dtype == "fp16":
                put(file, f"{name}_{dtype}_unrounded", drawn, found)
    return file


def real_layers(library):
    file, captured = {}, load_file(REAL, device="cuda")
    for layer in sorted({name.rsplit(".", 1)[0] for name in captured if name.startswith("smollm2")}):
        for dtype in DTYPES:
            q, k, v = (captured[f"{layer}.{name}"][None].to(timing.DTYPES[dtype]) for name in "qkv")
            text = f"b1 h{q.shape[1]}/{k.shape[1]} n{q.shape[2]} d{q.shape[3]} causal_top_left {dtype}"
            put(file, f"{layer}_{dtype}", (q, k, v), outputs(library, text, q, k, v))
    return file


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--library", required=True, help="libattest_kernels.so")
    arguments.add_argument("--out", required=True, type=pathlib.Path, help="folder for the two files")
    arguments.add_argument("--shape", default="b1 h2 n1024 d64", help="of the drawn inputs; default b1 h2 n1024 d64")
    options = arguments.parse_args()
    library = timing.open_library(options.library)
    options.out.mkdir(parents=True, exist_ok=True)
    made_by = {"attest.made_by": f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"}
    save_file(drawn_layers(library, options.shape), options.out / "full.safetensors", made_by)
    save_file(real_layers(library), options.out / "causal.safetensors", made_by)


if __name__ == "__main__":
    main()
