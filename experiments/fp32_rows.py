"""Prints which rows fp32_wgmma leaves to bf16 parts, by rule, and what its second pass costs: tiles of gathered rows.

    python3 experiments/fp32_rows.py          a minute of one core; needs no GPU

A model of the rules of gpu/kernels/fp32_wgmma (README) in double; exponents and limits are read from its
scaling.cuh. Inputs: N(0, 1) with N(0, factor^2) added to a share `rate` of the elements, as the family `outliers` has them with factor 10
and rate 0.001, and the layers of data/.
"""

import json
import pathlib
import re
import struct

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK, TILE = 64, 128  # keys that share a scale; rows of a tile of bf16 parts
RULES = ("size", "range", "score", "few keys", "one key")


def constants():
    """The numbers of scaling.cuh by name."""
    text = (ROOT / "gpu/kernels/fp32_wgmma/scaling.cuh").read_text()
    found = re.findall(r"(\w+)\s*=\s*(-?(?:0x1p-?\d+|\d+))F?[;,]", text)
    return {name: float.fromhex(value) if "x" in value else int(value) for name, value in found}


C = constants()


def power_below(x):
    return numpy.exp2(numpy.floor(numpy.log2(x)))


def left_out(y):
    """What two fp16 parts leave of the numbers below 1/4 in each row of y."""
    high = y.astype(numpy.float16).astype(float)
    rest = y - high - (y - high).astype(numpy.float16).astype(float)
    return numpy.where(numpy.abs(y) < 0.25, numpy.abs(rest), 0).sum(-1)


def flagged(q, k, v, is_causal):
    """Rows of a head that each rule flags: booleans [rows] by the rule's name. q: [rows, D], k and v: [keys, D], scale 1 / sqrt(D)."""
    rows, keys, scale = len(q), len(k), q.shape[1] ** -0.5
    past = numpy.minimum(keys, numpy.arange(rows) + 1) if is_causal else numpy.full(rows, keys)
    rules = {rule: numpy.zeros(rows, bool) for rule in RULES}

    def held(x):
        return (x == 0) | ((x >= C["least_size"]) & (x <= C["largest_size"]))

    largest = numpy.abs(q).max(1)
    rules["size"] |= ~held(largest)
    factor = power_below(numpy.where(largest > 0, largest, 1)) / 2.0 ** C["query_exponent"]
    rest, total = left_out(q / factor[:, None]) * factor, numpy.abs(q).sum(1)
    for first in range(0, keys, BLOCK):
        for x, exponent in ((k, C["key_exponent"]), (v, C["value_exponent"])):
            sizes = numpy.abs(x[first:first + BLOCK]).max(1)
            sized = numpy.flatnonzero(sizes)
            size = sizes[sized[0]] if len(sized) else 1.0
            unit = power_below(size) / 2.0**exponent
            for rule, refused in (("size", ~held(sizes)), ("range", sizes / unit > 65504)):
                if refused.any():
                    rules[rule] |= first + numpy.argmax(refused) < past
            if x is k and len(sized):
                error = scale * size * (total * 2.0 ** (-25 - exponent) + rest * 2.0 ** (16 - exponent))
                rules["score"] |= (first + sized[0] < past) & (error > C["allowed_score_error"])
    rules["few keys"] = (past > 0) & (past <= C["few_keys"])
    scores = scale * (q @ k.T)
    scores[numpy.arange(keys)[None, :] >= past[:, None]] = -numpy.inf
    weights = numpy.exp(scores - scores.max(1, keepdims=True))
    rules["one key"] = ~rules["few keys"] & (weights.sum(1) < 1 + C["one_key_share"])
    return rules


def row(name, heads):
    """A line of the table: means over heads, in percent."""
    by_rule = [numpy.mean([rules[rule].mean() for rules in heads]) for rule in RULES]
    every = [numpy.any(list(rules.values()), axis=0) for rules in heads]
    tiles = [range(0, len(rows), TILE) for rows in every]
    touched = numpy.mean([numpy.mean([rows[at:at + TILE].any() for at in of]) for rows, of in zip(every, tiles)])
    filled = numpy.mean([-(-int(rows.sum()) // TILE) / len(of) for rows, of in zip(every, tiles)])
    cells = [*by_rule, numpy.mean(every), touched, filled]
    print("|", " | ".join([name, *(f"{100 * share:.1f}" for share in cells)]), "|", flush=True)


def with_outliers(generator, shape, rate, factor):
    return (generator.standard_normal(shape) + (generator.random(shape) < rate) * factor * generator.standard_normal(shape)
            ).astype(numpy.float32).astype(float)


def drawn(rows, dim, is_causal, factor=10, rate=1e-3, which="qkv", heads=4):
    generator = numpy.random.default_rng(1)
    return [flagged(*(with_outliers(generator, (rows, dim), rate if name in which else 0, factor) for name in "qkv"), is_causal)
            for _ in range(heads)]


def layers():
    """q, k, v [heads, tokens, D] of the captured layers, by name."""
    tensors = {}
    for name in ("real_qkv", "outlier_qkv"):
        data = (ROOT / f"data/{name}.safetensors").read_bytes()
        (size,) = struct.unpack_from("<Q", data)
        for key, of in json.loads(data[8:8 + size]).items():
            if key == "__metadata__":
                continue
            begin, end = of["data_offsets"]
            values = numpy.frombuffer(data[8 + size + begin:8 + size + end], numpy.float32)
            tensors[key] = values.reshape(of["shape"]).astype(float)
    return {layer: [tensors[f"{layer}.{x}"] for x in "qkv"] for layer in sorted({key.rsplit(".", 1)[0] for key in tensors})}


def main():
    heads = ["inputs", *(f"rows: {rule}" for rule in RULES), "all rows", "tiles of 128 rows with one", "tiles that the rows fill"]
    print("|", " | ".join(heads), "|")
    print("|" + " --- |" * len(heads))
    for dim in (64, 128):
        for rows in (1024, 4096):
            for is_causal in (False, True):
                row(f"outliers, N {rows}, D {dim}, {'causal' if is_causal else 'full'}", drawn(rows, dim, is_causal))
    for rate in (1e-4, 1e-2):
        row(f"N 2048, D 64, full: one in {round(1 / rate)} 10 times", drawn(2048, 64, False, rate=rate))
    for which in ("qkv", "q", "k", "v"):
        row(f"N 2048, D 64, full: one in 1000 of {which.upper()} 100 times", drawn(2048, 64, False, 100, which=which))
    for layer, (q, k, v) in layers().items():
        group = len(q) // len(k)
        row(layer, [flagged(q[h], k[h // group], v[h // group], not layer.startswith("minilm")) for h in range(len(q))])


if __name__ == "__main__":
    main()
