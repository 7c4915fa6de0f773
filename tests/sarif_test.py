"""usage: sarif_test.py PROGRAM WITH_MUTANTS PLUGINS: failures as code hosts show them, `verify --sarif` and annotations."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLUGINS = pathlib.Path(sys.argv.pop()).resolve()
WITH_MUTANTS = pathlib.Path(sys.argv.pop()).resolve()
PROGRAM = pathlib.Path(sys.argv.pop()).resolve()
FAST = ("--no-regressions", "--jobs", "2")


class Sarif(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def verify(self, *arguments, program=PROGRAM, cases=40, length=20, **environment):
        return subprocess.run([program, "verify", *FAST, "--cases", str(cases), "--max-len", str(length), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "GITHUB_ACTIONS": "", **environment})

    def results(self, *arguments, code=1, **more):
        """The results, of a file that has what GitHub's upload needs."""
        done = self.verify("--sarif", "ci/attest.sarif", *arguments, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        sarif = json.loads((self.folder / "ci/attest.sarif").read_text())
        self.assertEqual((sarif["version"], len(sarif["runs"])), ("2.1.0", 1))
        driver = sarif["runs"][0]["tool"]["driver"]
        self.assertEqual(driver["name"], "Attest")
        rules = {rule["id"]: rule["shortDescription"]["text"] for rule in driver["rules"]}
        self.assertEqual(len(rules), len(driver["rules"]))
        for result in sarif["runs"][0]["results"]:
            self.assertIn(result["ruleId"], rules)
            self.assertGreater(len(result["message"]["text"]), 10)
            self.assertGreater(len(result["partialFingerprints"]), 0)
            for location in result["locations"]:
                place = location["physicalLocation"]
                self.assertNotIn(" ", place["artifactLocation"]["uri"])
                self.assertGreater(place["region"]["startLine"], 0)
        return sarif["runs"][0]["results"]

    def plugin(self, name):
        (self.folder / "my kernels").mkdir(exist_ok=True)
        there = self.folder / "my kernels" / f"{name}.so"
        there.write_bytes((PLUGINS / f"{name}.so").read_bytes())
        return "--plugin", there

    def test_a_failure_is_a_result_with_its_law_its_problem_and_its_file(self):
        result, = self.results(*self.plugin("wrong_answer"), "--law", "within_bound")
        self.assertEqual(result["ruleId"], "within_bound")
        self.assertRegex(result["message"]["text"], r"^\w+ on cpu: O is outside its error bound\n(.*\n)*  problem  b1 h1/1 .*\n(.*\n)*  worst    O\[.*\n(.*\n)*  replay   ")
        self.assertEqual(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "my%20kernels/wrong_answer.so")

    def test_a_crash_is_a_result(self):
        result, = self.results(*self.plugin("crash_in_run"))
        self.assertEqual(result["ruleId"], "crashed")

    def test_a_planted_bug_that_nobody_noticed_points_to_the_kernel_that_it_is_planted_in(self):
        result, = self.results("--kernel", "mutant/c13*", cases=1, length=1, program=WITH_MUTANTS)
        self.assertEqual(result["ruleId"], "not_killed")
        place = result["locations"][0]["physicalLocation"]
        self.assertRegex(place["artifactLocation"]["uri"], r"^gpu/kernels/.*\.cu$")
        self.assertGreater(place["region"]["startLine"], 1)

    def test_what_passes_is_an_empty_list(self):
        self.assertEqual(self.results("--kernel", "o5*", "--law", "within_bound", code=0), [])

    def test_annotations_are_printed_where_a_workflow_runs_it(self):
        asked = *self.plugin("wrong_answer"), "--law", "within_bound"
        line, = (line for line in self.verify(*asked, GITHUB_ACTIONS="true").stdout.splitlines() if line.startswith("::"))
        self.assertRegex(line, r"^::error file=my kernels/wrong_answer.so,line=1,title=\w+ on cpu%3A within_bound::O is outside its error bound%0A.*%0A  replay   ")
        self.assertNotIn("::error", self.verify(*asked).stdout)

    def test_bad_input_gets_one_line(self):
        done = self.verify("--sarif", "x", "--minimize", "y")
        self.assertEqual((done.returncode, done.stderr), (2, "attest: --sarif and --minimize are both given; allowed: one of them\n"))
        done = self.verify("--sarif", "/proc/no/x", "--kernel", "o5*", "--law", "guards_untouched")
        self.assertEqual(done.returncode, 3)
        self.assertIn("attest: cannot write /proc/no/x: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
