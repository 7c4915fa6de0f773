#!/usr/bin/env python3
"""Checks the forward passes behind capture_qkv.py against inference code that others wrote.

    python3 -m pip install -r data/requirements-check.txt && python3 data/check_models.py

MiniLM: sentence embeddings against candding (float32, candle). SmolLM2 and Qwen2.5: token count and next-token log-probabilities
against llama.cpp (xllamacpp). llama.cpp rounds activations to 8 bits where weights are quantised, so it gets the same
weights written out as float32. Whisper: what it hears against transformers, hidden states of the frames and probabilities of the
tokens against CTranslate2 in float32. Prints the largest differences; exit code 1 if one is larger than float32 explains.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, dequantize

from capture_qkv import QWEN2_TOKENS, SMOLLM2_TOKENS, real_text, spoken_text
from gguf_decoder import GgufDecoder
from log_mel import RATE, log_mel
from minilm import MAX_TOKENS, MiniLm
from qwen2 import Qwen2
from smollm2 import SmolLm2
from whisper import PROMPT, Whisper, speech

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


def check_whisper(model: Whisper, text: str) -> bool:
    import ctranslate2
    from transformers import WhisperFeatureExtractor
    samples, ids = speech(text), model.tokens(text)
    heard = log_mel(samples)
    theirs = WhisperFeatureExtractor()(samples, sampling_rate=RATE, return_tensors="np")["input_features"][0]
    sound = np.abs(heard - theirs).max()
    # CTranslate2 wants its files in one folder.
    for name in ("config.json", "vocabulary.txt", "tokenizer.json"):
        shutil.copyfile(model.package_folder / name, model.weights_file.parent / name)
    other = ctranslate2.models.Whisper(str(model.weights_file.parent), compute_type="float32", intra_threads=1)
    features = ctranslate2.StorageView.from_array(heard[None].astype(np.float32))
    frames = model.encode(samples)[0]
    of_frames = np.abs(frames - np.asarray(other.encode(features))[0]).max() / np.abs(frames).max()
    words = len(PROMPT)
    # CTranslate2 adds the request for no times itself, and takes shares among the tokens of text, which come before the special ones:
    # the end of text, the start of a transcript and so on.
    shares = model.next_token_probabilities(model.decode(ids, frames)[0])[words - 1 : -1, : ids[0] - 1]
    probabilities = shares[np.arange(len(shares)), ids[words:]] / shares.sum(axis=-1)
    aligned = other.align(features, ids[: words - 1], [ids[words:]], 3000)[0].text_token_probs
    of_tokens = np.abs(np.log(probabilities) - np.log(aligned)).max()
    print(f"Whisper: log-mel differs from transformers' by at most {sound:.1e}, hidden states of {len(frames)} frames from CTranslate2's by {of_frames:.1e} "
          f"of the largest, log-probabilities of {len(aligned)} tokens by {of_tokens:.1e}")
    # Twelve layers of float32: some thousand roundings of 2^-24.
    return sound < 2**-24 * 256 and of_frames < 2**-24 * 1024 and of_tokens < 2**-24 * 8192


if __name__ == "__main__":
    words = real_text()
    results = [check_minilm(MiniLm(), words), check_decoder(SmolLm2(), "SmolLM2", "llama", SMOLLM2_TOKENS, words),
               check_decoder(Qwen2(), "Qwen2.5", "qwen2", QWEN2_TOKENS, words), check_whisper(Whisper(), spoken_text(words))]
    sys.exit(0 if all(results) else 1)
