#!/usr/bin/env python3
"""Captures Q, K and V of real attention layers on real text and speech, and writes the files of FILES and manifest.json.

    python3 data/capture_qkv.py            writes them
    python3 data/capture_qkv.py --check    captures again and compares with the committed files; exit code 1 if one differs

What to install, and what the numbers are: data/README.md.
"""

import argparse
import hashlib
import json
import math
import os
import re
import sys
from pathlib import Path

# The order of a float64 sum depends on the BLAS kernel. Every x86-64 machine with AVX2 can run this one.
os.environ.update(OPENBLAS_NUM_THREADS="1", OPENBLAS_CORETYPE="Haswell")

import numpy as np
from safetensors.numpy import load_file, save

import minilm
import qwen2
import smollm2
import whisper
from tensor_maths import softmax

HERE = Path(__file__).resolve().parent
TEXT, MANIFEST = HERE / "declaration.txt", HERE / "manifest.json"
# The prefixes of the tensors in each file.
FILES = {"real_qkv.safetensors": ("minilm", "smollm2"), "outlier_qkv.safetensors": ("qwen2",), "audio_qkv.safetensors": ("whisper",)}
# Tokens, and (layer, query heads, key heads) of each: chosen from all layers for contrast; the manifest's statistics show it.
MINILM_TOKENS, MINILM_LAYERS = 512, [(0, [2, 5, 7], [2, 5, 7]), (2, [0, 7, 11], [0, 7, 11]), (5, [0, 5, 8], [0, 5, 8])]
SMOLLM2_TOKENS, SMOLLM2_LAYERS = 1024, [(0, [0, 1, 2], [0]), (16, [0, 1, 2], [0]), (18, [6, 7, 8], [2]), (29, [3, 4, 5], [1])]
QWEN2_TOKENS, QWEN2_LAYERS = 512, [(0, [*range(7)], [0]), (8, [*range(7)], [0]), (11, [*range(7, 14)], [1])]
# The paragraph that is read aloud, and (kind, layer, head) of each.
SPOKEN, WHISPER_LAYERS = "When in the Course", [("encoder", 0, 3), ("cross", 1, 0), ("cross", 4, 2)]


