"""PyTorch's passes over an O that lies there, on the shapes of study `epilogues`: what a gate and a residual in the kernel save. JSON, an object a shape:
medians in ms.

    python3 experiments/torch_epilogue.py > experiments/results/h200/torch_epilogue.json            needs PyTorch and a GPU
"""

import json

import torch

from torch_timing import median_ms

IN_A_ROW = 20
SHAPES = [(16384 // length, 2048 // head_dim, length, head_dim) for length in (512, 2048, 8192) for head_dim in (64, 128)]  # entries, heads, queries, columns


def main():
    found = []
    for shape in SHAPES:
        o, gate, residual = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        to = torch.empty_like(o)
        found.append({"shape": shape, "gate_ms": median_ms(lambda: torch.mul(o, gate, out=to), IN_A_ROW), "residual_ms": median_ms(lambda: torch.add(o, residual, out=to), IN_A_ROW),
                      "both_ms": median_ms(lambda: torch.addcmul(residual, o, gate, out=to), IN_A_ROW), "torch": torch.__version__, "device": torch.cuda.get_device_name()})
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
