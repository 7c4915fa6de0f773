"""The backward passes with PyTorch on the CPU, where it is installed: the formula against autograd, and the operators' arguments
by their shape functions, which need no GPU."""

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


def problem(mask="none", heads=6, kv_heads=2, queries=7, keys=9, dim=8, dtype=None, device="cpu", scale=0.4):
    """Drawn Q, K, V and dO, and O and LSE of them in double, as torch_worker.py's Problem holds them."""
    dtype = dtype or torch.float64
    torch.manual_seed(1)

    def drawn(*shape):
        return torch.randn(*shape, dtype=torch.float64)
    q, do = drawn(2, heads, queries, dim), drawn(2, heads, queries, dim)
    k, v = drawn(2, kv_heads, keys, dim), drawn(2, kv_heads, keys, dim)
    hidden = None
    if mask != "none":
        diagonal = keys - queries if mask == "causal_bottom_right" else 0
        hidden = torch.ones(queries, keys, dtype=torch.bool).triu(diagonal + 1)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    scores = q @ k.repeat_interleave(heads // kv_heads, dim=1).transpose(2, 3) * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    o = torch.softmax(scores, dim=-1) @ v.repeat_interleave(heads // kv_heads, dim=1)
    gradients = torch.autograd.grad(o, (q, k, v), do)
    found = {"q": q, "k": k, "v": v, "o": o, "d_o": do, "lse": torch.logsumexp(scores, dim=-1)}
    found = {name: tensor.detach().to(torch.float32 if name == "lse" else dtype).to(device) for name, tensor in found.items()}
    return types.SimpleNamespace(**found, scale=scale, mask=mask, is_causal=mask != "none", hidden=lambda: hidden), gradients


@unittest.skipIf(torch is None, "no PyTorch here")
class Backward(unittest.TestCase):
    def test_the_formula_gives_what_autograd_does(self):
        import torch_backward
        for mask in ("none", "causal_top_left", "causal_bottom_right"):
            p, want = problem(mask, dtype=torch.float32)
            run, results = torch_backward.math(p)
            for name, gradient, exact in zip(("dQ", "dK", "dV"), results(run()), want, strict=True):
                self.assertEqual(gradient.shape, exact.shape)
                # Some tens of roundings of numbers of the size of the largest.
                allowed = 100 * 2.0**-24 * exact.abs().max().item()
                self.assertLess((gradient - exact).abs().max().item(), allowed, f"{name}, {mask}")

    def test_the_formula_reads_the_o_and_lse_that_it_is_given(self):
        import torch_backward
        p, _ = problem(dtype=torch.float32)
        plain = [gradient.clone() for gradient in torch_backward.math(p)[0]()]
        p.o = p.o + 0.5
        moved = torch_backward.math(p)[0]()
        self.assertFalse(torch.equal(moved[0], plain[0]))
        self.assertTrue(torch.equal(moved[2], plain[2]))
        p.lse = p.lse + 1
        self.assertFalse(torch.equal(torch_backward.math(p)[0]()[2], plain[2]))

    def test_operators_take_what_they_are_handed_and_give_gradients_of_the_inputs_shapes(self):
        import torch_backward
        for make in (torch_backward.flash, torch_backward.cudnn):
            p, _ = problem("causal_top_left", queries=9, dtype=torch.bfloat16, device="meta")
            run, results = make(p)
            self.assertEqual([gradient.shape for gradient in results(run())], [p.q.shape, p.k.shape, p.v.shape])

    def test_the_efficient_operator_gets_the_given_lse_in_its_padding_and_rows_before_heads(self):
        import torch_backward
        p, _ = problem(kv_heads=6, dtype=torch.float32)
        calls = []
        padded = torch.full((2, 6, 32), float("inf"))
        operators = types.SimpleNamespace(
            _efficient_attention_forward=lambda *arguments, scale: (None, padded, "seed", "offset", 7, 9),
            _efficient_attention_backward=lambda *arguments, scale: calls.append(arguments) or arguments[1:4] + (None,))
        with mock.patch.object(torch_backward, "aten", operators):
            run, results = torch_backward.efficient(p)
            gradients = results(run())
        schema = torch.ops.aten._efficient_attention_backward.default._schema
        given = dict(zip([argument.name for argument in schema.arguments], calls[0]))
        self.assertTrue(torch.equal(given["logsumexp"][:, :, :7], p.lse))
        self.assertTrue(torch.isinf(given["logsumexp"][:, :, 7:]).all())
        for name in ("out", "grad_out_"):
            self.assertTrue(given[name].is_contiguous())
        self.assertTrue(torch.equal(given["out"].transpose(1, 2), p.o))
        self.assertTrue(torch.equal(given["grad_out_"].transpose(1, 2), p.d_o))
        self.assertEqual((given["max_seqlen_q"], given["max_seqlen_k"], given["custom_mask_type"]), (7, 9, 0))
        self.assertEqual([gradient.shape for gradient in gradients], [p.q.shape, p.k.shape, p.v.shape])


if __name__ == "__main__":
    unittest.main()
