"""Times the fp32 ladder, K0 to the last rung, beside PyTorch's fp32 attention and cuBLAS's fp32 matrix product.

    PYTHONPATH=experiments python3 experiments/ladder.py --library build/release/lib/libattest_kernels.so --out ladder.jsonl

Needs a GPU and PyTorch. Verify the kernels first: `attest verify --executor gpu`. FLOPs of every row: 4 B H D for each
visible pair of query and key.
"""

import timing

LEDGER = "b8 h12 n4096 d64"
# Each rung with the tiles of the founding document; an empty plan is the kernel's own choice.
RUNGS = [
    ("k0_standard", ""),
    ("k1_naive", "qt32 kt32"),
    ("k2_coalesced", "qt32 kt32 row_reduce=shared_loop"),
    ("k2_coalesced", "qt32 kt32 row_reduce=shuffle"),
    ("k3_sequence_parallel", "qt32 kt32"),
    ("k4_register_tile", "qt32 kt32 tm4 tn4"),
    ("k5_padded_tiles", "qt32 kt32 tm4 tn4"),
    ("k6_sliced_dims", "qt32 kt32 dt32 tm4 tn4"),
    ("k7_shuffled_rows", "qt32 kt32 dt32 tm4 tn4"),
    ("k8_padded_queries", "qt32 kt32 dt32 tm4 tn4"),
    ("k9_async_copy", "qt32 kt32 dt32 tm4 tn4 st2"),
    ("k10_wide_tiles", ""),
]
FP32_PEERS = ["torch_sdpa_efficient", "torch_sdpa_math", "torch_eager"]
LAST = ("k10_wide_tiles", "")


def main():
    arguments = timing.parser(__doc__.splitlines()[0]).parse_args()
    library = timing.open_library(arguments.library)
    product = {"cublas_sgemm_8192": timing.matrix_product(8192)}
    for mask in ("none", "causal_top_left"):
        results = timing.time_shape(library, f"{LEDGER} {mask} fp32", RUNGS, FP32_PEERS, "torch_sdpa_efficient",
                                    arguments.rounds, product)
        timing.report(library, arguments.out, "ladder", results)
    for shape in ("b8 h12 n4096 d128", "b8 h12 n4096 d32", "b8 h12 n1024 d64", "b8 h12 n16384 d64"):
        for mask in ("none", "causal_top_left"):
            results = timing.time_shape(library, f"{shape} {mask} fp32", [LAST], ["torch_sdpa_efficient"],
                                        "torch_sdpa_efficient", arguments.rounds, product)
            timing.report(library, arguments.out, "ladder", results)


if __name__ == "__main__":
    main()
