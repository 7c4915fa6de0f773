"""Gradients of attention: of a function that gives O, by its framework, or from one that computes dQ, dK and dV itself."""

import dataclasses
import itertools
import math

from attest_kernels import conventions, modifications, probes

DO = {"do": "do", "dout": "do", "d_o": "do", "grad_o": "do", "grad_out": "do", "grad_output": "do"}
NOT_TAKEN = ("return_lse", "sinks", "slopes", *modifications.OF_PAIRS, *modifications.OF_OUTPUT)
ROLES = {**{name: role for name, role in conventions.ROLES.items() if role not in NOT_TAKEN}, **DO,
         "delta": "delta", "dlse": "dlse", "grad_lse": "dlse", "dq": "dq", "dk": "dk", "dv": "dv"}
GIVEN = ("o", "lse", "do", "delta", "dlse")
OUTPUTS = ("dq", "dk", "dv")


def takes_do(function):
    """Has it a parameter for the gradient of O? Then it is a backward pass."""
    return any(name in DO for name in conventions.names_of(function))


@dataclasses.dataclass(frozen=True)
class Backward(conventions.Convention):
    """dQ, dK and dV of O and LSE as they are given: a backward pass by hand. It returns the three, or writes them into dq, dk and dv."""

    operation = "backward"
    outputs = OUTPUTS
    what = "gradients"

    def call(self, framework, given, causal, scale):
        """As conventions.Convention.call: {"dq", "dk", "dv"} in [B, H, N, D]. LSE, and delta = sum(do * o) - dlse if it is asked for, in fp32."""
        given = {"dlse": framework.zeros(given["lse"].shape, given["lse"]), **given}
        if "delta" in self.positional:
            given["delta"] = framework.row_sums(given["do"], given["o"]) - given["dlse"]
        if self.lse_base != math.e and "lse" in self.positional:
            given["lse"] = given["lse"] / math.log(self.lse_base)
        taken = self.taken(framework, given)
        made = self.ask(taken, causal, scale, self.told(framework, given))
        if "dq" in self.positional:
            made = [taken[role] for role in OUTPUTS]
        if not isinstance(made, (tuple, list)) or len(made) < 3 or not all(hasattr(one, "shape") for one in made[:3]):
            raise TypeError(f"it returned {type(made).__name__}; allowed: a tuple (dq, dk, dv)")
        for role, of, one in zip(OUTPUTS, "qkv", made):
            wanted = tuple(given[of].shape[axis] for axis in self.axes_of(role))
            if tuple(one.shape) != wanted:
                raise TypeError(f"it returned {role} with shape {list(one.shape)}; allowed: {list(wanted)}")
        return {role: framework.back(one, self.axes_of(role)) for role, one in zip(OUTPUTS, made)}

    def example(self, drawn, causal, scale):
        o, lse = self.exact(drawn, causal, scale)
        return {**drawn, "o": o, "lse": lse}, exact_gradients(self, drawn, causal, scale)

    def candidates(self, declared):
        has_lse = "lse" in self.positional
        for one, base in itertools.product(super().candidates(declared), conventions.BASES if has_lse else (math.e,)):
            yield dataclasses.replace(one, lse_base=base)

    def settled(self, made, want):
        return self, []

    def features(self):
        return ["dlse"] if "dlse" in self.positional else []

    def about_lse(self):
        return f"; LSE {conventions.BASES[self.lse_base]}" if "lse" in self.positional else ""


@dataclasses.dataclass(frozen=True)
class Autograd(conventions.Convention):
    """dQ, dK and dV of a function that gives O, as its framework derives them: both passes are its own."""

    operation = "gradient"
    outputs = OUTPUTS
    what = "gradients"

    def call(self, framework, given, causal, scale):
        """As conventions.Convention.call: {"dq", "dk", "dv"} in [B, H, N, D]."""
        rows, columns, told = given["q"].shape, given["v"].shape[3], self.told(framework, given)

        def o_of(*arrays):
            made = self.ask(dict(zip("qkv", arrays)), causal, scale, told)
            return self.parts(made, rows, columns)[0]
        taken = {role: framework.given(given[role], self.axes_of(role)) for role in ("q", "k", "v", "do")}
        made = framework.gradients(o_of, [taken[role] for role in "qkv"], taken["do"])
        return {role: framework.back(one, self.axes_of(role)) for role, one in zip(OUTPUTS, made)}

    def example(self, drawn, causal, scale):
        return drawn, exact_gradients(self, drawn, causal, scale)

    def modifications(self):
        return [role for role in super().modifications() if role == "softcap"]

    def candidates(self, declared):
        return (one for one in super().candidates(declared) if one.lse_order == "BHN")

    def settled(self, made, want):
        return self, []

    def about_lse(self):
        return "; gradients of O by its framework"


def exact_gradients(convention, drawn, causal, scale):
    """{"dq", "dk", "dv"} of a drawn problem."""
    q, k, v, do = (drawn[name] for name in ("q", "k", "v", "do"))
    made = probes.exact_gradients(q, k, v, do, causal, scale, corner=convention.corner, **convention.modified(drawn))
    return dict(zip(OUTPUTS, made))


def by_hand(function, declared):
    """A Backward with the function's own names. Raises NoConvention."""
    positional, names = conventions.signature_of(function, modifications.roles_with(ROLES, declared), (*GIVEN, *OUTPUTS))
    if 0 < len(set(positional) & set(OUTPUTS)) < len(OUTPUTS):
        raise conventions.NoConvention(f"{function.__name__} writes some of its gradients where it is told to; allowed: dq, dk and dv, or none of them")
    return Backward(function, names, positional, none=modifications.none_of(function, names))


def by_framework(function, declared):
    """An Autograd of a function that gives O. Raises NoConvention."""
    one = conventions.attention(function, declared)
    if one.positional != ("q", "k", "v"):
        raise conventions.NoConvention(f"{function.__name__} writes O where it is told to, which nothing derives; allowed for gradients: a returned O, "
                                       "or a function that takes do")
    return Autograd(**{field.name: getattr(one, field.name) for field in dataclasses.fields(one)})
