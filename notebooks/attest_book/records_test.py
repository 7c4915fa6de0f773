"""Records are read as strictly as core/records/record.cpp reads them."""

import gzip
import json
import math
import pathlib
import tempfile
import unittest

from attest_book import records
from attest_book.records import BadInput

PROVENANCE = {"commit": "abc", "dirty": False, "compiler": "c", "cuda_compiler": "", "build_type": "Release", "sanitizers": "",
              "host": "h", "device": "d", "date": "2026-11-22T00:00:00Z"}


def line(**changes):
    record = {"schema": 1, "kind": "study", "case": None, "verdict": "passed", "labels": {"study": "s"},
              "measurements": [{"name": "time", "value": 1.5, "unit": "ms"}], "provenance": PROVENANCE}
    return json.dumps({**record, **changes})


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "records.jsonl"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return records.read(path)


class Read(unittest.TestCase):
    def test_a_record_comes_back_as_it_was_written(self):
        found, = read(line() + "\n")
        self.assertEqual((found.kind, found.values, found.units, found.labels), ("study", {"time": 1.5}, {"time": "ms"}, {"study": "s"}))

    def test_nan_and_infinities_are_numbers_again(self):
        values = [{"name": name, "value": name, "unit": "1"} for name in ("nan", "inf", "-inf")]
        found, = read(line(measurements=values) + "\n\n")
        self.assertTrue(math.isnan(found.values["nan"]))
        self.assertEqual((found.values["inf"], found.values["-inf"]), (math.inf, -math.inf))

    def test_every_committed_record_file_is_read(self):
        for path in sorted(records.RESULTS.rglob("*.jsonl")):
            if path.name in ("hardware_check.jsonl", "ring.jsonl"):  # what attest explain said
                continue
            with self.subTest(path):
                self.assertTrue(records.read(path))

    def test_the_last_line_of_a_killed_writer_is_no_record(self):
        self.assertEqual(len(read(line() + "\n" + line()[:40])), 1)
        self.assertEqual(len(read(line() + "\n" + line())), 2)  # whole, though its newline is missing

    def test_what_is_no_record_is_refused_with_its_line(self):
        provenance_without_host = {key: value for key, value in PROVENANCE.items() if key != "host"}
        refused = {
            "{\n": r":1: is no JSON", line()[:40] + "\n" + line(): r":1: is no JSON", "[]\n": ":1: must be an object",
            line(schema=2) + "\n": "'schema' must be 1, but is 2", line(extra=1) + "\n": "the key 'extra' is unknown",
            line() + "\n" + line(kind=3) + "\n": ":2: 'kind' has the wrong type", line(schema=True) + "\n": "'schema' has the wrong type",
            line(provenance=provenance_without_host) + "\n": "provenance: the key 'host' is missing",
            line(labels={"a": 1}) + "\n": "label 'a' must be a string",
            line(measurements=[{"name": "a", "value": "NaN", "unit": "1"}]) + "\n": "must be a number",
            line(measurements=[{"name": "a", "value": True, "unit": "1"}]) + "\n": "'value' has the wrong type",
            line(measurements=[{"name": "a", "value": 1, "unit": "1"}] * 2) + "\n": "'a' stands there twice",
            b"\xff\n": "is no UTF-8 text"}
        for text, message in refused.items():
            with self.subTest(text), self.assertRaisesRegex(BadInput, message):
                read(text)

    def test_a_file_that_is_packed_reads_like_one_that_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.jsonl"
            pathlib.Path(f"{path}.gz").write_bytes(gzip.compress((line() + "\n").encode()))
            self.assertEqual([record.values for record in records.read(path)], [{"time": 1.5}])

    def test_a_file_that_cannot_be_read_is_named(self):
        with self.assertRaisesRegex(BadInput, "nowhere.jsonl: cannot be read"):
            records.read("nowhere.jsonl")


class Sizes(unittest.TestCase):
    def test_sizes_are_those_of_the_text_and_of_no_other_word(self):
        self.assertEqual(records.sizes("b8 h12 n4096 d64 none bf16 lengths1"), {"b": 8, "h": 12, "kv": 12, "q": 4096, "k": 4096, "d": 64})
        self.assertEqual(records.sizes("b1 h4/2 q512 k1024 d128 causal_top_left fp32"), {"b": 1, "h": 4, "kv": 2, "q": 512, "k": 1024, "d": 128})


class Frame(unittest.TestCase):
    def test_labels_and_measurements_are_columns_and_units_are_kept(self):
        table = records.frame(read(line() + "\n" + line(measurements=[]) + "\n"))
        self.assertEqual(table.time.isna().tolist(), [False, True])
        self.assertEqual((table.attrs["units"], table["provenance.commit"][0]), ({"time": "ms"}, "abc"))

    def test_one_name_in_two_units_is_refused(self):
        other = line(measurements=[{"name": "time", "value": 1, "unit": "s"}])
        with self.assertRaisesRegex(BadInput, "'time' is in s, but others are in ms"):
            records.frame(read(line() + "\n" + other + "\n"))


if __name__ == "__main__":
    unittest.main()
