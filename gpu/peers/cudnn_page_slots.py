"""Does what lies in slots of a page that no key uses reach O? Through cuDNN's own Python frontend, without Attest. Q = 0 and V = 1 where keys are, so O is
1. One line a request: what O is where unused slots of K and V hold 0, a large number, NaN (also in K alone, in V alone), infinity.
. right, N NaN, x another number, - refused. LD_LIBRARY_PATH says which cuDNN."""
import math
import sys

import cudnn
import torch

D, BF16, dt = 8, torch.bfloat16, cudnn.data_type
handle = cudnn.create_handle()
words = {}
FILLS = {"zero": (0.0, 0.0), "large": (3e38, 3e38), "NaN": (math.nan, math.nan), "NaN in K": (math.nan, 0.0), "NaN in V": (0.0, math.nan),
         "inf in V": (0.0, math.inf)}


def graph_of(how, queries, keys, page, pool, columns, width, max_len, mask):
    g = cudnn.pygraph(io_data_type=dt.BFLOAT16, intermediate_data_type=dt.FLOAT, compute_data_type=dt.FLOAT, handle=handle)

    def tensor(name, dim, stride, kind=dt.BFLOAT16):
        return g.tensor(name=name, dim=dim, stride=stride, data_type=kind)
    q = tensor("q", [1, 1, queries, D], [queries * D, queries * D, D, 1])
    k, v = (tensor(name, [pool, 1, page, D], [page * D, page * D, D, 1]) for name in "kv")
    table = tensor("table", [1, 1, columns, 1], [width, width, 1, 1], dt.INT32)
    lengths = [tensor(name, [1, 1, 1, 1], [1, 1, 1, 1], dt.INT32) for name in ("ql", "kl")]
    more = {} if mask == "none" else {"diagonal_alignment": cudnn.diagonal_alignment.BOTTOM_RIGHT, "diagonal_band_right_bound": 0}
    o, stats = g.sdpa(name="sdpa", q=q, k=k, v=v, attn_scale=1.0, use_padding_mask=True, seq_len_q=lengths[0], seq_len_kv=lengths[1], paged_attention_k_table=table,
                      paged_attention_v_table=table, paged_attention_max_seq_len_kv=max_len, generate_stats=True,
                      implementation=getattr(cudnn.attention_implementation, how), **more)
    o.set_output(True).set_dim([1, 1, queries, D]).set_stride([queries * D, queries * D, D, 1])
    stats.set_output(True).set_data_type(dt.FLOAT)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([cudnn.heur_mode.A])
    g.check_support()
    g.build_plans()
    return g, (q, k, v, table, *lengths, o, stats)


def ask(how, queries, keys, page, mask="none", max_len=None, spare=0):
    columns = -(-keys // page)
    pool = columns + 2
    pages = torch.arange(1, columns + 1, dtype=torch.int32, device="cuda")
    width = columns + spare
    table = torch.full((width,), -1, dtype=torch.int32, device="cuda")
    table[:columns] = pages
    signs = ""
    try:
        g, names = graph_of(how, queries, keys, page, pool, columns, width, max_len or keys, mask)
    except Exception as error:
        words.setdefault(f"{type(error).__name__} {str(error).splitlines()[0][:150]}", f"{how} q{queries} k{keys} page {page} {mask}")
        return "-" * len(FILLS)
    space = torch.empty(max(1, g.get_workspace_size()), dtype=torch.uint8, device="cuda")
    for k_fill, v_fill in FILLS.values():
        k, v = (torch.full((pool, 1, page, D), fill, dtype=BF16, device="cuda") for fill in (k_fill, v_fill))
        for key in range(keys):
            k[1 + key // page, 0, key % page] = 1
            v[1 + key // page, 0, key % page] = 1
        q = torch.zeros(1, 1, queries, D, dtype=BF16, device="cuda")
        lengths = [torch.tensor([n], dtype=torch.int32, device="cuda") for n in (queries, keys)]
        o, stats = torch.full_like(q, 7), torch.full((1, 1, queries, 1), 7.0, device="cuda")
        g.execute(dict(zip(names, (q, k, v, table, *lengths, o, stats))), space, handle=handle)
        torch.cuda.synchronize()
        right = (o == 1).all() and (stats[..., -1, 0] - math.log(keys)).abs().max() < 1e-3
        signs += "N" if o.isnan().any() else "." if right else "x"
    return signs


print(f"cuDNN {cudnn.backend_version()}, frontend {cudnn.__version__}, {torch.cuda.get_device_name()}; unused slots hold {', '.join(FILLS)}")
hows = ("COMPOSITE", "UNIFIED")
for page in (4, 1, 2, 16, 64):
    for queries, keys in ((2, 1), (1, 1), (2, 3), (1, 70), (65, 70)):
        print(f"page {page:2} q{queries:<2} k{keys:<2}", *(f"{how} {ask(how, queries, keys, page)}" for how in hows), "  causal AUTO",
              ask("AUTO", queries, keys, page, "causal") if queries <= keys else "", flush=True)
print("the case with other requests: max_seq_len_kv 1, 4, 64; a table that is 3 wider")
print(*(f"{how} {ask(how, 2, 1, 4, max_len=most, spare=spare)}" for how in hows for most, spare in ((1, 0), (4, 0), (64, 0), (1, 3))), "AUTO", ask("AUTO", 2, 1, 4))
for what, where in words.items():
    print("refused:", where, what)
sys.stdout.flush()
