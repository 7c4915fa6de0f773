"""FlashAttention-4's and FlashInfer's kernels of the worker with PyTorch on the CPU, where it is installed: what each library is given,
and what is made of its answer. Stand-ins compute in the libraries' layouts."""

import math
import pathlib
import sys
import types
import unittest
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    torch = None

sys.path.insert(0, str(pathlib.Path(__file__).parent))

if torch is not None:
    import torch_backward
    import torch_decode
    import torch_worker
    from torch_backward_test import problem


def exact(q, k, v, causal, scale):
    """O and LSE of [heads, rows, dim]."""
    scores = q @ k.repeat_interleave(q.shape[0] // k.shape[0], dim=0).transpose(1, 2) * scale
    if causal:
        hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(k.shape[1] - q.shape[1] + 1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v.repeat_interleave(q.shape[0] // k.shape[0], dim=0), torch.logsumexp(scores, dim=-1)


def flash_attn_func(q, k, v, *, softmax_scale, causal, return_lse):
    made = [exact(*(tensor.transpose(0, 1) for tensor in entry), causal, softmax_scale) for entry in zip(q, k, v)]
    return torch.stack([o.transpose(0, 1) for o, _ in made]), torch.stack([lse for _, lse in made])


class Ragged:
    def __init__(self, workspace, layout, *, backend):
        assert (layout, backend) == ("NHD", "fa3")

    def plan(self, query_starts, key_starts, heads, kv_heads, dim, *, causal, sm_scale, q_data_type, kv_data_type):
        self.ends, self.how, self.shape = (query_starts.tolist(), key_starts.tolist()), (causal, sm_scale), (heads, kv_heads, dim)

    def run(self, q, k, v, return_lse):
        assert (q.shape[1], k.shape[1], q.shape[2]) == self.shape and all(tensor.is_contiguous() for tensor in (q, k, v))
        rows, keys = ([slice(*pair) for pair in zip(ends, ends[1:])] for ends in self.ends)
        made = [exact(*(tensor[of].transpose(0, 1) for tensor, of in ((q, row), (k, key), (v, key))), *self.how) for row, key in zip(rows, keys)]
        return torch.cat([o.transpose(0, 1) for o, _ in made]), torch.cat([lse.T for _, lse in made]) / math.log(2)


class Paged:
    def __init__(self, workspace, layout, *, use_tensor_cores, backend):
        assert (layout, use_tensor_cores, backend) == ("HND", True, "fa2"), "left to itself it may call cuDNN"

    def plan(self, starts, pages, in_last, heads, kv_heads, dim, page_size, *, q_data_type, kv_data_type, sm_scale):
        self.pages = [pages[begin:end] for begin, end in zip(starts.tolist(), starts.tolist()[1:])]
        self.keys = [(len(of) - 1) * page_size + last for of, last in zip(self.pages, in_last.tolist())]
        self.scale = sm_scale

    def run(self, q, pools, return_lse):
        made = []
        for entry, pages, keys in zip(q, self.pages, self.keys):
            k, v = (pool[pages].transpose(0, 1).flatten(1, 2)[:, :keys] for pool in pools)
            made.append(exact(entry[:, None], k, v, False, self.scale))
        return torch.stack([o[:, 0] for o, _ in made]), torch.stack([lse[:, 0] for _, lse in made]) / math.log(2)


class OnCpu:
    """PyTorch, which finds no GPU where it is asked for one."""

    def __getattr__(self, name):
        return getattr(torch, name)

    @staticmethod
    def arange(*sizes, device, **how):
        return torch.arange(*sizes, **how)

    @staticmethod
    def empty(*sizes, device, **how):
        return torch.empty(1, **how)


@unittest.skipIf(torch is None, "no PyTorch here")
class Libraries(unittest.TestCase):
    def setUp(self):
        cute = types.SimpleNamespace(flash_attn_func=flash_attn_func)
        flashinfer = types.SimpleNamespace(BatchPrefillWithRaggedKVCacheWrapper=Ragged, BatchDecodeWithPagedKVCacheWrapper=Paged)
        self.interface = types.SimpleNamespace()
        modules = {"flash_attn": types.SimpleNamespace(), "flash_attn.cute": cute, "flash_attn.cute.interface": self.interface, "flashinfer": flashinfer}
        for patch in (mock.patch.dict(sys.modules, modules), mock.patch.object(torch_decode, "torch", OnCpu())):
            patch.start()
            self.addCleanup(patch.stop)

    def check(self, made, wanted, name):
        for got, want in zip(made, wanted, strict=True):
            self.assertEqual(got.shape, want.shape, name)
            # LSE goes through fp32, and from one base of logarithms to the other and back: four roundings.
            roundings = 4 * torch.finfo(torch.float32).eps * want.abs().max().clamp(min=1).item()
            self.assertLess((got - want).abs().max().item(), roundings, name)

    def test_forward_passes_give_the_o_and_lse_of_the_request(self):
        for make in (torch_worker.flash_attention_4, torch_decode.flashinfer_prefill):
            for mask in ("none", "causal_bottom_right"):
                p, _ = problem(mask)
                run, results = make(p)
                self.check(results(run()), (p.o, p.lse), f"{make.__name__} {mask}")

    def test_decoding_reads_the_pages_that_the_lengths_need(self):
        p, _ = problem(queries=1, keys=8)
        p.pages = torch.tensor([[3, 0, -1], [2, 1, -1]], dtype=torch.int32)
        p.key_lengths = torch.tensor([8, 8], dtype=torch.int32)
        for name in "kv":
            pool = torch.empty(4, 2, 4, 8, dtype=torch.float64)
            for entry, pages in enumerate(p.pages):
                pool[pages[0]], pool[pages[1]] = getattr(p, name)[entry].split(4, dim=1)
            setattr(p, name, pool)
        run, results = torch_decode.flashinfer_decode(p)
        self.check(results(run()), (p.o, p.lse), "flashinfer_decode")

    def test_gradients_are_asked_for_with_rows_before_heads(self):
        p, _ = problem("causal_bottom_right", dtype=torch.float32)
        exact_run, _ = torch_backward.math(p)

        def bwd(q, k, v, o, do, lse, scale, causal):
            for given, want in ((q, p.q), (k, p.k), (v, p.v), (o, p.o), (do, p.d_o)):
                self.assertTrue(torch.equal(given.transpose(1, 2), want))
            self.assertTrue(torch.equal(lse, p.lse))
            self.assertEqual((scale, causal), (p.scale, True))
            return tuple(gradient.transpose(1, 2) for gradient in exact_run())
        self.interface._flash_attn_bwd = bwd
        run, results = torch_backward.flash_attention_4(p)
        self.check(results(run()), exact_run(), "flash_attention_4_backward")


if __name__ == "__main__":
    unittest.main()
