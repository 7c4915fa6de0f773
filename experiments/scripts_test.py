"""Tests of what the scripts of this folder compute without a GPU: python3 -m unittest discover -p '*_test.py'"""

import gzip
import pathlib
import re
import tempfile
import unittest

import document_tables
import documents
import errors_report
from records import geometric_mean, read, sizes

class Records(unittest.TestCase):
    def test_records_of_another_schema_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.jsonl"
            path.write_text('{"schema":1}\n\n{"schema":2}\n')
            with self.assertRaisesRegex(ValueError, "schema is 2; allowed: 1"):
                read(path)
            path.write_text('{"schema":1}\n')
            self.assertEqual(read(path), [{"schema": 1}])

    def test_a_file_that_is_packed_reads_like_one_that_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.jsonl"
            pathlib.Path(f"{path}.gz").write_bytes(gzip.compress(b'{"schema":1}\n'))
            self.assertEqual(read(path), [{"schema": 1}])


def visible_pairs(problem):
    """(of all heads, head dim), from the text of a problem with as many queries as keys."""
    batch, heads, queries, dim = (int(re.search(rf"\b{letter}(\d+)", problem)[1]) for letter in "bhqd")
    pairs = queries * (queries + 1) // 2 if "causal" in problem else queries * queries
    return batch * heads * pairs, dim


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
        study = document_tables.Study("ladder")
        for labels, row in study.rows:
            pairs, dim = visible_pairs(labels["problem"])
            counted = row["rate"] * row["time"] * 1e9  # TFLOP/s times ms
            # Three roundings of doubles made the rate, two more this product.
            self.assertLessEqual(abs(counted - 4 * pairs * dim), 5 * 2**-53 * 4 * pairs * dim, labels)
        self.assertGreaterEqual(len(study.rows), 30)

    def test_errors_on_the_h200_are_those_of_the_executor_to_the_last_digit(self):
        def figures(machine):
            found = {}
            for record in read(f"results/{machine}/errors_precision.jsonl"):
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
        for path in pathlib.Path("results").glob("*/errors*.jsonl*"):
            for record in read(str(path).removesuffix(".gz")):
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


class Tables(unittest.TestCase):
    def test_a_document_that_was_edited_by_hand_is_named_with_its_table_and_the_command(self):
        text = documents.difference("README.md", Documents.MARKED, Documents.MARKED.replace("1", "2"))
        self.assertIn("README.md: speeds differs from its records; python3 experiments/documents.py writes it", text)
        self.assertIn("-| 1 |", text)

    def test_every_mark_of_a_document_has_a_table_and_every_table_a_mark(self):
        marks = {match[1] for path in documents.documents() for match in documents.MARK.finditer(path.read_text())}
        self.assertEqual(marks, set(document_tables.TABLES))

    def test_a_study_names_the_contender_that_it_has_not_or_has_twice(self):
        study = document_tables.Study("ladder")
        for parts in (("none", "qt999"), ("none",)):
            with self.assertRaisesRegex(LookupError, "k2_coalesced .* in the study ladder, one is wanted"):
                study.one("k2_coalesced", *parts)

    def test_what_a_campaign_printed_is_held_against_its_records(self):
        printed = (document_tables.RESULTS / f"{document_tables.DEFAULT}.txt").read_text()
        records = read(document_tables.RESULTS / f"{document_tables.DEFAULT}.jsonl")
        rows = {line.split()[0]: line for line in printed.splitlines() if line}
        document_tables.require_printed(rows, records)
        name = next(record["labels"]["kernel"] for record in records)
        for other in ({**rows, name: rows[name].replace(rows[name].split()[2], "7")}, {key: row for key, row in rows.items() if key != name}):
            with self.assertRaisesRegex(LookupError, f"another run than its records: {name} "):
                document_tables.require_printed(other, records)


if __name__ == "__main__":
    unittest.main()
