"""Points drawn at random between bounds, by a Latin hypercube.

M. McKay, R. Beckman, W. Conover, "A comparison of three methods for selecting values of input variables in the analysis
of output from a computer code", Technometrics 21 (1979): each range is cut into as many parts as there are points, and
each part has exactly one of them, in an order that is drawn for each range by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from simnet.engine.random_streams import random_stream
from simnet.errors import InputError, Problem
from simnet.scenario.fields import shown
from simnet.scenario.sweep.models import SampleSpec

__all__ = ["draw_points"]

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ/]+)\s*")


def draw_points(spec: SampleSpec) -> list[dict[str, Any]]:
    """Return the points of a sample, each with a value by path.

    Raises
    ------
    InputError
        Bounds that are no numbers, or in the wrong order; all of them, with paths below the section ``sample``.
    """
    problems: list[Problem] = []
    scales: dict[str, Callable[[float], Any]] = {}
    for kind, bounds in (("linear", spec.linear), ("log", spec.log)):
        for path, (lowest, highest) in (bounds or {}).items():
            try:
                scales[path] = _scale(lowest, highest, is_log=kind == "log")
            except InputError as error:
                problems += [problem.under(kind, path) for problem in error.problems]
    for path, values in (spec.among or {}).items():
        scales[path] = _choice(values)
    if not scales and not problems:
        problems.append(Problem("sample has none of linear, log and among", "what is drawn is wanted"))
    if problems:
        raise InputError(problems)
    drawn = {path: [scale(place) for place in _places(spec.points, spec.seed, path)] for path, scale in scales.items()}
    return [{path: values[number] for path, values in drawn.items()} for number in range(spec.points)]


def _places(points: int, seed: int, path: str) -> Sequence[float]:
    """Return one place between 0 and 1 in each of as many equal parts, in random order."""
    stream = random_stream(seed, "sample", path)
    found: list[float] = ((stream.permutation(points) + stream.random(points)) / points).tolist()
    return found


def _choice(values: Sequence[Any]) -> Callable[[float], Any]:
    return lambda place: values[min(int(place * len(values)), len(values) - 1)]


def _scale(lowest: Any, highest: Any, *, is_log: bool) -> Callable[[float], Any]:
    """Return the value at each place between two bounds."""
    low, unit = _number(lowest)
    high, other = _number(highest)
    if unit != other:
        raise InputError(Problem(f"{shown(lowest)} and {shown(highest)} differ in their unit", "one unit is wanted"))
    if not low < high:
        raise InputError(Problem(f"{shown(lowest)} is not below {shown(highest)}", "the lower one comes first"))
    if is_log and low <= 0:
        raise InputError(Problem(f"{shown(lowest)} is not above 0", "decades have no beginning at 0: use linear"))

    def at(place: float) -> float:
        return math.exp(math.log(low) + place * math.log(high / low)) if is_log else low + place * (high - low)

    if unit:
        return lambda place: f"{at(place):.6g} {unit}"
    if isinstance(lowest, int) and isinstance(highest, int):
        # Each whole number has as much room as any other, the bounds as well.
        return lambda place: (
            min(max(round(at(place)), lowest), highest) if is_log else lowest + int(place * (highest - lowest + 1))
        )
    return at


def _number(value: Any) -> tuple[float, str]:
    """Return a bound as a number and its unit, which numbers have none of."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value), ""
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise InputError(Problem(f"{shown(value)} is no bound", "a number is wanted, or a quantity such as '10 us'"))
    return float(found[1]), found[2]
