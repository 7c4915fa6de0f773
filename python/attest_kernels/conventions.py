"""How a function is called: which parameters it has, how its arrays lie, what its causal mask and its LSE mean. Found by its parameters' names,
then by probes, small problems whose sizes all differ; what was assumed is said.

Whatever a function takes, it is called with arrays in [B, H, N, D]. Here is what all conventions share, and attention itself; gradients.py has its
gradients. A convention has the operation, `outputs` whose distance from the exact ones chooses among `candidates`, an `example` for probes, and `call`."""

import dataclasses
import inspect
import itertools
import math
import typing

from attest_kernels import known, modifications, probes

ROLES = {"q": "q", "query": "q", "k": "k", "key": "k", "v": "v", "value": "v",
         "o": "o", "out": "o", "output": "o", "lse": "lse", "softmax_lse": "lse",
         "scale": "scale", "softmax_scale": "scale", "sm_scale": "scale", "causal": "causal", "is_causal": "causal",
         "return_lse": "return_lse", "return_attn_probs": "return_lse", "return_softmax_lse": "return_lse", "enable_gqa": "grouped", **modifications.NAMES}
FLAGS = ("causal", "scale", "return_lse", "grouped", *modifications.ROLES)  # what is given by name
LAYOUTS = {"BHND": (0, 1, 2, 3), "BNHD": (0, 2, 1, 3)}  # of an array in [B, H, N, D] the order of its axes; its own inverse
ROWS = {"BHN": (0, 1, 2), "BNH": (0, 2, 1)}  # the same of LSE
BASES = {math.e: "natural", 2.0: "in base 2"}


class NoConvention(TypeError):
    """Nobody knows how to call it; one line."""


