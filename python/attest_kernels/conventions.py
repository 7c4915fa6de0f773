"""How a function is called: which parameters it has, how its arrays lie, what its causal mask and its LSE mean. Found by its parameters' names,
then by probes, small problems whose sizes all differ; what was assumed is said.

Whatever a function takes, it is called with arrays in [B, H, N, D]."""

import dataclasses
import inspect
import itertools
import math

import numpy

from attest_kernels import known

ROLES = {"q": "q", "query": "q", "k": "k", "key": "k", "v": "v", "value": "v",
         "o": "o", "out": "o", "output": "o", "lse": "lse", "softmax_lse": "lse",
         "scale": "scale", "softmax_scale": "scale", "sm_scale": "scale", "causal": "causal", "is_causal": "causal",
         "return_lse": "return_lse", "return_attn_probs": "return_lse", "return_softmax_lse": "return_lse", "enable_gqa": "grouped"}
LAYOUTS = {"BHND": (0, 1, 2, 3), "BNHD": (0, 2, 1, 3)}  # of an array in [B, H, N, D] the order of its axes; its own inverse
PROBES = ((2, 3, 5, 7, 16), (2, 3, 33, 65, 64), (1, 2, 64, 128, 32), (2, 4, 128, 256, 64))  # B, H, queries, keys, D
NEAR = 0.05  # of the largest number: what two conventions differ by is far more


class NoConvention(TypeError):
    """Nobody knows how to call it; one line."""


@dataclasses.dataclass(frozen=True)
class Convention:
    function: object
    names: dict            # role: the function's own name of the parameter
    positional: tuple      # roles of the first parameters, in order
    layout: str = "BHND"
    corner: str = "bottom_right"
    lse_base: float = math.e
    lse_order: str = "BHN"
    is_known: bool = False

    def call(self, framework, q, k, v, o, lse, causal, scale):
        """Calls the function with the framework's arrays in [B, H, N, D], of which `o` and `lse` hold what is there before; (o, lse) in [B, H, N, D]
        and [B, H, N], lse None where there is none."""
        axes, lse_axes = LAYOUTS[self.layout], (0, 1, 2) if self.lse_order == "BHN" else (0, 2, 1)
        given = {name: framework.given(array, axes) for name, array in (("q", q), ("k", k), ("v", v))}
        if "o" in self.positional:
            given["o"] = framework.given(o, axes)
        if "lse" in self.positional:
            given["lse"] = framework.given(lse, lse_axes)
        values = {"scale": scale, "causal": causal, "return_lse": True, "grouped": q.shape[1] != k.shape[1]}
        made = self.function(*[given[role] for role in self.positional], **{own: values[role] for role, own in self.names.items()})
        if "o" in self.positional:
            return framework.back(given["o"], axes), framework.back(given["lse"], lse_axes) if "lse" in given else None
        parts = made if isinstance(made, (tuple, list)) else (made,)
        if not parts or not hasattr(parts[0], "shape"):
            raise TypeError(f"it returned {type(made).__name__}; allowed: an array, or a tuple that begins with one")
        wanted = tuple((*q.shape[:3], v.shape[3])[axis] for axis in axes)
        if tuple(parts[0].shape) != wanted:
            raise TypeError(f"it returned shape {list(parts[0].shape)}; allowed: {list(wanted)}")
        rows = tuple(tuple(q.shape)[axis] for axis in lse_axes)
        found = parts[1] if len(parts) > 1 and hasattr(parts[1], "shape") and tuple(parts[1].shape) in (rows, (*rows, 1)) else None
        return framework.back(parts[0], axes), None if found is None else framework.back(found.reshape(rows), lse_axes)

    def words(self, probes):
        """What was assumed, in a line."""
        shown = ", ".join(self.names.get(role, role) for role in self.positional)
        more = [self.names[role] for role in ("causal", "scale", "return_lse", "grouped") if role in self.names]
        corner = f"; causal {self.corner.replace('_', ' ')}" if "causal" in self.names else ""
        base = {math.e: "natural", 2.0: "in base 2"}[self.lse_base]
        return (f"{self.function.__name__}({', '.join([f'{shown} [{chr(44).join(self.layout)}]', *more])}){corner}; LSE {base} if any; "
                f"found by {probes} probe problem{'' if probes == 1 else 's'}")


