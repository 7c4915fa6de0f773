"""Tests of what the scripts of this folder compute without a GPU: python3 -m unittest scripts_test"""

import argparse
import json
import pathlib
import re
import random
import unittest

import counters_check
import documents
import errors_report
import forward_grid_tables
import grid_shapes
import label_places
import ncu_csv
import speed_error_pairs
from fa3_over_cudnn import fa3_over_cudnn, provenance
from median_interval import FEWEST_VALUES, median_interval
from records import geometric_mean, sizes

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


class GridShapes(unittest.TestCase):
    def test_every_shape_has_the_papers_tokens_and_columns(self):
        shapes = list(grid_shapes.grid())
        self.assertEqual(sum(kind == "grid" for kind, _, _ in shapes), 18)  # full and causal: 36
        for kind, stem, dtype in shapes:
            b, h, n, d = (int(part[1:]) for part in stem.split())
            self.assertEqual((b * n, h * d, dtype), (16384, 2048, {"grid": "bf16", "fp16": "fp16"}[kind]))

    def test_grouped_shapes_differ_in_their_key_heads_only(self):
        for grouped, whole in grid_shapes.grouped_pairs():
            heads, keys = (int(n) for n in grouped.split()[1][1:].split("/"))
            self.assertEqual(heads, 8 * keys)
            self.assertEqual(grouped.replace(f"/{keys}", ""), whole)

    def test_the_dense_twin_has_about_the_work_and_the_tokens(self):
        text = "b6 h16 n4096 d128 none bf16 lengths1"
        self.assertEqual(grid_shapes.dense_twin(text, [0, 1024, 2048, 3072]), "b3 h16 n1024 d128 none bf16")
        lengths = [0, 1, 4096, 300, 2500, 1111]
        starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        batch, length = (int(part[1:]) for part in grid_shapes.dense_twin(text, starts).split() if part[0] in "bn" and part[1:].isdigit())
        self.assertLess(abs(batch * length - sum(lengths)), length)  # less than one entry
        self.assertLess(abs(length - sum(n * n for n in lengths) / sum(lengths)), grid_shapes.STEP)

    def test_the_visited_share_counts_the_tiles_with_a_visible_score(self):
        for length, rows, columns in ((100, 32, 16), (100, 16, 32), (7, 8, 8), (129, 64, 128)):
            tiles = {(i // rows, j // columns) for i in range(length) for j in range(length)}
            visited = {(i // rows, j // columns) for i in range(length) for j in range(i + 1)}
            self.assertEqual(grid_shapes.visited_share(length, rows, columns), len(visited) / len(tiles), (length, rows, columns))
        self.assertEqual(grid_shapes.visited_share(4096, 128, 128), (32 + 1) / (2 * 32))


    def test_an_unknown_set_is_one_line_that_says_what_is_allowed(self):
        self.assertEqual(grid_shapes.names_in("grid,lengths", grid_shapes.SETS), ["grid", "lengths"])
        for text in ("grid,causal", "", "grid, fp16"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, r"\A.*is unknown; allowed: grid,fp16,grouped,lengths.*\Z"):
                grid_shapes.names_in(text, grid_shapes.SETS)


def grid_record(contender, shape, rate, **speeds):
    rows = {"rate": rate, "time": 1.0}
    for name, ratio in speeds.items():
        rows.update({name: ratio, f"{name}_low": ratio, f"{name}_high": ratio})
    return {"labels": {"set": "grid", "contender": contender, "shape": shape, "plan": "qt128"},
            "measurements": [{"name": name, "value": value} for name, value in rows.items()]}


class ForwardGridTables(unittest.TestCase):
    SHORT, LONG = "b32 h32 n512 d64 none bf16", "b1 h16 n16384 d128 causal_top_left bf16"

    def shapes(self):
        """At the short shape FA3 is behind cuDNN, at the long one ahead of it."""
        records = []
        for shape, own in ((self.SHORT, 400.0), (self.LONG, 900.0)):
            records.append(grid_record("mine", shape, own, speed_over_torch_sdpa_cudnn=own / 500.0, speed_over_baseline=own / 250.0))
            records += [grid_record("torch_sdpa_cudnn", shape, 500.0), grid_record("torch_sdpa_flash", shape, 250.0)]
        return forward_grid_tables.by_set(records)["grid"]

    def test_the_ratio_of_fa3_is_known_for_all_36_shapes_and_no_others(self):
        ratios = {f"{stem} {mask} {dtype}": fa3_over_cudnn(f"{stem} {mask} {dtype}")
                  for _, stem, dtype in grid_shapes.grid() for mask in forward_grid_tables.MASKS}
        known = [shape for shape, ratio in ratios.items() if ratio is not None]
        self.assertEqual(len(known), 36)
        self.assertTrue(all(shape.endswith("bf16") for shape in known))
        self.assertIsNone(fa3_over_cudnn("b4 h16/2 n4096 d128 none bf16"))
        self.assertIsNone(fa3_over_cudnn("b8 h16 n4096 d128 none bf16"))
        self.assertIsNone(fa3_over_cudnn("b16 h16 n4096 d128 none bf16 lengths1"))
        self.assertIn("H200", provenance())

    def test_the_better_peer_is_the_one_over_which_the_kernel_gains_least(self):
        shapes = self.shapes()
        self.assertLess(fa3_over_cudnn(self.SHORT), 1.0)
        self.assertGreater(fa3_over_cudnn(self.LONG), 1.0)
        for shape, peer in ((self.SHORT, "cuDNN"), (self.LONG, forward_grid_tables.FA3)):
            over = forward_grid_tables.speeds(shape, shapes[shape])
            self.assertEqual(over[forward_grid_tables.BETTER], over[peer])
            found = forward_grid_tables.rates(shape, shapes[shape])
            self.assertEqual(max(("cuDNN", forward_grid_tables.FA3), key=found.get), peer)

    def test_tables_show_every_peer_and_count_the_shapes_at_each_station(self):
        shapes = self.shapes()
        lines = forward_grid_tables.table(shapes).splitlines()
        self.assertEqual(lines[0], "| shape | mask | plan | TFLOP/s | cuDNN | FA3 (est.) | FA2 | of cuDNN (95 %) | of FA3 (est.) | "
                                   "of the better | of FA2 (95 %) |")
        self.assertIn("| 400 | 500 |", lines[2])
        self.assertIn("| 0.800 (0.800-0.800) |", lines[2])
        stations = [line.split(" | ")[:2] for line in forward_grid_tables.stations(shapes).splitlines()[2:]]
        self.assertEqual(stations, [["| 0.8", "2 of 2"], ["| 0.9", "1 of 2"], ["| 1", "1 of 2"], ["| 1.05", "1 of 2"]])
        summary = forward_grid_tables.summary(shapes).splitlines()
        self.assertIn("1.200, 0.800 at n512 d64 full", summary[2])  # geometric mean of 0.8 and 1.8
        self.assertEqual([line.split(" | ")[0] for line in summary[2:]], ["| all", "| D 64, full", "| D 128, causal"])

    def test_a_peer_that_took_no_shape_has_no_column_and_one_that_took_some_says_how_many(self):
        shapes = self.shapes()
        del shapes[self.LONG]["torch_sdpa_cudnn"]
        for name in list(shapes[self.LONG]["mine"][1]):
            if "cudnn" in name:
                del shapes[self.LONG]["mine"][1][name]
        self.assertIn("0.800, 0.800 at n512 d64 full, 1 of 2 shapes", forward_grid_tables.summary(shapes))
        del shapes[self.SHORT]
        self.assertNotIn("cuDNN", forward_grid_tables.summary(shapes) + forward_grid_tables.table(shapes))

    def test_records_of_no_kernel_or_of_several_are_one_clear_line(self):
        peers = [grid_record("torch_sdpa_cudnn", self.SHORT, 1.0)]
        mine, other = (grid_record(name, self.SHORT, 1.0) for name in ("mine", "other"))
        self.assertEqual(forward_grid_tables.kernel_named([*peers, mine, mine]), "mine")
        for records, said in ((peers, "none"), ([mine, other], "mine, other")):
            with self.assertRaisesRegex(ValueError, f"of one kernel .* are of {said}$"):
                forward_grid_tables.kernel_named(records)


def found_record(contender, problem, plan="-", commit="c1", date="2026-11-22T07:00:00Z", inputs="normal", executor=None, **figures):
    """Of a speed, or of an error where an executor is named."""
    labels = {"contender": contender, "plan": plan, "inputs": inputs}
    labels |= {"shape": problem} if executor is None else {"problem": problem, "executor": executor, "tensor": "O",
                                                           "element_type": problem.split()[-1]}
    return speed_error_pairs.Found({"labels": labels, "provenance": {"commit": commit, "date": date},
                                    "measurements": [{"name": name, "value": value} for name, value in figures.items()]}, "h200/made_up.jsonl")


class SpeedAgainstError(unittest.TestCase):
    TIMED, JUDGED, LONGER = "b8 h12 n4096 d64 none fp32", "b1 h4/4 q512 k512 d64 none fp32", "b1 h2/2 q1024 k1024 d64 none fp32"
    PLAN = "qt128 kt32 w4 st2 products=tf32"

    def found(self, speeds, errors):
        """{precision: (rate, relative RMSE)} and {precision: what is missing} of N(0, 1) inputs at D 64."""
        found, missing = speed_error_pairs.pairs(speeds, errors)
        key = ("N(0, 1)", 64)
        return ({precision.name: (speed.value("rate"), error.value("relative_l2")) for precision, (speed, error) in found.get(key, {}).items()},
                {precision.name: what for precision, (what, _) in missing.get(key, {}).items()})

    def speed(self, rate, plan=PLAN, problem=TIMED, **other):
        return found_record("tf32_mma", problem, plan, rate=rate, **other)

    def error(self, size, plan=PLAN, problem=JUDGED, executor="gpu", **other):
        return found_record("tf32_mma", problem, plan, executor=executor, relative_l2=size, **other)

    def test_a_speed_stands_beside_an_error_of_the_same_tiles_whatever_the_order_of_the_grid(self):
        speeds = [self.speed(1.0, self.PLAN + " grid_order=grouped g16"), self.speed(2.0, self.PLAN.replace("kt32", "kt64"))]
        self.assertEqual(self.found(speeds, [self.error(0.5)])[0], {"TF32": (1.0, 0.5)})
        found, missing = self.found(speeds[1:], [self.error(0.5)])
        self.assertEqual((found, missing["TF32"]), ({}, "an error of a timed plan"))

    def test_precisions_of_one_kernel_are_told_apart_by_their_products(self):
        three = self.PLAN + "_x3"
        speeds = [self.speed(1.0), self.speed(2.0, three)]
        found, _ = self.found(speeds, [self.error(0.5), self.error(0.25, three)])
        self.assertEqual(found, {"TF32": (1.0, 0.5), "TF32 x3": (2.0, 0.25)})
        self.assertEqual(self.found(speeds[1:], [self.error(0.25, three)])[0], {"TF32 x3": (2.0, 0.25)})
        # Outputs of another process are by the default products.
        self.assertEqual(self.found(speeds, [self.error(0.25, "-", executor="file")])[0], {"TF32 x3": (2.0, 0.25)})

    def test_what_lacks_a_speed_or_an_error_is_named_and_never_filled_in(self):
        found, missing = self.found([self.speed(1.0)], [found_record("k10_wide_tiles", self.JUDGED, executor="gpu", relative_l2=0.5)])
        self.assertEqual(found, {})
        self.assertEqual((missing["TF32"], missing["fp32, K10"], missing["bf16"]), ("error", "speed", "speed and error"))
        self.assertEqual(len(missing), len(speed_error_pairs.PRECISIONS))

    def test_other_head_dims_masks_inputs_and_lse_are_not_taken(self):
        of_lse = self.error(0.5)
        of_lse.labels["tensor"] = "LSE"
        for error in (self.error(0.5, problem=self.JUDGED.replace("d64", "d128")), of_lse, self.error(0.5, inputs="normal:16"),
                      self.error(0.5, problem=self.JUDGED.replace("none", "causal_top_left"))):
            self.assertEqual(self.found([self.speed(1.0)], [error])[0], {})
        causal = self.speed(1.0, problem=self.TIMED.replace("none", "causal_top_left"))
        self.assertEqual(self.found([causal], [self.error(0.5)])[0], {})

    def test_speeds_are_of_the_length_nearest_to_the_wanted_one_of_dense_problems_and_of_normal_inputs(self):
        speeds = [self.speed(float(length), problem=self.TIMED.replace("4096", str(length))) for length in (512, 2048, 16384)]
        self.assertEqual(self.found(speeds, [self.error(0.5)])[0], {"TF32": (2048.0, 0.5)})
        mixed, other = self.speed(1.0), self.speed(1.0, inputs="outliers")
        mixed.labels["set"] = "lengths"
        for speed in (mixed, other):
            self.assertEqual(self.found([speed], [self.error(0.5)])[1]["TF32"], "speed")

    def test_the_gpu_goes_before_the_executor_then_the_nearest_length_the_same_commit_and_the_newest(self):
        executor = self.error(0.1, executor="simt", problem=self.LONGER)
        near, far = self.error(0.2, problem=self.LONGER, commit="c0"), self.error(0.3)
        old, new = self.speed(1.0), self.speed(2.0, commit="c2", date="2026-11-22T08:00:00Z")
        for speeds, errors, want in (([old], [executor, far], (1.0, 0.3)), ([old], [near, far], (1.0, 0.2)),
                                     ([old, new], [far], (1.0, 0.3)), ([old, new], [near], (2.0, 0.2)),
                                     ([old], [executor], (1.0, 0.1))):
            for ordered in (errors, errors[::-1]):
                self.assertEqual(self.found(speeds, ordered)[0], {"TF32": want})

    def test_at_equal_length_inputs_that_more_precisions_were_judged_on_are_taken(self):
        shared = self.JUDGED.replace("h4/4", "h2/2")
        errors = [self.error(0.5, problem=shared), self.error(0.1, date="2026-11-22T08:00:00Z"),
                  found_record("k10_wide_tiles", shared, executor="file", inputs="normal_d64", relative_l2=0.2)]
        errors[0].labels["inputs"] = "normal_d64"
        self.assertEqual(self.found([self.speed(1.0)], errors)[0], {"TF32": (1.0, 0.5)})

    def test_errors_against_unrounded_inputs_are_a_precision_of_their_own(self):
        speed = found_record("fa2_mma", self.TIMED.replace("fp32", "fp16"), "qt128", rate=1.0)
        errors = [found_record("fa2_mma", self.LONGER.replace("fp32", "fp16"), executor="file", inputs=f"normal_fp16{suffix}", relative_l2=size)
                  for suffix, size in (("", 0.1), ("_unrounded", 0.2))]
        self.assertEqual(self.found([speed], errors)[0], {"fp16": (1.0, 0.1), "fp16 of fp32 inputs": (1.0, 0.2)})

    def test_a_row_names_its_records_and_in_what_they_differ(self):
        speed = self.speed(123.4)
        for error, said in ((self.error(0.5, rmse=0.25, max_abs_error=2.0), "| problem |"),
                            (self.error(0.5, commit="c2", rmse=0.25, max_abs_error=2.0), "| problem, commit |"),
                            (self.error(0.5, executor="simt", rmse=0.25, max_abs_error=2.0), "**executor**, not the GPU |"),
                            (self.error(0.5, plan="-", executor="file", rmse=0.25, max_abs_error=2.0), "plan: not named, the default |")):
            row = speed_error_pairs.table({speed_error_pairs.PRECISIONS[0]: (speed, error)}).splitlines()[-1]
            self.assertIn("| 123.4 | 0.5 | 0.25 | 2 |", row)
            self.assertTrue(row.endswith(said), row)
            self.assertIn(f"{self.TIMED}, `{self.PLAN}`; c1; h200/made_up.jsonl", row)
            self.assertIn(self.JUDGED, row)
        same = self.error(0.5, problem="b8 h12/12 q4096 k4096 d64 none fp32", rmse=0.25, max_abs_error=2.0)
        self.assertEqual(speed_error_pairs.differences(speed, same), "")

    def test_no_committed_pair_joins_other_products_tiles_or_masks(self):
        results = pathlib.Path("results")
        speeds, errors = (speed_error_pairs.read_all(sorted(results.glob(pattern))) for pattern in
                          ("h200/*_speed.jsonl", "*/errors*.jsonl"))
        found, missing = speed_error_pairs.pairs(speeds, errors)
        self.assertGreaterEqual(len(found["N(0, 1)", 64]), 5)
        for rows in found.values():
            for speed, error in rows.values():
                self.assertEqual(speed.labels["contender"], error.labels["contender"])
                self.assertEqual(speed.problem.split()[-2:], error.problem.split()[-2:])
        for key, rows in missing.items():
            self.assertFalse(rows.keys() & found.get(key, {}).keys())


class LabelPlaces(unittest.TestCase):
    def test_labels_hide_neither_points_nor_lines_nor_each_other_and_stay_in_the_panel(self):
        points = [(50.0, 100.0, "one"), (58.0, 98.0, "two"), (190.0, 100.0, "at the edge"), (120.0, 195.0, "below"), (57.0, 104.0, "three")]
        lines = [110.0]
        places = label_places.place(points, 200.0, 200.0, lines)
        half = label_places.LINE / 2
        boxes = [(left, y - half, left + label_places.CHARACTER * len(text), y + half) for (left, y), (_, _, text) in zip(places, points)]
        for i, box in enumerate(boxes):
            others = boxes[:i] + boxes[i + 1:] + [(x, 0.0, x + 1.0, 200.0) for x in lines]
            others += [(x - 1.0, y - 1.0, x + 1.0, y + 1.0) for x, y, _ in points]
            self.assertEqual([label_places.overlap(box, other) for other in others], [0.0] * len(others), points[i])
            self.assertTrue(0.0 <= box[0] and box[2] <= 200.0 and 0.0 <= box[1] and box[3] <= 200.0, box)

    def test_a_lone_label_stands_to_the_right_of_its_point(self):
        (left, y), = label_places.place([(50.0, 60.0, "one")], 200.0, 200.0)
        self.assertGreater(left, 50.0 + label_places.POINT)
        self.assertEqual(y, 60.0)


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
