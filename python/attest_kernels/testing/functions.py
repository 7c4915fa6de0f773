"""Attention in NumPy for tests: right, wrong in one way each, and functions that misbehave."""

import os
import sys
import time

import numpy

from attest_kernels.declaring import kernel


def attend(q, k, v, causal=False, scale=None, corner="bottom_right"):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(-1, -2) * numpy.float32(scale)
    queries, keys = scores.shape[-2:]
    if causal:
        shift = keys - queries if corner == "bottom_right" else 0
        scores = numpy.where(numpy.tri(queries, keys, shift, dtype=bool), scores, -numpy.inf)
    largest = scores.max(-1, keepdims=True, initial=-1e30)
    weights = numpy.exp(scores - largest)
    total = weights.sum(-1, keepdims=True)
    with numpy.errstate(divide="ignore"):
        lse = (largest + numpy.log(total))[..., 0]
    return (weights @ v.astype(numpy.float32) / numpy.where(total > 0, total, 1)).astype(q.dtype), lse


def right(q, k, v, causal=False, scale=None):
    """Plain attention."""
    return attend(q, k, v, causal, scale)


def last_key_dropped(q, k, v, causal=False, scale=None):
    """The last of more than 40 keys is not read."""
    return attend(q, k[:, :, :-1], v[:, :, :-1], causal, scale) if k.shape[2] > 40 and not causal else attend(q, k, v, causal, scale)


def heads_behind_tokens(query, key, value, softmax_scale, is_causal, return_lse):
    """[B, N, H, D], LSE in base 2, a top-left mask."""
    swapped = (array.transpose(0, 2, 1, 3) for array in (query, key, value))
    o, lse = attend(*swapped, is_causal, softmax_scale, "top_left")
    return (o.transpose(0, 2, 1, 3), lse / numpy.float32(numpy.log(2))) if return_lse else o.transpose(0, 2, 1, 3)


def into(q, k, v, out, lse, causal, sm_scale):
    """Writes where it is told to."""
    out[...], lse[...] = attend(q, k, v, causal, sm_scale)


def only_multiples_of_64(q, k, v):
    """Neither scale nor mask, whole tiles."""
    if q.shape[2] % 64 or k.shape[2] % 64 or k.shape[2] == 0:
        raise ValueError("whole tiles only")
    return attend(q, k, v)[0]


def merged_parts(q, k, v):
    """The sum of two parts, each rounded to the inputs' type: more error than one rounding of O is, and right for two ranks."""
    parts = [attend(q, k[:, :, half::2], v[:, :, half::2]) for half in range(2)]
    with numpy.errstate(invalid="ignore"):
        lse = numpy.logaddexp(parts[0][1], parts[1][1])
        weighted = [numpy.where(numpy.isneginf(part_lse), 0, numpy.exp(part_lse - lse))[..., None] * o.astype(numpy.float32) for o, part_lse in parts]
    return (weighted[0] + weighted[1]).astype(q.dtype), lse


@kernel(types=["fp16"])
def in_two_parts(q, k, v):
    return merged_parts(q, k, v)


@kernel(types=["fp16"], rounds_parts=True)
def in_two_rounded_parts(q, k, v):
    return merged_parts(q, k, v)


def in_lanes(q, k, v):
    """Right: as vector units do, it sums every 16th key apart."""
    scores = q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(-1, -2) * numpy.float32(q.shape[-1] ** -0.5)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    o = sum(weights[..., lane::16] @ v[:, :, lane::16].astype(numpy.float32) for lane in range(16))
    total = weights.sum(-1, keepdims=True)
    return (o / numpy.where(total > 0, total, 1)).astype(q.dtype)


def zeros_past_the_keys(q, k, v):
    """Keys are read in tiles of 32; past the end they are zeros, and count."""
    padding = ((0, 0), (0, 0), (0, -k.shape[2] % 32), (0, 0))
    return attend(q, numpy.pad(k, padding), numpy.pad(v, padding))[0]


def crashes(q, k, v):
    if q.shape[2] == 1:  # as the first case of every campaign: nothing is left to shrink, each step of which starts Python
        os.kill(os.getpid(), 11)
    return attend(q, k, v)[0]


def crashes_in_a_probe(q, k, v):
    if q.dtype == numpy.float16:
        os.kill(os.getpid(), 11)
    return attend(q, k, v)[0]


def exits(q, k, v):
    if q.shape[2] == 1:
        sys.exit(3)
    return attend(q, k, v)[0]


def hangs(q, k, v):
    if q.shape[2] > 30:
        time.sleep(1000)
    return attend(q, k, v)[0]


def prints(q, k, v):
    print('{"error": "no"}')
    os.write(1, b"raw\n")
    return attend(q, k, v)[0]


def writes_to_keys(q, k, v):
    o = attend(q, k, v)[0]
    k.setflags(write=True)
    k[...] = 0
    return o


def wrong_shape(q, k, v):
    return attend(q, k, v)[0][..., :1]


def with_blocks(q, k, v, block_size):
    return attend(q, k, v)[0]
