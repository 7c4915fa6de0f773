"""Runs a function as a kernel under test, in a process of its own: plugin/python_subject.cpp starts it, once a process that judges.

Arguments: the parent's process id, FILE.py:FUNCTION or MODULE:FUNCTION, and a file of shared memory. The first line that it writes describes the
function (describe()); then a request is a line of JSON on stdin, its answer a line on stdout, {} or {"error": sentence}:

{"bytes": n, "type": "fp16", "mask": "causal_bottom_right", "scale": x, "q": {"at": first byte, "shape": [...]}, "k": ..., "v": ..., "o": ..., "lse": ...}
    contiguous tensors in the shared memory, whose size is now n; o and lse are written. What a request has as "number" its answer has too. It ends
    with its parent. A last argument, JSON, says what a task asks: then the function is taken as judged.py says."""

import dataclasses
import itertools
import json
import math
import mmap
import os
import pathlib
import sys
import threading
import time

# Small problems one after the other, in a process for each core: threads of a library's own would get into each other's way.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy

if not __package__:
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from attest_kernels import conventions, frameworks, interpreter, judged, loading


class Subject:
    """A function with what is known of it."""

    def __init__(self, text):
        self.function, self.module = loading.loaded(text)
        self.framework = frameworks.used_by(self.module)
        self.declared = getattr(self.function, "__attest_kernel__", {})
        self.probes = 0
        self.convention = conventions.by_signature(self.function)

    def run(self, convention, format_name, q, k, v, causal, scale):
        """Of NumPy's arrays in double; (o, lse) alike."""
        self.probes += 1
        arrays = [self.framework.array(array, format_name) for array in (q, k, v)]
        rows = (*q.shape[:3], v.shape[3])
        o = self.framework.array(numpy.full(rows, math.nan), format_name)
        lse = self.framework.array(numpy.full(rows[:3], math.nan), "fp32")
        made, made_lse = convention.call(self.framework, *arrays, o, lse, causal, scale)
        return self.framework.numbers(made), None if made_lse is None else self.framework.numbers(made_lse)

    def probe(self, convention, format_name, sizes, causal=None, heads=None, scale=None):
        """How far the answer of a small problem is from exact attention, by the largest number; infinity with the reason where there is none."""
        batch, kv_heads, queries, keys, dim = sizes
        draw = numpy.random.default_rng(7)
        q = draw.standard_normal((batch, heads or kv_heads, queries, dim))
        k, v = (draw.standard_normal((batch, kv_heads, keys, dim)) for _ in range(2))
        q, k, v = (array.astype(numpy.float16).astype(numpy.float64) for array in (q, k, v))
        scale = dim ** -0.5 if scale is None else scale
        try:
            o, lse = self.run(convention, format_name, q, k, v, causal is not None, scale)
        except Exception as error:  # whatever a stranger's function raises
            return math.inf, None, sentence(error)
        want, want_lse = conventions.exact(q, k, v, causal, scale)
        return conventions.distance(o, want), (lse, want_lse), ""

    def describe(self):
        """What the judge has to know, found by probes unless declared. Raises TypeError with one line."""
        declared, tried = self.declared, []
        best = taken = None  # the nearest answer; the first sizes that it answers: being wrong there is judged, and no reason to ask for others
        types = interpreter.types(declared.get("types") or self.framework.types)
        for sizes, format_name in itertools.product(dict.fromkeys(conventions.probes(declared)), types):
            for convention in conventions.candidates(self.convention, declared):
                error, lses, why = self.probe(convention, format_name, sizes)
                if why:
                    tried.append(why)
                    continue
                taken = taken or sizes
                if best is None or error < best[0]:
                    best = error, convention, sizes, format_name, lses
            if best is not None and (best[0] < conventions.NEAR or sizes != taken):
                break
        if best is None:
            raise TypeError(f"it answers no probe: {tried[0]}")
        error, convention, sizes, format_name, (lse, want_lse) = best
        convention, gives_lse = conventions.with_lse(convention, lse, want_lse)
        self.convention = convention = self.with_corner(convention, format_name, sizes)
        answers = lambda **how: self.probe(convention, how.pop("type", format_name), how.pop("sizes", taken), **how)[2] == ""  # noqa: E731
        batch, heads, queries, keys, dim = taken
        any_length = queries % 16 != 0
        multiples = {name: declared[name] if declared.get(name, 1) > 1 else 1 if any_length else queries
                     for name in ("query_len_multiple", "key_len_multiple")}
        corner = f"causal_{convention.corner}"
        has_causal = "causal" in convention.names
        described = {
            "name": declared.get("name", self.function.__name__),
            "summary": self.summary(),
            "types": [each for each in interpreter.types(types) if each == format_name or answers(type=each)],
            "masks": list(declared.get("masks") or (["none", corner] if has_causal and answers(causal=convention.corner) else ["none"])),
            "head_dims": declared.get("head_dims") or self.head_dims(answers, taken),
            **multiples,
            "grouped": declared["grouped"] if "grouped" in declared else answers(heads=2 * heads),
            "any_scale": "scale" in convention.names,
            "gives_lse": gives_lse,
            "no_keys": any_length and answers(sizes=(batch, heads, queries, 0, dim)),
            "empty_rows": declared.get("empty_rows", True),
            "positive_scale": declared.get("positive_scale", False),
            "deterministic": declared.get("deterministic", True),
            "batch_invariant": declared.get("batch_invariant", False),
            "ignores_hidden_nan": declared.get("ignores_hidden_nan", False),
            "most": interpreter.most(),
            "library": self.framework.words + interpreter.words(),
        }
        words = convention.words(self.probes)
        if error >= conventions.NEAR:
            words += f"; none came near exact attention: this one is off by {error:.2g} of the largest number"
        return {**described, "convention": words}

    def summary(self):
        """The first line of its documentation, unless that repeats its signature."""
        first = (self.function.__doc__ or "").strip().partition("\n")[0][:120]
        return first if first and not first.startswith(f"{self.function.__name__}(") else f"a function of {self.module.__name__}"

    def with_corner(self, convention, format_name, sizes):
        """The convention with the corner of its causal mask that a probe is nearer to."""
        if "causal" not in convention.names or "causal" in self.declared or self.convention.is_known:
            return convention
        both = [dataclasses.replace(convention, corner=corner) for corner in ("bottom_right", "top_left")]
        return min(both, key=lambda one: self.probe(one, format_name, sizes, causal=one.corner)[0])

    @staticmethod
    def head_dims(answers, sizes):
        """Those it takes of the usual ones; [], which is any, where it takes odd ones too."""
        batch, heads, queries, keys, _ = sizes
        if all(answers(sizes=(batch, heads, queries, keys, dim)) for dim in (1, 7, 24, 80)):
            return []
        return [dim for dim in (16, 32, 64, 80, 96, 128, 192, 256) if answers(sizes=(batch, heads, queries, keys, dim))]


