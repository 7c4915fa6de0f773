"""Functions of PyTorch are judged: the library's own, and plain ones."""

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

    def test_the_librarys_own_is_called_by_its_name(self):
        report = attest_kernels.verify("torch.nn.functional:scaled_dot_product_attention", cases=60)
        if not report.passed:  # what is known of it (FINDINGS.md), and nothing else
            self.assertRegex(report.failures[0].problem, r" causal_top_left .* scale(0|-[0-9.e-]+)$", report.text)

    def test_it_passes_where_scales_are_positive(self):
        report = attest_kernels.verify(f"{self.file}:positive", cases=40)
        self.assertTrue(report.passed, report.text)


if __name__ == "__main__":
    unittest.main()
