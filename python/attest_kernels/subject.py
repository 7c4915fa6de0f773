"""A function with what is known of it: what it says of itself, and what probes find."""

import dataclasses
import itertools
import math

import numpy

from attest_kernels import choices, compiled, conventions, frameworks, gradients, interpreter, loading, modifications, packed, paged, probes

OPERATIONS = ("forward", "backward", "gradient", "select")  # backward: by hand where it takes do, else, as gradient, by its framework


def sentence(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else 'no message'}"


def loaded(text):
    """(the function, its module, the operation asked for or None) of FILE.py:FUNCTION, MODULE:FUNCTION or LIBRARY.so:FUNCTION, with @OPERATION behind it
    or not."""
    place, _, operation = text.partition("@")
    where, _, name = place.rpartition(":")
    if where.endswith(".so"):
        return *compiled.load(where, name), operation or None
    return *loading.loaded(place), operation or None


def convention_of(function, operation, declared):
    """How it is called for an operation; None: for its gradients where it takes do, else for attention. Raises NoConvention."""
    if operation not in (None, *OPERATIONS):
        raise conventions.NoConvention(f"the operation is '{operation}'; allowed for functions of Python: {', '.join(OPERATIONS)}")
    if operation == "forward" and gradients.takes_do(function):
        raise conventions.NoConvention(f"{function.__name__} takes the gradient of O, and is a backward pass; allowed: the operation backward")
    if isinstance(function, compiled.Function):
        if operation not in (None, "forward"):
            raise conventions.NoConvention(f"{function.__name__} is of a library, whose gradients nothing derives; allowed: the operation forward")
        return compiled.attention(function)
    if operation == "gradient" or operation == "backward" and not gradients.takes_do(function):
        return gradients.by_framework(function, declared)
    if gradients.takes_do(function):
        return gradients.by_hand(function, declared)
    names = conventions.names_of(function)
    if operation == "select" or operation is None and choices.takes_top_k(names):
        return choices.choice(function, declared)
    kind = packed if packed.takes_lengths(names) else paged if paged.takes_pages(names) else conventions
    return kind.attention(function, declared)