class Memory:
    """The file that the parent shares, mapped as far as it reaches now."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR)
        self.map, self.size = None, 0

    def of(self, size):
        if size != self.size:
            self.map, self.size = mmap.mmap(self.file, size), size  # what still looks into the old one keeps it
        return self.map


def answer(subject, memory, request):
    framework, space = subject.framework, memory.of(request["bytes"])
    formats = {"lse": "fp32"}
    q, k, v, o, lse = (framework.view(space, formats.get(name, request["type"]), request[name]["shape"], request[name]["at"])
                       for name in ("q", "k", "v", "o", "lse"))
    made, made_lse = subject.convention.call(framework, q, k, v, o, lse, request["mask"] != "none", request["scale"])
    framework.store(o, made)
    if made_lse is not None:
        framework.store(lse, made_lse * math.log(subject.convention.lse_base) if subject.convention.lse_base != math.e else made_lse)
    return {}


def sentence(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else 'no message'}"


def die_with(parent):
    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)
    threading.Thread(target=watch, daemon=True).start()


def main(parent, text, *others):
    *asked, shared = others
    # Lines for the parent go where nothing that the function prints does.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what):
        channel.write(json.dumps(what) + "\n")
        channel.flush()

    die_with(int(parent))
    interpreter.choose()
    try:
        subject = judged.Judged(text, json.loads(asked[0])) if asked else Subject(text)
        memory = Memory(shared)
        say(subject.describe())
    except BaseException as error:  # sys.exit() of a file among them
        say({"error": sentence(error)})
        return
    for line in sys.stdin:
        request = json.loads(line)
        number = {"number": request["number"]} if "number" in request else {}
        try:
            say({**answer(subject, memory, request), **number})
        except Exception as error:
            say({"error": sentence(error), **number})


if __name__ == "__main__":
    main(*sys.argv[1:])
