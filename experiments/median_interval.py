"""The median of a few measurements, and how well it is known."""

import math
import statistics

FEWEST_VALUES = 6  # of five values not even the extremes hold the median with 95 % confidence


def median_interval(values):
    """Median, and the two order statistics nearest to it that hold the true median with at least 95 % confidence.

    No distribution is assumed: each value lies below the true median with probability 1/2 (sign test). Needs
    FEWEST_VALUES values.
    """
    n = len(values)
    if n < FEWEST_VALUES:
        raise ValueError(f"{n} values; at least {FEWEST_VALUES} are needed")
    ordered = sorted(values)
    outside, below = 0.0, 0  # outside: the chance that fewer than `below` + 1 values lie under the true median
    while outside + math.comb(n, below) / 2**n <= 0.025:
        outside += math.comb(n, below) / 2**n
        below += 1
    return statistics.median(ordered), ordered[below - 1], ordered[n - below]
