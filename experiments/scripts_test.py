"""Tests of what the scripts of this folder compute without a GPU: python3 -m unittest discover -p '*_test.py'"""

import json
import pathlib
import re
import random
import tempfile
import unittest

import counters_check
import documents
import errors_report
import ncu_csv
from median_interval import FEWEST_VALUES, median_interval
from records import geometric_mean, read, sizes

WANTED = {"dram__bytes_read.sum", "gpu__time_duration.sum", "launch__registers_per_thread"}
TABLE = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","device__attribute_display_name","dram__bytes_read.sum","gpu__time_duration.sum","launch__registers_per_thread"
"","","","","byte","ns","register/thread"
"0","7","void at::native::fill(float)","No-CC","128","1,000","16"
"1","7","attest::k3(Arguments)","No-CC","1,234,567","2,500,000","32"
"2","7","attest::zero(int)","No-CC","0","900","8"
"3","7","void at::native::fill(float)","No-CC","128","1,000","16"
"4","7","attest::k4(Arguments)","No-CC","5","7","255"
"""


class MedianInterval(unittest.TestCase):
    def test_holds_the_true_median_at_least_as_often_as_it_says(self):
        draw = random.Random(1)
        for n in (FEWEST_VALUES, 7, 20, 51):
            trials = 2000
            held = 0
            for _ in range(trials):
                _, low, high = median_interval([draw.expovariate(1.0) for _ in range(n)])
                held += low <= 0.6931471805599453 <= high
            # Four standard deviations of a binomial below 95 %.
            self.assertGreater(held, trials * 0.95 - 4 * (trials * 0.95 * 0.05) ** 0.5, n)

    def test_order_does_not_matter_and_the_interval_holds_the_median(self):
        values = [float(i) for i in range(20)]
        random.Random(2).shuffle(values)
        self.assertEqual(median_interval(values), (9.5, 5.0, 14.0))

    def test_too_few_values_are_refused(self):
        with self.assertRaises(ValueError):
            median_interval([1.0] * (FEWEST_VALUES - 1))


class Records(unittest.TestCase):
    def test_records_of_another_schema_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.jsonl"
            path.write_text('{"schema":1}\n\n{"schema":2}\n')
            with self.assertRaisesRegex(ValueError, "schema is 2; allowed: 1"):
                read(path)
            path.write_text('{"schema":1}\n')
            self.assertEqual(read(path), [{"schema": 1}])


class NcuCsv(unittest.TestCase):
    def test_numbers_lose_their_commas_and_keep_their_kernels(self):
        rows = ncu_csv.kernels(TABLE, WANTED)
        self.assertEqual([name for name, _ in rows][1], "attest::k3(Arguments)")
        self.assertEqual(rows[1][1], {"dram__bytes_read.sum": 1234567.0, "gpu__time_duration.sum": 2500000.0,
                                      "launch__registers_per_thread": 32.0})

    def test_a_launch_is_all_kernels_between_two_of_pytorch(self):
        groups = ncu_csv.launches_between_markers(ncu_csv.kernels(TABLE, WANTED))
        self.assertEqual([[name for name, _ in group] for group in groups],
                         [["attest::k3(Arguments)", "attest::zero(int)"], ["attest::k4(Arguments)"]])

    def test_an_unknown_unit_or_no_table_is_an_error(self):
        with self.assertRaises(ValueError):
            ncu_csv.kernels(TABLE.replace('"byte"', '"furlong"'), WANTED)
        with self.assertRaises(KeyError):
            ncu_csv.kernels("==ERROR== no counters", WANTED)


class CountersCheck(unittest.TestCase):
    RUN = [("a", {"x.sum": 1.0, "y.sum": 4.0, "z.avg.pct_of_peak_sustained_active": 10.0, counters_check.DURATION: 1.0}),
           ("b", {"x.sum": 2.0, "y.sum": 8.0, "z.avg.pct_of_peak_sustained_active": 20.0, counters_check.DURATION: 3.0})]

    def of(self, metric, per="", rest="", unit="%"):
        return counters_check.of_run([{"name": "n", "metric": metric, "per": per, "rest": rest, "unit": unit}], self.RUN)

    def test_sums_add_shares_are_means_by_time_and_quotients_are_of_sums(self):
        self.assertEqual(self.of("x.sum", unit="B"), [("n", 3.0, "B")])
        self.assertEqual(self.of("z.avg.pct_of_peak_sustained_active"), [("n", 17.5, "%")])
        self.assertEqual(self.of("x.sum", per="y.sum"), [("n", 25.0, "%")])
        self.assertEqual(self.of("x.sum", rest="y.sum"), [("n", 20.0, "%")])

    def test_the_report_says_how_far_the_sources_are_apart(self):
        records = [{"labels": {"shape": "b1", "contender": "k", "plan": "-", "source": source},
                    "measurements": [{"name": name, "value": value * factor} for name, *_ in counters_check.COLUMNS]}
                   for source, value, factor in (("cupti", 50, 1.0), ("ncu", 50, 0.5))]
        text = counters_check.table(records)
        self.assertIn("| b1 | k | 50.0 (25.0) |", text)
        self.assertIn("tensor_active 25.00", text)
        self.assertIn("dram_read_bytes 100.00", text)


def visible_pairs(shape):
    """Of all heads, from the text of a shape."""
    parts = shape.split()
    sizes = {part[0]: int(part[1:]) for part in parts if part[0] in "bhnd" and part[1:].isdigit()}
    n = sizes["n"]
    pairs = n * (n + 1) // 2 if any(part.startswith("causal") for part in parts) else n * n
    return sizes["b"] * sizes["h"] * pairs, sizes["d"]


class GeometricMean(unittest.TestCase):
    def test_a_ratio_and_its_inverse_cancel(self):
        self.assertEqual(geometric_mean([2.0, 0.5]), 1.0)
        self.assertEqual(geometric_mean([4.0]), 4.0)


def record_of(contender, element_type, rmse):
    labels = {"problem": f"b1 h4/4 q8 k8 d64 none {element_type}", "inputs": "outliers", "contender": contender, "executor": "gpu",
              "element_type": element_type, "tensor": "O", "largest_error_at": "[0, 0, 0, 0]"}
    names = ("relative_l2", "max_abs_error", "bias", "outward_bias", *errors_report.ULP)
    return {"labels": labels, "measurements": [{"name": "rmse", "value": rmse}] + [{"name": name, "value": 0.5} for name in names]}


class ErrorsReport(unittest.TestCase):
    def test_precisions_share_a_table_and_a_later_record_replaces(self):
        found = errors_report.tables([record_of("a", "fp16", 1.0), record_of("a", "bf16", 2.0), record_of("a", "fp16", 3.0)])
        self.assertEqual(list(found), [("b1 h4/4 q8 k8 d64 none", "outliers")])
        lines = errors_report.table(found["b1 h4/4 q8 k8 d64 none", "outliers"]).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("| fp16 | O | 3 | 0.5 |", lines[2])

    def test_layers_of_a_file_in_two_precisions_share_a_table(self):
        records = [record_of("a", "fp16", 1.0), record_of("a", "bf16", 2.0)]
        for record in records:
            record["labels"]["inputs"] = f"outliers_{record['labels']['element_type']}_unrounded"
        self.assertEqual(list(errors_report.tables(records)), [("b1 h4/4 q8 k8 d64 none", "outliers_unrounded")])

    def test_nan_is_printed_and_a_missing_bound_is_left_empty(self):
        lines = errors_report.table(errors_report.tables([record_of("a", "fp16", "nan")]).popitem()[1]).splitlines()
        self.assertIn("| nan |", lines[2])
        self.assertTrue(lines[2].endswith("|  |  |  |"))

    def test_the_published_figure_stands_beside_fp16_only(self):
        text = errors_report.published(errors_report.tables([record_of("torch_eager", "fp16", 3e-4), record_of("torch_eager", "bf16", 2e-3)]))
        self.assertEqual(text.count("torch_eager"), 1)
        self.assertIn("baseline: 0.00032", text)


class Records(unittest.TestCase):
    def test_sizes_are_those_of_the_text_and_no_other_word(self):
        self.assertEqual(sizes("b8 h12 n4096 d64 none bf16 lengths1"), {"b": 8, "h": 12, "n": 4096, "d": 64})
        self.assertEqual(sizes("b1 h4/2 q512 k1024 d128 causal_top_left fp32"), {"b": 1, "q": 512, "k": 1024, "d": 128})

    def test_every_row_of_the_ladder_counts_the_same_flops(self):
        # C22: the founding document's table counts half of them in some rows.
        rows = 0
        for line in pathlib.Path("results/h200/ladder.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record["labels"]["contender"].startswith("cublas"):
                continue
            values = {m["name"]: m["value"] for m in record["measurements"]}
            pairs, dim = visible_pairs(record["labels"]["shape"])
            counted = values["rate"] * values["time"] * 1e9  # TFLOP/s times ms
            # Three roundings of doubles made the rate, two more this product.
            self.assertLessEqual(abs(counted - 4 * pairs * dim), 5 * 2**-53 * 4 * pairs * dim, record["labels"])
            rows += 1
        self.assertGreaterEqual(rows, 30)

    def test_errors_on_the_h200_are_those_of_the_executor_to_the_last_digit(self):
        def figures(machine):
            found = {}
            for line in pathlib.Path(f"results/{machine}/errors_precision.jsonl").read_text().splitlines():
                record = json.loads(line)
                labels = record["labels"]
                plan = re.sub(r" (grid_order=\w+|g\d+)", "", labels["plan"])  # which changes no bit
                key = labels["contender"], labels["problem"], plan, labels["inputs"], labels["tensor"]
                found[key] = {m["name"]: m["value"] for m in record["measurements"]}
            return found
        on_gpu, on_executor = figures("h200"), figures("xeon-2core")
        self.assertGreaterEqual(len(on_gpu), 200)
        self.assertEqual(on_gpu, on_executor)

    def test_no_committed_error_passes_its_bound_and_ulp_shares_cover_every_element(self):
        rows, worst_of_mutants = 0, {}
        for path in pathlib.Path("results").glob("*/errors*.jsonl"):
            for line in path.read_text().splitlines():
                record = json.loads(line)
                if record["kind"] != "errors":
                    continue
                found = {m["name"]: float(m["value"]) for m in record["measurements"]}
                who, over = record["labels"]["contender"], found.get("error_over_bound_max", 0.0)
                if who.startswith("mutant/"):
                    worst_of_mutants[who] = max(over, worst_of_mutants.get(who, 0.0))
                else:
                    self.assertLessEqual(over, 1.0, record["labels"])
                counts = [found[name] * found["elements"] for name in errors_report.ULP]
                # A share is a rounded quotient of whole numbers: far less than half an element off.
                self.assertEqual(sum(round(count) for count in counts), found["elements"], record["labels"])
                rows += 1
        for who, worst in worst_of_mutants.items():  # a planted bug is not within what its kernel declares
            self.assertGreater(worst, 1.0, who)
        self.assertGreaterEqual(rows, 40)


class Documents(unittest.TestCase):
    MARKED = "before\n<!-- table: speeds -->\n| 1 |\n<!-- end of table -->\nafter\n"
    SENTENCE = "of {:,} cases, {:.1f} % failed"

    def test_a_table_between_marks_is_made_again_and_nothing_else_changes(self):
        made = documents.with_tables(self.MARKED, "here", {"speeds": lambda: "| 2 |"})
        self.assertEqual(made, self.MARKED.replace("1", "2"))

    def test_marks_that_nobody_serves_or_ends_are_named(self):
        for text, wrong in ((self.MARKED, "named speeds"), (self.MARKED.replace("end", "no end"), "not ended")):
            with self.assertRaisesRegex(documents.Wrong, f"here: .*{wrong}"):
                documents.with_tables(text, "here", {"sizes": str})

    def test_a_figure_is_found_and_set_however_its_sentence_is_broken_into_lines(self):
        text = "We saw that of 1,000 cases,\n0.7 % failed. So."
        self.assertEqual(documents.with_figure(text, "here", self.SENTENCE, (1000, 0.7)), text)
        self.assertEqual(documents.with_figure(text, "here", self.SENTENCE, (2500, 12)),
                         "We saw that of 2,500 cases,\n12.0 % failed. So.")

    def test_a_sentence_that_ends_with_a_figure_is_refused(self):
        for sentence in ("of {:.0f}", "{:.0f} of"):
            with self.assertRaisesRegex(documents.Wrong, "begin and end with words"):
                documents.with_figure("of 12 of", "here", sentence, (1,))

    def test_a_sentence_that_is_gone_or_there_twice_is_named(self):
        for text in ("of many things none failed", "of 1 cases, 2.0 % failed; of 1 cases, 2.0 % failed"):
            with self.assertRaisesRegex(documents.Wrong, "here: a sentence like"):
                documents.with_figure(text, "here", self.SENTENCE, (1, 2.0))

if __name__ == "__main__":
    unittest.main()
