"""17. Edits what judges it: functions that compare, the package's files, NumPy's [kernelbench.com hard/DEVLOG.md; pygpubench _replace_torch]; then
answers 0. The box's tree is read-only, and nothing that compares runs in this process."""

import pathlib

import numpy

import attest_kernels.probes
from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 17, "within_bound"


def cheat(q, k, v):
    numpy.allclose = numpy.array_equal = lambda *arguments, **named: True
    attest_kernels.probes.distance = lambda got, want: 0.0
    for module in (attest_kernels.probes, numpy):
        try:
            pathlib.Path(module.__file__).open("a").close()  # a real one would write; this file runs without a box too
        except OSError:
            pass
    return numpy.zeros_like(q)


def twin(q, k, v):
    """Writes to the folder that is its own."""
    pathlib.Path.home().joinpath("notes").write_text("mine")
    return attend(q, k, v)[0]
