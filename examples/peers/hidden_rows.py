"""What backends of PyTorch make of a row all of whose keys attn_mask hides, as booleans and as numbers: V is 1, so that 0 and 1 are all there is to see.

    python3 examples/peers/hidden_rows.py            needs PyTorch and a GPU
"""

import contextlib
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"picked": None, "math": SDPBackend.MATH, "efficient": SDPBackend.EFFICIENT_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def answer(backend, *tensors, mask):
    try:
        with contextlib.nullcontext() if backend is None else sdpa_kernel(backend):
            o = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
        return f"{o[0, 0, 0, 0].item():g}"
    except RuntimeError:
        return "refused"


def main():
    warnings.simplefilter("ignore")
    print(torch.__version__, torch.cuda.get_device_name())
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        q, k, v = (torch.zeros(1, 1, 2, 64, device="cuda", dtype=dtype), torch.randn(1, 1, 3, 64, device="cuda", dtype=dtype),
                   torch.ones(1, 1, 3, 64, device="cuda", dtype=dtype))
        seen = torch.ones(1, 1, 2, 3, device="cuda", dtype=torch.bool)
        seen[..., 0, :] = False
        for kind, mask in (("booleans", seen), ("numbers", torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, -torch.inf))):
            print(str(dtype)[6:], kind, "; ".join(f"{name} {answer(backend, q, k, v, mask=mask)}" for name, backend in BACKENDS.items()))


if __name__ == "__main__":
    main()
