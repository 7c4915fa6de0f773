"""S0, a blog post about a FlashAttention kernel in Triton, in our words: a program makes 64 query rows of one head, keys pass by in tiles of 32,
O is divided once at the end [Dao 2023, Alg. 1]. fp16 in and out, fp32 between; neither a mask nor a ragged tile.

`flash` is right. Each other function has one of the post's defects, by its id in experiments/claims/defects.yaml; BUG marks the line."""

import torch
import triton
import triton.language as tl

from attest_kernels import kernel

ROWS, KEYS = 64, 32
takes = kernel(types="fp16", masks="none", head_dims=[16, 32, 64], grouped=False, query_len_multiple=ROWS, key_len_multiple=KEYS)


@triton.jit
def attend(q, k, v, o, scale, queries, keys, ROWS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr, BUG: tl.constexpr):
    tiles = queries // ROWS
    head = (tl.program_id(0) // tiles).to(tl.int64)  # neighbours share K and V
    rows = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    q_tile = tl.load(q + (head * queries + rows[:, None]) * DIM + dims[None, :])
    m = tl.full([ROWS], float("-inf"), tl.float32)
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    for first in range(0, keys, KEYS):
        at = tl.arange(0, KEYS)
        if BUG != "C3":
            at += first
        k_tile = tl.load(k + (head * keys + at[None, :]) * DIM + dims[:, None])
        v_tile = tl.load(v + (head * keys + at[:, None]) * DIM + dims[None, :])
        s = tl.dot(q_tile, k_tile)
        if BUG != "C43":
            s *= scale
        m_new = tl.maximum(m, tl.max(s, 1))
        kept = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        l_new = l * kept + tl.sum(p, 1)
        if BUG == "C30":
            product = tl.dot(p, v_tile)
        else:
            product = tl.dot(p.to(v_tile.dtype), v_tile)
        if BUG == "C1":
            acc = (acc * kept[:, None] + product) / l_new[:, None]
        elif BUG == "C2":
            acc = (acc * l[:, None] + product) / l_new[:, None]
        else:
            acc = acc * kept[:, None] + product
        m, l = m_new, l_new
    if BUG != "C1" and BUG != "C2":
        acc = acc / l[:, None]
    tl.store(o + (head * queries + rows[:, None]) * DIM + dims[None, :], acc.to(o.dtype.element_ty))


def forward(q, k, v, scale, bug="none"):
    o = torch.empty_like(q)
    batch, heads, queries, dim = q.shape
    attend[(batch * heads * queries // ROWS,)](q, k, v, o, scale, queries, k.shape[2], ROWS, KEYS, dim, bug)
    return o


@takes
def flash(q, k, v, scale):
    return forward(q, k, v, scale)


@takes
def flash_without_the_old_sum(q, k, v, scale):  # C1: what was divided by the old sum is not multiplied by it again
    return forward(q, k, v, scale, "C1")


@takes
def flash_without_rescale(q, k, v, scale):  # C2: the carry keeps its old maximum
    return forward(q, k, v, scale, "C2")


@takes
def flash_of_the_first_tile(q, k, v, scale):  # C3: pointers do not advance
    return forward(q, k, v, scale, "C3")


@takes
def flash_with_weights_in_fp32(q, k, v, scale):  # C30: fp32 weights meet fp16 values; Triton compiles no such product
    return forward(q, k, v, scale, "C30")


@takes
def flash_without_scale(q, k, v, scale):  # C43
    return forward(q, k, v, scale, "C43")
