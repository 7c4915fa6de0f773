"""Tests growth.py with a made-up tree and a made-up build."""

import contextlib
import io
import pathlib
import subprocess
import tempfile
import unittest

import growth

LOG = """# ninja log v5
0\t9000\t1\tcore/CMakeFiles/attest_core.dir/a.cpp.o\taa
9000\t9500\t1\tgone/CMakeFiles/attest_gone.dir/a.cpp.o\tbb
0\t2500\t1\tgenerated/one.cpp\tcc
0\t2500\t1\tgenerated/two.cpp\tcc
10000\t12000\t2\tcore/CMakeFiles/attest_core.dir/a.cpp.o\tdd
12000\t12010\t2\tplugin/CMakeFiles/plugin.dir/a.c.o\tee
"""
TESTS = """<testsuite tests="4">
<testcase name="a.quick" time="0.1" status="run"><system-out>over 20 s</system-out></testcase>
<testcase name="a.long" time="6.7" status="fail"/>
<testcase name="a.slow" time="21" status="run"/>
<testcase name="a.skipped" time="0" status="notrun"/>
</testsuite>"""
SYMBOLS = {
    "one.cu.o": ["attest::(anonymous namespace)::one(attest::Arguments)"],
    "d64.cu.o": ["void attest::two<(attest::Executor)1, attest::Shape<attest::Half<&attest::bits>, 64, 4>, (attest::S::V)1>(attest::Arguments, attest::Launch)",
                 "void attest::two<(attest::Executor)1, attest::Shape<float, 64, 4>, (attest::S::V)1>(attest::Arguments, attest::Launch)",
                 "attest::two<(attest::Executor)1, attest::Shape<float, 64, 4>, (attest::S::V)1>(attest::Arguments)::{lambda(attest::At const&)#1}::operator()(attest::At const&) const",
                 "void attest::two<(attest::Executor)1, attest::Shape<float, 64, 4>, (attest::S::V)1>(attest::Arguments) [clone .cold]",
                 "void attest::launch_two<float>(void (*)(attest::Arguments), attest::Arguments const&)",
                 "void attest::commented_out<float>(attest::Arguments)"],
    "gone.cu.o": ["attest::(anonymous namespace)::one(attest::Arguments)"],
}


def listed(found):
    return SYMBOLS[found.name]


class Growth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build, self.document = self.root / "build", self.root / "CONTRIBUTING.md"
        self.write("gpu/kernels/one.cu", "__global__ void one(Arguments a) {")
        self.write("gpu/kernels/two/d64.cu", "")
        self.write("gpu/kernels/two/two.cuh", "// __global__ void commented_out(A a)\n__global__ void __launch_bounds__(Shape::threads, blocks(4) * 2)\n    two(Arguments a) {")
        for name in SYMBOLS:
            self.write(f"build/{growth.EXECUTOR}kernels/{'two/' if name == 'd64.cu.o' else ''}{name}", "")
        for name in ("core/CMakeFiles/attest_core.dir/a.cpp.o", "plugin/CMakeFiles/plugin.dir/a.c.o", "generated/one.cpp", "generated/two.cpp"):
            self.write(f"build/{name}", "")
        self.write("build/.ninja_log", LOG)
        self.write("build/tests.xml", TESTS)
        self.commit("nothing yet\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, table):
        self.document.write_text(f"# Before\n<!-- table: growth -->\n{table}<!-- end of table -->\nafter\n")

    def ran(self, *options):
        """(exit code, stdout, stderr)"""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = growth.main([str(self.build), *options], self.root, self.document, listed)
        return code, out.getvalue(), err.getvalue()

    def test_a_step_counts_once_as_last_run_and_not_when_its_output_is_gone(self):
        self.assertEqual(growth.seconds_of_targets(self.build),
                         {"attest_core": (1, 2.0), "linking, generating, finding tests": (1, 2.5), "plugin": (1, 0.01)})

    def test_instances_are_kernels_and_not_what_stands_in_or_around_them(self):
        self.assertEqual(growth.instances_of_kernels(self.root, self.build, listed), {"one": 1, "two": 2})

    def test_nm_shows_what_an_object_defines(self):
        found = self.root / "made.o"
        subprocess.run(["as", "-o", found], input=".globl _ZN6attest3oneEv\n_ZN6attest3oneEv: nop\n.quad _ZN6attest3twoEv\n", text=True, check=True)
        self.assertEqual(growth.symbols(found), ["attest::one()"])

    def test_the_table_has_seconds_instances_and_tests(self):
        code, out, err = self.ran()
        self.assertEqual((code, err), (0, ""))
        for row in ("| linking, generating, finding tests | 1 | 2 |\n| attest_core | 1 | 2 |\n| others: 1 | 1 | 0 |\n| all | 3 | 5 |",
                    "| one | 1 |\n| two | 2 |\n| all | 3 |", "| tests in all | 3 |\n| tests over 5 s | 2 |\n| tests over 20 s | 1 |",
                    "| a.slow | 21 |\n| a.long | 7 |"):
            self.assertIn(row, out)

    def test_a_count_that_grew_fails_and_a_time_does_not(self):
        self.assertEqual(self.ran("--write")[0], 0)
        self.assertEqual(self.ran()[::2], (0, ""))
        table = growth.committed_table(self.document)
        for now, committed, said in (("| two | 2 |", "| two | 1 |", "growth: instances of two: 2, committed 1\n"),
                                     ("| one | 1 |\n", "", "growth: instances of one: 1, committed 0\n"),
                                     ("| tests over 20 s | 1 |", "| tests over 20 s | 0 |", "growth: tests over 20 s: 1, committed 0\n"),
                                     ("| two | 2 |", "| two | 3 |", ""), ("| all | 3 |\n", "| all | 2 |\n", ""),
                                     ("| attest_core | 1 | 2 |", "| attest_core | 1 | 1 |", ""),
                                     ("| tests over 5 s | 2 |", "| tests over 5 s | 1 |", ""), ("| a.slow | 21 |", "| a.slow | 5 |", "")):
            self.assertIn(now, table)
            self.commit(table.replace(now, committed))
            self.assertEqual(self.ran()[::2], (1 if said else 0, said), committed)

    def test_writing_changes_nothing_around_the_table(self):
        self.ran("--write")
        text = self.document.read_text()
        self.assertTrue(text.startswith("# Before\n<!-- table: growth -->\nAt ") and text.endswith("|\n<!-- end of table -->\nafter\n"), text)

    def test_bad_input_gets_one_line_and_2(self):
        for name, text, said in ((".ninja_log", None, "there is no .ninja_log; wanted"), (".ninja_log", "", "the first line is ''"),
                                 (".ninja_log", LOG + "x\n", "line 8"), ("tests.xml", None, "there is no tests.xml"),
                                 ("tests.xml", "<a>", "no report of ctest"), ("tests.xml", "<a/>", "no test ran"),
                                 ("tests.xml", "<a><testcase/></a>", "no report of ctest"), ("../CONTRIBUTING.md", "x", "0 tables"),
                                 ("../gpu/kernels", None, "no object of a kernel")):
            with self.subTest(name=name, text=text):
                self.setUp()
                path = self.build / name
                if text is None:
                    path.rename(self.root / "away")
                else:
                    path.write_text(text)
                code, out, err = self.ran()
                self.assertEqual((code, out, err.count("\n")), (2, "", 1))
                self.assertIn(said, err)

    def test_an_unknown_option_gets_one_line_and_2(self):
        with contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as ended:
            growth.main(["x", "--bogus"])
        self.assertEqual((ended.exception.code, err.getvalue().count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()
