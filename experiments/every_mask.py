"""Keeps what notebooks/every_mask.ipynb draws: which pairs every mask leaves (`attest show`), what masks and score modifications make of the weights of
a head of a real layer (`attest check --bounds`, exact in double), and which kernels take them (`attest explain`, whose refusals are the kernels').

    build/venv/bin/python experiments/every_mask.py --attest build/release/bin/attest            writes results/model/every_mask.jsonl.gz
    build/venv/bin/python experiments/every_mask.py --attest build/release/bin/attest --check    fails where it would write another

A line a picture, named in "name", or a kernel. V is the identity, so that O holds the weights; a score is ln of its weight plus LSE.
"""

import argparse
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from attest_kernels import arrays, program, tensors_file  # noqa: E402, from this clone

RECORD = HERE / "results/model/every_mask.jsonl.gz"
LAYER, HEAD = "smollm2.layer16", 2  # some weight on the first token, some on neighbours, some on words that matter
TOKENS = 48

# name: (problem, entry, the problem without the part that the picture is about, or nothing)
PAIRS = {
    "none": ("n32 d64", 0, ""),
    "causal": ("n32 d64 causal_top_left", 0, ""),
    "window": ("n32 d64 window_top_left left7 right0", 0, ""),
    "both sides": ("n32 d64 window_top_left left5 right5", 0, ""),
    "look-ahead": ("n32 d64 window_top_left right5", 0, ""),
    "causal, bottom right": ("q12 k32 d64 causal_bottom_right", 0, ""),
    "causal, top left": ("q12 k32 d64 causal_top_left", 0, ""),
    "window, bottom right": ("q12 k32 d64 window_bottom_right left7 right0", 0, ""),
    "window, top left": ("q12 k32 d64 window_top_left left7 right0", 0, ""),
    "more queries, bottom right": ("q32 k12 d64 causal_bottom_right", 0, ""),
    "more queries, top left": ("q32 k12 d64 causal_top_left", 0, ""),
    "prefix": ("n32 d64 causal_top_left prefix13", 0, "n32 d64 causal_top_left"),
    "documents": ("n32 d64 causal_top_left documents5", 0, "n32 d64 causal_top_left"),
    "documents, both ways": ("n32 d64 documents5", 0, "n32 d64"),
    "documents and window": ("n32 d64 window_top_left left5 right0 documents5", 0, "n32 d64 window_top_left left5 right0"),
    **{f"lengths, entry {entry}": ("b5 n32 d64 causal_top_left lengths11", entry, "") for entry in range(5)},
    **{f"padding, entry {entry}": ("b5 n32 d64 padding5", entry, "b5 n32 d64") for entry in range(5)},
    "lists of keys": ("n32 d64 causal_top_left lists8", 0, "n32 d64 causal_top_left"),
    "lists of blocks": ("n32 d64 causal_top_left lists5 listrows4 listkeys4", 0, "n32 d64 causal_top_left"),
    "lists, both ways": ("n32 d64 lists11 listrows8 listkeys4", 0, "n32 d64"),
}
# name: (problem, arrays). Masks first: of the tokens that PAIRS draws.
BLOCK = 12
WEIGHTS = {
    **{name: (PAIRS[name][0], {}) for name in ("none", "causal", "window", "both sides", "look-ahead", "prefix", "documents", "documents, both ways",
                                               "documents and window", "lists of keys", "lists of blocks", "lists, both ways")},
    "plain": (f"n{TOKENS} d64 causal_top_left", {}),
    "softcap": (f"n{TOKENS} d64 causal_top_left softcap4", {}),
    "slopes": (f"n{TOKENS} d64 causal_top_left slopes_given", {"slopes": numpy.array([0.25], numpy.float32)}),
    "bias": (f"n{TOKENS} d64 causal_top_left bias_shared",
             {"bias": numpy.where(numpy.arange(TOKENS) == 0, -numpy.inf,
                                  numpy.where(numpy.arange(TOKENS)[:, None] // BLOCK == numpy.arange(TOKENS) // BLOCK, 2, 0)).astype(numpy.float32)[None, None]}),
    "sinks": (f"n{TOKENS} d64 causal_top_left sinks_given", {"sinks": numpy.array([3], numpy.float32)}),
    "dropout": (f"n{TOKENS} d64 causal_top_left dropout0.2 philox7", {}),
}
# A kernel is asked for what it computes, of the first of these shapes that it takes: attention, latent attention, attention of codes.
SHAPES = ("b2 h2 n16 d64", "b2 h2/1 n16 d576 dv512 values_in_keys", "b2 h2 n16 d64 qcode_e4m3")
PARTS = {"causal": "causal_bottom_right", "window": "window_bottom_right left4 right4", "prefix": "causal_bottom_right prefix7", "documents": "documents7",
         "padding": "padding7", "lengths": "lengths7", "lists of keys": "lists7", "lists of blocks": "lists7 listrows128 listkeys128", "softcap": "softcap30", "slopes": "slopes_given",
         "bias": "bias_full", "sinks": "sinks_given", "dropout": "dropout0.1"}


def short(number):
    return None if not numpy.isfinite(number) else float(f"{number:.4g}")


def rows_of(problem, entry):
    """What `attest show` draws, which is a character a pair here, and the problem as it says it."""
    _, text = program.run(["show", "--problem", problem, "--entry", str(entry)])
    title, *rows, _ = text.splitlines()
    assert all(set(row) <= {"#", "."} for row in rows), f"{problem}: a cell is more than a pair"
    return re.sub(r"^entry \d+ of ", "", title), rows


def pairs(name):
    problem, entry, without = PAIRS[name]
    said, rows = rows_of(problem, entry)
    return {"kind": "pairs", "name": name, "problem": said, "entry": entry, "rows": rows, "without": rows_of(without, entry)[1] if without else []}


def weights(name):
    problem, more = WEIGHTS[name]
    tokens = int(re.match(r"n(\d+)", problem)[1])
    real = tensors_file.read(HERE.parent / "data" / "real_qkv.safetensors")
    q, k = (real[f"{LAYER}.{tensor}"] for tensor in "qk")
    given = {"q": q[HEAD, :tokens][None, None], "k": k[HEAD * len(k) // len(q), :tokens][None, None],
             "v": numpy.eye(tokens, q.shape[2], dtype=numpy.float32)[None, None], **more}
    # Sizes, and which arrays there are, the file says.
    question = re.sub(r"\b(n\d+|d\d+|\w+_given|bias_\w+)\b", "", problem).split()
    with tempfile.TemporaryDirectory() as folder:
        file, answer = (pathlib.Path(folder) / part for part in ("tensors", "bounds"))
        tensors_file.write(file, {part: arrays.on_host(array, part) for part, array in given.items()})
        _, text = program.run(["check", str(file), "--json", "--bounds", str(answer), *(["--problem", " ".join(question)] if question else [])],
                              may_end_with=(0, 4))  # 4: there is no output to judge
        found = tensors_file.read(answer)
    return {"kind": "weights", "name": name, "inputs": LAYER, "head": HEAD, "problem": json.loads(text)["problem"],
            **{part: [[short(value) for value in row] for row in array.reshape(-1, array.shape[-1])] for part, array in more.items()},
            "lse": [short(value) for value in found["lse"].reshape(-1)], "weights": [[short(value) for value in row[:tokens]] for row in found["o"][0, 0]]}


def kernels():
    """(name, executor) of those that compute attention, or are to: on the CPU, where every build has them, whatever GPU and peers there are."""
    _, text = program.run(["list", "kernels"])
    for line in text.splitlines()[1:]:
        name, executor, _, summary = line.split(maxsplit=3)
        if executor != "gpu" and "[must fail" not in summary and not summary.startswith("no attention"):
            yield name, executor


def refusal(kernel, problem):
    """(the problem as the kernel was asked, why it does not take it: nothing where it does)"""
    ran = subprocess.run([program.path(), "explain", kernel, "--problem", problem, "--json"], capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return json.loads(ran.stdout)["problem"], ""
    if ran.returncode != 2:
        sys.exit(f"every_mask: explain {kernel} --problem '{problem}': {ran.stderr.strip()}")
    return problem, ran.stderr.strip().splitlines()[-1].removeprefix("attest: ").rpartition("': ")[2]


def answers(shape, kernel, parts):
    """{part: why the kernel does not take it}"""
    with_mask = {part: shape.replace(" none ", " ") if re.match("causal|window", text) else shape for part, text in PARTS.items()}
    return {part: refusal(kernel, f"{with_mask[part]} {PARTS[part]}")[1] for part in parts}


def features():
    """A line a kernel, and none of what merges or quantises."""
    for name, executor in kernels():
        for shape in SHAPES:
            problem, why = refusal(name, shape)
            if not why:
                yield {"kind": "kernel", "name": name, "executor": executor, "problem": problem, "refuses": answers(problem, name, PARTS)}
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attest", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    os.environ["ATTEST_PROGRAM"] = arguments.attest
    lines = [json.dumps(line) for line in (*map(pairs, PAIRS), *map(weights, WEIGHTS), *features())]
    if not arguments.check:
        RECORD.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0))
        return
    record = gzip.decompress(RECORD.read_bytes()).decode().splitlines()
    if record != lines:
        changed = {json.loads(line)["name"]: None for line in lines + record if (line in lines) != (line in record)}
        sys.exit(f"every_mask: {RECORD.name} is not what this program says of {', '.join(changed)}: make it again without --check")


if __name__ == "__main__":
    main()
