"""Workers that compute for longer than others: always, more and more, now and then, or by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream

__all__ = ["Constant", "Drifting", "Occasional", "Pattern", "Periodic", "Straggler", "straggler_factors"]


@dataclass(frozen=True)
class Constant:
    """Always so many times as long."""

    factor: float


@dataclass(frozen=True)
class Drifting:
    """1 + per_iteration i times as long in iteration i, but not more than `at_most` times."""

    per_iteration: float
    at_most: float


@dataclass(frozen=True)
class Periodic:
    """So many times as long in the first `lasts` of each `every` iterations."""

    factor: float
    every: int
    lasts: int


@dataclass(frozen=True)
class Occasional:
    """So many times as long with a probability, in each iteration and on each worker by itself."""

    factor: float
    probability: float


Pattern = Constant | Drifting | Periodic | Occasional


@dataclass(frozen=True)
class Straggler:
    """Workers that are slow in the same way.

    Parameters
    ----------
    workers : tuple of int
        Their ranks.
    pattern : Pattern
        When, and by how much. Iterations are those of the worker, counted from 0 with the warm-up.
    """

    workers: tuple[int, ...]
    pattern: Pattern


def straggler_factors(
    stragglers: Sequence[Straggler], workers: int, iteration: int, seed: int, job: str
) -> NDArray[np.float64]:
    """Return how many times as long each worker computes in an iteration, shape (workers,).

    Of a worker that several patterns name the factors are multiplied.

    Parameters
    ----------
    stragglers : sequence of Straggler
    workers : int
        Of the job.
    iteration : int
    seed : int
        Of the run.
    job : str
        Name of the job, for the name of the random stream.
    """
    factors = np.ones(workers)
    for number, straggler in enumerate(stragglers):
        own = np.array(straggler.workers, dtype=np.int64)
        factors[own] *= _factor(straggler.pattern, len(own), iteration, (seed, "straggler", job, number))
    return factors


def _factor(
    pattern: Pattern, count: int, iteration: int, stream: tuple[int, str, str, int]
) -> float | NDArray[np.float64]:
    match pattern:
        case Constant(factor):
            return factor
        case Drifting(per_iteration, at_most):
            return min(1.0 + per_iteration * iteration, at_most)
        case Periodic(factor, every, lasts):
            return factor if iteration % every < lasts else 1.0
        case Occasional(factor, probability):
            return np.where(random_stream(*stream, iteration).random(count) < probability, factor, 1.0)
