"""Reports of errors, of committed records and of programs made up for the tests."""

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import pandas

from attest_book import __main__ as command_line
from attest_book import charts, error_report, errors, measured_errors, records, tables
from attest_book.records import BadInput

FAMILY = "xeon-2core/errors_family.jsonl"
# Stands for the program: notes its arguments, leaves out what is causal, writes a record otherwise.
PROGRAM = """#!/bin/sh
echo "$@" >>"{folder}/calls"
case "$*" in
  *causal*) echo 'attest: no selected kernel can run the problem; mine: has no causal mask' >&2; exit {causal} ;;
esac
while [ "$1" != --out ]; do shift; done
mkdir -p "$2" && zcat "{records}.gz" | head -n 2 >"$2/errors.jsonl"
"""


def of_family(contender, inputs):
    return [record for record in records.committed(FAMILY)
            if record.labels["contender"] == contender and record.labels["inputs"] == inputs]


def changed(record, **values):
    return dataclasses.replace(record, values=record.values | values)


class Names(unittest.TestCase):
    def test_precisions_of_one_kernel_are_told_apart_by_products_and_type(self):
        found = records.committed(FAMILY)
        kinds = {(record.labels["contender"], errors.choice(record.labels["plan"], "products"), record.labels["element_type"])
                 for record in found}
        self.assertEqual(len({errors.precision_of(record.labels) for record in found}), len(kinds))

    def test_a_part_of_a_plan_is_not_found_in_a_longer_word(self):
        self.assertEqual(errors.choice("qt64 kt32 products=tf32_x3 ks4", "kt"), "32")
        self.assertEqual(errors.choice("qt64 kt32 products=tf32_x3 ks4", "products"), "tf32_x3")
        self.assertEqual(errors.choice("qt64", "t"), "")


class Looks(unittest.TestCase):
    def test_small_numbers_keep_their_digits_and_large_ones_their_size(self):
        for value, text in ((4.321e-4, "4.32e-4"), (-9.996e-6, "-1.00e-5"), (0.0, "0"), (2.0**-40, "9.09e-13"), (0.0123456, "0.0123"), (math.inf, "inf"), (-1.5, "-1.5")):
            self.assertEqual(charts.small_text(value), text)
        self.assertEqual([tables.text_of(value) for value in (17123.4, 4.5e-5, 12.0, math.nan, None, "[0, 1]")], ["17,123", "4.50e-5", "12", "", "", "[0,\N{NO-BREAK SPACE}1]"])

    def test_a_cell_is_text_and_not_markup(self):
        shown = tables.show(pandas.DataFrame({"<b>": ["a < b"], "x": [1e-5]}), x="y & z")._repr_html_()
        self.assertIn("a &lt; b", shown)
        self.assertIn("<th>&lt;b&gt;</th>", shown)
        self.assertIn("y &amp; z", shown)
        self.assertIn('<span class="number">1.00e-5</span>', shown)

    def test_JSON_gets_null_for_what_it_has_no_number_for(self):
        self.assertEqual(charts.finite({"a": [1.0, math.nan, {"b": -math.inf}], "c": "nan"}), {"a": [1.0, None, {"b": None}], "c": "nan"})

    def test_a_precision_has_one_colour_and_no_two_names_of_a_picture_share_one(self):
        few, many = list(errors.PRECISIONS.values())[:3], list(errors.PRECISIONS.values())
        self.assertEqual(errors.colours_of(few), errors.colours_of(many)[:3])
        names = [*many, "mine, fp32", "yours, bf16"]
        self.assertEqual(len(set(errors.colours_of(names))), len(names))

    def test_the_grid_of_measures_draws_each_measure_along_each_axis(self):
        table = errors.committed("xeon-2core/errors_length.jsonl")
        spec = errors.measures_grid({"length": ("length", table), "head dim": ("head_dim", errors.committed("xeon-2core/errors_head_dim.jsonl"))}).to_dict()
        self.assertEqual([len(row["hconcat"]) for row in spec["vconcat"]], [2] * len(errors.MEASURES))
        asked = {name.removeprefix("lse_") for name in errors.MEASURES}
        self.assertLessEqual(asked, set(table.columns))


