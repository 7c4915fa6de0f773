"""Tests of the plot of speed against error: which records make a pair, where labels stand."""

import pathlib
import unittest

import label_places
import speed_error_pairs


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


if __name__ == "__main__":
    unittest.main()
