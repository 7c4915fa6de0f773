"""Gradients are judged as outputs are: a backward pass by hand here, gradients by a framework in pytorch_test.py."""

import tempfile
import unittest

import attest_kernels
from attest_kernels import program
from attest_kernels.testing import functions, gradients
from attest_kernels.testing.asking import described


class Conventions(unittest.TestCase):
    def test_a_function_that_takes_do_is_a_backward_pass(self):
        plain = described(gradients, "right")
        self.assertEqual((plain["operation"], plain["masks"]), ("backward", ["none", "causal_bottom_right"]))
        self.assertIn("right(q, k, v, o, lse, do [B,H,N,D], causal, scale); causal bottom right; LSE natural; found by", plain["convention"])

    def test_are_found_by_names_and_probes(self):
        other = described(gradients, "into")
        self.assertIn("into(q, k, v, do, lse, delta, dq, dk, dv [B,N,H,D], is_causal, sm_scale); causal top left; LSE in base 2;", other["convention"])

    def test_what_cannot_be_asked_gets_one_line(self):
        for module, name, line in ((functions, "right@backward", "a function of NumPy has no gradients of its own"),
                                   (functions, "into@backward", "into writes O where it is told to, which nothing derives"),
                                   (gradients, "right@forward", "right takes the gradient of O, and is a backward pass"),
                                   (functions, "right@sideways", "the operation is 'sideways'; allowed for functions of Python: forward, backward, gradient"),
                                   (gradients, "two_of_three", "it returned tuple; allowed: a tuple (dq, dk, dv)")):
            self.assertIn(line, described(module, name)["error"])


class Verify(unittest.TestCase):
    def test_right_gradients_pass(self):
        for function in (gradients.right, gradients.into, gradients.capped_in_windows):
            report = attest_kernels.verify(function, operation="backward", cases=12, jobs=1)
            self.assertTrue(report.passed, report.text)

    def test_parts_of_ranks_that_are_rounded_pass_where_the_function_says_so(self):
        for function, verdict in ((gradients.rounds_parts, "passed"), (gradients.rounds_parts_unsaid, "failed")):
            report = attest_kernels.verify(function, cases=40, jobs=1)
            self.assertEqual(report.verdict, verdict, report.text)

    def test_a_gradient_without_its_scale_fails(self):
        report = attest_kernels.verify(gradients.without_scale, cases=6, jobs=1)
        self.assertEqual(report.verdict, "failed", report.text)
        self.assertIn("dQ", report.failures[0].what)

    def test_a_softcap_that_is_ignored_fails(self):
        report = attest_kernels.verify(gradients.softcap_ignored, cases=40, jobs=1)
        self.assertEqual(report.verdict, "failed", report.text)
        self.assertIn(" softcap", report.failures[0].problem)

    def test_a_dropped_key_is_shrunk_and_replays(self):
        with tempfile.TemporaryDirectory() as folder:
            report = attest_kernels.verify(gradients.last_key_without_dk, cases=40, jobs=1, out=folder)
            self.assertEqual(report.verdict, "failed", report.text)
            self.assertRegex(report.failures[0].problem, r"^b1 h1/1 q1 k41 d\d+ none fp32 backward")
            code, text = program.run(["replay", report.failures[0].replay], may_end_with=(1,))
            self.assertIn("reproduced", text)


if __name__ == "__main__":
    unittest.main()
