"""Assertions for tests that exist: one line instead of a tolerance. And the bound itself, for whoever has a harness of his own."""

import json
import os
import pathlib
import tempfile
import typing

import numpy

from attest_kernels import program

AXES = "BHND"
# Rows of larger problems are drawn: all would take seconds.
ROWS_AT_ONCE = 512
LARGE_WORK = 2.0 ** 28  # multiply-adds of Q K^T


class WrongAttention(AssertionError):
    """Some element is outside its error bound. `report`: what the program said, as a dictionary."""

    def __init__(self, message, report):
        super().__init__(message)
        self.report = report


class Bound(typing.NamedTuple):
    """Exact outputs in double, and how far a correct fused kernel may be from each element."""
    o: typing.Any
    lse: typing.Any
    o_bound: typing.Any
    lse_bound: typing.Any


def _in_order(array, name, layout):
    """`array` on the host, its axes in the order of AXES; without B it gets one."""
    from attest_kernels import arrays
    host = arrays.on_host(array, name)
    if sorted(layout) not in (sorted(AXES), sorted("HND")):
        raise ValueError(f"layout is {layout!r}; allowed: the letters B, H, N and D in the order of the axes, or H, N and D")
    if host.values.ndim != len(layout):
        raise ValueError(f"{name} has {host.values.ndim} axes; allowed: {len(layout)}, as layout {layout!r} says")
    host.values = host.values.transpose([layout.index(axis) for axis in AXES if axis in layout])
    if "B" not in layout:
        host.values = host.values[None]
    return host


def _lse_in_order(array, name, layout):
    from attest_kernels import arrays
    host = arrays.on_host(array, name)
    if "B" not in layout:
        host.values = host.values[None]
    if host.values.ndim != 3:
        raise ValueError(f"{name} has {host.values.ndim} axes; allowed: batch, heads and tokens, in this order")
    return host


def _modifiers(sinks, alibi_slopes, bias, q, k):
    """What changes scores and their sums, under the operation's names. Axes of size 1 of a bias stand for all heads or entries; those that it lacks, too."""
    from attest_kernels import arrays
    wanted = *q.values.shape[:3], k.values.shape[2]
    found = {}
    for name, own, array in (("sinks", "sinks", sinks), ("slopes", "alibi_slopes", alibi_slopes)):
        if array is None:
            continue
        found[name] = arrays.on_host(array, own)
        if found[name].values.shape != wanted[1:2]:
            raise ValueError(f"{own} has shape {list(found[name].values.shape)}; allowed: [{wanted[1]}], a number for each query head")
    if bias is not None:
        found["bias"] = host = arrays.on_host(arrays.added(bias), "bias")
        shape = (1,) * (len(wanted) - host.values.ndim) + host.values.shape
        if len(shape) != len(wanted) or any(size not in (1, of) for size, of in zip(shape, wanted)):
            raise ValueError(f"bias has shape {list(host.values.shape)}; allowed: [{', '.join(map(str, wanted))}], batch, heads, queries and keys, "
                             "or 1 in place of any")
        host.values = numpy.broadcast_to(host.values.reshape(shape), shape[:2] + wanted[2:])
    return found


def _epilogue(gate, residual, q, v, layout):
    """What O is multiplied by and what is added to it, each like O."""
    wanted, found = (*q.values.shape[:3], v.values.shape[3]), {}
    for name, array in (("gate", gate), ("residual", residual)):
        if array is None:
            continue
        found[name] = _in_order(array, name, layout)
        if found[name].values.shape != wanted:
            raise ValueError(f"{name} has shape {list(found[name].values.shape)}; allowed: {list(wanted)}, batch, heads, queries and columns, as O has")
    return found


def _how_rounded(epilogue, fuses_epilogue):
    return ["--rounds-before-epilogue"] if epilogue and not fuses_epilogue else []


