"""A function of which a task says everything: what it declares of itself counts for nothing, nothing is probed, and what it cannot do of what is
asked is a failure. `attest judge` starts it, in a box."""

import dataclasses
import math

from attest_kernels import adapters, conventions, frameworks, interpreter, loading, tripwires


class Judged:
    """`asked`: {"format": of adapters.FORMATS, "types": [...], "masks": [...], "layout": "BHND", "lse": bool, "scale": bool}. Raises TypeError with a
    line for what cannot be called so."""

    def __init__(self, text, asked):
        self.asked, self.flags = asked, tripwires.of(text)
        found, module = loading.loaded(text)
        self.framework = frameworks.used_by(module)
        for name in asked["types"]:
            if name not in interpreter.types(self.framework.types):
                raise TypeError(f"the task asks for {name}, which {self.framework.words}{interpreter.words()} has not")
        row = adapters.FORMATS[asked["format"]]
        convention = conventions.attention(row.called(found, module, self.framework), {})
        if len(asked["masks"]) > 1 and "causal" not in convention.names:
            raise TypeError(f"the task asks for the masks {' and '.join(asked['masks'])}, and there is no parameter 'causal'")
        if asked["scale"] and "scale" not in convention.names:
            raise TypeError("the task asks for any scale, and there is no parameter 'scale'")
        how = {"layout": asked["layout"], "lse_base": math.e, **row.how}
        self.convention = dataclasses.replace(convention, function=self.watched(convention.function), **how)

    def watched(self, function):
        """The function, if it returns what holds its numbers: what is computed when it is looked at would be computed after the clock has stopped."""
        def watched(*given, **named):
            made = function(*given, **named)
            parts = made if type(made) in (tuple, list) else (made,)
            for part in parts:
                if part is not None and type(part) is not self.framework.plain:
                    raise TypeError(f"it returned {type(part).__name__}; allowed: {self.framework.plain.__name__} itself")
            if self.asked["lse"] and made is not None and len(parts) < 2:
                raise TypeError("it returned O alone; the task asks for O and LSE [B, H, N]")
            return made
        return watched

    def describe(self):
        return {"library": self.framework.words + interpreter.words(), "flags": self.flags}
