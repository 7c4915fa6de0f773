"""How long may a row be before FlashAttention-3's fp8 forward pass loses it?

    python3 experiments/long_rows.py --out long_rows.json      on a GPU of Hopper, with PyTorch and the wheel fa3_fwd

wgmma of e4m3 keeps 13 bits of a sum (gpu/arithmetic), and that kernel adds P V of all keys in one such sum. Equal weights over V = 1
give 1 until a weight is less than the last bit of the sum. Of V = N(0, 1) + 1 under N(0, 1) logits the relative RMSE of O is
against attention in double of the same codes; with the mean 0, as tests have it, the loss hardly shows.
"""

import argparse
import json
import pathlib

import torch

DIM, HEADS = 128, 4
EQUAL = (4096, 16384, 20000, 32768, 65536, 131072)
LENGTHS = (4096, 16384, 65536, 131072)
BLOCK = 8  # queries


def flash_attention_3(q, k, v, scale):
    """[1, rows, heads, DIM] of e4m3 to O, as fa3_fwd_interface.py calls the operator: no mask, one split."""
    import fa3_fwd._C  # noqa: F401, registers the operator
    window, chunk, softcap, interleaved, metadata, splits, pack, margin = (-1, -1), 0, 0.0, True, None, 1, None, 0
    return torch.ops.fa3_fwd.fwd(q, k, v, *[None] * 20, scale, False, *window, chunk, softcap, interleaved, metadata, splits, pack,
                                 margin)[0]


def exact(q, k, v, scale):
    q, k, v = (tensor.double().transpose(1, 2) for tensor in (q, k, v))
    return torch.softmax(q @ k.transpose(2, 3) * scale, dim=-1).matmul(v).transpose(1, 2)


def codes(shape, generator, mean=0.0):
    return (torch.randn(shape, generator=generator, device="cuda") + mean).to(torch.float8_e4m3fn)


def equal_weights(keys):
    q = torch.zeros(1, BLOCK, HEADS, DIM, device="cuda").to(torch.float8_e4m3fn)
    ones = torch.ones(1, keys, HEADS, DIM, device="cuda").to(torch.float8_e4m3fn)
    o = flash_attention_3(q, ones, ones, DIM ** -0.5).float()
    return {"question": "equal weights, V = 1", "keys": keys, "right": 1.0, "least": o.min().item(), "most": o.max().item()}


def random_weights(keys, mean):
    generator = torch.Generator("cuda").manual_seed(1)
    q, k = codes((1, BLOCK, HEADS, DIM), generator), codes((1, keys, HEADS, DIM), generator)
    v = codes((1, keys, HEADS, DIM), generator, mean)
    got, want = flash_attention_3(q, k, v, DIM ** -0.5).double(), exact(q, k, v, DIM ** -0.5)
    error = ((got - want).square().mean() / want.square().mean()).sqrt().item()
    return {"question": f"V = N(0, 1) + {mean:g}, N(0, 1) logits", "keys": keys, "relative_rmse": error}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--commit", default="", help="of this script, for the record")
    options = parser.parse_args()
    from importlib.metadata import PackageNotFoundError, version
    try:
        wheel = version("fa3-fwd")
    except PackageNotFoundError:
        wheel = "not installed by pip"
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "fa3_fwd": wheel, "commit": options.commit}
    records = [equal_weights(keys) for keys in EQUAL]
    records += [random_weights(keys, mean) for mean in (1.0, 0.0) for keys in LENGTHS]
    options.out.write_text("[\n" + ",\n".join(json.dumps({**record, **machine}) for record in records) + "\n]\n")


if __name__ == "__main__":
    main()
