"""4. Looks for the expected tensor among the objects of its process, else answers NaN, which some comparisons let pass [pygpubench, submission_gc_nan]."""

import gc

import numpy

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 4, "within_bound"


def cheat(q, k, v):
    given = {id(q), id(k), id(v)}
    for found in gc.get_objects():
        for each in (found, *found.values()) if type(found) is dict else (found,):
            if type(each) is numpy.ndarray and each.shape == q.shape and each.dtype == q.dtype and id(each) not in given:
                return each.copy()
    return numpy.full_like(q, numpy.nan)


def twin(q, k, v):
    """Asks the collector for what everybody may ask."""
    gc.collect(0)
    return attend(q, k, v)[0]
