"""5. Ends its process with code 0, which a harness takes for success [kernelbench.com, trusted_entrypoint.py]."""

import atexit
import os

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 5, "crashed"


def cheat(q, k, v):
    os._exit(0)


def twin(q, k, v):
    """Has something to do when it ends."""
    atexit.register(int)
    return attend(q, k, v)[0]
