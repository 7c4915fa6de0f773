"""Gates and residuals of O: found by their parameters' names, told where O lies, and judged by what the function says that it rounds."""

import pathlib
import tempfile
import unittest

import numpy

import attest_kernels
from attest_kernels import frameworks, modifications, program
from attest_kernels.testing import gated
from attest_kernels.testing.asking import described


class Conventions(unittest.TestCase):
    def test_are_found_by_names(self):
        found = described(gated, "right")
        self.assertEqual(found["features"], ["gate", "residual"])
        self.assertIn("right(q, k, v [B,H,N,D], causal, scale, gate, residual); ", found["convention"])
        self.assertFalse(found["fuses_epilogue"])
        self.assertTrue(described(gated, "fused")["fuses_epilogue"])

    def test_a_declaration_names_what_is_called_otherwise_in_the_layout_of_its_other_arrays(self):
        found = described(gated, "of_required_ones")
        self.assertEqual(found["features"], ["gate", "residual"])
        self.assertIn("q, k, v [B,N,H,D], causal, scale, G, x); ", found["convention"])

    def test_lie_where_packed_rows_do_and_beside_pages(self):
        self.assertEqual(described(gated, "packed")["features"], ["lengths", "gate", "residual"])
        self.assertEqual(described(gated, "of_pages")["features"], ["lengths", "gate"])

    def test_numbers_arrays_of_other_shapes_and_switches_of_these_names_are_not_taken(self):
        found = described(gated, "of_other_parameters")
        self.assertEqual(found["features"], [])
        self.assertTrue(found["convention"].endswith("; not asked for gate"), found["convention"])
        self.assertEqual(described(gated, "of_a_switch")["features"], [])


class Told(unittest.TestCase):
    def test_what_a_case_has_not_changes_no_bit_of_o(self):
        given = {"q": numpy.zeros((2, 3, 5, 8), numpy.float16), "k": numpy.zeros((2, 3, 7, 8), numpy.float16), "v": numpy.zeros((2, 3, 7, 4), numpy.float16)}
        names = {"gate": "gate", "residual": "residual"}

        def told(function):
            return modifications.told(modifications.none_of(function, names), frameworks.NumPy(), given, lambda array: array)
        required = told(lambda q, k, v, gate, residual: q)
        for role, number in (("gate", 1), ("residual", -0.0)):
            self.assertEqual((required[role].shape, required[role].dtype), ((2, 3, 5, 4), numpy.float16))
            self.assertTrue((required[role] == number).all() and (numpy.signbit(required[role]) == numpy.signbit(number)).all())
        optional = told(lambda q, k, v, gate=None, residual=None: q)
        self.assertEqual([optional[role] for role in ("gate", "residual")], [None, None])


class Verify(unittest.TestCase):
    def test_right_functions_pass(self):
        for function in (gated.right, gated.fused, gated.of_required_ones, gated.packed, gated.of_pages):
            report = attest_kernels.verify(function, cases=12, seed=4, jobs=1)
            self.assertTrue(report.passed, report.text)

    def test_one_that_is_wrong_in_one_way_is_shrunk_to_it(self):
        for function, word in ((gated.residual_is_gated, " gate_given residual_given"), (gated.gate_of_the_next_head, "h2/2 .* gate_given"),
                               (gated.gate_is_ignored, " gate_given"), (gated.gate_through_a_sigmoid, " gate_given"),
                               (gated.residual_twice, " residual_given"), (gated.residual_of_rows_with_keys, " residual_given")):
            report = attest_kernels.verify(function, cases=60, jobs=1)
            self.assertEqual(report.verdict, "failed", f"{function.__name__}\n{report.text}")
            self.assertRegex(report.failures[0].problem, word, function.__name__)

    def test_o_that_is_stored_before_its_gate_is_an_error_of_who_claims_to_round_once(self):
        for function, code in ((gated.right, 0), (gated.stored_as_if_fused, 1)):
            with tempfile.TemporaryDirectory() as folder:
                place = f"{pathlib.Path(gated.__file__)}:{function.__name__}"
                got, text = program.run(["verify", "--python", place, "--family", "positive_v", "--law", "o_*,within_bound,cancelling_residual",
                                         "--cases", "40", "--seed", "2", "--no-regressions", "--out", folder], may_end_with=(0, 1, 4))
            self.assertEqual(got, code, text)


if __name__ == "__main__":
    unittest.main()
