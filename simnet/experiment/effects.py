"""Which parameter of a sweep matters most: the variance of a number, explained by main effects.

A main effect is what a value of one parameter adds in the mean over all others. The additive model, a constant and one
main effect a parameter, is fitted by least squares; the variance that it explains is shared out among the parameters by
the mean, over all orders in which they can be taken in, of what each explains more than those before it (Lindeman,
Merenda and Gold, *Introduction to Bivariate and Multivariate Analysis*, 1980). On a full grid the order does not
matter, and this is the classical analysis of variance. What the model leaves is interactions, and with several seeds
also chance: the variance between seeds of the same point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simnet.experiment.quantities import as_numbers

__all__ = ["CHANCE", "INTERACTIONS", "Effects", "main_effects"]

INTERACTIONS = "interactions"
"""What is left to interactions of parameters."""

CHANCE = "chance (seeds)"
"""What differs between seeds of the same point."""

_MOST_PARAMETERS = 10
_MOST_LEVELS = 8
_GROUPS = 5
_DECADE = 10.0


@dataclass(frozen=True, eq=False)
class Effects:
    """How the variance of a number is explained.

    Attributes
    ----------
    column : what varies
    shares : of the variance, by parameter, then `INTERACTIONS` and `CHANCE`; they add up to 1
    is_log : whether it is the variance of the logarithm, because the number spans decades
    grouped : parameters with so many values that these were put into groups of about as many points each
    """

    column: str
    shares: dict[str, float]
    is_log: bool
    grouped: tuple[str, ...]

    @property
    def order(self) -> list[str]:
        """The parameters, the one that explains most first."""
        names = [name for name in self.shares if name not in (INTERACTIONS, CHANCE)]
        return sorted(names, key=lambda name: -self.shares[name])


def main_effects(frame: pd.DataFrame, parameters: Sequence[str], column: str) -> Effects | None:
    """Return how much of the variance of a number each parameter explains.

    Parameters
    ----------
    frame : DataFrame
        One row a point and seed.
    parameters : sequence of str
        Columns with the values of the parameters, at most ten.
    column : str
        The number; rows where it is not finite are left out.

    Returns
    -------
    Effects or None
        None where nothing varies, or there are too many parameters.
    """
    numbers = frame[column].to_numpy(dtype=np.float64)
    frame = frame[np.isfinite(numbers)]
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < 2 or not 0 < len(parameters) <= _MOST_PARAMETERS:
        return None
    is_log = bool(numbers.min() > 0 and numbers.max() / numbers.min() >= _DECADE)
    numbers = np.log(numbers) if is_log else numbers
    deviations = numbers - numbers.mean()
    whole = float(deviations @ deviations)
    if whole <= len(numbers) * (1e-12 * float(np.abs(numbers).max())) ** 2:
        return None
    levels: dict[str, NDArray[np.int64]] = {}
    grouped: list[str] = []
    for parameter in parameters:
        codes = pd.factorize(frame[parameter], use_na_sentinel=False)[0]
        values = as_numbers(frame[parameter]) if codes.max() + 1 > max(_MOST_LEVELS, len(codes) // 4) else None
        if values is not None:
            codes = pd.factorize(pd.qcut(values, _GROUPS, duplicates="drop"))[0]
            grouped.append(parameter)
        levels[parameter] = codes.astype(np.int64)
    explained = {
        names: _explained([levels[name] for name in names], deviations) / whole
        for size in range(len(parameters) + 1)
        for names in combinations(parameters, size)
    }
    shares = {parameter: _share(parameter, tuple(parameters), explained) for parameter in parameters}
    cells = frame.groupby(list(parameters), sort=False, dropna=False).ngroup().to_numpy().astype(np.int64)
    of_cells = _explained([cells], deviations) / whole
    additive = explained[tuple(parameters)]
    # Groups of values tell points of one group not apart: then what is left is all that is left.
    shares[INTERACTIONS] = max(of_cells - additive, 0.0)
    if cells.max() + 1 < len(cells):
        shares[CHANCE] = max(1.0 - of_cells, 0.0)
    return Effects(column, shares, is_log, tuple(grouped))


def _share(parameter: str, parameters: tuple[str, ...], explained: dict[tuple[str, ...], float]) -> float:
    """Return the mean over all orders of what a parameter explains more than those before it."""
    others = [name for name in parameters if name != parameter]
    total = 0.0
    for size in range(len(others) + 1):
        weight = 1.0 / (len(parameters) * math.comb(len(others), size))
        for before in combinations(others, size):
            together = tuple(name for name in parameters if name == parameter or name in before)
            total += weight * (explained[together] - explained[before])
    return max(total, 0.0)


def _explained(levels: Sequence[NDArray[np.int64]], deviations: NDArray[np.float64]) -> float:
    """Return the sum of squares that the additive model of some parameters explains."""
    if not levels:
        return 0.0
    if len(levels) == 1:
        sums = np.bincount(levels[0], weights=deviations)
        return float((sums**2 / np.bincount(levels[0])).sum())
    columns = [codes[:, np.newaxis] == np.arange(codes.max() + 1)[np.newaxis, :] for codes in levels]
    design = np.concatenate(columns, axis=1).astype(np.float64)
    # The normal equations are small, whatever the number of points.
    solution = np.linalg.lstsq(design.T @ design, design.T @ deviations, rcond=1e-10)[0]
    return float(solution @ (design.T @ deviations))
