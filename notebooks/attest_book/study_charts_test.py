"""Laws of the pictures of studies, over studies that are made up at random and over all that are committed."""

import json
import math
import random
import re
import unittest

import altair
import pandas

from attest_book import made_up_study, page, records, study, study_charts, study_frontiers, study_report
from attest_book.study_test import InFolder


def quantities(spec, found):
    """The ends of all scales of numbers that a specification sets."""
    if isinstance(spec, dict):
        if spec.get("type") == "quantitative" and "domain" in (spec.get("scale") or {}):
            found.add((spec["field"].split("_low")[0].split("_high")[0], json.dumps(spec["scale"]["domain"])))
        for part in spec.values():
            quantities(part, found)
    elif isinstance(spec, list):
        for part in spec:
            quantities(part, found)
    return found


def written(spec):
    """What stands at marks and along axes of names."""
    def names(part):
        if isinstance(part, list):
            return {name for one in part for name in names(one)}
        if not isinstance(part, dict):
            return set()
        own = {part[key]["field"].replace("\\", "") for key in ("text", "x", "y") if isinstance(part.get(key), dict) and part[key].get("type") == "nominal"}
        return own.union(*(names(value) for value in part.values()))
    found = names({**spec, "datasets": None})
    return {str(row[name]) for rows in spec["datasets"].values() for row in rows for name in found if name in row}


class Laws(InFolder):
    def setUp(self):
        super().setUp()
        self.enterContext(altair.utils.schemapi.debug_mode(False))  # pages are made elsewhere; to validate each part takes most of the time

    def hold(self, found):
        pictures = study_charts.pictures(found)
        for picture in pictures:
            self.names_what_it_shows(picture)
            specs = [panel.chart.to_dict(validate=False) for panel in picture.panels]
            texts = [picture.text, *(name for name, _ in picture.legend), *(panel.title for panel in picture.panels), *(text for spec in specs for text in written(spec))]
            for kernel in {name for panel in picture.panels for name in panel.table.contender}:
                self.assertIn(kernel, "\n".join(texts), "a kernel without a label")
            self.assertEqual(len({json.dumps(sorted(quantities({**spec, "datasets": None}, set()))) for spec in specs if picture.legend}), bool(specs and picture.legend),
                             f"{picture.heading}: panels with scales of their own")
        return pictures

    def names_what_it_shows(self, picture):
        for name in [name for name, _ in picture.legend] + [panel.title for panel in picture.panels]:
            self.assertNotRegex(name, r"\bnan\b|NaN|None|page size 0|, $|, ,|problem\.|plan\.", picture.heading)
        self.assertEqual(len({colour for _, colour in picture.legend}), len(picture.legend), "two names of one colour")
        for panel in picture.panels:
            self.assertGreater(len(panel.table), 1, f"{picture.heading}, {panel.title}: one point")
            if "against" in picture.text and panel.chart.height == 240:  # lines
                x = charts_x(panel.chart)
                self.assertGreater(panel.table[x].nunique(), 1, f"{picture.heading}, {panel.title}: one place along {x}")
            if not picture.text.startswith(("Each cell", "What each cause")):
                self.assertFalse([name for name in panel.table.contender if name in panel.title], "a panel for a kernel")

    def test_they_hold_of_every_committed_study_and_its_page_draws_what_its_file_asks_for(self):
        folders = sorted({path.parent for path in records.RESULTS.glob("**/records*.jsonl")})
        self.assertTrue(folders)
        for folder in folders:
            with self.subTest(folder):
                found = study.read(folder)
                drawn = {picture.heading for picture in self.hold(found) if picture.panels}
                self.assertTrue(drawn)
                self.assertLessEqual({plot["title"] for plot in found.plots if plot.get("title")}, drawn)

    def test_they_hold_of_studies_with_axes_that_are_missing_tied_or_alone(self):
        for seed in range(20):
            with self.subTest(seed):
                self.hold(self.study(*made_up(random.Random(seed)), name=str(seed)))


def charts_x(chart):
    """The column along x of a chart of lines."""
    return chart.to_dict(validate=False)["layer"][0]["encoding"]["x"]["field"].replace("\\", "")


