"""Marked functions are tests of pytest, whose verdicts are pytest's. A stand-in answers for the program, by a function's name; wheel_test.py asks the real
one."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGES = pathlib.Path(__file__).resolve().parents[1]
KERNELS = "import attest_kernels\n" + "".join(f"@attest_kernels.kernel\ndef {name}(q, k, v): ...\n" for name in ("passed", "failed", "inconclusive")) + """
def unmarked(q, k, v): ...
def test_of_the_file(): ...
"""
STAND_IN = f"""#!{sys.executable}
import json, pathlib, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
name = given["--python"].rpartition(":")[2]
verdict = "passed" if name == "unmarked" else name
record = {{"verdict": verdict, "labels": {{"kernel": name}}, "measurements": [{{"name": "cases", "value": 7}}]}}
pathlib.Path(given["--out"], "verify.jsonl").write_text(json.dumps(record))
pathlib.Path("asked").open("a").write(f"{{name}} {{given.get('--for')}} {{given['--seed']}};")
if verdict == "failed":
    print("  law      within_bound (bound layer)\\n  problem  b1 h1/1\\n  what     O is wrong\\n  worst    O[0]\\n  replay   ./attest replay /x.json")
print(f"{{name}}: 4 drawn, 3 refused\\n{{name}}: inconclusive: 1 of 4 cases judged")
sys.exit({{"failed": 1, "inconclusive": 4}}.get(verdict, 0))
"""


class Plugin(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "mine.py").write_text(KERNELS)
        (self.folder / "plain.py").write_text("")
        (self.folder / "test_others.py").write_text(
            "import attest_kernels, numpy\ndef test_wrong():\n    q = numpy.ones((1, 1, 2, 4), numpy.float32)\n"
            "    attest_kernels.assert_attention(2 * q, q, q, q)\n")
        self.program = self.folder / "stand_in"
        self.program.write_text(STAND_IN)
        self.program.chmod(0o755)

    def pytest(self, *arguments, program=None):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "ATTEST_PROGRAM": str(program or self.program)}
        done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "attest_kernels.pytest_plugin", "-p", "no:cacheprovider", "-rs", *arguments],
                              cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def asked(self):
        return (self.folder / "asked").read_text()

    def test_verdicts_of_marked_functions_are_those_of_tests(self):
        said = self.pytest("--attest-kernels", "mine.py", "--attest-for", "30s", "--attest-seed", "5")
        self.assertIn("1 failed, 1 passed, 1 skipped", said)
        self.assertIn("failed after 7 cases, shrunk to\n  law      within_bound (bound layer)\n  problem  b1 h1/1\n  what     O is wrong; O[0]\n"
                      "  replay   attest-kernels replay /x.json\n", said)
        self.assertIn(": inconclusive: 1 of 4 cases judged\n", said)
        self.assertEqual(self.asked(), "passed 30s 5;failed 30s 5;inconclusive 30s 5;")

    def test_one_is_chosen_by_its_name_and_others_stand_beside_it(self):
        self.assertIn("1 passed", self.pytest("--attest-kernels", "mine.py:unmarked"))
        self.assertIn("2 passed, 2 deselected", self.pytest("mine.py", "--attest-kernels", "mine.py", "-k", "passed or test_of"))
        self.assertEqual(self.asked(), "unmarked None 1;passed None 1;")

    def test_bad_input_gets_one_line(self):
        for arguments, line in ((("--attest-kernels", "none.py"), "ERROR: --attest-kernels none.py: there is no file none.py; allowed: FILE.py or"),
                                (("--attest-kernels", "plain.py"), "plain.py: no function is marked by @attest_kernels.kernel; allowed: plain.py:FUNC"),
                                (("--attest-for", "soon"), "'soon' is no duration; allowed: 30s, 5min, 1h")):
            self.assertIn(line, self.pytest(*arguments))

    def test_an_assertion_shows_the_line_of_the_test_alone(self):
        said = self.pytest("test_others.py", program=os.environ["ATTEST_PROGRAM"])
        self.assertIn(">       attest_kernels.assert_attention(2 * q, q, q, q)\nE       attest_kernels.asserting.WrongAttention: O is outside", said)
        self.assertNotIn("_require", said)


if __name__ == "__main__":
    unittest.main()
