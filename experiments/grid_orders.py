"""Times what a grid order and a tile's height do at a blog post's shape: 8 x 32 heads, N 8192, D 128, fp16 [S0].

    PYTHONPATH=experiments python3 experiments/grid_orders.py --library build/release/lib/libattest_kernels.so --out orders.jsonl

The post reports DRAM reads of 129.45 GB for tiles of 64 rows, 64.50 for 128, and 1.50 after a swizzle that is no change.
`hardware_counters.py --set orders` reads DRAM bytes and L2 hits of the same launches.
"""

import timing

SHAPE = "b8 h32 n8192 d128 none fp16"
TILES = ["qt64 kt64 w4 st2", "qt128 kt64 w8 st2"]
ORDERS = ["grid_order=q_fastest", "grid_order=q_slowest", "grid_order=grouped g4"]


def launches():
    return [(SHAPE, "fa2_mma", f"{tiles} {order}") for tiles in TILES for order in ORDERS]


def main():
    arguments = timing.parser(__doc__.splitlines()[0]).parse_args()
    library = timing.open_library(arguments.library)
    kernels = [(kernel, plan) for _, kernel, plan in launches()]
    results = timing.time_shape(library, SHAPE, kernels, ["torch_sdpa_flash"], "torch_sdpa_flash", arguments.rounds)
    timing.report(library, arguments.out, "grid_orders", results)


if __name__ == "__main__":
    main()
