"""The pieces that the models share, in float64 so that one rounding to float32 at the end is all that is lost."""

import math

import numpy as np

erf = np.frompyfunc(math.erf, 1, 1)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis, shifted by the row maximum; -inf scores get weight 0."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """softmax(q k^T / sqrt(D)) v for q [H, N, D] and k, v [Hkv, M, D]; returns [H, N, D]. Causal: M is N."""
    heads, length, dim = q.shape
    visible = np.tri(length, dtype=bool) if causal else np.ones((length, k.shape[1]), dtype=bool)
    out = np.empty_like(q)
    for head in range(heads):
        kv_head = head * k.shape[0] // heads
        scores = np.where(visible, q[head] @ k[kv_head].T / math.sqrt(dim), -np.inf)
        out[head] = softmax(scores) @ v[kv_head]
    return out


def split_heads(x: np.ndarray, heads: int) -> np.ndarray:
    """[N, H * D] to [H, N, D]."""
    return x.reshape(x.shape[0], heads, -1).transpose(1, 0, 2)


def join_heads(x: np.ndarray) -> np.ndarray:
    """[H, N, D] to [N, H * D]."""
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, epsilon: float) -> np.ndarray:
    """Over the last axis: x less its mean, over its deviation, times gain, plus bias."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + epsilon) * gain + bias


def gelu(x: np.ndarray) -> np.ndarray:
    """The exact form, with erf."""
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)).astype(np.float64))


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1.0 + np.exp(-x))
