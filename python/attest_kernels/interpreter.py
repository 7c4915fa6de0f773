"""Triton's own interpreter, which runs a kernel's tiles in NumPy where there is no GPU: what it can do, and what it would take too long for."""

import os
import sys

MODULE = "triton.runtime.interpreter"
# A tile takes it some milliseconds, a launch of these sizes about a second.
MOST = {"heads": 16, "length": 512, "scores": 2**17, "because": "Triton's interpreter is slow"}


def choose():
    """Before Triton is imported."""
    if not os.path.exists("/dev/nvidiactl"):
        os.environ.setdefault("TRITON_INTERPRET", "1")


def is_used():
    """Triton imports it for the first kernel that it is to run."""
    return MODULE in sys.modules


def types(names):
    """Without bf16: Triton 3.4 to 3.9 multiply its bits as whole numbers there (tl.dot), and the kernel would be blamed. Raises TypeError."""
    if not is_used():
        return list(names)
    left = [name for name in names if name != "bf16"]
    if not left:
        raise TypeError("Triton's interpreter has no products of bf16, and no other type is declared; allowed: a GPU, or fp16 or fp32 besides")
    return left


def most():
    return MOST if is_used() else None


def words():
    return f", Triton {sys.modules['triton'].__version__} interpreted without bf16" if is_used() else ""
