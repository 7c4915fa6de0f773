"""Tests of what the scripts of this folder compute without a GPU: python3 -m unittest discover -p '*_test.py'"""

import pathlib
import re
import tempfile
import unittest

import document_counts
import document_tables
import documents

from attest_book.error_tables import ULP
from attest_book.records import read, sizes


def visible_pairs(problem):
    """(of all heads, head dim), from the text of a problem with as many queries as keys."""
    found = sizes(problem)
    pairs = found["q"] * (found["q"] + 1) // 2 if "causal" in problem else found["q"] * found["q"]
    return found["b"] * found["h"] * pairs, found["d"]


class CommittedRecords(unittest.TestCase):
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
                labels = record.labels
                plan = re.sub(r" (grid_order=\w+|g\d+)", "", labels["plan"])  # which changes no bit
                key = labels["contender"], labels["problem"], plan, labels["inputs"], labels["tensor"]
                found[key] = record.values
            return found
        on_gpu, on_executor = figures("h200"), figures("xeon-2core")
        self.assertGreaterEqual(len(on_gpu), 200)
        self.assertEqual(repr(sorted(on_gpu.items())), repr(sorted(on_executor.items())))  # NaN stays NaN

    def test_no_committed_error_passes_its_bound_and_ulp_shares_cover_every_element(self):
        rows, worst_of_mutants = 0, {}
        for path in pathlib.Path("results").glob("*/errors*.jsonl*"):
            for record in read(str(path).removesuffix(".gz")):
                if record.kind != "errors":
                    continue
                found = record.values
                who, over = record.labels["contender"], found.get("error_over_bound_max", 0.0)
                if who.startswith("mutant/"):
                    worst_of_mutants[who] = max(over, worst_of_mutants.get(who, 0.0))
                else:
                    self.assertLessEqual(over, 1.0, record.labels)
                counts = [found[name] * found["elements"] for name in ULP]
                # A share is a rounded quotient of whole numbers: far less than half an element off.
                self.assertEqual(sum(round(count) for count in counts), found["elements"], record.labels)
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

    def test_a_table_that_rests_on_no_record_stays_as_it_is(self):
        text = self.MARKED.replace("speeds", "growth")
        self.assertEqual(documents.with_tables(text, "here", {}), text)

    def test_marks_that_nobody_serves_or_ends_are_named(self):
        for text, wrong in ((self.MARKED, "named speeds"), (self.MARKED.replace("end", "no end"), "not ended")):
            with self.assertRaisesRegex(documents.Wrong, f"here: .*{wrong}"):
                documents.with_tables(text, "here", {"sizes": str})


class Counts(unittest.TestCase):
    TEXT = "has <!-- count: planted_bugs(k) -->40<!-- end of count --> bugs and <!-- count: features -->7<!-- end of count --> features"

    def test_a_count_in_a_sentence_is_made_again_and_one_of_a_program_only_where_there_is_one(self):
        class Some:
            def planted_bugs(self, kernel):
                return {"k": 1234}[kernel]

            def features(self):
                return None

        self.assertEqual(documents.with_counts(self.TEXT, "here", Some()), self.TEXT.replace("40", "1,234"))

    def test_counts_that_nobody_makes_or_ends_are_named(self):
        for text, wrong in ((self.TEXT.replace("features -->", "things -->"), "named things"), (self.TEXT.replace("end of", "end"), "not ended")):
            with self.assertRaisesRegex(documents.Wrong, f"here: .*{wrong}"):
                documents.with_counts(text, "here", document_counts.Counts(documents.TREE))

    def test_families_of_variants_are_no_planted_bugs_and_a_kernel_without_any_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "verify/mutants").mkdir(parents=True)
            (tree / "verify/mutants/a_one.mutants").write_text("kernel: x\n\n=== family\n=== b01_first\n--- correct\n=== b02_second\n")
            (tree / "verify/mutants/c.mutants").write_text("=== c01_other\n")
            counts = document_counts.Counts(tree)
            self.assertEqual((counts.planted_bugs(), counts.planted_bugs("a"), counts.features()), (3, 2, None))
            with self.assertRaisesRegex(LookupError, "no planted bug of z"):
                counts.planted_bugs("z")


class Tables(unittest.TestCase):
    def test_a_document_that_was_edited_by_hand_is_named_with_its_table_and_the_command(self):
        text = documents.difference("README.md", Documents.MARKED, Documents.MARKED.replace("1", "2"))
        self.assertIn("README.md: speeds differs from its records; python3 experiments/documents.py writes it", text)
        self.assertIn("-| 1 |", text)

    def test_every_mark_of_a_document_has_a_table_and_every_table_a_mark(self):
        marks = {match[1] for path in documents.documents() for match in documents.MARK.finditer(path.read_text())}
        self.assertEqual(marks, {*document_tables.TABLES, *documents.MADE_ELSEWHERE})

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
        name = next(record.labels["kernel"] for record in records)
        for other in ({**rows, name: rows[name].replace(rows[name].split()[2], "7")}, {key: row for key, row in rows.items() if key != name}):
            with self.assertRaisesRegex(LookupError, f"another run than its records: {name} "):
                document_tables.require_printed(other, records)


if __name__ == "__main__":
    unittest.main()
