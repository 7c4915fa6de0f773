"""The kernels of this folder are judged: each `flash` passes, each defect of the ledger is killed."""

import importlib.util
import pathlib
import re
import tempfile
import unittest

from attest_kernels import program

HERE = pathlib.Path(__file__).resolve().parent
LEDGER = HERE.parents[1] / "experiments" / "claims" / "defects.yaml"
FUNCTION = re.compile(r"^@takes\ndef (\w+)\(.*\):(?:  # (C\d+)\b)?", re.MULTILINE)
# C6 needs scores below -1e9, where a kernel's own roundings leave no finite bound: an exact law sees it.
ARGUMENTS = {"C6": ["--family", "all_negative", "--law", "hidden_keys_irrelevant"]}
MISSING = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]


def functions_of(file):
    """(name, id of its defect or an empty string) each."""
    return FUNCTION.findall((HERE / file).read_text())


class Ledger(unittest.TestCase):
    def test_every_defect_has_a_row_that_points_here(self):
        rows = dict(re.findall(r"\{id: (C\d+),.*where: (.*)\}$", LEDGER.read_text(), re.MULTILINE))
        for file in ("s0_triton_post.py", "s1_triton_readme.py", "s2_course.py"):
            found = functions_of(file)
            self.assertEqual([name for name, defect in found if not defect], ["flash"])
            for name, defect in found[1:]:
                self.assertIn(f"{{file: examples/python/{file}}}", rows.get(defect, ""), f"{name} has {defect}")


@unittest.skipIf(MISSING, f"{' and '.join(MISSING)} not installed")
class Judged(unittest.TestCase):
    def judge(self, file):
        for name, defect in functions_of(file):
            with self.subTest(function=name, defect=defect), tempfile.TemporaryDirectory() as folder:
                arguments = ["verify", "--python", f"{HERE / file}:{name}", "--out", folder, *ARGUMENTS.get(defect, ())]
                if defect == "C30":
                    with self.assertRaisesRegex(program.ProgramError, "same dtype"):
                        program.run(arguments, may_end_with=(0, 1))
                    continue
                code, text = program.run(arguments, may_end_with=(0, 1, 4))
                self.assertEqual(code, 1 if defect else 0, text)

    def test_s0_triton_post(self):
        self.judge("s0_triton_post.py")

    def test_s1_triton_readme(self):
        self.judge("s1_triton_readme.py")

    def test_s2_course(self):
        self.judge("s2_course.py")


if __name__ == "__main__":
    unittest.main()
