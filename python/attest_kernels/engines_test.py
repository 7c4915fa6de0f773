"""A campaign in parts judges the cases of the whole one, wherever its parts run."""

import concurrent.futures
import pathlib
import tempfile
import unittest

import attest_kernels
from attest_kernels import program
from attest_kernels.testing import functions


class Here(concurrent.futures.Executor):
    """Does what it is given when it is given it; `loses` so many first tasks, as if their workers had died."""

    def __init__(self, loses=0):
        self.loses, self.tasks = loses, 0

    def submit(self, task, *arguments):
        future = concurrent.futures.Future()
        self.tasks += 1
        try:
            if self.tasks <= self.loses:
                raise ConnectionError("the worker is gone")
            future.set_result(task(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class Engines(unittest.TestCase):
    def test_parts_together_judge_as_many_cases_as_the_whole(self):
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            report = attest_kernels.verify(functions.right, cases=20, jobs=1, executor=executor, parts=2)
        self.assertTrue(report.passed, report.text)
        self.assertEqual(report.cases, attest_kernels.verify(functions.right, cases=20).cases)

    def test_a_part_whose_worker_is_lost_is_done_again(self):
        executor = Here(loses=2)
        self.assertTrue(attest_kernels.verify(functions.right, cases=6, executor=executor, parts=2).passed)
        self.assertEqual(executor.tasks, 4)
        with self.assertRaisesRegex(ConnectionError, "the worker is gone"):
            attest_kernels.verify(functions.right, cases=2, executor=Here(loses=100), parts=1)

    def test_a_failure_cancels_the_rest_and_replays_here(self):
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(1) as executor:
            report = attest_kernels.verify(functions.last_key_dropped, cases=90, jobs=1, out=folder, executor=executor, parts=3)
            self.assertEqual(report.verdict, "failed", report.text)
            self.assertLess(report.cases, 90)
            self.assertEqual(pathlib.Path(report.failures[0].replay).parent, pathlib.Path(folder) / "counterexamples")
            self.assertIn("reproduced", program.run(["replay", report.failures[0].replay], may_end_with=(1,))[1])

    def test_what_cannot_be_judged_is_said_as_it_is_without_an_engine(self):
        with self.assertRaisesRegex(program.ProgramError, "no function 'nobody'"):
            attest_kernels.verify(f"{functions.__file__}:nobody", executor=Here(), parts=1)
        with self.assertRaisesRegex(ValueError, "seconds is 5 with an executor"):
            attest_kernels.verify(functions.right, seconds=5, executor=Here())


if __name__ == "__main__":
    unittest.main()
