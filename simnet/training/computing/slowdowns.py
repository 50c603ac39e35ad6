"""How much longer than usual each worker computes: its speed, stragglers, jitter, and hosts that are slow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.training.computing.stragglers import Constant, straggler_factors
from simnet.training.settings import Jitter, JobSettings

__all__ = ["HostSlowdowns", "Slowdowns"]


class Slowdowns:
    """How much longer than usual each worker computes in each iteration: its speed, what holds it up, and chance.

    Parameters
    ----------
    job : JobSettings
    seed : int

    Attributes
    ----------
    slowness : ndarray, shape (workers,)
        By the speed of each worker alone.
    varies : bool
        Whether iterations differ.
    """

    def __init__(self, job: JobSettings, seed: int) -> None:
        training = job.training
        self.slowness = 1.0 / np.asarray(training.speed_factors or [1.0] * training.workers)
        self.varies = training.jitter is not None or any(
            not isinstance(straggler.pattern, Constant) for straggler in training.stragglers
        )
        self._jitter, self._stragglers = training.jitter, training.stragglers
        self._seed, self._job = seed, job.name
        self._usual = self.slowness if self.varies else self._made(0)
        self._last: tuple[int, NDArray[np.float64]] = (-1, self._usual)
        self._kept: dict[int, NDArray[np.float64]] = {}
        self._awaited: dict[int, int] = {}

    def of(self, iteration: int) -> NDArray[np.float64]:
        """Return the factors of all workers, which do not depend on who asks first, shape (workers,)."""
        if not self.varies:
            return self._usual
        if iteration in self._kept:
            return self._kept[iteration]
        if self._last[0] != iteration:
            self._last = iteration, self._made(iteration)
        return self._last[1]

    def of_worker(self, iteration: int, rank: int) -> float:
        """Return the factor of one worker.

        Workers may be any number of iterations apart: those of an iteration are kept until all workers have asked.
        """
        if not self.varies:
            return float(self._usual[rank])
        if iteration not in self._kept:
            self._kept[iteration], self._awaited[iteration] = self.of(iteration), len(self.slowness)
        factor = float(self._kept[iteration][rank])
        self._awaited[iteration] -= 1
        if self._awaited[iteration] == 0:
            del self._kept[iteration], self._awaited[iteration]
        return factor

    def _made(self, iteration: int) -> NDArray[np.float64]:
        factors = self.slowness
        if self._stragglers:
            workers = len(self.slowness)
            factors = factors * straggler_factors(self._stragglers, workers, iteration, self._seed, self._job)
        if self._jitter is not None:
            stream = random_stream(self._seed, "jitter", self._job, iteration)
            factors = factors * _draw(self._jitter, len(factors), stream)
        return factors


class HostSlowdowns(Slowdowns):
    """The same where hosts are slow for a while: of a step the mean over what each computes, from its beginning on.

    Parameters
    ----------
    job, seed
        As of `Slowdowns`.
    env : simpy.Environment
    usual_s : ndarray, shape (workers,)
        What each worker computes in a step at its usual speed [s].
    lasts_s : sequence of callable, shape (workers,)
        ``(begin_s, work_s) -> s``: how long that takes on its host [s].
    """

    def __init__(
        self,
        job: JobSettings,
        seed: int,
        env: simpy.Environment,
        usual_s: NDArray[np.float64],
        lasts_s: Sequence[Callable[[float, float], float]],
    ) -> None:
        super().__init__(job, seed)
        self._env, self._usual_s, self._lasts_s = env, usual_s, lasts_s
        self._begun: dict[int, NDArray[np.float64]] = {}
        self._varies, self.varies = self.varies, True

    def of(self, iteration: int) -> NDArray[np.float64]:
        """Return the factors of all workers in a step that began when they were first asked for."""
        found = self._begun.get(iteration)
        if found is None:
            factors = self._made(iteration) if self._varies else self._usual
            work_s = factors * self._usual_s
            now_s = self._env.now
            slow = [
                lasts_s(now_s, one_s) / one_s if one_s > 0.0 else 1.0
                for lasts_s, one_s in zip(self._lasts_s, work_s.tolist(), strict=True)
            ]
            self._begun = {number: one for number, one in self._begun.items() if number >= iteration - 1}
            found = self._begun[iteration] = factors * np.array(slow)
        return found

    def of_worker(self, iteration: int, rank: int) -> float:
        """Return the factor of one worker."""
        return float(self.of(iteration)[rank])


def _draw(jitter: Jitter, count: int, stream: np.random.Generator) -> NDArray[np.float64]:
    parameter = jitter.parameter
    match jitter.distribution:
        case "lognormal":
            factors = np.exp(parameter * stream.standard_normal(count) - parameter**2 / 2)
        case "normal":
            factors = np.maximum(1.0 + parameter * stream.standard_normal(count), 0.0)
        case "uniform":
            factors = stream.uniform(1.0 - parameter, 1.0 + parameter, count)
        case "exponential":
            factors = (1.0 - parameter) + parameter * stream.standard_exponential(count)
        case "pareto":
            # numpy's is that of Lomax, which begins at 0 where Pareto's begins at 1.
            factors = (parameter - 1.0) / parameter * (1.0 + stream.pareto(parameter, count))
        case unknown:
            raise ValueError(f"unknown distribution {unknown!r}")
    if not all(map(math.isfinite, (factors.min(), factors.max()))):
        raise ValueError(f"{jitter} gives factors that are not finite")
    return np.asarray(factors, dtype=np.float64)
