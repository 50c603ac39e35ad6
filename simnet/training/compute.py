"""How long each worker computes in each iteration, and when it has come how far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.training.plan import Plan
from simnet.training.settings import Jitter, JobSettings
from simnet.workload import RecordedTrace, Workload

__all__ = ["ComputeTimes", "Stretches", "compute_times"]


class ComputeTimes(Protocol):
    """How long workers compute.

    A *timeline* is what a worker has computed at the end of each stretch of its plan since the start of the iteration,
    without what it waited meanwhile, not decreasing, shape (stretches,) [s].
    """

    def timeline(self, iteration: int, rank: int) -> Sequence[float]:
        """Return what one worker does in one iteration."""

    def slowest(self, iteration: int) -> Sequence[float]:
        """Return when the last worker has reached each moment, if all begin at once."""

    def quickest(self, iteration: int) -> Sequence[float]:
        """Return when the first worker has reached each moment, if all begin at once."""

    def fastest_s(self, iterations: Sequence[int]) -> float:
        """Return the mean time over some iterations that the fastest worker computes the model, without jitter [s]."""

    def extra_s(self, iterations: Sequence[int]) -> float:
        """Return the mean time over workers and some iterations that is computed besides the model [s]."""


def compute_times(job: JobSettings, plan: Plan, seed: int) -> ComputeTimes:
    """Return the compute times of a job, from a table or as recorded."""
    if isinstance(job.workload, RecordedTrace):
        return _Recorded(job.workload, plan, job.training.workers)
    assert isinstance(job.workload, Workload)
    return _Modelled(job.workload, plan, job, seed)


class Stretches:
    """How much longer than usual each worker computes in each iteration.

    Parameters
    ----------
    job : JobSettings
    seed : int
    """

    def __init__(self, job: JobSettings, seed: int) -> None:
        training = job.training
        self.slowness = 1.0 / np.asarray(training.speed_factors or [1.0] * training.workers)
        self.varies = training.jitter is not None
        self._jitter = training.jitter
        self._stream = (seed, "jitter", job.name)
        self._factors: dict[int, NDArray[np.float64]] = {}

    def of(self, iteration: int) -> NDArray[np.float64]:
        """Return the factors of all workers, which do not depend on who asks first, shape (workers,)."""
        if self._jitter is None:
            return self.slowness
        found = self._factors.get(iteration)
        if found is None:
            # In step, workers are at most one iteration apart.
            for old in [number for number in self._factors if number < iteration - 1]:
                del self._factors[old]
            drawn = _draw(self._jitter, len(self.slowness), random_stream(*self._stream, iteration))
            found = self._factors[iteration] = self.slowness * drawn
        return found


class _Modelled:
    """The same timeline for all, stretched by each worker's speed and by jitter."""

    def __init__(self, workload: Workload, plan: Plan, job: JobSettings, seed: int) -> None:
        forward_s = float(workload.forward_s.sum())
        ready = np.asarray(workload.tensor_ready_s)
        self._total_s = workload.compute_time_s
        times = {
            "forward": np.concatenate([[0.0], np.cumsum(workload.forward_s)]),
            "ready": forward_s + ready,
            "gradients": np.array([self._total_s]),
            "end": np.array([self._total_s]),
        }
        moments = np.array([times[moment.kind][moment.place] for moment in plan.moments])
        self._moments_s = np.maximum.accumulate(np.minimum(moments, self._total_s)) + plan.extra_s
        self._extra_s = plan.extra_s[-1]
        self._stretches = Stretches(job, seed)
        self._timelines: dict[float, Sequence[float]] = {}

    def timeline(self, iteration: int, rank: int) -> Sequence[float]:
        stretch = float(self._stretches.of(iteration)[rank])
        if self._stretches.varies:
            return self._stretched(stretch)
        found = self._timelines.get(stretch)
        if found is None:
            found = self._timelines[stretch] = self._stretched(stretch)
        return found

    def slowest(self, iteration: int) -> Sequence[float]:
        return self._stretched(float(self._stretches.of(iteration).max()))

    def quickest(self, iteration: int) -> Sequence[float]:
        return self._stretched(float(self._stretches.of(iteration).min()))

    def fastest_s(self, iterations: Sequence[int]) -> float:  # noqa: ARG002
        return self._total_s * float(self._stretches.slowness.min())

    def extra_s(self, iterations: Sequence[int]) -> float:
        if not self._extra_s:
            return 0.0
        return self._extra_s * float(np.mean([self._stretches.of(iteration) for iteration in iterations]))

    def _stretched(self, stretch: float) -> Sequence[float]:
        moments: list[float] = (self._moments_s * stretch).tolist()
        return moments


class _Recorded:
    """Each iteration as it was recorded; a run that is longer than the recording begins it anew."""

    def __init__(self, trace: RecordedTrace, plan: Plan, workers: int) -> None:
        self._trace = trace
        self._moments = plan.moments
        self._extra_s = plan.extra_s
        self._workers = workers

    def timeline(self, iteration: int, rank: int) -> Sequence[float]:
        trace, number, rank = self._trace, iteration % self._trace.iterations, rank % self._trace.ranks
        step = trace.step(number, rank)
        # Layers are recorded in an order of their own; a moment is when all that belong to it are over.
        forward = np.concatenate([[0.0], np.maximum.accumulate(trace.forward_end_s[number, rank])])
        times = {
            "forward": forward,
            "ready": np.asarray(step.tensor_ready_s),
            "gradients": np.array([step.total_s - step.optimizer_s]),
            "end": np.array([step.total_s]),
        }
        moments = np.array([times[moment.kind][moment.place] for moment in self._moments])
        result: list[float] = (np.maximum.accumulate(moments) + self._extra_s).tolist()
        return result

    def slowest(self, iteration: int) -> Sequence[float]:
        return self._extreme(iteration, np.max)

    def quickest(self, iteration: int) -> Sequence[float]:
        return self._extreme(iteration, np.min)

    def _extreme(self, iteration: int, take: Callable[..., Any]) -> Sequence[float]:
        """Return the latest or earliest of each moment."""
        timelines = [self.timeline(iteration, rank) for rank in range(min(self._workers, self._trace.ranks))]
        moments: list[float] = take(timelines, axis=0).tolist()
        return moments

    def fastest_s(self, iterations: Sequence[int]) -> float:
        ranks = range(min(self._workers, self._trace.ranks))
        everything_s = min(float(np.mean([self.timeline(i, rank)[-1] for i in iterations])) for rank in ranks)
        return everything_s - self._extra_s[-1]

    def extra_s(self, iterations: Sequence[int]) -> float:  # noqa: ARG002
        return self._extra_s[-1]


def _draw(jitter: Jitter, count: int, stream: np.random.Generator) -> NDArray[np.float64]:
    spread = jitter.spread
    match jitter.distribution:
        case "lognormal":
            factors = np.exp(spread * stream.standard_normal(count) - spread**2 / 2)
        case "normal":
            factors = np.maximum(1.0 + spread * stream.standard_normal(count), 0.0)
        case "uniform":
            factors = stream.uniform(1.0 - spread, 1.0 + spread, count)
        case "exponential":
            factors = 1.0 + spread * stream.standard_exponential(count)
        case unknown:
            raise ValueError(f"unknown distribution {unknown!r}")
    if not all(map(math.isfinite, (factors.min(), factors.max()))):
        raise ValueError(f"{jitter} gives factors that are not finite")
    return np.asarray(factors, dtype=np.float64)
