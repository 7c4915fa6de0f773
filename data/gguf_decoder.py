"""Causal decoders of the Llama kind from a GGUF file: RMS norms, rotary positions, grouped heads, gated feed-forward layers, and biases of Q, K and V where
the file has them. What runs is the quantised model, in float64."""

import functools
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tensor_maths import attention, join_heads, silu, softmax, split_heads


class GgufDecoder:
    """`rotates_halves`: coordinates i and i + D / 2 of a head are a pair; false: 2i and 2i + 1, as GGUF stores models of architecture llama, with the two
    halves of a head interleaved. q . k is the same either way. `pre_tokenizer` cuts a text into words."""

    def __init__(self, weights_file: Path, architecture: str, rotates_halves: bool, pre_tokenizer) -> None:
        self.weights_file = weights_file
        reader = GGUFReader(weights_file)
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

        def field(name: str):
            return reader.fields[name].contents()

        self.layers = field(f"{architecture}.block_count")
        self._heads = field(f"{architecture}.attention.head_count")
        self._kv_heads = field(f"{architecture}.attention.head_count_kv")
        self._rotary_base = field(f"{architecture}.rope.freq_base")
        self._norm_epsilon = field(f"{architecture}.attention.layer_norm_rms_epsilon")
        self._rotates_halves = rotates_halves
        self._tokenizer = byte_level_bpe(field("tokenizer.ggml.tokens"), field("tokenizer.ggml.merges"), pre_tokenizer)

    def tokens(self, text: str, limit: int) -> list[int]:
        """No start token, as llama.cpp does for these files (add_bos_token is false); cut to `limit`."""
        return self._tokenizer.encode(text).ids[:limit]

    def text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids)

    def _weight(self, name: str) -> np.ndarray:
        """[outputs, inputs], the exact value of the quantised numbers."""
        tensor = self._tensors[name + ".weight"]
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float64)

    def _project(self, x: np.ndarray, name: str) -> np.ndarray:
        bias = self._tensors.get(name + ".bias")
        return x @ self._weight(name).T + (0 if bias is None else bias.data.astype(np.float64))

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self._norm_epsilon) * self._weight(name)

    def _rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotary positions for [H, N, D]."""
        length, dim = x.shape[1:]
        angle = np.outer(np.arange(length), self._rotary_base ** (-np.arange(0, dim, 2) / dim))
        first, second = (slice(0, dim // 2), slice(dim // 2, dim)) if self._rotates_halves else (slice(0, None, 2), slice(1, None, 2))
        out = np.empty_like(x)
        out[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
        out[..., second] = x[..., first] * np.sin(angle) + x[..., second] * np.cos(angle)
        return out

    def run(self, ids: list[int], layers: int | None = None
            ) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Hidden states [N, columns] after the first `layers` layers (all by default), and the (q, k, v) that each layer's attention takes, rotary
        positions applied: q [heads, N, D], k and v [kv heads, N, D]."""
        x = self._weight("token_embd")[ids]
        captured = []
        for layer in range(self.layers if layers is None else layers):
            name = f"blk.{layer}."
            inputs = self._norm(x, name + "attn_norm")
            q = self._rotate(split_heads(self._project(inputs, name + "attn_q"), self._heads))
            k = self._rotate(split_heads(self._project(inputs, name + "attn_k"), self._kv_heads))
            v = split_heads(self._project(inputs, name + "attn_v"), self._kv_heads)
            captured.append((q, k, v))
            x = x + self._project(join_heads(attention(q, k, v, causal=True)), name + "attn_output")
            inputs = self._norm(x, name + "ffn_norm")
            gate = silu(self._project(inputs, name + "ffn_gate"))
            x = x + self._project(gate * self._project(inputs, name + "ffn_up"), name + "ffn_down")
        return x, captured

    @functools.cached_property
    def _output(self) -> str:
        """The output matrix, which may be the embedding matrix."""
        return "output" if "output.weight" in self._tensors else "token_embd"

    def next_token_probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """[N, tokens there are] from the last layer's hidden states."""
        return softmax(self._project(self._norm(hidden, "output_norm"), self._output))


def byte_level_bpe(vocabulary: list[str], merges: list[str], pre_tokenizer) -> Tokenizer:
    """The GPT-2 scheme [Radford et al. 2019]."""
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[tuple(pair.split(" ")) for pair in merges]))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
