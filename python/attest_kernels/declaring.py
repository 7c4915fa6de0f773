"""What a function says of itself: `@kernel(...)` above it. What it does not say is found out by probes (conventions.py) or has a default."""

FORMATS = ("fp32", "fp16", "bf16")
MASKS_WITHOUT_WINDOW = ("none", "causal_top_left", "causal_bottom_right")
MASKS = (*MASKS_WITHOUT_WINDOW, "window_top_left", "window_bottom_right")
CORNERS = ("top_left", "bottom_right")
LAYOUTS = ("BHND", "BNHD")
OPERATIONS = ("forward", "backward", "select")


def listed(name, values, allowed):
    values = (values,) if isinstance(values, str) else tuple(values)
    for value in values:
        if value not in allowed:
            raise ValueError(f"{name} has {value!r}; allowed: {', '.join(allowed)}")
    return values


def size(name, value):
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
        raise ValueError(f"{name} is {value!r}; allowed: whole numbers from 1 to 4096")
    return value


def parameter(name, own):
    if own is not False and not (isinstance(own, str) and own.isidentifier()):
        raise ValueError(f"{name} is {own!r}; allowed: a parameter's name, or False")
    return own


def kernel(function=None, *, operation=None, types=None, masks=None, head_dims=None, layout=None, causal=None, grouped=None, query_len_multiple=1,
           key_len_multiple=1, softcap=None, window=None, sinks=None, alibi_slopes=None, bias=None, mask=None, gate=None, residual=None,
           empty_rows=True, positive_scale=False, deterministic=True, batch_invariant=False, ignores_hidden_nan=False, rounds_parts=False,
           fuses_epilogue=False, name=None):
    """Marks a function as a kernel and says what it takes.

    operation: forward, or backward: a function that gives O is judged by the gradients that its framework derives, PyTorch or JAX; one that takes do
    (gradients.py) computes them itself, and is backward without saying so; or select: a function that chooses keys (choices.py), as one with weights
    and top_k is without saying so.
    types: of fp32, fp16, bf16. masks: of none, causal_top_left, causal_bottom_right, window_top_left, window_bottom_right. head_dims: those that it
    takes, any if not given. layout: BHND or BNHD, of its arrays. causal: the corner of its causal mask and its window. softcap, window, sinks,
    alibi_slopes, bias, gate, residual: the name of its parameter where that is unusual; False where what is called so (modifications.py) is something else.
    mask: that of a mask of booleans [B, 1, Nq, Nk], true for a key that is seen, which no name says; where a case has one it says all that is hidden, and
    causal is False.
    grouped: fewer heads of K and V. query_len_multiple, key_len_multiple: lengths that it takes. empty_rows: False where a row that sees no key is
    not its business, nor is then a bias or a mask, which may hide them all. positive_scale: True where a scale of 0, below 0 or subnormal is not.
    deterministic: two calls give the same bits. batch_invariant: a request has its bits in any batch. ignores_hidden_nan: a NaN in a key or value
    that a row does not see stays out of it. rounds_parts: it merges partial O, or adds parts of gradients, that were rounded to the type of its
    inputs, as ranks of a ring do.
    fuses_epilogue: O is rounded once, after its gate and its residual; else before them, and after each, as steps do that store it."""
    declared = {"query_len_multiple": size("query_len_multiple", query_len_multiple), "key_len_multiple": size("key_len_multiple", key_len_multiple),
                "empty_rows": bool(empty_rows), "positive_scale": bool(positive_scale), "deterministic": bool(deterministic),
                "batch_invariant": bool(batch_invariant), "ignores_hidden_nan": bool(ignores_hidden_nan), "rounds_parts": bool(rounds_parts),
                "fuses_epilogue": bool(fuses_epilogue)}
    if operation is not None:
        declared["operation"] = listed("operation", operation, OPERATIONS)[0]
    if types is not None:
        declared["types"] = listed("types", types, FORMATS)
    if masks is not None:
        declared["masks"] = listed("masks", masks, MASKS)
    if head_dims is not None:
        declared["head_dims"] = sorted({size("head_dims", dim) for dim in head_dims})
    if layout is not None:
        declared["layout"] = listed("layout", layout, LAYOUTS)[0]
    if causal is not None:
        declared["causal"] = listed("causal", causal, CORNERS)[0]
    if grouped is not None:
        declared["grouped"] = bool(grouped)
    for what, own in (("softcap", softcap), ("window", window), ("sinks", sinks), ("alibi_slopes", alibi_slopes), ("bias", bias), ("mask", mask),
                      ("gate", gate), ("residual", residual)):
        if own is not None:
            declared[what] = parameter(what, own)
    if name is not None:
        declared["name"] = str(name)

    def mark(marked):
        marked.__attest_kernel__ = declared
        return marked
    return mark if function is None else mark(function)