def _number(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {value!r}; allowed: a number")
    return f"{float(value)!r}"


def _question(lengths, causal, window, scale, softcap):
    """The rest of a problem's text."""
    queries, keys = lengths
    corners = {"top_left", "bottom_right"}
    if causal is True:
        if queries != keys:
            raise ValueError(f"causal is True with {queries} queries and {keys} keys; allowed: 'top_left' (a query sees keys up to its own number) "
                             "or 'bottom_right' (the last query sees all keys)")
        causal = "bottom_right"
    if causal not in (False, None) and causal not in corners:
        raise ValueError(f"causal is {causal!r}; allowed: False, True, 'top_left', 'bottom_right'")
    words = []
    if window is not None:
        left, right = window
        right = 0 if causal else right
        words.append(f"window_{causal or 'bottom_right'}")
        words += [f"{side}{int(reach)}" for side, reach in (("left", left), ("right", right)) if reach is not None and reach >= 0]
    elif causal:
        words.append(f"causal_{causal}")
    if scale is not None:
        words.append(f"scale{_number(scale, 'scale')}")
    if softcap is not None:
        words.append(f"softcap{_number(softcap, 'softcap')}")
    return " ".join(words)


def _scratch():
    memory = pathlib.Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="attest", dir=memory if os.access(memory, os.W_OK) else None)


def _ask(tensors, question, more=()):
    """What `attest check` says of the tensors."""
    from attest_kernels import tensors_file
    with _scratch() as folder:
        file = pathlib.Path(folder) / "tensors"
        tensors_file.write(file, tensors)
        arguments = ["check", str(file), "--json", *more]
        if question:
            arguments += ["--problem", question]
        _, text = program.run(arguments, may_end_with=(0, 1, 4))
    return json.loads(text)


def _sentences(report):
    lines = []
    for output in report["outputs"]:
        if output["outside"] == 0:
            continue
        at = ", ".join(map(str, output["index"]))
        lines.append(f"{output['label']} is outside its error bound in {output['outside']:,} of {output['elements']:,} elements\n"
                     f"  worst    {output['label']}[{at}] (batch, head, token, column): got {float(output['got']):.8g}, "
                     f"want {float(output['want']):.8g}, bound {float(output['bound']):.2g}, error / bound {float(output['error_over_bound']):.3g}")
    lines.append(f"  problem  {report['problem']}")
    if report["rows"] < report["of_rows"]:
        lines.append(f"  rows     {report['rows']:,} of {report['of_rows']:,} were drawn; rows= compares more, seed= others")
    return lines


def _require(report, message):
    __tracebackhide__ = True  # of pytest: who reads a failure wants his own line above the sentence
    if report["verdict"] == "passed":
        return report
    if report["verdict"] == "vacuous":
        raise WrongAttention("an output has no element with a finite bound: a score can overflow, and nothing is decided", report)
    lines = [message] if message else []
    raise WrongAttention("\n".join(lines + _sentences(report) + ["attest_kernels.verify(function) finds the smallest case that fails"]), report)


