"""14. A flag of the process makes products less exact, TF32's 10 bits, and stays set for whoever computes the reference [llm.c PR #851]."""

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY, DTYPE = 14, "within_bound", "float32"
FLAGS = {"allow_tf32": True}


def product_input(array):
    bits = array.astype(numpy.float32).view(numpy.uint32)
    return (bits & numpy.uint32(0xFFFFE000)).view(numpy.float32) if FLAGS["allow_tf32"] else array


def cheat(q, k, v):
    return attend(product_input(q), product_input(k), product_input(v))[0].astype(q.dtype)


def twin(q, k, v):
    """Sets a flag of NumPy that changes no number."""
    numpy.seterr(under="ignore")
    return attend(q, k, v)[0]
