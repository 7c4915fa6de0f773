"""The JSON Schema of studies as an editor uses it."""

import json
import pathlib
import sys
import unittest

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "fuzz"))

import corpus
# Mistakes of form, which an editor can see; others need the kernels, or arithmetic.
OF_FORM = ("key_near", "key_far", "no_question", "no_kernels", "metric_unknown", "cache_unknown", "executor_unknown", "mask_unknown",
           "element_type_unknown", "counter_form", "claim_form", "plan_field", "plan_choice", "problem_field", "plot_kind",
           "budget_without_unit", "confidence_without_percent", "kernels_map", "name_capital", "expect_no_that")


class Schema(unittest.TestCase):
    def setUp(self):
        schema = json.loads((ROOT / "experiments/studies/study.schema.json").read_text())
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        self.validator = kind(schema)

    def errors(self, study):
        return [error.message for error in self.validator.iter_errors(yaml.safe_load(study))]

    def test_every_study_that_is_shipped_and_every_good_one_passes(self):
        shipped = {path.name: path.read_bytes() for path in (ROOT / "experiments/studies").glob("*.yaml")}
        good = {name: study for name, study in corpus.seeds("study").items() if name.startswith("good_")}
        self.assertGreater(len(shipped), 10)
        self.assertGreater(len(good), 1)
        for name, study in {**shipped, **good}.items():
            self.assertEqual(self.errors(study), [], name)

    def test_mistakes_of_form_are_seen(self):
        seeds = corpus.seeds("study")
        for name in OF_FORM:
            self.assertTrue(self.errors(seeds[name]), name)


if __name__ == "__main__":
    unittest.main()