def real_text() -> str:
    """The text with its line breaks inside paragraphs removed."""
    paragraphs = re.split(r"\n\s*\n", TEXT.read_text(encoding="ascii").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def spoken_text(text: str) -> str:
    """The paragraph that is read aloud."""
    return next(paragraph for paragraph in text.split("\n\n") if paragraph.startswith(SPOKEN))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statistics(q: np.ndarray, k: np.ndarray, causal: bool) -> dict:
    """What makes a layer easy or hard for a kernel, over all visible scores of all heads."""
    largest, smallest, entropies, first_key = -math.inf, math.inf, [], []
    for head in range(q.shape[0]):
        scores = q[head] @ k[head * k.shape[0] // q.shape[0]].T / math.sqrt(q.shape[2])
        if causal:
            scores = np.where(np.tri(len(scores), dtype=bool), scores, -np.inf)
        finite = scores[np.isfinite(scores)]
        largest, smallest = max(largest, finite.max()), min(smallest, finite.min())
        weights = softmax(scores)
        entropies.append(-np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1).mean())
        first_key.append(weights[:, 0].mean())
    return {"largest_logit": round(float(largest), 2), "smallest_logit": round(float(smallest), 2),
            "mean_entropy_nat_by_head": [round(float(e), 2) for e in entropies],
            "mean_weight_of_first_key_by_head": [round(float(w), 2) for w in first_key]}


def chosen_heads(name: str, qkv: tuple, query_heads: list[int], key_heads: list[int], causal: bool) -> tuple[dict[str, np.ndarray], dict]:
    """Tensors of a layer by name, in float32, and what the manifest says about them."""
    parts = {part: x[query_heads if part == "q" else key_heads] for part, x in zip("qkv", qkv)}
    tensors = {f"{name}.{part}": np.ascontiguousarray(x, dtype=np.float32) for part, x in parts.items()}
    return tensors, {"query_heads": query_heads, "key_heads": key_heads, **statistics(parts["q"], parts["k"], causal)}


def entry_of(module, model, mask: str) -> dict:
    """What the manifest says about any model."""
    return {"model": module.MODEL, "package": module.PACKAGE, "version": module.VERSION, "licence": module.LICENCE,
            "weights_file": model.weights_file.name, "weights_sha256": sha256(model.weights_file), "mask": mask}


def perplexity(probabilities: np.ndarray, ids: list[int]) -> float:
    """Of each token after the first, given those before it."""
    return round(math.exp(-np.log(probabilities[np.arange(len(ids) - 1), ids[1:]]).mean()), 2)


def capture_speech(text: str) -> tuple[dict[str, np.ndarray], dict]:
    """Of Whisper, which hears a paragraph of the text and is told the right words: tensors by name, and the manifest's entry."""
    model, tensors, groups = whisper.Whisper(), {}, []
    spoken = spoken_text(text)
    samples, ids = whisper.speech(spoken), model.tokens(spoken)
    frames, encoder = model.encode(samples)
    hidden, cross = model.decode(ids, frames)
    for kind, layer, head in WHISPER_LAYERS:
        name = f"whisper.{kind}_layer{layer}"
        parts, group = chosen_heads(name, {"encoder": encoder, "cross": cross}[kind][layer], [head], [head], causal=False)
        tensors |= parts
        groups.append({"name": name, "layer": layer, **group})
    words = len(whisper.PROMPT)
    probabilities = model.next_token_probabilities(hidden)
    return tensors, {**entry_of(whisper, model, "none"), "tokens": len(ids), "frames": len(frames), "head_dim": encoder[0][0].shape[2],
                     "speech": whisper.SPEECH, "speech_seconds": round(len(samples) / whisper.RATE, 2),
                     "speech_sha256": hashlib.sha256((samples * 32768).astype("<i2").tobytes()).hexdigest(),
                     "captured": whisper.CAPTURED, "groups": groups,
                     "perplexity_on_text": perplexity(probabilities[words - 1:], ids[words - 1:])}


def capture() -> tuple[dict[str, np.ndarray], list[dict]]:
    """Tensors by name, [heads, tokens, head_dim] in float32, and the manifest's entry of each model."""
    text, tensors, entries = real_text(), {}, []
    for prefix, module, model, limit, layers, causal in (
            ("minilm", minilm, minilm.MiniLm(), MINILM_TOKENS, MINILM_LAYERS, False),
            ("smollm2", smollm2, smollm2.SmolLm2(), SMOLLM2_TOKENS, SMOLLM2_LAYERS, True),
            ("qwen2", qwen2, qwen2.Qwen2(), QWEN2_TOKENS, QWEN2_LAYERS, True)):
        ids = model.tokens(text, limit)
        if len(ids) != limit:
            sys.exit(f"error: {TEXT.name} gives {len(ids)} tokens of {prefix}, {limit} are needed")
        hidden, captured = model.run(ids)
        groups = []
        for layer, query_heads, key_heads in layers:
            name = f"{prefix}.layer{layer}"
            parts, group = chosen_heads(name, captured[layer], query_heads, key_heads, causal)
            tensors |= parts
            groups.append({"name": name, "layer": layer, **group})
        entries.append({**entry_of(module, model, "causal" if causal else "none"), "tokens": limit,
                        "head_dim": tensors[f"{name}.q"].shape[2], "captured": module.CAPTURED, "groups": groups})
        if causal:
            entries[-1]["perplexity_on_text"] = perplexity(model.next_token_probabilities(hidden), ids)
    spoken, entry = capture_speech(text)
    return tensors | spoken, [*entries, entry]


def compare(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> None:
    """Says how far a capture that is not byte-identical is from the committed one."""
    if old.keys() != new.keys():
        print("different tensors:", *sorted(old.keys() ^ new.keys()))
        return
    for name in sorted(old):
        if old[name].shape != new[name].shape:
            print(f"{name}: shape {new[name].shape}, committed {old[name].shape}")
        elif (differs := old[name] != new[name]).any():
            ulps = (np.abs(old[name].astype(np.float64) - new[name]) / np.spacing(np.abs(old[name])))[differs]
            print(f"{name}: {differs.sum()} of {differs.size} values differ, by at most {ulps.max():.0f} ulp")


def same_as_committed(file: Path, tensors: dict[str, np.ndarray], contents: bytes, expected: str) -> bool:
    """Says what the capture of a file differs in, if it does."""
    if sha256(file) != expected:
        print(f"{file.name} is not the file that {MANIFEST.name} describes")
        return False
    digest = hashlib.sha256(contents).hexdigest()
    if digest != expected:
        compare(load_file(file), tensors)
        print(f"{file.name}: the capture gives sha256 {digest}, {MANIFEST.name} says {expected}")
        return False
    print(f"{file.name}: the capture gives the same {len(contents)} bytes")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare a new capture with the committed files")
    check = parser.parse_args().check
    tensors, entries = capture()
    files, is_same = [], True
    for name, prefixes in FILES.items():
        chosen = {tensor: values for tensor, values in tensors.items() if tensor.startswith(prefixes)}
        contents = save(chosen, metadata={"attest.layout": "HND"})
        if check:
            expected = {file["file"]: file["sha256"] for file in json.loads(MANIFEST.read_text())["files"]}[name]
            is_same = same_as_committed(HERE / name, chosen, contents, expected) and is_same
            continue
        (HERE / name).write_bytes(contents)
        files.append({"file": name, "size_bytes": len(contents), "sha256": hashlib.sha256(contents).hexdigest(), "models": list(prefixes)})
        print(f"{name}: {len(contents)} bytes, sha256 {files[-1]['sha256']}")
    if check:
        return 0 if is_same else 1
    manifest = {"files": files, "made_by": "python3 data/capture_qkv.py", "element_type": "F32", "layout": "[heads, tokens, head_dim]",
                "rounding": "computed in float64, rounded once to float32 to nearest even",
                "text": {"file": TEXT.name, "sha256": sha256(TEXT),
                         "what": "Declaration of Independence of the United States, 1776",
                         "licence": "public domain (published 1776)",
                         "source": "Debian package miscfiles 1.5+dfsg-4, us-declaration.gz"},
                "models": entries}
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