def made_up(draw):
    """(records, specification): kernels on problems, some of whose axes are tied to the length, given for some points only, or of one value."""
    made = []
    kernels = ["fa2_mma", "fa3_wgmma", "decode_mma"][:draw.randint(1, 3)]
    axes = {"problem.length": ["512", "1024", "2048", "4096"][:draw.randint(1, 4)], "problem.head_dim": ["64", "128"][:draw.randint(1, 2)],
            "problem.mask": ["none", "causal_bottom_right"][:draw.randint(1, 2)], "problem.element_type": ["bf16", "fp16"][:draw.randint(1, 2)],
            "problem.kv_heads": ["", "4"][:draw.randint(1, 2)], "layout.page_size": draw.choice([["0"], ["0", "16"], ["0", "1", "64"]]),
            "plan.products": draw.choice([[""], ["", "tf32"], ["tf32", "tf32_x3"]])}
    few = draw.sample(list(axes)[1:], 3)  # or there are too many panels to test in seconds
    places = [{}]
    for axis, values in ((axis, values[:1] if axis in few else values) for axis, values in axes.items()):
        places = [{**place, axis: value} for place in places for value in values]
    for place in places:
        if made and draw.random() < 0.2:
            continue
        place["problem.batch"] = str(16384 // int(place["problem.length"])) if draw.random() < 0.9 else "7"
        problem = " ".join(place[axis] or "-" for axis in place if axis.startswith(("problem.", "layout.")))
        for kernel in [*kernels, "cudnn_sdpa"]:
            is_baseline = kernel == "cudnn_sdpa"
            kept = {f"axis.{axis}": value for axis, value in place.items() if value and not (is_baseline and axis.startswith("plan."))}
            time = draw.uniform(0.1, 50)
            made.append(made_up_study.record(
                labels={"point": f"{kernel} {len(made)}", "contender": kernel, "role": "baseline" if is_baseline else "point", "name": kernel if is_baseline else "",
                        "executor": "gpu", "plan": place["plan.products"] or "-", "problem": problem, **kept},
                values={"time": time, "time_low": time * 0.9, "time_high": time * 1.1, "rate": 100 / time, "error.rmse": draw.uniform(1e-7, 1e-3),
                        "hbm_bytes": float(place["problem.length"]) * 1e5}, units=made_up_study.UNITS))
    columns = ["problem.length", "problem.head_dim", "problem.mask", "problem.kv_heads", "layout.page_size", "plan.products", "kernel", "hbm_bytes"]
    plots = [{"kind": kind, "x": draw.choice(columns), "y": draw.choice(["time", "rate"]), "color": draw.choice(columns[:-1])} for kind in ("lines", "bars") * 2]
    plots += [{"kind": "heat_map", "x": "plan.products", "y": "problem.length", "value": "time"}, {"kind": "pareto", "color": draw.choice(columns[:-1])}]
    return made, "name: x\nquestion: y\nplots: " + json.dumps(plots)


class Layout(InFolder):
    def points(self, rows):
        """A study of `rows`: (length, other axes, time)."""
        made = [made_up_study.record(labels={"point": str(number), "contender": axes.pop("kernel", "k"), "role": axes.pop("role", "point"), "problem": f"n{length} {number}",
                                             "plan": "-", "axis.problem.length": str(length), **{f"axis.{name}": value for name, value in axes.items()}},
                                     values={"time": time}, units={"time": "ms"}) for number, (length, axes, time) in enumerate(rows)]
        return self.study(made, "name: x\nquestion: y\n")

    def lines(self, rows, colour="contender"):
        return study_charts.line_plot(self.points(rows), "problem.length", "time", colour)

    def test_a_batch_that_goes_with_the_length_has_no_panels_and_the_odd_one_is_left_out(self):
        rows = [(length, {"problem.batch": str(4096 // length), "problem.mask": mask}, 1.0 + length) for length in (256, 512, 1024, 2048) for mask in ("none", "causal")]
        picture = self.lines(rows + [(1024, {"problem.batch": "2", "problem.mask": "none"}, 99.0)])
        self.assertEqual([(panel.title, len(panel.table)) for panel in picture.panels], [("causal", 4), ("no mask", 4)])
        self.assertIn("The batch goes with length; 1 point with another one is left out.", picture.text)
        self.assertNotIn(99.0, [time for panel in picture.panels for time in panel.table.time])

    def test_what_the_file_does_not_say_of_a_problem_is_not_any_value_of_it(self):
        rows = [(length, {"problem.kv_heads": "4"} if grouped else {}, 1.0) for length in (256, 512, 1024) for grouped in (False, True) if length > 256 or not grouped]
        self.assertEqual([(panel.title, len(panel.table)) for panel in self.lines(rows).panels], [("", 3), ("kv heads 4", 2)])

    def test_baselines_stand_beside_the_kernels_that_they_are_measured_against(self):
        rows = [(length, {"layout.page_size": size, "plan.split": split}, 1.0) for length in (256, 512) for size in ("0", "16") for split in ("1", "2")]
        rows += [(length, {"kernel": "peer", "role": "baseline", "layout.page_size": size}, 2.0) for length in (256, 512) for size in ("0", "16")]
        picture = self.lines(rows)
        self.assertEqual([panel.title for panel in picture.panels], ["contiguous", "page size 16"])
        for panel in picture.panels:
            self.assertEqual(set(panel.table.contender), {"k", "peer"})

    def test_lengths_stand_for_queries_and_keys_where_others_name_these(self):
        made = [made_up_study.record(labels={"point": str(number), "contender": "k", "role": "point", **axes}, values={"time": 1.0})
                for number, axes in enumerate([{"axis.problem.length": "512"}, {"axis.problem.query_len": "1", "axis.problem.key_len": "1024"}])]
        found = self.study(made, "name: x\nquestion: y\n")
        self.assertEqual((found.points["problem.query_len"].tolist(), found.points["problem.key_len"].tolist()), ([512, 1], [512, 1024]))
        self.assertNotIn("problem.length", found.axes)

    def test_labels_cover_neither_points_nor_each_other(self):
        draw = random.Random(1)
        table = pandas.DataFrame([{"x": draw.uniform(1, 10), "y": draw.uniform(1, 10), "label": "kernel"} for _ in range(12)])
        found = study_frontiers.placed(table, "x", "y", {"x": (0.5, 20.0), "y": (0.5, 20.0)}, 400, 300)
        boxes = []
        for left, at in zip(found.label_x, found.label_y):
            a, b = (math.log(value / 0.5) / math.log(40) for value in (left, at))
            boxes.append((a * 400, b * 300, a * 400 + study_frontiers.LABEL_LETTER * 6, study_frontiers.LABEL_HEIGHT))
        for i, (left, at, right, high) in enumerate(boxes):
            for other, its, end, _ in boxes[:i]:
                self.assertFalse(left < end - 1e-6 and other < right - 1e-6 and abs(at - its) < high - 1e-6)


class Pages(InFolder):
    def test_panels_stand_below_each_other_in_less_than_700_pixels_and_many_are_a_click_away(self):
        least = int(re.search(r"minmax\(min\(100%, (\d+)rem\)", page.STYLE)[1])
        self.assertGreater(2 * least * 16, 700)
        made = page.Page("x")
        chart = altair.Chart(pandas.DataFrame({"a": [1]})).mark_point().encode(x="a:Q")
        made.panels([("one", chart)] * page.SHOWN_PANELS * 2, "said", [("black", "#000000"), ("blue", "#0072b2")])
        self.assertIn(f"<summary>{page.SHOWN_PANELS} more panels</summary>", made.html())
        self.assertIn('background: var(--text)', made.html())
        # A panel is drawn when the next one is not there yet: its track has to be.
        self.assertIn("repeat(auto-fill,", page.STYLE)
        made.panels([("one", chart)], "said")
        self.assertIn('<div class="panels alone">', made.parts[-2])

    def test_flags_stand_before_the_values_that_may_need_more_width_than_there_is(self):
        names = [name for name, _ in study_report.columns_of(self.study())]
        self.assertLess(names.index("flags"), names.index("time"))

    def test_tables_of_texts_say_the_titles_of_columns_where_these_have_no_room(self):
        made = page.Page("x")
        made.table(["claim", "found"], [["a", "b"]])
        made.table(["claim", "found"], [["a", ("1", "number", "0 to 2")]])
        self.assertIn('<table class="texts"><thead><tr><th>claim</th><th>found</th></tr></thead>\n<tbody><tr><td data-title="claim">a</td><td data-title="found">b</td>', made.parts[0])
        self.assertIn('<td>a</td><td class="number">1<small>0 to 2</small></td>', made.parts[1])


if __name__ == "__main__":
    unittest.main()
