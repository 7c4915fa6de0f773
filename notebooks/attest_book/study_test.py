"""Reports of studies, of results made up by a formula."""

import contextlib
import io
import json
import math
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

import altair
import pandas
import vl_convert

from attest_book import __main__ as command_line
from attest_book import charts, made_up_study, page, records, study, study_charts, study_frontiers, study_report


class InFolder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def study(self, records=None, spec=made_up_study.SPEC, name="results"):
        return study.read(made_up_study.write(self.folder / name, records, spec))

    def run_line(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["attest", *map(str, arguments)]), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = command_line.main()
            except SystemExit as left:
                status = left.code
        return status, out.getvalue(), err.getvalue()


def points_drawn(chart):
    """Marks of points in the picture that the page's own Vega makes of the specification."""
    return vl_convert.vegalite_to_svg(chart.to_dict()).count('aria-roledescription="point"')


class Read(InFolder):
    def test_points_baselines_and_what_was_not_run_are_told_apart(self):
        found = self.study()
        self.assertEqual((len(found.points), len(found.baselines), len(found.skipped), len(found.refused)), (18, 3, 3, 1))
        self.assertEqual(found.varying("plan."), ["plan.query_tile", "plan.key_tile"])
        self.assertEqual(sorted(found.points["problem.length"].unique()), [512, 1024, 2048])

    def test_records_of_all_writers_count_and_the_last_of_a_point(self):
        first, *rest = made_up_study.points()
        folder = made_up_study.write(self.folder / "shards", [first])
        again = made_up_study.timed("k10_wide_tiles", 512, 32, 32, 7.0)
        again["provenance"] = {**again["provenance"], "date": "2026-11-22T11:00:00Z"}
        self.assertEqual(again["labels"]["point"], first["labels"]["point"])
        (folder / "records.2-of-2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rest + [again]))
        found = study.read(folder)
        self.assertEqual(len(found.points), 18)
        self.assertEqual(found.points[found.points.point == again["labels"]["point"]].time.tolist(), [7.0])

    def test_a_plots_name_is_a_column_or_the_end_of_one(self):
        found = self.study()
        self.assertEqual([found.column(name) for name in ("query_tile", "plan.query_tile", "kernel", "rmse", "tile")],
                         ["plan.query_tile", "plan.query_tile", "contender", "error.rmse", None])

    def test_a_plot_of_what_was_not_measured_says_so(self):
        found = self.study(spec="plots: [{kind: lines, x: colour}, {kind: heat_map, x: key_tile, y: query_tile, value: power}]")
        first, other, *_ = study_charts.pictures(found)
        self.assertEqual((list(first.panels), first.text), ([], "Not drawn: the records have no 'colour'."))
        self.assertTrue(other.panels)
        self.assertIn("'power' was not measured; rate stands in its place", other.text)

    def test_bad_folders_end_with_one_line_and_exit_code_2(self):
        no_yaml = made_up_study.write(self.folder / "bad_yaml", spec="a: [")
        no_plots = made_up_study.write(self.folder / "bad_plots", spec="plots: [{kind: pie}]")
        other = made_up_study.write(self.folder / "other", [made_up_study.record(kind="verify")])
        empty = made_up_study.write(self.folder / "empty", [])
        no_spec = made_up_study.write(self.folder / "no_spec")
        (no_spec / "study.yaml").unlink()
        moved_on = made_up_study.write(self.folder / "moved_on")
        (moved_on / "run.json").write_text('{"name": "ladder", "study_blob": "0123"}')
        expected = {self.folder / "nowhere": "is no folder", self.folder: "has no records.*jsonl", no_yaml: "is no YAML",
                    no_plots: "each of kind heat_map", other: "kind 'verify' is no part of a study", empty: "no record of kind study",
                    no_spec: "study.yaml: cannot be read",
                    moved_on: "was run of another ladder.yaml than the one that is shipped; `git show 0123"}
        for folder, message in expected.items():
            with self.subTest(message):
                status, out, err = self.run_line("report", folder, "--out", self.folder / "page.html")
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertRegex(err, message)
        self.assertEqual(self.run_line("report", no_spec, no_spec, no_spec)[0], 2)
        self.assertEqual(self.run_line("report")[0], 2)


class Committed(unittest.TestCase):
    def test_every_record_of_a_study_says_how_it_was_begun_and_names_the_shipped_text_or_holds_another_one(self):
        committed = study.read_object(study.COMMITTED)
        folders = {path.parent for path in records.RESULTS.glob("**/records*.jsonl")}
        self.assertEqual({str(folder.relative_to(records.RESULTS)) for folder in folders}, set(committed))
        for folder in sorted(folders):
            with self.subTest(folder):
                self.assertFalse((folder / "run.json").exists(), f"is a row of {study.COMMITTED}")
                settings, copy = study.read_settings(folder), folder / "study.yaml"
                self.assertNotEqual("study_blob" in settings, copy.exists())
                study.read_spec(study.path_of_spec(folder, settings))
                shipped = study.SHIPPED / f"{settings['name']}.yaml"
                if copy.exists() and shipped.exists() and copy.read_bytes() == shipped.read_bytes():
                    self.fail(f"{shipped.name} as it is shipped: remove the copy, and give its row a study_blob, of `git hash-object {copy}`")

    def test_git_names_the_same_blob(self):
        self.assertEqual(study.blob_of(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a")


class Report(InFolder):
    def test_the_page_holds_every_part_and_loads_nothing(self):
        self.study()
        status, out, err = self.run_line("report", self.folder / "results", "--out", self.folder / "new" / "page.html")
        self.assertEqual((status, err), (0, ""))
        text = (self.folder / "new" / "page.html").read_text(encoding="utf-8")
        self.assertIn(page.vega(), text)
        text = text.replace(page.vega(), "")
        for part in ("Which tiles are fastest?", "1 of 2 expectations hold, such as max(rate) &gt; 1: 6.4 (6.3 to 6.5) &gt; 1; 1 refuted, such as all(speed_over_torch &gt; 1): 0.9 at n512.", "Rate by tiles", "Time against error", "Roofline", "Time at best", "throttled",
                     "tiles of 256 rows need more shared memory", "0123456789ab", "a device", "uncommitted changes"):
            self.assertIn(part, text)
        self.assertNotRegex(text, r"src=|href=\"[^#]|@import|url\(")
        specs = re.findall(r"draw\(\"#chart\d+\", (\{.*\})\);</script>", text)
        self.assertEqual(len(specs), 10, "heat maps, errors and floors of three problems, a roofline")
        for spec in specs:
            json.loads(spec)
        self.assertIn("18 points timed, 3 skipped, 1 refused", out)

    def test_pages_of_one_study_on_two_machines_lie_side_by_side_and_say_which_is_which(self):
        def on(device, host):
            return [{**record, "provenance": {**record["provenance"], "device": device, "host": host}} for record in made_up_study.points()]
        # A point that was skipped before the GPU was asked has no device.
        gpu = on("NVIDIA H200, sm_90, 132 SMs", "Intel(R) Xeon(R) Processor, 16 threads") + on("", "Intel(R) Xeon(R) Processor, 16 threads")[:1]
        cpu = on("", "Intel(R) Xeon(R) Processor, 4 threads")
        with contextlib.chdir(self.folder):
            for records, name in ((gpu, "gpu"), (cpu, "cpu")):
                self.assertEqual(self.run_line("report", made_up_study.write(self.folder / name, records))[::2], (0, ""))
        pages = {path.name: path.read_text(encoding="utf-8") for path in (self.folder / "out/reports").iterdir()}
        self.assertEqual(set(pages), {"tiles_on_NVIDIA_H200.html", "tiles_on_Intel_Xeon_Processor.html"})
        self.assertIn("<h1>tiles on NVIDIA H200</h1>", pages["tiles_on_NVIDIA_H200.html"])
        self.assertIn("<h1>tiles on Intel Xeon Processor</h1>", pages["tiles_on_Intel_Xeon_Processor.html"])

    def test_every_heading_is_in_the_table_of_contents_and_can_be_reached(self):
        made = study_report.page(self.study())
        text = made.html()
        for number, heading in enumerate(made.headings, start=1):
            self.assertIn(f'<a href="#part{number}">{page.escape(heading)}</a>', text)
            self.assertIn(f'<h2 id="part{number}">{page.escape(heading)}</h2>', text)
        self.assertEqual(page.Page("short").contents(), "")

    def test_a_page_goes_dark_where_the_reader_wants_it_and_keeps_first_columns_in_sight(self):
        text = study_report.page(self.study()).html()
        self.assertIn("@media (prefers-color-scheme: dark)", text)
        self.assertIn('matchMedia("(prefers-color-scheme: dark)")', text)
        self.assertRegex(text, r"td:first-child \{ position: sticky; left: 0;")

    def test_one_panel_is_as_wide_as_the_page_and_several_are_scaled_as_a_whole(self):
        one = charts.grouped_bars(pandas.DataFrame({"a": [1, 2], "v": [1.0, 2.0]}), "v", "a")
        self.assertEqual(page.as_wide_as_the_page(one.to_dict())[0]["width"], "container")
        narrow, several = one.properties(width=120).to_dict(), altair.hconcat(one, one).to_dict()
        for spec in (narrow, several):
            self.assertEqual(page.as_wide_as_the_page(spec), (spec, False))

    def test_the_title_names_the_machine_that_was_modelled_and_not_the_host(self):
        folder = self.study(made_up_study.modelled()).folder
        (folder / "run.json").write_text('{"device": "h200"}')
        self.assertEqual(study.read(folder).title(), "tiles, modelled for H200")
        timed = self.study(name="timed").folder
        (timed / "run.json").write_text('{"device": "h200"}')
        self.assertEqual(study.read(timed).title(), "tiles on a device")

    def test_bars_have_their_intervals_and_ratios_a_line_at_one(self):
        table = pandas.DataFrame({"dim": [64.0, 128.0], "speed_over_x": [1.2, 0.9], "low": [1.1, 0.8], "high": [1.3, math.inf]})
        drawn = charts.grouped_bars(table, "speed_over_x", "dim", low="low", high="high").to_dict()
        rules = [layer for layer in drawn["layer"] if layer["mark"]["type"] == "rule"]
        self.assertEqual([rule["encoding"]["x"]["field"] for rule in rules], ["low", "one"])
        rows = next(rows for rows in drawn["datasets"].values() if "dim" in rows[0])
        self.assertEqual([row["dim"] for row in rows], ["64", "128"], "head dims are whole")
        self.assertEqual(rows[1]["high"], 0.9, "a median of few rounds has no interval")
        time = charts.grouped_bars(table.rename(columns={"speed_over_x": "time"}), "time", "dim").to_dict()
        self.assertFalse([layer for layer in time["layer"] if layer["mark"]["type"] == "rule"])

    def test_a_heat_map_says_what_its_colours_mean(self):
        table = pandas.DataFrame({"x": [1, 2], "y": [1, 1], "v": [1.0, 100.0]})
        legend = charts.heat_map(table, "x", "y", "v", scale="log").to_dict()["layer"][0]["encoding"]["color"]["legend"]
        self.assertEqual(legend["values"], [1.0, 10.0, 100.0])

    def test_every_number_of_a_point_stands_in_its_row(self):
        found = self.study()
        columns = study_report.columns_of(found)
        for _, row in found.points.iterrows():
            texts = [f"{text} ({between})" for text, _, between in study_report.cells(found, row, columns)]
            self.assertIn(study_report.number_text(row.time), " ".join(texts))
            self.assertIn(f"({study_report.number_text(row.time_low)} to {study_report.number_text(row.time_high)})", " ".join(texts))

    def test_a_terminal_shows_what_was_timed_and_the_page_what_models_said_too(self):
        found = self.study()
        self.assertNotIn("model dram bytes", study_report.terminal(found))
        self.assertIn("model dram bytes", study_report.page(found).html())

    def test_text_of_a_study_cannot_become_markup(self):
        found = self.study(spec="name: <script>alert(1)</script>\nquestion: a & <b>\n")
        text = study_report.page(found).html().rpartition("\n<body>\n")[2]
        self.assertNotIn("<script>alert", text)
        self.assertIn("a &amp; &lt;b&gt;", text)

    def test_a_study_of_the_executor_has_values_of_the_model_instead_of_times(self):
        found = self.study(made_up_study.modelled(), spec="name: x\nquestion: y\n")
        self.assertEqual(found.value(), "model.time_floor")
        self.assertTrue(study_charts.pictures(found))
        self.assertIn("model dram bytes", study_report.terminal(found))

    def test_time_against_error_and_the_roofline_are_drawn_with_every_point_timed_or_modelled(self):
        plots = "name: x\nquestion: y\nplots: [{kind: pareto}, {kind: roofline}]\n"
        modelled = made_up_study.modelled()
        for name, records, ends in (("timed", None, "Left is faster"), ("modelled", modelled, "Nothing was timed: left is")):
            found = self.study(records, plots, name)
            pareto, roofline, *_ = study_charts.pictures(found)
            self.assertEqual((pareto.heading, roofline.heading), ("Time against error", "Roofline"))
            self.assertIn(ends, pareto.text)
            self.assertIn("66.9 TFLOP/s, 4.8 TB/s", roofline.text)
            baselines = 3 if name == "timed" else 0
            self.assertEqual(sum(points_drawn(panel.chart) for panel in pareto.panels), len(found.points) + baselines)
            self.assertEqual(points_drawn(roofline.panels[0].chart), len(found.points))
            # A dark page turns this black, and no other, into a light colour (page.DRAW).
            self.assertIn('"color": "#000000"', roofline.panels[0].chart.to_json(indent=None))
            self.assertIn("""replaceAll('"#000000"', '"#f0f0f0"')""", page.DRAW)

    def test_no_modelled_point_is_above_the_roof(self):
        found = self.study(made_up_study.modelled())
        spec = study_frontiers.roofline(found).panels[0].chart.to_dict()
        drawn = [row for rows in spec["datasets"].values() for row in rows if "rate" in row]
        self.assertEqual(len(drawn), len(found.points))
        for row in drawn:
            self.assertLessEqual(row["rate"], min(66.9, 4.8 * row["FLOP per byte"]))

    def test_what_cannot_be_judged_is_answered_by_the_best_point_of_the_largest_problem(self):
        answers = [made_up_study.record("study_answer", "", {"that": "max(time) > 1", "answer": "no_results", "found": "nothing is known of time"})]
        self.assertEqual(study_report.answer(self.study(made_up_study.modelled() + answers)),
                         "The expectation max(time) > 1 cannot be judged: nothing is known of time; the best model time floor is 2.621 ms, of "
                         "k10_wide_tiles qt64 kt64 on b8 h12 n2048 d64 none fp32, the problem where it is largest.")

    def test_a_study_that_is_not_finished_does_not_say_that_it_expects_nothing(self):
        spec = made_up_study.SPEC + "expect: [{that: max(rate) > 1}, {that: max(rate) > 2}]\n"
        end = made_up_study.ends()[-1]
        cut = self.study(made_up_study.points(), spec, "cut")
        self.assertIn("not finished, so its 2 expectations are not judged yet: it was stopped, or runs; so far the best rate is", study_report.answer(cut))
        budget = made_up_study.record(verdict="unsupported", labels={"point": "late", "role": "point", "skipped_by": "budget", "reason": "the time budget ended"})
        late = self.study(made_up_study.points()[:-2] + made_up_study.not_run()[-1:] + [budget, end], spec, "late")
        self.assertIn(f"1 point has no result, 1 of them left out by the time budget (attest study resume {late.folder})", study_report.answer(late))
        self.assertIn("1 point has no result", study_report.summary(late))
        self.assertNotIn("no result", study_report.summary(self.study()))

    def test_the_page_says_how_the_study_was_begun(self):
        folder = self.study().folder
        (folder / "run.json").write_text('{"seed": 17, "executor": "auto", "time_budget_s": null, "program": "abc"}')
        rows = dict(study_report.provenance_rows(study.read(folder)))
        self.assertEqual((rows["seed of the order"], rows["--executor"], rows["begun by"]), ("17", "auto", "abc"))
        self.assertNotIn("time budget, s", rows)

    def test_what_all_points_share_is_said_once_and_what_varies_is_not(self):
        found = self.study()
        said = study_report.in_common(found)
        self.assertIn(said, study_report.page(found).html())
        for part in set(" ".join([*found.points.problem, *found.points.plan]).split()):
            shared = all(part in row.split() for row in found.points.problem) or all(part in row.split() for row in found.points.plan)
            self.assertEqual(f" {part}" in said.partition("(")[0].replace(";", "").replace(".", "") + " ", shared, part)

    def test_skipped_points_are_counted_by_reason(self):
        self.assertEqual(study_report.reasons(self.study().skipped), [(3, "kernel", "tiles of 256 rows need more shared memory than an SM has")])

    def test_a_study_of_which_nothing_ran_still_has_a_page(self):
        found = self.study(made_up_study.not_run())
        self.assertIn("expects nothing; nothing was measured.", study_report.page(found).html())
        self.assertIn("0 points modelled, none timed", study_report.terminal(found))


class Frontier(unittest.TestCase):
    def test_no_point_beats_the_front_and_every_other_point_is_beaten(self):
        table = pandas.DataFrame({"x": [1.0, 2.0, 2.0, 3.0, 3.0, 4.0, math.nan], "y": [5.0, 3.0, 4.0, 3.0, 1.0, 1.0, 0.0]})
        found = study_frontiers.front(table, "x", "y")
        self.assertEqual(list(zip(found.x, found.y)), [(1.0, 5.0), (2.0, 3.0), (3.0, 1.0)])


if __name__ == "__main__":
    unittest.main()
