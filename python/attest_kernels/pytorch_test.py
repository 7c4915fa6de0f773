"""Functions of PyTorch are judged, and their gradients: the library's own, and plain ones."""

import importlib.util
import pathlib
import tempfile
import unittest

import attest_kernels

FILE = """
import attest_kernels
import torch
import torch.nn.functional


def plain(q, k, v, causal=False, scale=None):
    s = q.float() @ k.float().transpose(-1, -2) * scale
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(s.shape[-1] - s.shape[-2]), float("-inf"))
    return torch.softmax(s, -1).nan_to_num(0).to(q.dtype) @ v


def rows_without_keys_are_nan(q, k, v, causal=False, scale=None):
    s = q.float() @ k.float().transpose(-1, -2) * scale
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(s.shape[-1] - s.shape[-2]), float("-inf"))
    return torch.softmax(s, -1).to(q.dtype) @ v


@attest_kernels.kernel(masks="causal_bottom_right", types="fp32")
def mask_is_added(q, k, v, causal=False, scale=None):
    # O is right; a row that sees no key has gradients that are NaN
    s = q.float() @ k.float().transpose(-1, -2) * scale
    if causal:
        s = s + torch.full(s.shape[-2:], float("-inf")).triu(1 + s.shape[-1] - s.shape[-2])
    return torch.softmax(s, -1).nan_to_num(0).to(q.dtype) @ v


def differentiable(q, k, v, causal=False, scale=None, softcap=0.0, window_size=(-1, -1)):
    # right in gradients, too: nothing is NaN on the way
    s = q.float() @ k.float().transpose(-1, -2) * scale
    s = softcap * torch.tanh(s / softcap) if softcap else s
    queries, keys = s.shape[-2:]
    distance = torch.arange(keys) - torch.arange(queries)[:, None] - (keys - queries)
    left, right = (keys + queries if reach < 0 else reach for reach in window_size)
    hidden = (distance < -left) | (distance > (0 if causal else right))
    p = torch.softmax(s.masked_fill(hidden, -torch.finfo(s.dtype).max), -1).masked_fill(hidden, 0)
    return p.to(q.dtype) @ v


def normaliser_is_a_constant(q, k, v, scale=None):
    # O is right, and its gradients lack the part of the sum of weights
    s = q.float() @ k.float().transpose(-1, -2) * scale
    p = torch.exp(s - s.detach().amax(-1, keepdim=True)) if k.shape[2] else s
    return (p / p.sum(-1, keepdim=True).detach()).to(q.dtype) @ v


@attest_kernels.kernel(positive_scale=True, causal="top_left")
def positive(q, k, v, is_causal, scale, enable_gqa):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
"""


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class PyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.file = pathlib.Path(cls.folder.name) / "mine.py"
        cls.file.write_text(FILE)

    def test_a_plain_function_passes_in_three_formats(self):
        report = attest_kernels.verify(f"{self.file}:plain", cases=30)
        self.assertTrue(report.passed, report.text)

    def test_rows_without_keys_that_are_nan_are_seen(self):
        report = attest_kernels.verify(f"{self.file}:rows_without_keys_are_nan", cases=30)
        self.assertEqual(report.verdict, "failed", report.text)
        self.assertIn("got nan, want 0", report.failures[0].what)

    def test_gradients_by_autograd_pass_in_three_formats(self):
        report = attest_kernels.verify(f"{self.file}:differentiable", operation="backward", cases=30)
        self.assertTrue(report.passed, report.text)

    def test_a_gradient_that_lacks_the_normaliser_is_shrunk(self):
        self.assertTrue(attest_kernels.verify(f"{self.file}:normaliser_is_a_constant", cases=10).passed)
        report = attest_kernels.verify(f"{self.file}:normaliser_is_a_constant", operation="backward", cases=10)
        self.assertEqual(report.verdict, "failed", report.text)
        self.assertRegex(report.failures[0].problem, r"^b1 h1/1 q1 k[12] d1 none fp32 gradient")

    def test_nan_of_rows_without_keys_is_seen_in_gradients(self):
        report = attest_kernels.verify(f"{self.file}:mask_is_added", operation="backward", cases=30)
        self.assertIn("got nan, want 0", report.failures[0].what)

    def test_the_librarys_own_is_called_by_its_name(self):
        report = attest_kernels.verify("torch.nn.functional:scaled_dot_product_attention", cases=60)
        if not report.passed:  # what is known of it (FINDINGS.md), and nothing else
            self.assertRegex(report.failures[0].problem, r" causal_top_left .* scale(0|-[0-9.e-]+)$", report.text)

    def test_it_passes_where_scales_are_positive(self):
        report = attest_kernels.verify(f"{self.file}:positive", cases=40)
        self.assertTrue(report.passed, report.text)


if __name__ == "__main__":
    unittest.main()