def by_signature(function):
    """A Convention with the function's own names. Raises NoConvention."""
    name = getattr(function, "__name__", "function")
    row = known.row_of(function)
    if row is not None:
        called = function if row.translated is None else row.translated(function)
        return Convention(called, row.parameters, ("q", "k", "v"), row.layout, row.corner, is_known=True)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise NoConvention(f"{name} has no signature that Python knows; allowed: a function of q, k and v") from error
    positional, names = [], {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        role = ROLES.get(parameter.name.lower())
        is_required = parameter.default is parameter.empty
        if len(positional) < 3 and role in (None, "q", "k", "v") and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append("qkv"[len(positional)])
        elif role in ("o", "lse") and is_required and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(role)
        elif role in ("scale", "causal", "return_lse", "grouped"):
            names[role] = parameter.name
        elif is_required:
            raise NoConvention(f"{name} asks for '{parameter.name}', which nobody knows; allowed besides q, k and v: {', '.join(sorted(ROLES))}")
    if len(positional) < 3:
        raise NoConvention(f"{name} has {len(positional)} parameters for q, k and v; allowed: three")
    return Convention(function, names, tuple(positional))


def exact(q, k, v, causal, scale):
    """Attention in double: (o, lse). `causal`: None or a corner. k and v may have fewer heads."""
    q, k, v = (array.astype(numpy.float64) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = numpy.repeat(k, group, 1), numpy.repeat(v, group, 1)
    scores = q @ k.swapaxes(2, 3) * scale
    if causal:
        queries, keys = q.shape[2], k.shape[2]
        diagonal = keys - queries if causal == "bottom_right" else 0
        scores = numpy.where(numpy.tri(queries, keys, diagonal, dtype=bool), scores, -numpy.inf)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        largest = scores.max(-1, keepdims=True, initial=-numpy.inf)
        shift = numpy.where(numpy.isfinite(largest), largest, 0)
        weights = numpy.exp(scores - shift)
        total = weights.sum(-1, keepdims=True)
        return numpy.where(total > 0, weights @ v / numpy.where(total > 0, total, 1), 0), (shift + numpy.log(total))[..., 0]


def distance(got, want):
    """The largest difference by the largest number that is wanted; infinity for a NaN."""
    if got.shape != want.shape:
        return math.inf
    where = numpy.isfinite(want)
    error = numpy.abs(got[where] - want[where]).max(initial=0)
    return math.inf if not error == error else float(error / max(numpy.abs(want[where]).max(initial=0), 1e-30))


def probes(declared):
    """Sizes of probes that a function's declaration allows; their lengths are rounded up, and all sizes still differ."""
    multiples = declared.get("query_len_multiple", 1), declared.get("key_len_multiple", 1)
    dims = declared.get("head_dims")
    for batch, heads, *lengths, dim in PROBES:
        queries, keys = (-(-length // multiple) * multiple for length, multiple in zip(lengths, multiples))
        keys += multiples[1] if keys == queries else 0
        yield batch, heads, queries, keys, dim if not dims else min(dims, key=lambda one: abs(one - dim))  # noqa: B023


def candidates(convention, declared):
    """Every way to read what the signature leaves open."""
    layouts = [declared["layout"]] if "layout" in declared else [convention.layout] if convention.is_known else list(LAYOUTS)
    for layout, order in itertools.product(layouts, ("BHN", "BNH")):
        yield dataclasses.replace(convention, layout=layout, lse_order=order, corner=declared.get("causal", convention.corner))


def with_lse(convention, lse, want):
    """The convention with what its LSE turns out to be, and whether it gives one. `lse` as a probe gave it, in the order BHN if any."""
    if lse is None:
        return convention, False
    for base in (math.e, 2.0):
        if distance(lse * math.log(base), want) < NEAR:
            return dataclasses.replace(convention, lse_base=base), True
    return convention, "lse" in convention.positional or "return_lse" in convention.names
