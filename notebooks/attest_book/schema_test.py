"""The JSON Schema of studies as an editor uses it."""

import json
import pathlib
import unittest

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "fuzz/corpus/study"
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

    def errors(self, path):
        return [error.message for error in self.validator.iter_errors(yaml.safe_load(path.read_text()))]

    def test_every_study_that_is_shipped_and_every_good_one_passes(self):
        paths = [*(ROOT / "experiments/studies").glob("*.yaml"), *CORPUS.glob("good_*.yaml")]
        self.assertGreater(len(paths), 12)
        for path in paths:
            self.assertEqual(self.errors(path), [], path)

    def test_mistakes_of_form_are_seen(self):
        for name in OF_FORM:
            self.assertTrue(self.errors(CORPUS / f"{name}.yaml"), name)


if __name__ == "__main__":
    unittest.main()
