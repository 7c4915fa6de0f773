"""What the pictures of documents say of their records."""

import unittest

from attest_book import pictures, records, study


def legend(chart):
    return chart.to_dict(validate=False)["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"]


class Grid(unittest.TestCase):
    def test_versions_are_those_of_the_records(self):
        rows = study.committed("h200/studies/forward_grid").timed()
        names = legend(pictures.grid_of(rows))
        self.assertIn("cuDNN 9.28.1", names)
        for name in names:
            for word in name.split():
                if word[:1].isdigit():
                    self.assertTrue(rows.library.str.contains(word, regex=False, na=False).any(), name)
        changed = rows.assign(library=rows.library.str.replace("9.28.1", "10.2.1", regex=False).str.replace("2.11.0", "3.0", regex=False))
        self.assertLessEqual({"cuDNN 10.2.1", "FlashAttention-2, PyTorch 3.0"}, set(legend(pictures.grid_of(changed))))

    def test_records_of_two_versions_are_said_to_be(self):
        rows = study.committed("h200/studies/forward_grid").timed()
        first = rows.index[(rows.contender == "cudnn_sdpa") & rows.problem.str.endswith("h32/32 q512 k512 d64 none bf16")][0]
        rows.loc[first, "library"] = "cuDNN 9.19.0"
        self.assertIn("cuDNN 9.19.0 and cuDNN 9.28.1", legend(pictures.grid_of(rows)))


class Ring(unittest.TestCase):
    def test_the_picture_says_that_it_is_a_model_and_names_the_length_from_which_each_link_is_free(self):
        picture = pictures.ring().to_dict(validate=False)
        self.assertTrue(picture["title"].startswith("Modelled, not measured"))
        shown = [row["x"] for rows in picture["datasets"].values() if len(rows) == 1 for row in rows]
        found = records.json_lines(records.RESULTS / "model/ring.jsonl")
        self.assertEqual(set(shown), {line["break_even_queries"]["zigzag"] for line in found if "causal" in line["problem"]})


if __name__ == "__main__":
    unittest.main()
