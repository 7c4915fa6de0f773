"""Kernels for decoding and FlashInfer's others that torch_worker.py runs. Each gives (run, results) as those in torch_worker.py do."""

import torch

LN_2 = 0.6931471805599453  # FlashInfer's LSE is a logarithm of base 2


def flash_attention_3_kvcache(p):
    import fa3_fwd._C  # noqa: F401, registers the operator
    # As flash_attn_with_kvcache calls it, which counts keys on the device and splits them as it likes (num_splits 0).
    entries = [None] * 8  # cu_seqlens_q, _k, _k_new, seqused_q, _k, max_seqlen_q, _k, page_table
    if p.query_starts is None:
        q, k, v = (tensor.transpose(1, 2) for tensor in (p.q, p.k, p.v))
        entries[4] = torch.full((q.shape[0],), k.shape[1], dtype=torch.int32, device="cuda")
    else:
        q, k, v = (tensor[0].transpose(0, 1) for tensor in (p.q, p.k, p.v))
        entries[0], entries[1], entries[5], entries[6] = p.query_starts, p.key_starts, p.most_queries, p.most_keys
    before, after = [None] * 4, [None] * 8
    window, chunk, softcap, interleaved, metadata, splits, pack, margin = (-1, -1), 0, 0.0, True, None, 0, None, 0

    def run():
        return torch.ops.fa3_fwd.fwd(q, k, v, *before, *entries, *after, p.scale, p.is_causal, *window, chunk, softcap,
                                     interleaved, metadata, splits, pack, margin)

    def results(made):
        if p.query_starts is None:
            return made[0].transpose(1, 2), made[1]
        return made[0].transpose(0, 1)[None], made[1][None]
    return run, results


def flashinfer_decode(p):
    import flashinfer
    heads, kv_heads, dim = p.q.shape[1], p.k.shape[1], p.q.shape[3]
    page_size = p.k.shape[2]
    # Its plan is made on the host, from lengths that it reads there: outside the time.
    lengths = p.key_lengths.cpu()
    counts = (lengths + page_size - 1) // page_size
    starts = torch.nn.functional.pad(counts.cumsum(0, dtype=torch.int32), (1, 0))
    indices = torch.cat([p.pages[entry, :count] for entry, count in enumerate(counts.tolist())])
    workspace = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    # Its own kernel: left to itself, 0.7 may hand the batch to cuDNN.
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "HND", use_tensor_cores=True, backend="fa2")
    wrapper.plan(starts, indices, lengths - (counts - 1) * page_size, heads, kv_heads, dim, page_size,
                 q_data_type=p.q.dtype, kv_data_type=p.k.dtype, sm_scale=p.scale)
    q = p.q[:, :, 0]

    def run():
        return wrapper.run(q, (p.k, p.v), return_lse=True)
    return run, lambda made: (made[0][:, :, None], made[1][:, :, None] * LN_2)


def flashinfer_prefill(p):
    import flashinfer
    batch, heads, queries, dim = p.q.shape
    kv_heads, keys = p.k.shape[1:3]
    # Entries one after the other, a row's heads side by side: copied and planned outside the time.
    q, k, v = (tensor.transpose(1, 2).reshape(-1, tensor.shape[1], dim).contiguous() for tensor in (p.q, p.k, p.v))
    starts = (torch.arange(batch + 1, dtype=torch.int32, device="cuda") * rows for rows in (queries, keys))
    workspace = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend="fa3")
    wrapper.plan(*starts, heads, kv_heads, dim, causal=p.is_causal, sm_scale=p.scale, q_data_type=p.q.dtype, kv_data_type=p.k.dtype)

    def run():
        return wrapper.run(q, k, v, return_lse=True)

    def results(made):
        o, lse = made
        return o.reshape(batch, queries, heads, dim).transpose(1, 2), lse.reshape(batch, queries, heads).transpose(1, 2) * LN_2
    return run, results
