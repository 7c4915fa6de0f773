"""Every function of this folder is called as its library wants to be. NumPy stands in for the libraries; where PyTorch and JAX are there, they are judged."""

import contextlib
import importlib.util
import math
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy

from attest_kernels import frameworks, modifications, probes, program, subject

HERE = pathlib.Path(__file__).resolve().parent
IS_THERE = {name: importlib.util.find_spec(name) is not None for name in ("torch", "jax", "ring_flash_attn", "yunchang")}


def attend(q, k, v, causal, scale, corner="bottom_right"):
    """O and LSE of [B, N, H, D]."""
    o, lse = probes.exact(*(array.swapaxes(1, 2) for array in (q, k, v)), corner if causal else None, scale)
    return o.swapaxes(1, 2), lse


def flash_attn_func(q, k, v, *, softmax_scale, causal, return_lse=False, return_attn_probs=False):
    o, lse = attend(q, k, v, causal, softmax_scale)
    return (o, lse) if return_lse or return_attn_probs else o


def entries(q, k, v, query_starts, key_starts):
    for rows, keys in zip(zip(query_starts, query_starts[1:]), zip(key_starts, key_starts[1:])):
        yield q[None, slice(*rows)], k[None, slice(*keys)], v[None, slice(*keys)]


def flash_attn_varlen_func(q, k, v, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=None, max_seqlen_k=None, seqused_k=None, page_table=None,
                           softmax_scale=None, causal=False, return_lse=False, return_attn_probs=False):
    if page_table is None:
        made = [attend(*entry, causal, softmax_scale) for entry in entries(q, k, v, cu_seqlens_q, cu_seqlens_k)]
        return numpy.concatenate([o[0] for o, _ in made]), numpy.concatenate([lse[0] for _, lse in made], 1)
    pools = [[pool[pages].reshape(-1, *pool.shape[2:])[None, :length] for pages, length in zip(page_table, seqused_k)] for pool in (k, v)]
    made = [attend(q[b:b + 1], *entry, causal, softmax_scale) for b, entry in enumerate(zip(*pools))]
    return tuple(numpy.concatenate(parts) for parts in zip(*made))


def single_prefill_with_kv_cache(q, k, v, *, causal, sm_scale, return_lse):
    o, lse = attend(q[None], k[None], v[None], causal, sm_scale)
    return o[0], lse[0].T / math.log(2)


class BatchPrefillWithPagedKVCacheWrapper:
    def __init__(self, workspace, layout):
        self.layout = layout

    def plan(self, starts, page_starts, pages, in_last, heads, kv_heads, dim, page_size, *, causal, sm_scale, q_data_type, kv_data_type):
        self.rows, self.how = starts, (causal, sm_scale)
        self.pages = [pages[begin:end] for begin, end in zip(page_starts, page_starts[1:])]
        self.keys = [(len(of) - 1) * page_size + last if len(of) else 0 for of, last in zip(self.pages, in_last)]

    def run(self, q, pools, return_lse):
        made = []
        for begin, end, pages, keys in zip(self.rows, self.rows[1:], self.pages, self.keys):
            k, v = (pool[pages].reshape(-1, *pool.shape[2:])[None, :keys] for pool in pools)
            made.append(attend(q[None, begin:end], k, v, *self.how))
        return numpy.concatenate([o[0] for o, _ in made]), numpy.concatenate([lse[0].T for _, lse in made]) / math.log(2)


class LowerTriangularFromBottomRightMask:
    pass


def memory_efficient_attention_forward_requires_grad(q, k, v, *, attn_bias, scale, op):
    return attend(q, k, v, isinstance(attn_bias, LowerTriangularFromBottomRightMask), scale)


class Array(numpy.ndarray):
    """With what the files ask of a tensor of PyTorch."""
    device = "cuda"

    def clone(self):
        return self.copy()

    def cpu(self):
        return self

    def to(self, device):
        return self


class Function:
    """Of autograd: forward alone."""

    @classmethod
    def apply(cls, *what):
        return cls.forward(module(save_for_backward=lambda *_: None, mark_non_differentiable=lambda *_: None), *what)


