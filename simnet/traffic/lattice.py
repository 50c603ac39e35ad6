"""Counts the points of a lattice under a line: how many of very many firings carry a longer chunk, without a loop.

Firing k of a send carries the chunks from ``first + k step mod modulus`` on. How often that is below a threshold is a
difference of two sums of rounded fractions, and such sums take as few turns as Euclid's algorithm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["firings_below", "floor_sum"]

Integers = NDArray[np.int64]


def firings_below(
    repeat: Integers, first: Integers, step: Integers, modulus: Integers, threshold: Integers
) -> Integers:
    """Count the firings k < `repeat` with ``(first + k step) mod modulus < threshold <= modulus``."""
    first, step = first % modulus, step % modulus
    above = floor_sum(repeat, modulus, step, first + modulus - threshold) - repeat
    return floor_sum(repeat, modulus, step, first) - above


def floor_sum(count: Integers, divisor: Integers, slope: Integers, start: Integers) -> Integers:
    """Return the sum of ``floor((slope k + start) / divisor)`` over k < `count`, for numbers that are not negative.

    Counts lattice points under a line as Euclid's algorithm goes; R. Graham, D. Knuth, O. Patashnik, *Concrete
    Mathematics* (1994), section 3.5. Takes a number of turns that is logarithmic in the divisor.
    """
    total = np.zeros(count.shape, dtype=np.int64)
    count, divisor, slope, start = (np.array(column, dtype=np.int64) for column in (count, divisor, slope, start))
    some = np.flatnonzero(count > 0)
    while some.size:
        n, m, a, b = count[some], divisor[some], slope[some], start[some]
        total[some] += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        top = a * n + b
        count[some], divisor[some], slope[some], start[some] = top // m, a, m, top % m
        some = some[top >= m]
    return total