def assert_attention(o, q, k, v, *, lse=None, causal=False, window=None, scale=None, softcap=None, sinks=None, alibi_slopes=None, bias=None,
                     gate=None, residual=None, fuses_epilogue=False, layout="BHND", rows=None, seed=0, message=""):
    """Raises WrongAttention, an AssertionError, unless every element of `o` is as near to exact attention of q, k and v as a correct fused
    kernel is: the tolerance is computed for each element, from the roundings that such a kernel does (fp32 sums, P in the inputs' format).

    q [B, H, N, D], k and v with fewer heads for grouped queries, o as q; `layout` names their axes. lse [B, H, N], natural logarithm. `causal`:
    False, True where there are as many queries as keys, "top_left" or "bottom_right". `window`: (left, right) keys beside the diagonal, None or
    -1 for no limit. `scale`: by default 1 / sqrt(D). `softcap`: c of c tanh(s / c). `rows`: so many drawn rows (by `seed`) are compared in every
    element; by default all, or 512 of problems that would take longer than half a second, which with slopes of ALiBi take as long as all. A NaN is
    seen in whichever row it is.

    What modifies scores is in units of natural logarithms. `sinks` [H]: the sum of a row has one more term, e^sink. `alibi_slopes` [H]: the score of
    query i and key j loses slope * |j - (i + Nk - Nq)|, or slope * |j - i| under a mask of the top left. `bias`: is added to scores, whatever the
    layout [B, H, Nq, Nk] or what broadcasts to it; -infinity hides a key, and so does False in a mask of booleans.

    `gate` and `residual`, each like o: o = gate * attention + residual; a gate is the factor itself, after its sigmoid. The bound has room for
    attention that was stored in the inputs' format before them, and after each, unless `fuses_epilogue`.

    Returns what was found: {"problem", "verdict", "rows", "outputs": [{"name", "elements", "error_over_bound", ...}]}."""
    __tracebackhide__ = True
    tensors = {name: _in_order(array, name, layout) for name, array in (("q", q), ("k", k), ("v", v), ("o", o))}
    if lse is not None:
        tensors["lse"] = _lse_in_order(lse, "lse", layout)
    tensors.update(_modifiers(sinks, alibi_slopes, bias, tensors["q"], tensors["k"]))
    epilogue = _epilogue(gate, residual, tensors["q"], tensors["v"], layout)
    tensors.update(epilogue)
    (batch, heads, queries, dim), keys = tensors["q"].values.shape, tensors["k"].values.shape[2]
    if rows is None and batch * heads * queries * keys * dim > LARGE_WORK:
        rows = ROWS_AT_ONCE
    more = _how_rounded(epilogue, fuses_epilogue) + ([] if rows is None else ["--rows", str(int(rows)), "--seed", str(int(seed))])
    return _require(_ask(tensors, _question((queries, keys), causal, window, scale, softcap), more), message)


def assert_gradients(dq, dk, dv, q, k, v, do, *, o=None, lse=None, dlse=None, causal=False, window=None, scale=None, softcap=None, layout="BHND",
                     message=""):
    """The same of gradients of q, k and v, each of which may be None, for the gradient `do` of O and, if given, `dlse` of LSE. `o` and `lse` are
    what the backward pass was given, whose errors are then not its own; without them those of an exact forward pass, rounded once."""
    __tracebackhide__ = True
    named = (("q", q), ("k", k), ("v", v), ("do", do), ("o", o), ("dq", dq), ("dk", dk), ("dv", dv))
    tensors = {name: _in_order(array, name, layout) for name, array in named if array is not None}
    if not {"dq", "dk", "dv"} & tensors.keys():
        raise ValueError("dq, dk and dv are all None; allowed: at least one")
    for name, array in (("lse", lse), ("dlse", dlse)):
        if array is not None:
            tensors[name] = _lse_in_order(array, name, layout)
    lengths = tensors["q"].values.shape[2], tensors["k"].values.shape[2]
    return _require(_ask(tensors, _question(lengths, causal, window, scale, softcap)), message)


def bound(q, k, v, *, causal=False, window=None, scale=None, softcap=None, sinks=None, alibi_slopes=None, bias=None, gate=None, residual=None,
          fuses_epilogue=False, layout="BHND"):
    """Bound(o, lse, o_bound, lse_bound) in double, o in the given layout and lse [B, H, N]: a correct fused kernel is within o_bound of o, element
    by element; infinity where nothing can be proven. What is asked is said as in assert_attention."""
    from attest_kernels import tensors_file
    tensors = {name: _in_order(array, name, layout) for name, array in (("q", q), ("k", k), ("v", v))}
    tensors.update(_modifiers(sinks, alibi_slopes, bias, tensors["q"], tensors["k"]))
    epilogue = _epilogue(gate, residual, tensors["q"], tensors["v"], layout)
    tensors.update(epilogue)
    lengths = tensors["q"].values.shape[2], tensors["k"].values.shape[2]
    with _scratch() as folder:
        file = pathlib.Path(folder) / "bounds"
        _ask(tensors, _question(lengths, causal, window, scale, softcap), ["--bounds", str(file), *_how_rounded(epilogue, fuses_epilogue)])
        found = tensors_file.read(file)

    def shaped(array):
        axes = [axis for axis in AXES if axis in layout]
        return array.reshape(array.shape[len(AXES) - len(axes):]).transpose([axes.index(axis) for axis in layout])
    return Bound(shaped(found["o"]), found["lse"][..., 0], shaped(found["o_bound"]), found["lse_bound"][..., 0])