class Axes(unittest.TestCase):
    def test_a_page_of_every_axis_has_a_picture_of_each(self):
        measured = {axis: [record for record in records.committed(f"xeon-2core/errors_{axis}.jsonl") if record.labels["contender"] == "fa2_mma"]
                    for axis in ("length", "head_dim", "magnitude", "key_order", "row")}
        made = error_report.page(measured, {}, "mine")
        for heading in ("Length", "Head dim", "Size of the logits", "Order of the keys", "Rows under a causal mask", "Every measure along every axis"):
            self.assertIn(heading, made.headings)
        self.assertEqual(made.charts, len(made.headings) - 1)  # the last has all figures
        self.assertEqual(list(error_report.grid_axes(error_report.tables_of(measured)[0])), ["Length", "Head dim", "Size of the logits", "Causal row"])


class Gradients(unittest.TestCase):
    """Records of a backward pass have pictures and sentences of their own, each tensor apart."""

    def setUp(self):
        family = records.committed("xeon-2core/errors_backward_family.jsonl")
        self.one = [record for record in family if record.labels["contender"] == "backward_tiled" and record.labels["inputs"] == "normal"]
        self.measured = {f"inputs {name}": [record for record in family if record.labels["contender"] == "backward_tiled" and record.labels["inputs"] == name]
                         for name in ("normal", "outliers", "sink:8")}
        self.measured["length"] = [record for record in records.committed("xeon-2core/errors_backward_length.jsonl") if record.labels["contender"] == "backward_tiled"]

    def charts(self):
        drawn = []
        with mock.patch.object(error_report.Page, "chart", lambda _, chart, caption: drawn.append((chart.to_dict(), caption))):
            error_report.page(self.measured, {}, "mine")
        return drawn

    def test_every_picture_has_a_panel_of_each_gradient_and_none_is_of_O(self):
        drawn = self.charts()
        titles = [[panel.get("title") for panel in spec.get("vconcat", [])] for spec, _ in drawn]
        for of_all in ("{}", "relative RMSE of {}", "largest error of {} / bound"):
            self.assertIn([of_all.format(tensor) for tensor in ("dQ", "dK", "dV")], titles)
        self.assertNotRegex(json.dumps(drawn), r"\bO\b|\bLSE\b")

    def test_a_panel_holds_the_rows_of_one_tensor(self):
        heat = next(spec for spec, _ in self.charts() if [panel.get("title") for panel in spec.get("vconcat", [])][:1] == ["relative RMSE of dQ"])
        shown = [heat["datasets"][panel["layer"][0]["data"]["name"] if "data" in panel["layer"][0] else panel["data"]["name"]] for panel in heat["vconcat"]]
        kinds = {(record.labels["element_type"], record.labels["inputs"]) for axis, found in self.measured.items() if axis != "length" for record in found}
        self.assertEqual([len(rows) for rows in shown], [len(kinds)] * 3)
        self.assertEqual(len({rows[0]["relative_l2"] for rows in shown}), 3)

    def test_a_grid_of_measures_is_of_one_gradient(self):
        self.assertEqual({tensor for _, tensor, _ in errors.measures_of("dK").values()}, {"dK"})
        self.assertNotRegex(" ".join(title for title, _, _ in errors.measures_of("dK").values()), r"\bO\b|LSE")
        self.assertEqual(errors.measures_of("O"), errors.MEASURES)

    def test_the_answer_speaks_of_each_of_them(self):
        said = error_report.answer(self.measured)
        self.assertEqual(len(said), 3)  # fp32, fp16 and bf16
        figure = r"[-0-9.e]+"
        for sentence in said:
            self.assertRegex(sentence, rf"RMSE is {figure} of dQ, {figure} of dK and {figure} of dV, {figure}, {figure} and {figure} times what")
            self.assertRegex(sentence, rf"mean error is {figure}, {figure} and {figure} standard errors")
            self.assertRegex(sentence, "largest error anywhere, in d[QKV], is")
        self.assertNotIn("WRONG", " ".join(said))

    def test_one_wrong_gradient_is_not_hidden_by_the_others(self):
        bad = [changed(record, error_over_bound_max=2.0) if record.labels["tensor"] == "dK" else record for record in self.one]
        self.assertIn(": IT IS WRONG: on normal an element of dK is off by 2 times", error_report.answer({"inputs normal": bad})[0])

    def test_kernels_of_ours_beside_a_gradient_are_of_the_same_one(self):
        rows = errors.frame(self.one)
        mine = rows[(rows.tensor == "dV") & (rows.element_type == "fp16")].assign(precision="mine")
        both, compared = error_report.beside_ours(mine)
        self.assertEqual((compared, set(both.tensor)), (3, {"dV"}))


