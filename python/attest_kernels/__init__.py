"""Is an attention kernel right, and how accurate is it? Judged against exact arithmetic, element by element.

assert_attention and assert_gradients stand in tests, and given(problems()) draws what these ask; bound gives the tolerance to whoever has a test of
his own; verify judges a function by all laws, on inputs that it draws, and shrinks what fails; kernel says what a function takes. From the command
line: attest-kernels, or python -m attest_kernels."""

from attest_kernels.asserting import Bound, WrongAttention, assert_attention, assert_gradients, bound
from attest_kernels.declaring import kernel
from attest_kernels.drawing import given, problems
from attest_kernels.verifying import Report, verify

__all__ = ["Bound", "Report", "WrongAttention", "assert_attention", "assert_gradients", "bound", "given", "kernel", "problems", "verify"]
