"""PyTorch's choice of keys on the shapes of study `select`: scores by a product, relu and a weighted sum, then torch.topk. JSON, an object a shape: medians in ms.

    python3 experiments/torch_topk.py > experiments/results/h200/torch_topk.json            needs PyTorch and a GPU
"""

import json

import torch

from torch_timing import median_ms

HEADS, COLUMNS, TOP_K = 64, 128, 2048
SHAPES = [(64, 1, 8192), (64, 1, 32768), (64, 1, 131072), (1, 1024, 8192), (1, 1024, 32768)]  # entries, queries, keys


def scores_of(q, k, weights):
    """[entries, queries, keys], one head at a time where all together would not fit."""
    if q.shape[2] == 1:
        products = torch.relu(q[:, :, 0] @ k.transpose(1, 2))
        return torch.einsum("bh,bhk->bk", weights[:, :, 0], products.float())[:, None]
    scores = torch.zeros(q.shape[0], q.shape[2], k.shape[1], device="cuda")
    for head in range(HEADS):
        scores += weights[:, head, :, None] * torch.relu(q[:, head] @ k.transpose(1, 2))
    return scores


def main():
    found = []
    for entries, queries, keys in SHAPES:
        q = torch.randn(entries, HEADS, queries, COLUMNS, device="cuda", dtype=torch.bfloat16)
        k = torch.randn(entries, keys, COLUMNS, device="cuda", dtype=torch.bfloat16)
        weights = torch.randn(entries, HEADS, queries, device="cuda")
        scores = scores_of(q, k, weights)
        found.append({"entries": entries, "queries": queries, "keys": keys, "top_k": TOP_K, "scores_ms": median_ms(lambda: scores_of(q, k, weights)),
                      "topk_ms": median_ms(lambda: torch.topk(scores, TOP_K, sorted=False)), "torch": torch.__version__,
                      "device": torch.cuda.get_device_name()})
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
