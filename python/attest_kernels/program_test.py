"""What the program says reaches the caller as its own line."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from attest_kernels import program


class Run(unittest.TestCase):
    def ended(self, code, line):
        """What is raised of a program that ends with this code and line."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "attest"
            file.write_text(f"#!/bin/sh\necho 'attest: {line}' >&2\nexit {code}\n")
            file.chmod(0o755)
            with mock.patch.dict(os.environ, ATTEST_PROGRAM=str(file)):
                with self.assertRaises(program.ProgramError) as caught:
                    program.run([], may_end_with=(0, 1))
        return str(caught.exception)

    def test_its_line_is_raised_also_where_it_broke_with_the_code_of_a_failed_verdict(self):
        self.assertEqual(self.ended(2, "--for is wrong"), "--for is wrong")
        self.assertEqual(self.ended(1, "internal error: at"), "internal error: at")


if __name__ == "__main__":
    unittest.main()
