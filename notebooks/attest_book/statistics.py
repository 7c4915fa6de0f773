"""Comparing medians that come with an interval."""

import math


def ratio_interval(a, b):
    """(ratio, low, high) of a / b, each (median > 0, low, high). The ends hold whatever the dependence between the two: when each
    interval covers its median 95 % of the time, this one covers the ratio of medians at least 90 %. NaN stays NaN. An interval from 0
    to infinity, of too few rounds, gives one."""
    return a[0] / b[0], a[1] / b[2], a[2] / b[1] if b[1] != 0 else math.inf


def side(low, high):
    """Where an interval of a ratio lies: 1 above one, -1 below, 0 when it holds one or is not known."""
    if low > 1.0:
        return 1
    return -1 if high < 1.0 else 0


def geometric_mean(ratios):
    """Of positive numbers; NaN of none."""
    ratios = list(ratios)
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios)) if ratios else math.nan
