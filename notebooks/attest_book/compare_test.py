"""What became slower or faster from one results folder to another, of results made up by a formula."""

import math
import unittest

from attest_book import compare, made_up_study, statistics
from attest_book.records import BadInput
from attest_book.study_test import InFolder


class Compare(InFolder):
    def test_what_became_slower_comes_first_and_only_it_is_called_so(self):
        a, b = self.study(name="a"), self.study(made_up_study.points(slower=1.2), name="b")
        metric, table, only_a, only_b = compare.matched(a, b)
        self.assertEqual((metric, len(table), only_a, only_b), ("time", 21, 0, 0))
        slower = table[table.side == 1]
        self.assertEqual(list(slower.index), list(range(6)))
        self.assertTrue(slower.what.str.contains("qt128").all())
        self.assertTrue(table[table.side == 0].ratio.eq(1.0).all())

    def test_the_other_way_round_it_is_faster(self):
        a, b = self.study(made_up_study.points(slower=1.2), name="a"), self.study(name="b")
        self.assertEqual((compare.matched(a, b)[1].side == -1).sum(), 6)

    def test_a_difference_within_the_intervals_is_none(self):
        a, b = self.study(name="a"), self.study(made_up_study.points(slower=1.02), name="b")
        self.assertTrue((compare.matched(a, b)[1].side == 0).all())

    def test_points_that_only_one_folder_has_are_counted(self):
        a, b = self.study(name="a"), self.study(made_up_study.points()[:-4], name="b")
        self.assertEqual(compare.matched(a, b)[2:], (4, 0))

    def test_folders_without_a_common_point_or_measurement_are_refused(self):
        a = self.study(name="a")
        with self.assertRaisesRegex(BadInput, "no measurement in common"):
            compare.matched(a, self.study(made_up_study.not_run(), name="b"))
        with self.assertRaisesRegex(BadInput, "no point in common"):
            compare.matched(a, self.study([made_up_study.timed("another", 512, 32, 32, 1.0)], name="c"))

    def test_too_few_rounds_say_nothing_and_are_counted(self):
        few = made_up_study.points(slower=2.0)
        for record in few[:6]:
            for m in record["measurements"]:
                m["value"] = {"time_low": 0.0, "time_high": "inf"}.get(m["name"], m["value"])
        a, b = self.study(name="a"), self.study(few, name="b")
        table = compare.matched(a, b)[1]
        self.assertEqual((len(table), (table.side == 1).sum()), (21, 4))
        self.assertIn("6 were timed in fewer than 6 rounds in A or B", compare.terminal(a, b))
        compare.page(a, b).html()

    def test_inputs_that_vary_stand_in_the_name_of_a_point(self):
        records = []
        for family in ("normal", "outliers"):
            for record in made_up_study.points():
                labels = {**record["labels"], "axis.inputs.family": family, "point": f"{record['labels']['point']} {family}"}
                records.append({**record, "labels": labels})
        table = compare.matched(self.study(records, name="a"), self.study(records, name="b"))[1]
        self.assertEqual(len(set(table.what)), len(table))
        self.assertTrue(table.what.str.contains("family outliers").any())

    def test_values_of_models_have_no_interval(self):
        a, b = (self.study(made_up_study.modelled(), name=name) for name in "ab")
        self.assertRegex(compare.terminal(a, b), r"1\.0000 +none +no difference shown")

    def test_hot_and_cold_caches_are_no_pair(self):
        cold = [{**record, "labels": {**record["labels"], "cache": "cold"}} for record in made_up_study.points()]
        with self.assertRaisesRegex(BadInput, "no point in common"):
            compare.matched(self.study(name="a"), self.study(cold, name="b"))

    def test_launches_of_a_stream_and_of_a_graph_are_no_pair(self):
        replayed = [{**record, "labels": {**record["labels"], "launch": "graph"}} for record in made_up_study.points()]
        with self.assertRaisesRegex(BadInput, "no point in common"):
            compare.matched(self.study(name="a"), self.study(replayed, name="b"))

    def test_another_machine_is_named(self):
        there = [{**record, "provenance": {**record["provenance"], "device": "another device"}} for record in made_up_study.points()]
        a, b = self.study(name="a"), self.study(there, name="b")
        self.assertIn("A and B are not of one machine: a device; another device.", compare.terminal(a, b))
        self.assertNotIn("not of one machine", compare.terminal(a, a))

    def test_a_point_that_no_gpu_was_asked_about_does_not_make_another_machine(self):
        skipped = {**made_up_study.not_run()[0], "provenance": {**made_up_study.PROVENANCE, "device": ""}}
        a, b = self.study(name="a"), self.study(made_up_study.points() + [skipped], name="b")
        self.assertNotIn("not of one machine", compare.terminal(a, b))

    def test_two_folders_make_a_page(self):
        self.study(name="a"), self.study(made_up_study.points(slower=1.2), name="b")
        status, out, err = self.run_line("report", self.folder / "a", self.folder / "b", "--out", self.folder / "page.html")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("6 of 21 matched points are slower in B, 0 faster", out)


class Statistics(unittest.TestCase):
    def test_the_interval_holds_the_ratio_of_any_values_in_the_two_intervals(self):
        ratio, low, high = statistics.ratio_interval((2.0, 1.5, 2.5), (1.0, 0.5, 2.0))
        self.assertEqual((ratio, low, high), (2.0, 1.5 / 2.0, 2.5 / 0.5))

    def test_what_is_not_a_number_is_on_no_side(self):
        self.assertEqual([statistics.side(*ends) for ends in ((1.1, 1.2), (0.8, 0.9), (0.9, 1.1), (1.0, 1.0), (math.nan, math.nan))],
                         [1, -1, 0, 0, 0])


class GeometricMean(unittest.TestCase):
    def test_a_ratio_and_its_inverse_cancel(self):
        self.assertEqual(statistics.geometric_mean([2.0, 0.5]), 1.0)
        self.assertEqual(statistics.geometric_mean([4.0]), 4.0)


if __name__ == "__main__":
    unittest.main()
