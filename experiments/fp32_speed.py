"""Times fp32 attention: fp32_wgmma in fp16 and in bf16 parts, FFMA, three TF32 products and one, and PyTorch's fp32 SDPA, in the
same rounds.

    PYTHONPATH=experiments python3 experiments/fp32_speed.py --library build/release/lib/libattest_kernels.so --out fp32_speed.jsonl
"""

import timing

SHAPES = ("b8 h12 n4096 d64", "b4 h12 n4096 d128")
KERNELS = ("fp32_wgmma", "k10_wide_tiles", "tf32_mma")
BF16_PARTS = {64: "qt128 kt64 w12 st2 ping_pong=no overlap=no products=bf16_x6",
              128: "qt128 kt64 w12 st1 ping_pong=no overlap=no products=bf16_x6"}
ONE_PRODUCT = {64: "qt128 kt64 w4 st2 products=tf32", 128: "qt128 kt64 w8 st1 products=tf32"}
PEER = "torch_sdpa_efficient"


def main():
    arguments = timing.parser(__doc__.splitlines()[0]).parse_args()
    library = timing.open_library(arguments.library)
    for stem in SHAPES:
        for mask in ("none", "causal_top_left"):
            text = f"{stem} {mask} fp32"
            dim = timing.Shape(text).dim
            plans = [(kernel, "") for kernel in KERNELS]
            plans += [("fp32_wgmma", BF16_PARTS[dim]), ("tf32_mma", ONE_PRODUCT[dim])]
            results = timing.time_shape(library, text, plans, [PEER], PEER, arguments.rounds)
            timing.report(library, arguments.out, "fp32_speed", results)


if __name__ == "__main__":
    main()
