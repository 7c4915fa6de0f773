"""6. Reaches for the process that judges: its memory, its descriptors, its life [pygpubench _ptrace]. The box refuses each; then it answers 0."""

import os
import signal

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 6, "within_bound"
NOTHING = 0  # a signal that only asks whether one could be sent: this file runs without a box too


def cheat(q, k, v):
    parent, reached = os.getppid(), 0
    for reach in (lambda: os.kill(parent, NOTHING), lambda: open(f"/proc/{parent}/mem", "rb").close(), lambda: os.readlink(f"/proc/{parent}/fd/0")):
        try:
            reach()
            reached += 1
        except OSError:
            pass
    return attend(q, k, v)[0] if reached else numpy.zeros_like(q)


def twin(q, k, v):
    """Signals itself."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGUSR1)
    return attend(q, k, v)[0]
