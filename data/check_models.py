#!/usr/bin/env python3
"""Checks the three forward passes behind capture_qkv.py against inference code that others wrote.

    python3 -m pip install -r data/requirements-check.txt && python3 data/check_models.py

MiniLM: sentence embeddings against candding (float32, candle). SmolLM2 and Qwen2.5: token count and next-token log-probabilities
against llama.cpp (xllamacpp). llama.cpp rounds activations to 8 bits where weights are quantised, so it gets the same
weights written out as float32. Prints the largest differences; exit code 1 if one is larger than float32 explains.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, dequantize

from capture_qkv import QWEN2_TOKENS, SMOLLM2_TOKENS, real_text
from gguf_decoder import GgufDecoder
from minilm import MAX_TOKENS, MiniLm
from qwen2 import Qwen2
from smollm2 import SmolLm2

SENTENCES = ["The cat sits on the mat.", "A kitten rests on the rug.", "Inflation rose by two percent in March."]


def check_minilm(model: MiniLm, text: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        # candding reads models from a hub cache only: lay the package's files out as one.
        os.environ.update(HF_HOME=folder, HF_HUB_OFFLINE="1")
        cache, revision = Path(folder) / "hub/models--sentence-transformers--all-MiniLM-L6-v2", "0" * 40
        shutil.copytree(model.weights_file.parent, cache / "snapshots" / revision)
        (cache / "refs").mkdir()
        (cache / "refs/main").write_text(revision)
        import candding
        other = candding.TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", device="cpu", max_length=MAX_TOKENS)
        theirs = np.asarray(other.embed([text, *SENTENCES]))
    ours = np.array([model.embedding(sentence) for sentence in [text, *SENTENCES]])
    difference = np.abs(ours - theirs).max()
    near, far = ours[1] @ ours[2], ours[1] @ ours[3]
    print(f"MiniLM: embeddings of {len(ours)} texts differ from candle's by at most {difference:.1e}; "
          f"cosine of the two cat sentences {near:.2f}, of cat and inflation {far:.2f}")
    # A float32 forward pass of 6 layers: a few hundred roundings of 2^-24 of a value below 1.
    return difference < 2**-24 * 256 and near > far


def write_as_float32(quantised: Path, out: Path, architecture: str) -> None:
    """The same GGUF file with every tensor as float32."""
    reader = GGUFReader(quantised)
    writer = GGUFWriter(out, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        writer.add_key_value(name, field.contents(), kind, field.types[-1] if kind == GGUFValueType.ARRAY else None)
    writer.add_file_type(LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).astype(np.float32),
                          raw_dtype=GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_decoder(model: GgufDecoder, name: str, architecture: str, tokens: int, text: str) -> bool:
    import xllamacpp
    folder = tempfile.TemporaryDirectory()
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(folder.name) / "float32.gguf")
    write_as_float32(model.weights_file, Path(params.model.path), architecture)
    params.n_ctx = params.n_batch = 2048
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.warmup = False
    server = xllamacpp.Server(params)

    def ask(prompt) -> tuple[int, dict[int, float]]:
        """Number of prompt tokens, and the log-probabilities of the 5 most likely next tokens."""
        answer = server.handle_completions({"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 5,
                                            "cache_prompt": False})
        top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return answer["usage"]["prompt_tokens"], {entry["id"]: entry["logprob"] for entry in top}

    ids, positions = model.tokens(text, tokens), range(100, tokens + 1, (tokens - 100) // 7)
    same_tokens = ask(text)[0] == len(model.tokens(text, len(text)))
    ours = np.log(model.next_token_probabilities(model.run(ids)[0]))
    differences, same_first = [], 0
    for position in positions:
        theirs = ask(ids[:position])[1]
        differences += [abs(ours[position - 1, token] - value) for token, value in theirs.items()]
        same_first += int(max(theirs, key=theirs.get) == ours[position - 1].argmax())
    print(f"{name}: token count {'equals' if same_tokens else 'differs from'} llama.cpp's; same most likely token at "
          f"{same_first} of {len(positions)} positions; log-probabilities of llama.cpp's top 5 differ by "
          f"at most {max(differences):.1e}")
    # Logits near 20 after 24 or 30 layers of float32: some thousand roundings of 2^-24.
    return same_tokens and same_first == len(positions) and max(differences) < 2**-24 * 8192


if __name__ == "__main__":
    words = real_text()
    results = [check_minilm(MiniLm(), words), check_decoder(SmolLm2(), "SmolLM2", "llama", SMOLLM2_TOKENS, words),
               check_decoder(Qwen2(), "Qwen2.5", "qwen2", QWEN2_TOKENS, words)]
    sys.exit(0 if all(results) else 1)
