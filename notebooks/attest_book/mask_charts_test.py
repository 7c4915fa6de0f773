import unittest

from attest_book import mask_charts
from attest_book.mask_charts import ADDED, HIDDEN, SEEN, TAKEN


class MaskCharts(unittest.TestCase):
    def test_a_problem_is_said_without_what_its_defaults_say(self):
        self.assertEqual(mask_charts.short("b1 h1/1 q32 k32 d64 causal_top_left fp32 prefix13"), "n32 causal_top_left prefix13")
        self.assertEqual(mask_charts.short("b5 h1/1 q12 k32 d64 none fp32 padding5"), "b5 q12 k32 none padding5")

    def test_pairs_say_whether_one_part_of_a_problem_decides_them(self):
        line = {"rows": ["##.", "#.."], "without": ["#.#", "#.."]}
        self.assertEqual(mask_charts.states_of(line), [[SEEN, ADDED, TAKEN], [SEEN, HIDDEN, HIDDEN]])
        self.assertEqual(mask_charts.states_of({"rows": ["#."], "without": []}), [[SEEN, HIDDEN]])

    def test_a_legend_names_what_a_picture_has(self):
        chart, = mask_charts.pairs({"none": {"rows": ["##"], "without": [], "problem": "b1 h1/1 q1 k2 d64 none fp32"}})
        spec = chart.to_dict()
        self.assertEqual(spec["encoding"]["color"]["legend"]["values"], [SEEN])
        self.assertEqual(spec["title"]["subtitle"], ["q1 k2", "none"])
        self.assertEqual((spec["width"], spec["height"]), (2 * mask_charts.STEP - mask_charts.GAP, mask_charts.STEP - mask_charts.GAP))

    def test_weights_of_0_are_no_cells_unless_their_pairs_are_seen(self):
        line = {"weights": [[0.0, 1.0]], "lse": [0.5]}
        cells = lambda chart: len(chart.data)
        self.assertEqual((cells(mask_charts.weights(line)), cells(mask_charts.weights(line, ["##"]))), (1, 2))
        self.assertEqual(mask_charts.scores(line), {(0, 1): 0.5})

    def test_a_change_has_the_cells_of_either_picture(self):
        chart = mask_charts.change({"weights": [[1.0, 0.0, 0.0]]}, {"weights": [[0.0, 1.0, 0.0]]}, "what changed")
        self.assertEqual(chart.data.change.tolist(), [-1.0, 1.0])


if __name__ == "__main__":
    unittest.main()
