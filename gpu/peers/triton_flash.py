"""FlashAttention-2's forward pass in Triton, imported by torch_worker.py [FA2 Alg. 1; KT of S3, T1 of S0, T2 of S1, T3 of S2].

A program makes BR query rows of one head: Q stays on chip, tiles of BC keys pass by, O is divided once at the end. Tiles that
every row sees in full are not masked; those at the diagonal and at the end of the keys are. The running maximum is kept in
units of log2, because the hardware's exponential is 2^x. Programs of long rows (causal masks: the last ones) come first.
"""

import triton
import triton.language as tl

UNIT = tl.constexpr(8)  # elements of 16 bits in 16 bytes


@triton.jit
def add_tile(o, m, l, q, k_tile, v_tile, k_row, v_row, first, keys, last_seen, scale_log2,
             BC: tl.constexpr, D: tl.constexpr, IS_MASKED: tl.constexpr):
    """Online softmax over keys [first, first + BC); row i sees keys up to last_seen[i]."""
    c = first + tl.arange(0, BC)
    dims = tl.arange(0, D)
    k_at = k_tile + c[None, :].to(tl.int64) * k_row + dims[:, None]
    v_at = v_tile + c[:, None].to(tl.int64) * v_row + dims[None, :]
    if IS_MASKED:
        k = tl.load(k_at, mask=c[None, :] < keys, other=0.0)
    else:
        k = tl.load(k_at)
    s = tl.dot(q, k) * scale_log2
    if IS_MASKED:
        s = tl.where((c[None, :] <= last_seen[:, None]) & (c[None, :] < keys), s, float("-inf"))
    m_new = tl.maximum(m, tl.max(s, 1))
    # A row that has seen nothing keeps -inf; minus itself that would be NaN.
    base = tl.where(m_new == float("-inf"), 0.0, m_new)
    p = tl.exp2(s - base[:, None])
    keep = tl.exp2(m - base)
    l = l * keep + tl.sum(p, 1)
    if IS_MASKED:
        v = tl.load(v_at, mask=c[:, None] < keys, other=0.0)
    else:
        v = tl.load(v_at)
    o = tl.dot(p.to(v.dtype), v, o * keep[:, None])
    return o, m_new, l


# Compiled for any sizes and strides. All strides are in units of 16 bytes, so that the compiler knows their alignment.
@triton.jit(do_not_specialize=["heads", "group", "queries", "keys", "offset", "q_batch", "q_head", "q_row", "k_batch", "k_head",
                               "k_row", "v_batch", "v_head", "v_row", "o_batch", "o_head", "o_row"])
def triton_flash_forward(q, k, v, o, lse, scale_log2, heads, group, queries, keys, offset,
                         q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
                         BR: tl.constexpr, BC: tl.constexpr, D: tl.constexpr, IS_CAUSAL: tl.constexpr):
    q_batch, q_head, q_row = q_batch.to(tl.int64) * UNIT, q_head.to(tl.int64) * UNIT, q_row.to(tl.int64) * UNIT
    k_batch, k_head, k_row = k_batch.to(tl.int64) * UNIT, k_head.to(tl.int64) * UNIT, k_row.to(tl.int64) * UNIT
    v_batch, v_head, v_row = v_batch.to(tl.int64) * UNIT, v_head.to(tl.int64) * UNIT, v_row.to(tl.int64) * UNIT
    o_batch, o_head, o_row = o_batch.to(tl.int64) * UNIT, o_head.to(tl.int64) * UNIT, o_row.to(tl.int64) * UNIT
    tiles = tl.num_programs(0)
    tile = tiles - 1 - tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    r = tile * BR + tl.arange(0, BR)
    dims = tl.arange(0, D)
    rows = r[:, None].to(tl.int64)
    q_at = q + batch * q_batch + head * q_head + rows * q_row + dims[None, :]
    queries_here = tl.load(q_at, mask=r[:, None] < queries, other=0.0)
    k_tile = k + batch * k_batch + (head // group) * k_head
    v_tile = v + batch * v_batch + (head // group) * v_head

    if IS_CAUSAL:
        last_seen = r + offset  # the key on the diagonal
        seen_by_all = tl.minimum(tl.maximum(tile * BR + offset + 1, 0), keys)
        seen_by_any = tl.minimum(tl.maximum(tl.minimum(tile * BR + BR, queries) + offset, 0), keys)
    else:
        last_seen = r * 0 + keys
        seen_by_all = keys
        seen_by_any = keys
    unmasked = seen_by_all // BC * BC

    acc = tl.zeros([BR, D], dtype=tl.float32)
    m = tl.full([BR], float("-inf"), dtype=tl.float32)
    l = tl.zeros([BR], dtype=tl.float32)
    for first in tl.range(0, unmasked, BC):
        acc, m, l = add_tile(acc, m, l, queries_here, k_tile, v_tile, k_row, v_row, first, keys, last_seen, scale_log2,
                             BC, D, False)
    for first in tl.range(unmasked, seen_by_any, BC):
        acc, m, l = add_tile(acc, m, l, queries_here, k_tile, v_tile, k_row, v_row, first, keys, last_seen, scale_log2,
                             BC, D, True)

    acc = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    o_at = o + batch * o_batch + head * o_head + rows * o_row + dims[None, :]
    tl.store(o_at, acc.to(o.dtype.element_ty), mask=r[:, None] < queries)
    lse_at = lse + tl.program_id(1).to(tl.int64) * queries + r
    tl.store(lse_at, (m + tl.log2(l)) * 0.6931471805599453, mask=r < queries)


def forward(q, k, v, o, lse, scale, mask, plan):
    """Writes O and LSE. q, o [batch, heads, queries, D]; k, v [batch, key heads, keys, D]; lse contiguous."""
    batch, heads, queries, dim = q.shape
    keys = k.shape[2]
    grid = (triton.cdiv(queries, plan["query_tile"]), batch * heads)
    strides = [stride // UNIT.value for tensor in (q, k, v, o) for stride in tensor.stride()[:3]]
    triton_flash_forward[grid](q, k, v, o, lse, scale * 1.4426950408889634, heads, heads // k.shape[1], queries, keys,
                               keys - queries if mask == "causal_bottom_right" else 0, *strides,
                               BR=plan["query_tile"], BC=plan["key_tile"], D=dim, IS_CAUSAL=mask != "none",
                               num_warps=plan["warps"], num_stages=plan["stages"])