class Subject:
    """`notes`: called with a few words before each probe."""

    def __init__(self, text, notes=lambda words: None):
        self.function, self.module, operation = loaded(text)
        self.framework = frameworks.used_by(self.module)
        self.declared = getattr(self.function, "__attest_kernel__", {})
        self.notes, self.probes = notes, 0
        self.convention = convention_of(self.function, operation or self.declared.get("operation"), self.declared)

    def answer(self, convention, format_name, given, shapes, causal, scale):
        """The outputs of NumPy's arrays in double, alike; `shapes`: of the outputs, which hold NaN before."""
        self.probes += 1

        def array(name, values):
            if not isinstance(values, numpy.ndarray):
                return values
            own = modifications.format_of(name) if name in modifications.ARRAYS else "fp32"
            return self.framework.array(values, own if name in ("lse", "dlse", "weights", *modifications.ARRAYS) else format_name)
        arrays = {name: array(name, values) for name, values in given.items()}
        arrays.update({name: array(name, numpy.full(shape, math.nan)) for name, shape in shapes.items() if name not in given})
        made = convention.call(self.framework, arrays, causal, scale)
        return {name: self.framework.numbers(one) for name, one in made.items()}

    def probe(self, convention, format_name, sizes, causal=None, heads=None, scale=None, has=None, shared="full"):
        """(How far the answer of a small problem is from the exact one: outputs that are not near, and the largest distance; its outputs; those wanted;
        the reason where there is no answer). `has`: a role of modifications; `shared`: which bias."""
        batch, kv_heads, queries, keys, dim = sizes
        heads, kv_heads = (heads, kv_heads) if heads else convention.usual_heads(kv_heads)
        scale = dim ** -0.5 if scale is None else scale
        mask = (f"causal_{causal}" if causal else "none") + (f" with {has}" if has else "")
        self.notes(f"it answered a probe, b{batch} h{heads}/{kv_heads} q{queries} k{keys} d{dim} {mask} {format_name} in {convention.layout}")
        drawn = probes.drawn(batch, heads, kv_heads, queries, keys, dim)
        if has:
            drawn[has] = modifications.example(has, batch, heads, queries, keys, dim, convention.window_rights() is not None, shared)
        given, want = convention.example(drawn, causal, scale)
        try:
            made = self.answer(convention, format_name, given, {name: one.shape for name, one in want.items()}, causal is not None, scale)
        except Exception as error:  # whatever a stranger's function raises
            return (len(convention.outputs), math.inf), {}, want, sentence(error)
        distances = convention.distances(made, want)
        return (sum(not one < probes.NEAR for one in distances), max(distances)), made, want, ""

    def nearest(self, types):
        """(error, convention, sizes, type, outputs, wanted) of the probe whose answer is nearest, and the first sizes that it answers: being wrong
        there is judged, and no reason to ask for others. Raises TypeError where it answers none."""
        best, taken, tried = None, None, []
        for sizes, format_name in itertools.product(dict.fromkeys(probes.sizes(self.declared)), types):
            for convention in self.convention.candidates(self.declared):
                error, made, want, why = self.probe(convention, format_name, sizes)
                if why:
                    tried.append(why)
                    continue
                taken = taken or sizes
                if best is None or error < best[0]:
                    best = error, convention, sizes, format_name, made, want
            if best is not None and (best[0][0] == 0 or sizes != taken):
                break
        if best is None:
            raise TypeError(f"it answers no probe: {tried[0]}")
        return best, taken

    def describe(self):
        """What the judge has to know, found by probes unless declared. Raises TypeError with one line."""
        declared = self.declared
        types = interpreter.types(declared.get("types") or self.framework.types)
        ((far, error), convention, sizes, format_name, made, want), taken = self.nearest(types)
        convention, missing = convention.settled(made, want)
        self.convention = convention = self.with_corner(convention, format_name, sizes)
        def answers(type=format_name, sizes=taken, page_size=None, **how):  # noqa: A002
            one = convention if page_size is None else dataclasses.replace(convention, page_size=page_size)
            return self.probe(one, type, sizes, **how)[3] == ""
        batch, heads, queries, keys, dim = taken
        any_length = queries % 16 != 0
        multiples = {name: declared[name] if declared.get(name, 1) > 1 else 1 if any_length else queries
                     for name in ("query_len_multiple", "key_len_multiple")}
        masks = list(declared.get("masks") or self.masks(convention, answers))
        has_empty_rows = declared.get("empty_rows", True)
        # Of pairs: they may hide all of a row.
        takes = [role for role in convention.modifications() if role not in modifications.OF_PAIRS or has_empty_rows]
        types = [each for each in interpreter.types(types) if each == format_name or answers(type=each)]
        biases = [shared for shared in modifications.SHARED if "bias" in takes and answers(has="bias", shared=shared)]
        bias_types = [each for each in types if biases and answers(type=each, has="bias", shared=biases[0])]
        modified = [role for role in takes if (bool(bias_types) if role == "bias" else answers(has=role))]
        features = convention.features() + [role for role in modified if role != "mask"] + [*convention.hiding] * ("mask" in modified)
        is_grouped = declared["grouped"] if "grouped" in declared else answers(heads=2 * heads)
        has_one_kv_head = convention.usual_heads(2) == (2, 1) and not is_grouped
        described = {
            "name": declared.get("name", self.function.__name__),
            "operation": convention.operation,
            "summary": self.summary(),
            "types": types,
            "masks": masks,
            "window_rights": convention.window_rights(),
            "features": features,
            "biases": biases,
            "bias_types": bias_types,
            "alibi_corner": convention.corner,
            "head_dims": declared.get("head_dims") or self.head_dims(answers, taken),
            **multiples,
            "grouped": is_grouped or has_one_kv_head,
            "one_kv_head": has_one_kv_head,
            "any_scale": "scale" in convention.names,
            "missing": missing,
            "no_keys": any_length and answers(sizes=(batch, heads, queries, 0, dim)),
            **convention.facts(answers),
            **({} if convention.softcap_error is None else {"softcap_error": convention.softcap_error}),
            "empty_rows": has_empty_rows,
            "positive_scale": declared.get("positive_scale", False),
            "deterministic": declared.get("deterministic", True),
            "batch_invariant": declared.get("batch_invariant", False),
            "ignores_hidden_nan": declared.get("ignores_hidden_nan", False),
            "rounds_parts": declared.get("rounds_parts", False),
            "fuses_epilogue": declared.get("fuses_epilogue", False),
            "most": interpreter.most(),
            "library": self.framework.words + interpreter.words(),
        }
        has_window = any(mask.startswith("window") for mask in masks)
        left_out = [own for role, own in convention.names.items() if role in modifications.ROLES and role not in modified
                    and not (has_window and role.startswith("window"))] + list(convention.not_asked)
        words = convention.words(self.probes) + (f"; not asked for {', '.join(left_out)}" if left_out else "")
        if far:
            words += f"; none came near exact {convention.what}: this one is off by {error:.2g} of {convention.off_by}"
        return {**described, "convention": words}

    def summary(self):
        """The first line of its documentation, unless that repeats its signature."""
        first = (self.function.__doc__ or "").strip().partition("\n")[0][:120]
        return first if first and not first.startswith(f"{self.function.__name__}(") else f"a function of {self.module.__name__}"

    def with_corner(self, convention, format_name, sizes):
        """The convention with the corner of its causal mask, or else of its window, that a probe is nearer to."""
        has_causal = "causal" in convention.names
        if not has_causal and not convention.takes_window() or "causal" in self.declared or self.convention.is_known:
            return convention
        both = [dataclasses.replace(convention, corner=corner) for corner in ("bottom_right", "top_left")]
        return min(both, key=lambda one: self.probe(one, format_name, sizes, **({"causal": one.corner} if has_causal else {"has": "window"}))[0])

    @staticmethod
    def masks(convention, answers):
        has_causal = "causal" in convention.names and answers(causal=convention.corner)
        has_window = convention.takes_window() and answers(has="window")
        return ["none"] + [f"causal_{convention.corner}"] * has_causal + [f"window_{convention.corner}"] * has_window

    @staticmethod
    def head_dims(answers, sizes):
        """Those it takes of the usual ones; [], which is any, where it takes odd ones too."""
        batch, heads, queries, keys, _ = sizes
        if all(answers(sizes=(batch, heads, queries, keys, dim)) for dim in (1, 7, 24, 80)):
            return []
        return [dim for dim in (16, 32, 64, 80, 96, 128, 192, 256) if answers(sizes=(batch, heads, queries, keys, dim))]