def names_of(function):
    """Of its parameters, in small letters; none where Python knows no signature."""
    try:
        return [name.lower() for name in inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return []


def _listed(names):
    return f"{', '.join(names[:-1])} and {names[-1]}"


def signature_of(function, roles, arrays, flags=FLAGS, first=("q", "k", "v")):
    """(roles of the parameters that are arrays of every case, in order; {role: own name} of `flags`, which are given by name). The first three whose
    names say nothing are `first`. Raises NoConvention for a required parameter that nobody knows."""
    name = getattr(function, "__name__", "function")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise NoConvention(f"{name} has no signature that Python knows; allowed: a function of q, k and v") from error
    positional, names = [], {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        role = roles.get(parameter.name.lower())
        role = role if modifications.is_one(role, parameter) else None
        is_required, has_place = parameter.default is parameter.empty, parameter.kind is not parameter.KEYWORD_ONLY
        if len(positional) < len(first) and role in (None, *first) and has_place:
            positional.append(first[len(positional)])
        elif role in arrays and is_required and has_place:
            positional.append(role)
        elif role in flags:
            names.setdefault(role, parameter.name)
        elif is_required:
            raise NoConvention(f"{name} asks for '{parameter.name}', which nobody knows; allowed besides {_listed(first)}: {', '.join(sorted(roles))}")
    if len(positional) < len(first):
        raise NoConvention(f"{name} has {len(positional)} parameters for {_listed(first)}; allowed: three")
    return tuple(positional), names


@dataclasses.dataclass(frozen=True)
class Convention:
    """Attention: O, and LSE where it gives one."""
    function: object
    names: dict            # role: the function's own name of a parameter that is given by name
    positional: tuple      # roles of the arrays, in order
    layout: str = "BHND"
    corner: str = "bottom_right"
    lse_base: float = math.e
    lse_order: str = "BHN"
    is_known: bool = False
    none: dict = dataclasses.field(default_factory=dict)  # modifications.none_of() of the function
    softcap_error: typing.Optional[float] = None  # over the cap, of a function that is known
    not_asked: tuple = ()  # its parameters for what problems have and no case tells it

    operation = "forward"
    outputs = ("o",)
    hiding = modifications.HIDING
    what, off_by = "attention", "the largest number"

    def told(self, framework, given):
        """What a case says besides, by role."""
        return modifications.told(self.none, framework, given, lambda array: self.like_o(framework, given, array))

    def like_o(self, framework, given, array):
        """A gate or a residual as the function takes it: where O lies."""
        return framework.given(array, self.axes_of("o"))

    def ask(self, given, causal, scale, more):
        """What the function returns; `given` by role, as it takes them, `more` what else it may ask for."""
        values = {"scale": scale, "causal": causal, "return_lse": True, "grouped": self.is_grouped(given), **more}
        return self.function(*[given[role] for role in self.positional], **{own: values[role] for role, own in self.names.items()})

    def is_grouped(self, given):
        heads = LAYOUTS[self.layout].index(1)
        return given["q"].shape[heads] != given["k"].shape[heads]

    @staticmethod
    def usual_heads(heads):
        """Heads of Q and of K in most probes."""
        return heads, heads

    def distances(self, made, want):
        """How far its outputs are from what is wanted, each by the largest number."""
        return [probes.distance(made[name], want[name]) for name in self.outputs]

    def axes_of(self, role):
        return ROWS[self.lse_order] if role in ("lse", "dlse", "delta") else LAYOUTS[self.layout]

    def taken(self, framework, given):
        """The arrays that it has parameters for, in its own layout."""
        return {role: framework.given(given[role], self.axes_of(role)) for role in self.positional}

    def call(self, framework, given, causal, scale):
        """Calls it with the framework's arrays in [B, H, N, D], of which o and lse hold what is there before: {"o": [B, H, N, D], "lse": [B, H, N]},
        without lse where it gives none. What else a case has is in `given`, too (modifications.told)."""
        taken = self.taken(framework, given)
        made = self.ask(taken, causal, scale, self.told(framework, given))
        o, lse = (taken["o"], taken.get("lse")) if "o" in self.positional else self.parts(made, given["q"].shape, given["v"].shape[3])
        found = {"o": framework.back(o, self.axes_of("o"))}
        if lse is not None:
            lse = framework.back(lse, self.axes_of("lse"))
            found["lse"] = lse if self.lse_base == math.e else lse * math.log(self.lse_base)
        return found

    def shapes(self, rows, columns):
        """Of O and LSE in its own layout, for queries [B, H, N, ...]."""
        o, lse = (*rows[:3], columns), tuple(rows[:3])
        return tuple(o[axis] for axis in self.axes_of("o")), tuple(lse[axis] for axis in self.axes_of("lse"))

    def parts(self, made, rows, columns):
        """(O, LSE or None) of what it returned, in its own layout; `rows` as shapes() takes them."""
        parts = made if isinstance(made, (tuple, list)) else (made,)
        if not parts or not hasattr(parts[0], "shape"):
            raise TypeError(f"it returned {type(made).__name__}; allowed: an array, or a tuple that begins with one")
        wanted, lses = self.shapes(rows, columns)
        if tuple(parts[0].shape) != wanted:
            raise TypeError(f"it returned shape {list(parts[0].shape)}; allowed: {list(wanted)}")
        is_lse = len(parts) > 1 and hasattr(parts[1], "shape") and tuple(parts[1].shape) in (lses, (*lses, 1))
        return parts[0], parts[1].reshape(lses) if is_lse else None

    def exact(self, drawn, causal, scale):
        """probes.exact() of a drawn problem."""
        return probes.exact(drawn["q"], drawn["k"], drawn["v"], causal, scale, corner=self.corner, **self.modified(drawn))

    @staticmethod
    def modified(drawn):
        return {role: drawn[role] for role in modifications.ROLES if role in drawn}

    def example(self, drawn, causal, scale):
        """(what it is given, what is wanted of it) of a drawn problem, in double."""
        o, lse = self.exact(drawn, causal, scale)
        return {**{name: drawn[name] for name in "qkv"}, **self.modified(drawn)}, {"o": o, "lse": lse}

    def candidates(self, declared):
        """Every way to read what the signature leaves open."""
        layouts = [declared["layout"]] if "layout" in declared else [self.layout] if self.is_known else list(LAYOUTS)
        for layout, order in itertools.product(layouts, ROWS):
            yield dataclasses.replace(self, layout=layout, lse_order=order, corner=declared.get("causal", self.corner))

    def settled(self, made, want):
        """(The convention with what its LSE turns out to be, the outputs that it does not give), from a probe's answer."""
        if "lse" not in made:
            return self, ["lse"]
        for base in BASES:
            if probes.distance(made["lse"] * math.log(base), want["lse"]) < probes.NEAR:
                return dataclasses.replace(self, lse_base=base), []
        return self, [] if "lse" in self.positional or "return_lse" in self.names else ["lse"]

    def words(self, count):
        """What was assumed, in a line; `count` probes were asked."""
        of = " and ".join(["causal"] * ("causal" in self.names) + ["window"] * self.takes_window())
        corner = f"; {of} {self.corner.replace('_', ' ')}" if of else ""
        return (f"{self.function.__name__}({self.parameters()}){corner}{self.about_lse()}; "
                f"found by {count} probe problem{'' if count == 1 else 's'}")

    def takes_window(self):
        return "window" in self.names or "window_left" in self.names

    def window_rights(self):
        """Keys that its windows may see behind the diagonal, -1 all of them; None: any number."""
        if "window" in self.names or "window_right" in self.names:
            return None
        return [-1, 0] if "causal" in self.names else [-1]

    def modifications(self):
        """Those of its operation that it has parameters for, windows apart."""
        return [role for role in ("softcap", "sinks", "slopes", *modifications.OF_PAIRS, *modifications.OF_OUTPUT) if role in self.names]

    def parameters(self):
        """Arrays, with their layout, and flags."""
        flags = [self.names[role] for role in sorted(self.names, key=lambda role: FLAGS.index(role) if role in FLAGS else len(FLAGS))]
        return ", ".join([f"{', '.join(self.positional)} [{','.join(self.layout)}]", *flags])

    def about_lse(self):
        return f"; LSE {BASES[self.lse_base]} if any"

    def features(self):
        """Of the kernel, as core/attention/problem_field.hpp names them, besides modifications."""
        return []

    def facts(self, answers):
        """What else the judge has to know; answers(sizes=, ...): does it answer such a probe?"""
        return {}


def attention(function, declared):
    """A Convention with the function's own names, and what it declares of them. Raises NoConvention."""
    row = known.row_of(function)
    if row is not None:
        called, names = row.called(function)
        return Convention(called, names, ("q", "k", "v"), row.layout, row.corner, is_known=True, none=modifications.none_of(called, names),
                          softcap_error=row.softcap_error, not_asked=tuple(row.left_out(function)))
    positional, names = signature_of(function, modifications.roles_with(ROLES, declared), ("o", "lse"))
    return Convention(function, names, positional, none=modifications.none_of(function, names))