def asked(file, q, k, v, do, causal, *how):
    """What the ranks answer, each a stripe of the rows; a causal mask is for as many queries as keys."""
    assert do is None and (not causal or q.shape[1] == k.shape[1])
    scale = next(each for each in how if isinstance(each, float))
    o, lse = attend(q, k, v, causal, scale)
    stripes = [numpy.arange(rank, q.shape[1], 2) for rank in range(2)]
    return [[(rows, o[:, rows].view(Array)), (rows, lse[:, :, rows].view(Array))] for rows in stripes]


def sageattn(q, k, v, *, tensor_layout, is_causal, sm_scale):
    assert (tensor_layout, is_causal) == ("HND", False)
    k -= k.mean(2, keepdims=True)
    return probes.exact(q, k, v, None, sm_scale)[0]


def scaled_dot_product_attention(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    assert attn_mask is None or not is_causal
    assert enable_gqa or q.shape[1] == k.shape[1]
    which = {} if attn_mask is None else {"mask" if attn_mask.dtype == bool else "bias": attn_mask}
    return probes.exact(q, k, v, "top_left" if is_causal else None, scale, **which)[0]


def create_block_mask(sees, batch, heads, queries, keys, device):
    return sees(batch, heads, numpy.arange(queries)[:, None], numpy.arange(keys))


def flex_attention(q, k, v, block_mask, scale, enable_gqa, return_lse):
    assert return_lse and (enable_gqa or q.shape[1] == k.shape[1])
    return probes.exact(q, k, v, None, scale, mask=block_mask)


def module(**what):
    return types.SimpleNamespace(**what)


OPERATORS = {name: module(FwOp=name) for name in ("cutlass", "flash", "triton_splitk")}
LIBRARIES = {
    "torch": module(cuda=module(is_available=lambda: False, device_count=lambda: 0), autograd=module(Function=Function), argsort=numpy.argsort,
                    cat=lambda arrays, dim: numpy.concatenate(arrays, dim).view(Array), ops=module(aten=None), nn=module(functional=module(scaled_dot_product_attention=scaled_dot_product_attention)),
                    _dynamo=module(config=module()), compile=lambda function, dynamic: function, where=numpy.where, stack=numpy.stack, bfloat16="bf16", uint8="uint8", int32=numpy.int32, zeros=lambda size, **how: size,
                    arange=lambda end, **how: numpy.arange(end), clamp=numpy.clip),
    "torch.distributed": module(), "torch.nn": module(), "torch.nn.attention": module(SDPBackend=module(FLASH_ATTENTION=1, CUDNN_ATTENTION=2, EFFICIENT_ATTENTION=3),
                                                       sdpa_kernel=lambda backend: contextlib.nullcontext()),
    "torch.nn.attention.flex_attention": module(create_block_mask=create_block_mask, flex_attention=flex_attention),
    "flash_attn": module(), "flash_attn.cute": module(flash_attn_func=flash_attn_func, flash_attn_varlen_func=flash_attn_varlen_func),
    "fa3_fwd_interface": module(flash_attn_func=flash_attn_func, flash_attn_varlen_func=flash_attn_varlen_func),
    "flashinfer": module(single_prefill_with_kv_cache=single_prefill_with_kv_cache,
                         BatchPrefillWithPagedKVCacheWrapper=BatchPrefillWithPagedKVCacheWrapper),
    "sageattention": module(sageattn=sageattn), "xformers": module(),
    "xformers.ops": module(memory_efficient_attention_forward_requires_grad=memory_efficient_attention_forward_requires_grad),
    "xformers.ops.fmha": module(**OPERATORS),
    "xformers.ops.fmha.attn_bias": module(LowerTriangularFromBottomRightMask=LowerTriangularFromBottomRightMask),
}


class OfArrays(frameworks.NumPy):
    def given(self, array, axes):
        return super().given(array, axes).view(Array)


def functions_of(file):
    """Those that say what they take; NumPy stands in for their libraries."""
    spec = importlib.util.spec_from_file_location(file, HERE / f"{file}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return [each for each in vars(made).values() if hasattr(each, "__attest_kernel__")]


class Called(unittest.TestCase):
    def check(self, file, count):
        with mock.patch.dict(sys.modules, LIBRARIES):
            functions = functions_of(file)
            self.assertEqual(len(functions), count)
            for function in functions:
                declared = function.__attest_kernel__
                convention = subject.convention_of(function, None, declared)
                heads = 4 if declared.get("grouped") else 2
                told = [{}, *({role: modifications.example(role, 2, heads, 5, 19, 16, True, "heads")} for role in convention.modifications())]
                for causal in ("", declared["causal"]) if "causal" in convention.names else ("",):
                    for modified in told:
                        with self.subTest(function=function.__name__, causal=causal, told=list(modified)):
                            drawn = {**probes.drawn(2, heads, 2, 5, 19, 16), **modified}
                            self.assertLess(self.distance(convention, declared, drawn, causal), 1e-4)

    @staticmethod
    def distance(convention, declared, drawn, causal):
        """The smallest of all ways to read its signature."""
        distances = [math.inf]
        for candidate in convention.candidates(declared):
            given, want = candidate.example(drawn, causal or None, 0.3)
            arrays = {name: array if isinstance(array, list) or array.dtype == bool else array.astype(numpy.float32) for name, array in given.items()}
            try:
                made = candidate.call(OfArrays(), arrays, bool(causal), 0.3)
            except (TypeError, ValueError, IndexError):
                continue
            lse = min((probes.distance(made["lse"] * base, want["lse"]) for base in (1, math.log(2))), default=0) if "lse" in made else 0
            distances.append(max(probes.distance(made["o"], want["o"]), lse))
        return min(distances)

    def test_pytorch(self):
        self.check("pytorch_attention", 7)

    def test_flash_attention_4(self):
        self.check("flash_attention_4", 3)

    def test_flash_attention_3(self):
        self.check("flash_attention_3", 2)

    def test_flashinfer(self):
        self.check("flashinfer_attention", 2)

    def test_xformers(self):
        self.check("xformers_attention", 4)

    def test_sageattention(self):
        self.check("sageattention_1", 1)

    def test_several_ranks(self):
        with mock.patch.dict(sys.modules, LIBRARIES):
            ranks = importlib.import_module("ranks")
            for file, count, outputs in (("context_parallel", 3, 1), ("ring_flash_attention", 5, 2), ("yunchang_attention", 11, 1)):
                def some(*what, outputs=outputs):
                    return [answer[:outputs] for answer in asked(*what)]
                with mock.patch.object(ranks, "asked", some), mock.patch.dict(LIBRARIES, ranks=ranks):
                    self.check(file, count)

    def test_shares(self):
        with mock.patch.dict(sys.modules, LIBRARIES):
            ranks = importlib.import_module("ranks")
        self.assertEqual([ranks.share("zigzag", 8, rank) for rank in range(2)], [[0, 1, 6, 7], [2, 3, 4, 5]])
        self.assertEqual([ranks.share("stripes", 8, rank) for rank in range(2)], [[0, 2, 4, 6], [1, 3, 5, 7]])
        self.assertEqual([ranks.share("neighbours", 8, rank) for rank in range(2)], [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_pieces(self):
        with mock.patch.dict(sys.modules, LIBRARIES):
            ranks = importlib.import_module("ranks")
        self.assertEqual(ranks.pieces(4, 8, True), [(slice(4), slice(4), True)])
        self.assertEqual(ranks.pieces(12, 8, True), [(slice(8), slice(8), True), (slice(8, 12), slice(8), False)])
        self.assertEqual(ranks.pieces(12, 8, False), [(slice(12), slice(8), False)])


class Judged(unittest.TestCase):
    def judge(self, place, *more):
        with tempfile.TemporaryDirectory() as folder:
            code, text = program.run(["verify", "--python", f"{HERE / place}", "--cases", "12", "--out", folder, "--executor", "cpu", *more],
                                     may_end_with=(0, 1, 4))
            self.assertIn(code, (0, 4), text)

    @unittest.skipUnless(IS_THERE["torch"], "PyTorch not installed")
    def test_pytorch(self):
        for name in ("sdpa_picked", "sdpa_masked"):
            self.judge(f"pytorch_attention.py:{name}")

    @unittest.skipUnless(IS_THERE["torch"] and IS_THERE["ring_flash_attn"] and IS_THERE["yunchang"], "libraries of several ranks not installed")
    def test_several_ranks(self):
        for place in ("ring_flash_attention.py:zigzag_ring_flash", "yunchang_attention.py:yunchang_ulysses"):
            self.judge(place, "--jobs", "1", "--law", "[!i]*")  # a merge makes NaN of an infinity

    @unittest.skipUnless(IS_THERE["jax"], "JAX not installed")
    def test_jax(self):
        self.judge("jax_attention.py:jax_xla")


if __name__ == "__main__":
    unittest.main()
