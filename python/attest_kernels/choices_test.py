"""Functions that choose keys: how they are found out, and judged by the laws of choices."""

import inspect
import pathlib
import unittest

import numpy

import attest_kernels
from attest_kernels import choices, conventions, frameworks, probes, subject
from attest_kernels.testing import chosen
from attest_kernels.testing.asking import described


class Conventions(unittest.TestCase):
    def test_weights_and_a_number_of_keys_make_a_choice(self):
        found = described(chosen, "right")
        self.assertEqual((found["operation"], found["masks"], found["features"]), ("select", ["none", "causal_bottom_right"], ["padding"]))
        self.assertEqual((found["missing"], found["any_scale"], found["one_kv_head"], found["grouped"]), ([], True, False, True))
        self.assertNotIn("none came near", found["convention"])

    def test_keys_of_one_head_without_its_axis_are_found_and_layouts_of_weights_too(self):
        found = described(chosen, "of_one_head")
        self.assertIn("of_one_head(q, k, weights [B,N,H,D], sm_scale, topk); K [B,N,D]; found by", found["convention"])
        self.assertTrue(found["one_kv_head"])
        self.assertNotIn("none came near", found["convention"])

    def test_scores_may_be_missing(self):
        found = described(chosen, "keys_alone")
        self.assertEqual((found["missing"], found["any_scale"]), (["scores"], False))

    def test_a_wrong_choice_is_taken_and_judged(self):
        self.assertIn("none came near exact choices", described(chosen, "weights_after_the_sum")["convention"])

    def test_a_function_without_a_number_of_keys_is_refused_as_a_choice(self):
        with self.assertRaisesRegex(conventions.NoConvention, "^without_number has no parameter for the number of keys; allowed: top_k, topk, index_topk$"):
            subject.convention_of(chosen.without_number, "select", {})


class Returned(unittest.TestCase):
    def lists(self, *made):
        return choices.Choice.lists(frameworks.NumPy(), made, (2, 3), 4)

    def test_lists_that_are_short_end_in_no_key_and_are_counted(self):
        keys = numpy.array([[[5, 2], [1, -1], [-1, -1]]] * 2)
        found = self.lists(keys)
        self.assertEqual(found["keys"].shape, (2, 1, 3, 4))
        self.assertEqual(found["keys"][0, 0, 0].tolist(), [5, 2, probes.NO_KEY, probes.NO_KEY])
        self.assertEqual(found["counts"][1, 0, :, 0].tolist(), [2, 1, 0])
        self.assertNotIn("scores", found)

    def test_counts_and_scores_are_found_in_whatever_order(self):
        keys, scores, counts = numpy.zeros((2, 3, 4), int), numpy.ones((2, 3, 4), numpy.float32), numpy.full((2, 3), 9)
        for made in ((keys, scores, counts), (scores, counts, keys)):
            found = self.lists(*made)
            self.assertEqual((found["scores"].max(), found["counts"].min()), (1, 9))

    def test_what_is_no_list_of_keys_gets_one_line(self):
        for made in (numpy.zeros((2, 3, 4), numpy.float32), numpy.zeros((2, 3, 5), int), numpy.zeros((3, 2, 4), int), numpy.full((2, 3, 4), 2 ** 40)):
            with self.assertRaisesRegex(TypeError, "^it returned "):
                self.lists(made)


class Verify(unittest.TestCase):
    def test_the_readme_shows_one_that_is_judged_here(self):
        readme = pathlib.Path(chosen.__file__).parents[2] / "README.md"
        self.assertIn(inspect.getsource(chosen.indexer), readme.read_text(encoding="utf-8"))

    def test_right_choices_pass(self):
        for function in (chosen.right, chosen.of_one_head, chosen.keys_alone, chosen.indexer):
            report = attest_kernels.verify(function, cases=25, jobs=1)
            self.assertTrue(report.passed, report.text)

    def test_one_that_is_wrong_in_one_way_fails_by_the_law_of_it(self):
        for function, laws in ((chosen.last_one_twice, "selection_is_a_set"), (chosen.weights_after_the_sum, "selection_is_reachable|within_bound"),
                               (chosen.one_too_few, "selection_is_a_set|counts_within_bound|within_bound"),
                               (chosen.scores_of_the_next, "scores_belong_to_keys|scores_within_bound")):
            report = attest_kernels.verify(function, cases=40, jobs=1)
            self.assertEqual(report.verdict, "failed", report.text)
            self.assertRegex(report.failures[0].law, laws)


if __name__ == "__main__":
    unittest.main()