class Maps(unittest.TestCase):
    def test_the_cells_of_a_map_cover_every_row_and_column_once(self):
        for record in records.committed("xeon-2core/errors_map.jsonl"):
            if record.kind != "error_map":
                continue
            cells = errors.map_frame(record)
            covered = ((cells.row_end - cells.row) * (cells.column_end - cells.column)).sum()
            self.assertEqual(covered, records.sizes(record.labels["problem"])["q"] * records.sizes(record.labels["problem"])["d"])
            self.assertEqual(len(cells.drop_duplicates(["row", "column"])), len(cells))

    def test_the_rows_of_a_gradient_of_keys_are_keys(self):
        found = next(record for record in records.committed("xeon-2core/errors_map.jsonl") if record.kind == "error_map")
        for tensor, rows in (("dQ", 2), ("dK", 8), ("dV", 8)):
            labels = found.labels | {"tensor": tensor, "problem": "b1 h1/1 q2 k8 d4 none bf16 backward"}
            values = {"row_cells": rows, "column_cells": 4} | {f"rmse {i} {j}": 1.0 for i in range(rows) for j in range(4)}
            cells = errors.map_frame(dataclasses.replace(found, labels=labels, values=values))
            self.assertEqual((cells.row_end.max(), len(cells.drop_duplicates(["row", "column"]))), (rows, 4 * rows))


class Answers(unittest.TestCase):
    def test_a_correct_kernel_is_not_called_wrong(self):
        said = error_report.answer({"inputs normal": of_family("fa2_mma", "normal")})
        self.assertEqual(len(said), 2)  # fp16 and bf16
        self.assertNotIn("WRONG", " ".join(said))
        self.assertIn("of its bound", said[0])

    def test_an_element_above_its_bound_is_said_first_and_clearly(self):
        bad = [changed(record, error_over_bound_max=1.0 + 2**-20) for record in of_family("fa2_mma", "normal")]
        self.assertIn(": IT IS WRONG: on normal an element of O", error_report.answer({"inputs normal": bad})[0])

    def test_a_wrong_LSE_is_not_hidden_by_a_right_O(self):
        bad = [changed(record, error_over_bound_max=math.inf) if record.labels["tensor"] == "LSE" else record
               for record in of_family("fa2_mma", "normal")]
        self.assertIn("IT IS WRONG: on normal an element of LSE is off by inf", error_report.answer({"inputs normal": bad})[0])

    def test_a_page_is_made_of_whatever_was_measured(self):
        for worst in (math.inf, math.nan):
            bad = [changed(record, **{name: worst for name in ("rmse", "relative_l2", "error_over_bound_max", "bias", "outward_bias")})
                   for record in of_family("fa2_mma", "normal")]
            right = of_family("fa2_mma", "outliers")
            made = error_report.page({"inputs normal": bad, "inputs outliers": right}, {}, "mine").html()
            self.assertIn("IT IS WRONG", made)

    def test_a_NaN_is_not_overlooked(self):
        bad = [changed(record, rmse=math.nan, error_over_bound_max=math.nan) for record in of_family("fa2_mma", "outliers")]
        said = error_report.answer({"inputs normal": of_family("fa2_mma", "normal"), "inputs outliers": bad})[0]
        self.assertIn("IT IS WRONG: O has NaN where numbers are due, on outliers", said)

    def test_without_the_usual_inputs_there_still_is_an_answer(self):
        self.assertIn("of its bound", error_report.answer({"inputs sink:8": of_family("fa2_mma", "sink:8")})[0])


