"""Tests of what documents say of campaigns, and of the search for figures that no record holds."""

import unittest

import document_campaigns
import documents
from uncovered_figures import uncovered

PRINTED = (document_campaigns.RESULTS / f"{document_campaigns.DEFAULT}.txt").read_text()
RECORDS = document_campaigns.read(document_campaigns.RESULTS / f"{document_campaigns.DEFAULT}.jsonl")


class Excerpt(unittest.TestCase):
    def test_shows_whole_lines_of_what_was_printed(self):
        for line in document_campaigns.excerpt(PRINTED, RECORDS).splitlines():
            is_ours = line in ("```", "...", "  ...", "$ ./attest verify") or line.endswith(", ...")
            self.assertTrue(is_ours or line in PRINTED.splitlines(), line)

    def test_of_another_run_than_its_records_is_refused(self):
        for printed, other in ((" 0.343 ", " 0.344 "), ("cpu     508", "cpu     509")):
            self.assertIn(printed, PRINTED)
            with self.assertRaisesRegex(ValueError, "is not what its records say"):
                document_campaigns.excerpt(PRINTED.replace(printed, other), RECORDS)

    def test_of_a_run_without_one_of_the_kernels_is_refused(self):
        lines = [line for line in PRINTED.splitlines() if not line.startswith("tf32_mma")]
        with self.assertRaisesRegex(ValueError, "tf32_mma"):
            document_campaigns.excerpt("\n".join(lines), RECORDS)


class UncoveredFigures(unittest.TestCase):
    SENTENCES = [("here", "It takes {:.1f} ms a launch", None)]

    def found(self, text):
        return [words for _, words in uncovered(text, "here", documents.MARK, self.SENTENCES, documents.pattern_of)]

    def test_are_decimals_and_numbers_with_a_unit(self):
        for text in ("2.5 of them", "5x", "12 % less", "1,088 ms", "43 TFLOP/s", "120 bugs"):
            self.assertEqual(self.found(f"It is {text} here."), [f"It is {text} here."[:len("It is ") + len(text) + 20]], text)
        for text in ("N 4096", "sm_90", "8 x 32 heads", "K10", "`5.31x`", "arXiv", "    1.5 ms of code"):
            self.assertEqual(self.found(f"\n{text}"), [], text)

    def test_are_not_those_of_tables_and_sentences_that_records_make(self):
        self.assertEqual(self.found("It takes 2.5 ms a launch."), [])
        self.assertEqual(self.found("<!-- table: speeds -->\n| 2.5 ms |\n<!-- end of table -->\n"), [])
        self.assertEqual(len(self.found("It takes 2.5 ms a launch, and 3.5 ms before.")), 1)


if __name__ == "__main__":
    unittest.main()
