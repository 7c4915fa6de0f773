"""S2, the attention day of a GPU course, in our words: tiles of 32 by 32, rows past the end are masked where they are loaded and where they are
scored, the causal mask starts at the first key, P is rounded to the inputs' format and its sum is not [Dao 2023, Alg. 1]. Head dims
are padded to a power of two.

`flash` is right. Each other function has one of the course's defects, by its id in experiments/claims/defects.yaml; BUG marks the line."""

import torch
import triton
import triton.language as tl

from attest_kernels import kernel

TILE = 32
takes = kernel(types=["fp16", "fp32"], grouped=False, causal="top_left")


@triton.jit
def attend(q, k, v, o, scale, queries, keys, dim, IS_CAUSAL: tl.constexpr, TILE: tl.constexpr, DIM: tl.constexpr, BUG: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    dims = tl.arange(0, DIM)
    row_at = (head * queries + rows[:, None]) * dim + dims[None, :]
    is_row = (rows[:, None] < queries) & (dims[None, :] < dim)
    q_tile = tl.load(q + row_at, mask=is_row, other=0)
    hidden = -1e9 if BUG == "C6" else float("-inf")
    m = tl.full([TILE], hidden, tl.float32)
    l = tl.zeros([TILE], tl.float32)
    acc = tl.zeros([TILE, DIM], tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * TILE, keys) if IS_CAUSAL else keys
    for first in range(0, end, TILE):
        at = first + tl.arange(0, TILE)
        is_key = at < keys
        k_tile = tl.load(k + (head * keys + at[None, :]) * dim + dims[:, None], mask=is_key[None, :] & (dims[:, None] < dim), other=0)
        v_tile = tl.load(v + (head * keys + at[:, None]) * dim + dims[None, :], mask=is_key[:, None] & (dims[None, :] < dim), other=0)
        s = tl.dot(q_tile, k_tile, input_precision="ieee") * scale
        if BUG != "C5":
            s = tl.where(is_key[None, :], s, hidden)
        if IS_CAUSAL:
            if BUG == "C37":
                s = tl.where(rows[:, None] > at[None, :], s, hidden)
            else:
                s = tl.where(rows[:, None] >= at[None, :], s, hidden)
        if BUG == "C44":
            p = tl.exp(s - tl.max(s, 1)[:, None])
            acc += tl.dot((p / tl.sum(p, 1)[:, None]).to(v_tile.dtype), v_tile, input_precision="ieee")
        else:
            m_new = tl.maximum(m, tl.max(s, 1))
            kept = tl.exp(m - m_new)
            if BUG == "C23":
                p = tl.exp(s - m_new[None, :])
            else:
                p = tl.exp(s - m_new[:, None])
            l = l * kept + tl.sum(p, 1)
            acc = acc * kept[:, None] + tl.dot(p.to(v_tile.dtype), v_tile, input_precision="ieee")
            m = m_new
    if BUG != "C44":
        acc = acc / tl.where(l == 0, 1.0, l)[:, None]
    tl.store(o + row_at, acc.to(o.dtype.element_ty), mask=is_row)


def forward(q, k, v, causal, scale, bug="none"):
    o = torch.zeros_like(q)
    batch, heads, queries, dim = q.shape
    keys = queries if bug == "C26" else k.shape[2]
    if k.shape[2] > 0 and queries > 0:
        attend[(triton.cdiv(queries, TILE), batch * heads)](
            q, k, v, o, scale, queries, keys, dim, causal, TILE, max(16, triton.next_power_of_2(dim)), bug)
    return o


@takes
def flash(q, k, v, causal, scale):
    return forward(q, k, v, causal, scale)


@takes
def flash_without_tail_mask(q, k, v, causal, scale):  # C5: keys past the end score 0 and are summed
    return forward(q, k, v, causal, scale, "C5")


@takes
def flash_with_a_finite_sentinel(q, k, v, causal, scale):  # C6: -1e9 for minus infinity, above scores that occur
    return forward(q, k, v, causal, scale, "C6")


@takes
def flash_with_maxima_along_columns(q, k, v, causal, scale):  # C23: row maxima are subtracted from columns; the tile is square, so it compiles
    return forward(q, k, v, causal, scale, "C23")


@takes
def flash_of_as_many_keys_as_queries(q, k, v, causal, scale):  # C26: the number of keys is Q's
    return forward(q, k, v, causal, scale, "C26")


@takes
def flash_without_the_diagonal(q, k, v, causal, scale):  # C37: > for >=
    return forward(q, k, v, causal, scale, "C37")


@takes
def flash_with_a_softmax_per_tile(q, k, v, causal, scale):  # C44
    return forward(q, k, v, causal, scale, "C44")