class Measured(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def program(self, causal=2):
        path = self.folder / "program"
        path.write_text(PROGRAM.format(folder=self.folder, causal=causal, records=records.RESULTS / FAMILY))
        path.chmod(0o755)
        return path

    def run_line(self, *arguments, program=None):
        out, err = io.StringIO(), io.StringIO()
        environment = {"ATTEST_BINARY": str(program)} if program else {}
        with (mock.patch.object(sys, "argv", ["attest", *map(str, arguments)]), mock.patch.dict(os.environ, environment),
              contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
            status = command_line.main()
        return status, out.getvalue(), err.getvalue()

    def test_what_a_kernel_cannot_do_is_left_out_with_its_reason(self):
        found, left_out = measured_errors.measure(self.program(), ["mine"], self.folder / "out", plugins=["mine.so"])
        self.assertEqual(left_out, {"row": "no selected kernel can run the problem; mine: has no causal mask"})
        self.assertEqual(len(found), len(measured_errors.axes(measured_errors.PROBLEM)) - 1)
        for call in (self.folder / "calls").read_text().splitlines():
            self.assertTrue(call.startswith("errors --kernel mine --plugin mine.so "), call)

    def test_kernels_of_the_backward_pass_are_asked_about_gradients(self):
        path = self.folder / "gradients_alone"
        path.write_text(self.program().read_text().replace("case \"$*\" in", "case \"$*\" in\n  *backward*) ;;\n  *) echo \"attest: no kernel of forward\" >&2; exit 2 ;;\nesac\ncase \"$*\" in"))
        path.chmod(0o755)
        found, left_out = measured_errors.measure(path, ["mine"], self.folder / "out")
        self.assertEqual(list(left_out), ["row"])
        self.assertIn("inputs gradient_mean_kv:3", found)
        self.assertNotIn("inputs ties:1", found)
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertIn("--problem h2 n{32,64,128,256,512} d64 backward --family normal", " ".join(calls))
        self.assertEqual(measured_errors.problems("n64 backward"), ["n64 backward"])
        self.assertEqual(measured_errors.problems("n64"), ["n64", "n64 backward"])
        path.write_text("#!/bin/sh\necho \"attest: refused $*\" >&2; exit 2\n")
        with self.assertRaisesRegex(BadInput, f"refused .* {measured_errors.PROBLEM} --family normal$"):
            measured_errors.measure(path, ["mine"], self.folder / "out")

    def test_a_program_that_fails_is_an_error_and_not_left_out(self):
        with self.assertRaisesRegex(BadInput, "ended with 3 on row"):
            measured_errors.measure(self.program(causal=3), ["mine"], self.folder / "out")

    def test_records_of_an_earlier_run_do_not_count(self):
        old = self.folder / "out" / "row"
        old.mkdir(parents=True)
        (old / "errors.jsonl").write_text("no record")
        found, _ = measured_errors.measure(self.program(), ["mine"], self.folder / "out")
        self.assertNotIn("row", found)

    def test_one_command_makes_a_page_that_needs_no_network(self):
        target = self.folder / "page.html"
        status, out, _ = self.run_line("report", "--errors", "mine", "--out", target, program=self.program())
        self.assertEqual(status, 0)
        self.assertIn("times what rounding the exact answer once leaves", out)
        body = target.read_text(encoding="utf-8").rpartition("\n<body>\n")[2]
        self.assertIn("draw(\"#chart", body)
        self.assertIn("mine: has no causal mask", body)
        self.assertNotRegex(body, r'(src|href)="https?://')

    def test_lengths_go_from_an_eighth_of_the_problem_to_twice_it(self):
        self.assertEqual(measured_errors.lengths("h2 n512 d64"), "h2 n{64,128,256,512,1024} d64")
        self.assertEqual(measured_errors.lengths("n1 d64"), "n{1,2} d64")
        with self.assertRaisesRegex(BadInput, "has no length"):
            measured_errors.lengths("h2 d64")

    def test_head_dims_go_from_a_quarter_of_the_problem_to_twice_it(self):
        self.assertEqual(measured_errors.head_dims("h2 n512 d64"), "h2 n512 d{16,32,64,128}")
        self.assertEqual(measured_errors.head_dims("n8 d1"), "n8 d{1,2}")
        self.assertEqual(measured_errors.head_dims("n8"), "n8")

    def test_bad_command_lines_get_one_line(self):
        for arguments, message in ((("report",), "takes one results folder"), (("report", "a", "--errors", "b"), "not both"),
                                   (("report", "a", "--plugin", "b.so"), "--plugin belongs to report --errors")):
            status, out, err = self.run_line(*arguments)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1))
            self.assertIn(message, err)


if __name__ == "__main__":
    unittest.main()
