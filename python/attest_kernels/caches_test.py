"""Packed sequences and keys in pages: functions are called as serving systems call them, and bugs of their indices are shrunk."""

import re
import unittest

import attest_kernels
from attest_kernels.testing import caches
from attest_kernels.testing.asking import described


class Conventions(unittest.TestCase):
    def test_packed_sequences_are_known_by_where_they_begin(self):
        packed = described(caches, "varlen")
        self.assertIn("varlen(q, k, v [T,H,D], causal, softmax_scale, return_attn_probs, softcap, window_size, alibi_slopes, "
                      "cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k); causal and window bottom right; LSE natural",
                      packed["convention"])
        self.assertEqual(packed["features"], ["lengths", "softcap", "slopes"])
        self.assertEqual(packed["missing"], [])

    def test_pages_are_known_by_their_table_and_the_order_in_a_page_by_probes(self):
        dense, listed = described(caches, "with_kvcache"), described(caches, "of_page_list")
        self.assertEqual((dense["pages"], listed["pages"]), ("dense", "csr"))
        self.assertIn("q, k, v [B,N,H,D; pools N,H,D]", dense["convention"])
        self.assertIn("q, k, v [B,N,H,D; pools H,N,D]", listed["convention"])
        self.assertEqual(dense["page_sizes"], [])

    def test_pages_that_a_function_takes_are_probed(self):
        self.assertEqual(described(caches, "with_kvcache_of_64")["page_sizes"], [64])

    def test_a_table_without_lengths_gets_a_line(self):
        self.assertIn("without_lengths takes a table of pages and no lengths", described(caches, "without_lengths")["error"])


class Verify(unittest.TestCase):
    def test_right_functions_pass(self):
        for function in (caches.varlen, caches.with_kvcache, caches.of_page_list, caches.with_kvcache_of_64):
            report = attest_kernels.verify(function, cases=8, jobs=1)
            self.assertTrue(report.passed, report.text)

    def test_lengths_of_queries_taken_for_those_of_keys_are_seen(self):
        report = attest_kernels.verify(caches.varlen_with_lengths_of_queries, cases=20, jobs=1)
        self.assertEqual(report.verdict, "failed", report.text)
        self.assertRegex(report.failures[0].problem, r"^b[12] h1/1 q1 k2 d1 none fp32")

    def test_a_second_page_that_counts_as_full_is_shrunk_to_two_pages(self):
        report = attest_kernels.verify(caches.with_kvcache_of_whole_pages, cases=20, jobs=1)
        self.assertEqual(report.verdict, "failed", report.text)
        keys = int(re.match(r"b1 h1/1 q1 k(\d+) d1 none fp32", report.failures[0].problem).group(1))
        size = int(re.search(r"pages +of (\d+) keys", report.text).group(1))
        self.assertTrue(size < keys < 2 * size, report.text)


if __name__ == "__main__":
    unittest.main()
