"""usage: wheel_test.py PROGRAM: from a wheel that is installed into an empty environment to a shrunk counterexample. Nothing is compiled or downloaded;
NumPy and pytest are those of the environment that runs this."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.path.abspath(sys.argv.pop())
MEBIBYTE = 2 ** 20
# Reads every key but the last of more than 40.
KERNEL = """
import numpy
def flash(q, k, v):
    keys = k.shape[2] - 1 if k.shape[2] > 40 else k.shape[2]
    k, v = k[:, :, :keys], v[:, :, :keys]
    scores = q.astype(numpy.float32) @ k.astype(numpy.float32).swapaxes(2, 3) * q.shape[3] ** -0.5
    weights = numpy.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    total = weights.sum(-1, keepdims=True)
    return (weights @ v.astype(numpy.float32) / numpy.where(total > 0, total, 1)).astype(q.dtype)
"""
VERIFY = """
import sys, attest_kernels
report = attest_kernels.verify("my_kernel.py:flash", cases=20)
print(attest_kernels.__file__, report.verdict, report.failures[0].problem, sep="|")
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        # As a user has it: nothing that tells where this tree is.
        cls.environment = {name: value for name, value in os.environ.items() if not name.startswith(("ATTEST_", "PYTHON"))}
        cls.run_here(HERE / "make_wheel", PROGRAM, cls.folder)
        cls.wheel, = cls.folder.glob("*.whl")
        cls.run_here(sys.executable, "-m", "venv", "--without-pip", cls.folder / "venv")
        cls.python = cls.folder / "venv/bin/python"
        cls.run_here(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", cls.python, "install", "--quiet", "--no-index", "--no-deps", cls.wheel)
        packages, = cls.folder.glob("venv/lib/python*/site-packages")
        (packages / "of_another.pth").write_text(sysconfig.get_path("purelib"))
        (cls.folder / "my_kernel.py").write_text(KERNEL)

    @classmethod
    def run_here(cls, *command, code=0):
        done = subprocess.run([str(word) for word in command], cwd=cls.folder, env=cls.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_is_for_every_python_3_and_holds_program_and_worker(self):
        self.assertRegex(self.wheel.name, r"^attest_kernels-[0-9.]+-py3-none-manylinux_2_34_x86_64\.whl$")
        # Package indices take files up to 100 MiB.
        has_code_for_a_gpu = ".nv_fatbin " in self.run_here("readelf", "--sections", "--wide", PROGRAM)
        self.assertLess(self.wheel.stat().st_size, (100 if has_code_for_a_gpu else 20) * MEBIBYTE)
        names = set(zipfile.ZipFile(self.wheel).namelist())
        self.assertLessEqual({"attest_kernels/bin/attest", "attest_kernels/worker.py", "attest_kernels/__init__.py"}, names)
        self.assertEqual([name for name in names if name.endswith("_test.py") or "testing" in name], [])

    def test_command_shrinks_a_wrong_kernel(self):
        said = self.run_here(self.folder / "venv/bin/attest-kernels", "verify", "--python", "my_kernel.py:flash", "--cases", "20", code=1)
        self.assertRegex(said, r"\n  problem +b1 h1/1 q1 k41 d1 ")
        replay = next(line.split()[-1] for line in said.splitlines() if line.startswith("  replay   attest-kernels replay "))
        self.assertIn("reproduced", self.run_here(self.folder / "venv/bin/attest-kernels", "replay", replay, code=1))

    def test_function_verify_shrinks_it_too(self):
        where, verdict, problem = self.run_here(self.python, "-c", VERIFY).strip().split("|")
        self.assertTrue(pathlib.Path(where).is_relative_to(self.folder / "venv"), where)
        self.assertEqual(verdict, "failed")
        self.assertRegex(problem, "^b1 h1/1 q1 k41 d1 ")

    def test_pytest_finds_the_plugin_and_shows_what_fails(self):
        said = self.run_here(self.python, "-m", "pytest", "--attest-kernels", "my_kernel.py:flash", code=1)
        self.assertRegex(said, r"(?s)failed after \d+ cases, shrunk to\n.*\n  problem  b1 h1/1 q1 k41 d1 .*\n  replay   attest-kernels replay ")

    def test_without_a_program_it_says_so(self):
        program = self.python.parent.parent / "nothing"
        self.environment["ATTEST_PROGRAM"] = str(program)
        self.addCleanup(self.environment.pop, "ATTEST_PROGRAM")
        self.run_here(self.python, "-m", "attest_kernels", "list", code=3)


if __name__ == "__main__":
    unittest.main()
