"""FlashInfer: one request a call, and a batch whose keys lie in pages, which its plan on the host prepares. Its kernels are compiled with nvcc at the
first call of each type, head dim and backend, half a minute and more each: so few are asked for.

`python3 flashinfer_attention.py` compiles all of them at once. Claimed: causal masks to the bottom right; LSE to the base 2. Nothing is said of scales that
are 0 or below, nor of rows that see no key."""

import functools

import flashinfer
import torch

from attest_kernels import kernel

TYPES = {"bf16": torch.bfloat16}
DIMS, DIMS_OF_PAGES = [64, 128], [128]
takes = kernel(types=list(TYPES), head_dims=DIMS, positive_scale=True, empty_rows=False, causal="bottom_right", layout="BNHD", grouped=True)


@takes
def flashinfer_single_prefill(q, k, v, causal, sm_scale):
    made = [flashinfer.single_prefill_with_kv_cache(*request, causal=causal, sm_scale=sm_scale, return_lse=True) for request in zip(q, k, v)]
    return tuple(torch.stack(parts) for parts in zip(*made))


@functools.cache
def wrapper():
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.zeros(128 << 20, dtype=torch.uint8, device="cuda"), "NHD")


@kernel(types=list(TYPES), head_dims=DIMS_OF_PAGES, positive_scale=True, empty_rows=False, causal="bottom_right", layout="BNHD", grouped=True)
def flashinfer_batch_prefill(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, causal, sm_scale):
    batch, queries, heads, dim = q.shape
    starts = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * queries
    wrapper().plan(starts, kv_indptr, kv_indices, kv_last_page_len, heads, k_cache.shape[2], dim, k_cache.shape[1], causal=causal, sm_scale=sm_scale,
                   q_data_type=q.dtype, kv_data_type=k_cache.dtype)
    o, lse = wrapper().run(q.reshape(batch * queries, heads, dim), (k_cache, v_cache), return_lse=True)
    return o.reshape(q.shape), lse.reshape(batch, queries, heads)


def compile_all():
    from flashinfer.jit import build_jit_specs, gen_batch_prefill_module, gen_single_prefill_module
    specs = []
    for dtype in TYPES.values():
        options = (0, False, False, False)  # no positions, window, softcap or 16-bit scores
        specs += [gen_single_prefill_module("fa3", dtype, dtype, dtype, dim, dim, *options) for dim in DIMS]
        specs += [gen_batch_prefill_module("fa3", dtype, dtype, dtype, torch.int32, dim, dim, *options) for dim in DIMS_OF_PAGES]
    build_jit_specs(specs, verbose=False, skip_prebuilt=False)


if __name__ == "__main__":
    compile_all()
