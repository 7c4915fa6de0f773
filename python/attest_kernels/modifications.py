"""What a function may take besides: of scores a softcap, a window, learned sinks, slopes of ALiBi, a bias and a mask of booleans; of O a gate and a residual.
Which parameters say it, and what they say of a case that has none."""

import inspect
import math

import numpy

NAMES = {"softcap": "softcap", "logits_soft_cap": "softcap", "window": "window", "window_size": "window", "window_left": "window_left",
         "window_right": "window_right", "sinks": "sinks", "sink": "sinks", "s_aux": "sinks", "alibi_slopes": "slopes", "slopes": "slopes",
         "bias": "bias", "attn_bias": "bias", "attn_mask": "bias", "gate": "gate", "output_gate": "gate", "residual": "residual"}
DECLARED = {**NAMES, "mask": "mask"}  # what a declaration may name; a parameter that is called mask may be anything
ROLES = ("softcap", "window", "window_left", "window_right", "sinks", "slopes", "bias", "mask", "gate", "residual")
# What means none, for a parameter whose default is one of them; else it is told the first. A window is (left, right) keys beside the diagonal.
NONE = {"softcap": (0.0, None), "window": ((-1, -1), (None, None), None), "window_left": (-1, None), "window_right": (-1, None),
        "sinks": (-math.inf, None), "slopes": (0.0, None), "bias": (0.0, None), "mask": (True, None),
        "gate": (1.0, None), "residual": (-0.0, None)}  # 0 would make 0 of -0
OF_PAIRS = ("bias", "mask")
OF_OUTPUT = ("gate", "residual")  # tensors like O, in its format and in its place
# [H] twice, [B or 1, H or 1, queries, keys], and [B, 1, queries, keys] with true for a key that a query sees.
ARRAYS = {"sinks": (0,), "slopes": (0,), **{role: (0, 1, 2, 3) for role in OF_PAIRS}}
HIDING = ("padding", "prefix", "documents", "lists")  # what of a problem such a mask says, by the names of core/attention/problem_field.hpp
SHARED = {"full": (), "heads": (0,), "entries": (1,), "shared": (0, 1)}  # a bias, as problems name it: which of its axes have size 1


def roles_with(roles, declared):
    """`roles` of names, with those that a function declares of its own: a parameter's name, or False where what is called so is something else."""
    said = {role: declared[name] for name, role in DECLARED.items() if name in declared}
    others = {name: role for name, role in roles.items() if role.partition("_")[0] not in said}  # a window's sides are the window
    return {**others, **{name.lower(): role for role, name in said.items() if name}}


def is_one(role, parameter):
    """Can the parameter of this role's name be it? A window of one number is something else, and so is a gate that is a number, or on or off."""
    if parameter.default is parameter.empty or parameter.default is None or role not in ("window", *OF_OUTPUT):
        return True
    return role == "window" and isinstance(parameter.default, (tuple, list))


def none_of(function, names):
    """{role: what it is told where a case has none}, of arrays the number that fills one, or None."""
    try:
        defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    except (TypeError, ValueError):
        defaults = {}
    told = {}
    for role in set(names) & set(ROLES):
        default = defaults.get(names[role], inspect.Parameter.empty)
        is_plain = default is None or isinstance(default, (int, float, tuple))
        told[role] = next((one for one in NONE[role] if is_plain and one == default), NONE[role][0])
    return told


def told(none, framework, given, like_o):
    """{role: what it is told} of a case: `given` has "softcap", "window" and arrays if the case does; like_o() makes of one in [B, H, N, D] what the
    function takes for O."""
    values = {role: one for role, one in none.items() if role not in (*ARRAYS, *OF_OUTPUT)}
    if "softcap" in given:
        values["softcap"] = given["softcap"]
    if "window" in given:
        no_end = None if none.get("window") == (None, None) else -1
        values["window"] = tuple(no_end if reach < 0 else reach for reach in given["window"])
        values.update({role: reach for role, reach in zip(("window_left", "window_right"), given["window"]) if reach >= 0})
    for role, axes in ARRAYS.items():
        if role in given:
            values[role] = framework.given(given[role].reshape(-1) if role not in OF_PAIRS else given[role], axes)
        elif none.get(role) is not None:
            shape = (given["q"].shape[1],) if role not in OF_PAIRS else (1, 1, given["q"].shape[2], given["k"].shape[2])
            values[role] = framework.given(framework.array(numpy.full(shape, none[role]), format_of(role)), axes)
        else:
            values[role] = None
    for role in OF_OUTPUT:
        array = given.get(role)
        if array is None and none.get(role) is not None:
            array = framework.zeros((*given["q"].shape[:3], given["v"].shape[3]), given["q"])
            array[...] = none[role]
        values[role] = None if array is None else like_o(array)
    return values


def format_of(role):
    return "bool" if role == "mask" else "fp32"


def example(role, batch, heads, queries, keys, dim, is_one_sided, shared):
    """What a probe asks of this role."""
    draw = numpy.random.default_rng(9)
    if role == "mask":
        return draw.random((batch, 1, queries, keys)) < 0.7
    if role == "bias":
        return draw.standard_normal([1 if axis in SHARED[shared] else size for axis, size in enumerate((batch, heads, queries, keys))])
    if role in OF_OUTPUT:
        return draw.random((batch, heads, queries, dim))
    return {"softcap": 2.0, "window": (2, -1 if is_one_sided else 1), "sinks": draw.standard_normal(heads), "slopes": draw.random(heads)}[role]
