"""Softcaps, windows, sinks, slopes of ALiBi and biases of functions: found by their parameters' names, and judged with their sign and corner."""

import inspect
import unittest

import numpy

import attest_kernels
from attest_kernels import frameworks, modifications
from attest_kernels.testing import modified
from attest_kernels.testing.asking import described


class Conventions(unittest.TestCase):
    def test_are_found_by_names(self):
        found = described(modified, "right")
        self.assertEqual(found["masks"], ["none", "causal_bottom_right", "window_bottom_right"])
        self.assertEqual((found["features"], found["window_rights"]), (["softcap", "sinks", "slopes", "bias"], None))
        self.assertIn("softcap, window_size, sinks, alibi_slopes, bias); causal and window bottom right", found["convention"])

    def test_a_window_of_one_side_ends_at_the_diagonal_or_nowhere(self):
        self.assertEqual(described(modified, "of_required_arrays")["window_rights"], [-1, 0])

    def test_the_corner_of_a_window_alone_is_probed(self):
        found = described(modified, "of_local_attention")
        self.assertEqual(found["masks"], ["none", "window_top_left"])
        self.assertIn("window_left, window_right); window top left", found["convention"])

    def test_what_a_function_refuses_in_a_probe_it_does_not_take(self):
        found = described(modified, "of_whole_bias")
        self.assertEqual((found["features"], found["biases"]), (["bias"], ["full"]))
        self.assertTrue(found["convention"].endswith("; not asked for sinks"), found["convention"])

    def test_a_window_of_one_number_is_something_else(self):
        self.assertEqual(described(modified, "of_other_parameters")["masks"], ["none"])

    def test_a_mask_of_booleans_is_declared_and_says_whatever_hides_keys(self):
        found = described(modified, "of_booleans")
        self.assertEqual(found["features"], ["bias", *modifications.HIDING])
        self.assertEqual((found["types"], found["bias_types"]), (["fp32", "fp16"], ["fp32"]))
        self.assertFalse({*modifications.HIDING} & {*described(modified, "of_other_parameters")["features"]})

    def test_a_declaration_counts_more_than_a_name_and_a_bias_may_hide_whole_rows(self):
        found = described(modified, "declared")
        self.assertIn("causal, window, learned, bias); ", found["convention"])
        self.assertEqual((found["features"], found["biases"]), (["sinks"], []))
        self.assertTrue(found["convention"].endswith("; not asked for bias"), found["convention"])


class Told(unittest.TestCase):
    def told(self, function, **given):
        none = modifications.none_of(function, {modifications.NAMES[name]: name for name in inspect.signature(function).parameters
                                                if name in modifications.NAMES})
        shapes = {"q": numpy.zeros((2, 3, 5, 8), numpy.float32), "k": numpy.zeros((2, 3, 7, 8), numpy.float32)}
        return modifications.told(none, frameworks.NumPy(), {**shapes, **given}, lambda array: array)

    def test_what_a_case_has_not_is_the_default_or_changes_nothing(self):
        optional = self.told(lambda q, softcap=30.0, window=None, sinks=None: q)
        self.assertEqual([optional[role] for role in ("softcap", "window", "sinks")], [0.0, None, None])
        required = self.told(lambda q, softcap, window, sinks, slopes, bias: q)
        self.assertEqual((required["softcap"], required["window"]), (0.0, (-1, -1)))
        self.assertTrue((required["sinks"] == -numpy.inf).all() and (required["slopes"] == 0).all() and (required["bias"] == 0).all())
        self.assertEqual([required[role].shape for role in ("sinks", "slopes", "bias")], [(3,), (3,), (1, 1, 5, 7)])

    def test_a_window_without_an_end_is_told_as_its_default_tells_it(self):
        self.assertEqual(self.told(lambda q, window=(None, None): q, window=(4, -1))["window"], (4, None))
        sides = self.told(lambda q, window_left=-1, window_right=None: q, window=(4, -1))
        self.assertEqual((sides["window_left"], sides["window_right"]), (4, None))

    def test_arrays_of_heads_have_one_axis(self):
        self.assertEqual(self.told(lambda q, sinks=None: q, sinks=numpy.zeros((1, 3, 1), numpy.float32))["sinks"].shape, (3,))


class Declarations(unittest.TestCase):
    def test_count_more_than_names(self):
        roles = modifications.roles_with(modifications.NAMES, {"alibi_slopes": "Extra", "bias": False, "window": False})
        self.assertEqual((roles["extra"], roles["softcap"]), ("slopes", "softcap"))
        self.assertFalse({"slopes", "bias", "attn_mask", "window", "window_left"} & roles.keys())

    def test_bad_ones_get_one_line(self):
        for own in (True, "not a name", 3):
            with self.assertRaisesRegex(ValueError, "^alibi_slopes is .*; allowed: a parameter's name, or False$"):
                attest_kernels.kernel(modified.right, alibi_slopes=own)


class Verify(unittest.TestCase):
    def test_right_functions_pass(self):
        for function in (modified.right, modified.of_required_arrays, modified.of_local_attention, modified.of_whole_bias, modified.of_top_left,
                         modified.declared, modified.of_booleans):
            report = attest_kernels.verify(function, cases=10, seed=6, jobs=1)  # a seed that shows each missing limit of PythonLimits
            self.assertTrue(report.passed, report.text)

    def test_one_that_is_wrong_in_one_way_is_shrunk_to_it(self):
        self.assertEqual(attest_kernels.verify(modified.softcap_of_dot_products, cases=60, jobs=1).verdict, "failed")  # by a law that sets one
        for function, word in ((modified.window_from_top_left, " window_bottom_right "),
                               (modified.sinks_ignored, " sinks_given"), (modified.alibi_from_top_left, " slopes_given"),
                               (modified.bias_is_scaled, " bias_"), (modified.mask_turned_round, " (padding|prefix|documents|lists)"),
                               (modified.mask_of_the_first_entry, "^b2 ")):
            report = attest_kernels.verify(function, cases=60, jobs=1)
            self.assertEqual(report.verdict, "failed", report.text)
            self.assertRegex(report.failures[0].problem, word)


if __name__ == "__main__":
    unittest.main()
