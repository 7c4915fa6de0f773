"""Tests of the forward grid: its shapes, its tables, FA3 through cuDNN."""

import argparse
import unittest

import forward_grid_tables
import grid_shapes
from fa3_over_cudnn import fa3_over_cudnn, provenance


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


if __name__ == "__main__":
    unittest.main()
