"""S1, the README of a FlashAttention kernel in Triton, in our words: tiles of 64 by 64, Q on chip for the whole loop, which ends at the diagonal if
the mask is causal [Dao 2023, section 3.1.1]. Scores are kept in units of log2. A row that sees no key gets zeros.

`flash` is right. Each other function has one of the README's defects, by its id in experiments/claims/defects.yaml; BUG marks the line."""

import torch
import triton
import triton.language as tl

from attest_kernels import kernel

ROWS, KEYS = 64, 64
takes = kernel(types="fp16", head_dims=[16, 32, 64, 128], grouped=False, causal="bottom_right")


@triton.jit
def attend(q, k, v, o, scale_log2, queries, keys, IS_CAUSAL: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr,
           BUG: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    row_at = (head * queries + rows[:, None]) * DIM + dims[None, :]
    is_row = rows[:, None] < queries
    q_tile = tl.load(q + row_at, mask=is_row, other=0)
    last_seen = rows + keys - queries if IS_CAUSAL else rows * 0 + keys
    end = keys
    if IS_CAUSAL:
        end = (tl.program_id(0) + 1) * ROWS + keys - queries  # past the diagonal of the tile's last row
        if BUG != "C27":
            end = tl.minimum(end, keys)
        if BUG == "C38":
            end = end // KEYS * KEYS
    m = tl.full([ROWS], float("-inf"), tl.float32)
    l = tl.zeros([ROWS], tl.bfloat16 if BUG == "C32" else tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    for first in range(0, end, KEYS):
        at = first + tl.arange(0, KEYS)
        is_key = at < (end if BUG == "C27" else keys)
        k_tile = tl.load(k + (head * keys + at[None, :]) * DIM + dims[:, None], mask=is_key[None, :], other=0)
        v_tile = tl.load(v + (head * keys + at[:, None]) * DIM + dims[None, :], mask=is_key[:, None], other=0)
        s = tl.dot(q_tile, k_tile) * scale_log2
        s = tl.where(is_key[None, :] & (at[None, :] <= last_seen[:, None]), s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        base = m_new
        if BUG != "C7":
            base = tl.where(m_new == float("-inf"), 0.0, m_new)  # of a row that has seen nothing
        kept = tl.exp2(m - base)
        p = tl.exp2(s - base[:, None])
        l = (l * kept + tl.sum(p, 1)).to(l.dtype)
        acc = acc * kept[:, None] + tl.dot(p.to(v_tile.dtype), v_tile)
        m = m_new
    total = l.to(tl.float32)
    if BUG != "C9":
        total = tl.where(total == 0, 1.0, total)
    tl.store(o + row_at, (acc / total[:, None]).to(o.dtype.element_ty), mask=is_row)


def forward(q, k, v, causal, scale, bug="none", rows=ROWS):
    o = torch.empty_like(q)
    batch, heads, queries, dim = q.shape
    if queries > 0:
        attend[(triton.cdiv(queries, rows), batch * heads)](q, k, v, o, scale * 1.4426950408889634, queries, k.shape[2], causal, rows, KEYS, dim, bug)
    return o


@takes
def flash(q, k, v, causal, scale):
    return forward(q, k, v, causal, scale)


@takes
def flash_minus_infinity_twice(q, k, v, causal, scale):  # C7: -inf - -inf in rows whose first tile is hidden
    return forward(q, k, v, causal, scale, "C7")


@takes
def flash_divided_by_nothing(q, k, v, causal, scale):  # C9: 0 / 0 in rows without a key
    return forward(q, k, v, causal, scale, "C9")


@takes
def flash_past_the_keys(q, k, v, causal, scale):  # C27: the loop's end is not clipped; a weight of 0 hides it unless what lies there is NaN
    return forward(q, k, v, causal, scale, "C27")


@takes
def flash_with_a_short_sum(q, k, v, causal, scale):  # C32: the row sum in bf16
    return forward(q, k, v, causal, scale, "C32")


@takes
def flash_with_uneven_tiles(q, k, v, causal, scale):  # C38: 16 query rows, and a loop that ends at the last whole tile of 64 keys
    return forward(q, k, v, causal, scale, "C38", rows=16)


@takes
def flash_without_root(q, k, v, causal, scale):  # C43: 1 / d for 1 / sqrt(d)
    return forward(q, k, v, causal, scale * scale)
