"""usage: junit_test.py PROGRAM PLUGINS: `verify --junit` as a CI reads it."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PLUGINS = pathlib.Path(sys.argv.pop()).resolve()
PROGRAM = pathlib.Path(sys.argv.pop()).resolve()
FAST = ("--max-len", "20", "--no-regressions", "--jobs", "2")


class Junit(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def verify(self, *arguments, cases=2):
        return subprocess.run([PROGRAM, "verify", *FAST, "--cases", str(cases), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def suites(self, *arguments, cases=2):
        """{kernel: (suite, {layer: its one element, or None of a pass})}."""
        done = self.verify("--junit", "ci/verdicts.xml", *arguments, cases=cases)
        self.assertTrue((self.folder / "ci/verdicts.xml").exists(), done.stdout + done.stderr)
        root = xml.parse(self.folder / "ci/verdicts.xml").getroot()
        self.assertEqual(root.tag, "testsuites")
        found = {}
        for suite in root:
            cases = suite.findall("testcase")
            endings = {case.get("name"): next(iter(case), None) for case in cases}
            self.assertEqual(int(suite.get("tests")), len(cases))
            for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
                self.assertEqual(int(suite.get(count)), sum(ending is not None and ending.tag == tag for ending in endings.values()))
            found[suite.get("name")] = suite, endings
        return found

    def plugin(self, name, *arguments):
        found, = self.suites("--plugin", PLUGINS / f"{name}.so", *arguments, cases=40).values()
        return found[1]

    def test_a_layer_is_a_case_and_a_control_must_be_killed(self):
        found = self.suites("--kernel", "o5*,o1*", "--law", "within_bound,guards_untouched")
        suite, layers = found["o5_deferred on cpu"]
        self.assertEqual(list(layers), ["exact", "bound", "statistics"])
        self.assertEqual((layers["exact"], layers["bound"]), (None, None))
        self.assertEqual(layers["statistics"].get("message"), "no law of this layer was asked")
        properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
        self.assertEqual((properties["seed"], properties["cases"]), ("1", "2"))
        self.assertIn("killed", found["o1_unshifted on cpu"][1])

    def test_a_failure_holds_the_shrunk_problem_and_how_to_replay_it(self):
        bound = self.plugin("wrong_answer", "--law", "within_bound")["bound"]
        self.assertEqual((bound.tag, bound.get("type")), ("failure", "within_bound"))
        self.assertRegex(bound.get("message"), "^within_bound: .*outside its error bound")
        self.assertRegex(bound.text, r"\n  problem  b1 h1/1 .*(.*\n)*  replay   \./attest replay out/counterexamples/.*\.json\n$")

    def test_a_counterexample_is_written_once(self):
        kept = self.folder / "out/counterexamples"
        kept.mkdir(parents=True)
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_NONBLOCK)
        self.addCleanup(os.close, watch)
        created = 0x100  # under a name of its own, and then put in its place
        self.assertGreaterEqual(libc.inotify_add_watch(watch, str(kept).encode(), created), 0)
        self.plugin("wrong_answer", "--law", "within_bound")
        name, = (path.name.encode() for path in kept.iterdir())
        self.assertEqual(os.read(watch, 1 << 16).count(name + b"."), 1)

    def test_a_crash_is_an_error(self):
        endings = [ending for ending in self.plugin("crash_in_run").values() if ending is not None and ending.tag == "error"]
        self.assertEqual([ending.get("type") for ending in endings], ["crashed"])
        self.assertIn("SIGSEGV", endings[0].text)

    def test_what_is_inconclusive_is_skipped_with_its_sentence(self):
        layers, = (endings for _, endings in self.suites("--kernel", "o5*", "--shard", "2/9", cases=1).values())
        for ending in layers.values():
            self.assertEqual((ending.tag, ending.get("message")), ("skipped", "inconclusive: no case was asked for; the shard or the time had none"))

    def test_bad_input_gets_one_line(self):
        done = self.verify("--junit", "x.xml", "--large", "--kernel", "o5*")
        self.assertEqual((done.returncode, done.stderr), (2, "attest: --junit and --large are both given; allowed: one of them\n"))
        done = self.verify("--junit", "/proc/no/x.xml", "--kernel", "o5*", "--law", "guards_untouched")
        self.assertEqual(done.returncode, 3)
        self.assertIn("attest: cannot write /proc/no/x.xml: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
