"""Functions of shared libraries are judged by tvm-ffi."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import attest_kernels
from attest_kernels import program
from attest_kernels.testing.asking import lines_of

SOURCE = pathlib.Path(__file__).resolve().parent / "testing" / "compiled.cc"
MISSING = [name for name, found in (("tvm-ffi", importlib.util.find_spec("tvm_ffi")), ("g++", shutil.which("g++"))) if not found]


@unittest.skipIf(MISSING, f"{' and '.join(MISSING)} not installed")
class Compiled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.library = pathlib.Path(cls.folder.name) / "compiled.so"
        config = [sys.executable, "-m", "tvm_ffi.config"]
        options = [word for which in ("--cxxflags", "--ldflags", "--libs")
                   for word in subprocess.run([*config, which], capture_output=True, text=True, check=True).stdout.split()]
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(cls.library), *options], check=True)

    def test_the_order_of_parameters_is_found(self):
        for name, order in (("attend", "q, k, v, scale, o"), ("attend_without_the_last_key", "q, k, v, o, scale")):
            self.assertIn(f"{name}({order} [B,H,N,D]); LSE", lines_of(f"{self.library}:{name}")[-1]["convention"])
        self.assertIn("no function 'nobody' of tvm-ffi in compiled.so", lines_of(f"{self.library}:nobody")[-1]["error"])

    def test_a_right_function_passes_and_a_dropped_key_is_shrunk_and_replays(self):
        self.assertTrue(attest_kernels.verify(f"{self.library}:attend", cases=10).passed)
        report = attest_kernels.verify(f"{self.library}:attend_without_the_last_key", cases=20)
        self.assertRegex(report.failures[0].problem, r"^b1 h1/1 q1 k9 d1 none fp32")
        self.assertIn("reproduced", program.run(["replay", report.failures[0].replay], may_end_with=(1,))[1])


if __name__ == "__main__":
    unittest.main()
