"""Tests of the tables that documents show of `attest errors`."""

import math
import unittest

from attest_book import error_tables
from attest_book.records import Record


def record_of(contender, element_type, rmse):
    labels = {"problem": f"b1 h4/4 q8 k8 d64 none {element_type}", "inputs": "outliers", "contender": contender, "executor": "gpu",
              "element_type": element_type, "tensor": "O", "largest_error_at": "[0, 0, 0, 0]"}
    names = ("relative_l2", "max_abs_error", "bias", "outward_bias", *error_tables.ULP)
    values = {"rmse": rmse} | dict.fromkeys(names, 0.5)
    return Record("errors", None, "passed", labels, values, dict.fromkeys(values, "1"), {}, "here")


class ErrorTables(unittest.TestCase):
    def test_precisions_share_a_table_and_a_later_record_replaces(self):
        found = error_tables.tables([record_of("a", "fp16", 1.0), record_of("a", "bf16", 2.0), record_of("a", "fp16", 3.0)])
        self.assertEqual(list(found), [("b1 h4/4 q8 k8 d64 none", "outliers")])
        lines = error_tables.table(found["b1 h4/4 q8 k8 d64 none", "outliers"]).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("| fp16 | O | 3 | 0.5 |", lines[2])

    def test_layers_of_a_file_in_two_precisions_share_a_table(self):
        records = [record_of("a", "fp16", 1.0), record_of("a", "bf16", 2.0)]
        for record in records:
            record.labels["inputs"] = f"outliers_{record.labels['element_type']}_unrounded"
        self.assertEqual(list(error_tables.tables(records)), [("b1 h4/4 q8 k8 d64 none", "outliers_unrounded")])

    def test_nan_is_printed_and_a_missing_bound_is_left_empty(self):
        lines = error_tables.table(error_tables.tables([record_of("a", "fp16", math.nan)]).popitem()[1]).splitlines()
        self.assertIn("| nan |", lines[2])
        self.assertTrue(lines[2].endswith("|  |  |  |"))

    def test_the_published_figure_stands_beside_fp16_only(self):
        text = error_tables.published(error_tables.tables([record_of("torch_eager", "fp16", 3e-4), record_of("torch_eager", "bf16", 2e-3)]))
        self.assertEqual(text.count("torch_eager"), 1)
        self.assertIn("baseline: 0.00032", text)


if __name__ == "__main__":
    unittest.main()
