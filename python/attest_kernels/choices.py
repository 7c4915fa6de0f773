"""Choices of keys: an indexer and its top-k, as sparse attention attends to them. How such a function is called, and what it may return."""

import dataclasses
import itertools

import numpy

from attest_kernels import conventions, modifications, probes

OWN = {"weights": "weights", "head_weights": "weights", "w": "weights", "top_k": "top_k", "topk": "top_k", "index_topk": "top_k"}
SHARED = ("q", "k", "scale", "causal", "window", "window_left", "window_right")
ROLES = {**{name: role for name, role in conventions.ROLES.items() if role in SHARED}, **OWN}
FLAGS = ("scale", "causal", "window", "window_left", "window_right", "mask", "top_k")
ARRAYS = ("q", "k", "weights")
LARGEST = 2 ** 31 - 1  # of int32


def takes_top_k(names):
    """Is it such a function, by its parameters' names?"""
    return {"weights", "top_k"} <= {OWN.get(name) for name in names}


def is_whole(array):
    return "int" in str(array.dtype)


@dataclasses.dataclass(frozen=True)
class Choice(conventions.Convention):
    """Keys [B, N, top_k or fewer], whole numbers in any order and -1 behind the last one, and, in any order and if it gives them, their scores, as many,
    and the counts of the lists [B, N]. `has_flat_keys`: K, of one head, is [B, N, D]."""
    has_flat_keys: bool = False

    operation = "select"
    outputs = ("keys",)
    hiding = ("padding",)
    what, off_by = "choices", "the keys"

    def call(self, framework, given, causal, scale):
        """As conventions.Convention.call, of "q", "k", "weights" [B, H, N] in fp32 and "top_k", a number: those of "keys", "counts" and "scores", all
        [B, 1, N, columns], that `given` has and it gives."""
        taken = {"q": framework.given(given["q"], self.axes_of("q")), "k": framework.given(given["k"], self.axes_of("k")),
                 "weights": framework.given(given["weights"], conventions.ROWS[self.lse_order])}
        (batch, kv_heads, keys, dim), (_, _, queries, _) = given["k"].shape, given["q"].shape
        if self.has_flat_keys:
            if kv_heads != 1:
                raise TypeError("it takes one head of K")
            taken["k"] = taken["k"].reshape(batch, keys, dim)
        made = self.ask(taken, causal, scale, {**self.told(framework, given), "top_k": given["top_k"]})
        found = self.lists(framework, made, (batch, queries), given["top_k"])
        return {name: framework.array(one, "fp32" if name == "scores" else "int32") for name, one in found.items() if name in given}

    @staticmethod
    def lists(framework, made, rows, top_k):
        """The lists that it returned, by NumPy in double. Raises TypeError for what is none."""
        parts = [part for part in (made if isinstance(made, (tuple, list)) else (made,)) if hasattr(part, "shape") and hasattr(part, "dtype")]

        def one_of(is_one):
            return next((framework.numbers(part) for part in parts if is_one(part)), None)
        keys = one_of(lambda part: is_whole(part) and len(part.shape) == 3)
        counts = one_of(lambda part: is_whole(part) and tuple(part.shape) == rows)
        if keys is None or keys.shape[:2] != rows or keys.shape[2] > top_k:
            shapes = ", ".join(f"{list(part.shape)} of {part.dtype}" for part in parts) or type(made).__name__
            raise TypeError(f"it returned {shapes}; allowed: keys {[*rows, top_k]} or with fewer columns, whole numbers")
        if (abs(keys) > LARGEST).any():
            raise TypeError("it returned a key that int32 does not hold")
        scores = one_of(lambda part: not is_whole(part) and tuple(part.shape) == keys.shape)
        found = {"keys": probes.padded(keys, top_k, probes.NO_KEY), "counts": ((keys != probes.NO_KEY).sum(2) if counts is None else counts)[:, None, :, None]}
        return found if scores is None else {**found, "scores": probes.padded(scores, top_k, -numpy.inf)}

    def is_grouped(self, given):
        return False  # whoever has fewer heads of K sees it

    @staticmethod
    def usual_heads(heads):
        return heads, 1

    def example(self, drawn, causal, scale):
        """As many keys as one in three."""
        batch, heads, queries, _ = drawn["q"].shape
        top_k = max(drawn["k"].shape[2] // 3, 1)
        weights = numpy.random.default_rng(11).standard_normal((batch, heads, queries))
        given = {"q": drawn["q"], "k": drawn["k"], "weights": weights, "top_k": top_k, **self.modified(drawn)}
        keys, counts, scores = probes.exact_choice(drawn["q"], drawn["k"], weights, top_k, causal, scale, corner=self.corner, **self.modified(drawn))
        return given, {"keys": keys, "counts": counts, "scores": scores}

    def distances(self, made, want):
        """The share of the keys that are wanted which are not there."""
        rows = [made_or_wanted["keys"].reshape(-1, want["keys"].shape[-1]) for made_or_wanted in (want, made)]
        missing = sum(len({*wanted} - {*returned, probes.NO_KEY}) for wanted, returned in zip(*rows))
        return [missing / max(int(want["counts"].sum()), 1)]

    def candidates(self, declared):
        for one, is_flat in itertools.product(super().candidates(declared), (False, True)):
            yield dataclasses.replace(one, has_flat_keys=is_flat)

    def settled(self, made, want):
        return self, [] if "scores" in made else ["scores"]

    def modifications(self):
        return ["mask"] if "mask" in self.names else []

    def about_lse(self):
        return "; K [B,N,D]" if self.has_flat_keys else ""


def choice(function, declared):
    """A Choice with the function's own names. Raises NoConvention."""
    positional, names = conventions.signature_of(function, modifications.roles_with(ROLES, declared), (), FLAGS, ARRAYS)
    if "top_k" not in names:
        raise conventions.NoConvention(f"{function.__name__} has no parameter for the number of keys; allowed: top_k, topk, index_topk")
    return Choice(function, names, positional, none=modifications.none_of(function, names))
