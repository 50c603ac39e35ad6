"""How long each worker computes in each iteration, and when its buckets are ready."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.training.buckets import Bucket
from simnet.training.settings import Jitter, JobSettings
from simnet.workload import RecordedTrace, Workload

__all__ = ["ComputeTimes", "Timeline", "compute_times"]


class Timeline(NamedTuple):
    """One worker's computing in one iteration.

    Attributes
    ----------
    gradients_s : until the last gradient is there: forward and backward [s]
    ready_s : after the start of the iteration, when each bucket is ready, not decreasing [s]
    update_s : after all gradients are exchanged: the optimizer, and what else was recorded behind the backward pass [s]
    """

    gradients_s: float
    ready_s: Sequence[float]
    update_s: float = 0.0

    @property
    def total_s(self) -> float:
        """All of its computing [s]."""
        return self.gradients_s + self.update_s


class ComputeTimes(Protocol):
    """How long workers compute."""

    def timeline(self, iteration: int, rank: int) -> Timeline:
        """Return what one worker does in one iteration."""

    def slowest(self, iteration: int) -> Timeline:
        """Return when the last worker has reached each moment, if all begin at once; and the longest update."""

    def quickest(self, iteration: int) -> Timeline:
        """Return when the first worker has reached each moment, if all begin at once; and the shortest update."""

    def fastest_s(self, iterations: Sequence[int]) -> float:
        """Return the mean time over some iterations that the fastest worker computes, without jitter [s]."""


def compute_times(job: JobSettings, buckets: Sequence[Bucket], seed: int) -> ComputeTimes:
    """Return the compute times of a job, from a table or as recorded."""
    if isinstance(job.workload, RecordedTrace):
        return _Recorded(job.workload, buckets, job.training.workers)
    return _Modelled(job.workload, buckets, job, seed)


class _Modelled:
    """The same timeline for all, stretched by each worker's speed and by jitter."""

    def __init__(self, workload: Workload, buckets: Sequence[Bucket], job: JobSettings, seed: int) -> None:
        forward_s = float(workload.forward_s.sum())
        ready = np.asarray(workload.tensor_ready_s)[[bucket.last_tensor for bucket in buckets]]
        self._total_s = workload.compute_time_s
        self._ready_s = np.minimum(forward_s + ready, self._total_s)
        training = job.training
        self._slowness = 1.0 / np.asarray(training.speed_factors or [1.0] * training.workers)
        self._jitter = training.jitter
        self._stream = (seed, "jitter", job.name)
        self._factors: dict[int, NDArray[np.float64]] = {}
        self._timelines: dict[float, Timeline] = {}

    def timeline(self, iteration: int, rank: int) -> Timeline:
        stretch = float(self._slowness[rank])
        if self._jitter is not None:
            return self._stretched(stretch * float(self._jitter_factors(self._jitter, iteration)[rank]))
        found = self._timelines.get(stretch)
        if found is None:
            found = self._timelines[stretch] = self._stretched(stretch)
        return found

    def slowest(self, iteration: int) -> Timeline:
        return self._stretched(float(self._stretches(iteration).max()))

    def quickest(self, iteration: int) -> Timeline:
        return self._stretched(float(self._stretches(iteration).min()))

    def fastest_s(self, iterations: Sequence[int]) -> float:  # noqa: ARG002
        return self._total_s * float(self._slowness.min())

    def _stretches(self, iteration: int) -> NDArray[np.float64]:
        """Return how much longer than usual each worker computes, shape (workers,)."""
        if self._jitter is None:
            return self._slowness
        return self._slowness * self._jitter_factors(self._jitter, iteration)

    def _stretched(self, stretch: float) -> Timeline:
        return Timeline(self._total_s * stretch, (self._ready_s * stretch).tolist())

    def _jitter_factors(self, jitter: Jitter, iteration: int) -> NDArray[np.float64]:
        """Return the factors of all ranks, which do not depend on the order in which ranks ask."""
        found = self._factors.get(iteration)
        if found is None:
            # In step, workers are at most one iteration apart.
            for old in [number for number in self._factors if number < iteration - 1]:
                del self._factors[old]
            stream = random_stream(*self._stream, iteration)
            found = self._factors[iteration] = _draw(jitter, len(self._slowness), stream)
        return found


class _Recorded:
    """Each iteration as it was recorded; a run that is longer than the recording begins it anew."""

    def __init__(self, trace: RecordedTrace, buckets: Sequence[Bucket], workers: int) -> None:
        self._trace = trace
        self._last_tensors = [bucket.last_tensor for bucket in buckets]
        self._workers = workers

    def timeline(self, iteration: int, rank: int) -> Timeline:
        step = self._trace.step(iteration % self._trace.iterations, rank % self._trace.ranks)
        ready_s = np.asarray(step.tensor_ready_s)[self._last_tensors].tolist()
        return Timeline(step.total_s - step.optimizer_s, ready_s, step.optimizer_s)

    def slowest(self, iteration: int) -> Timeline:
        return self._extreme(iteration, np.max)

    def quickest(self, iteration: int) -> Timeline:
        return self._extreme(iteration, np.min)

    def _extreme(self, iteration: int, take: Callable[..., Any]) -> Timeline:
        """Return the latest or earliest of each moment."""
        timelines = [self.timeline(iteration, rank) for rank in range(min(self._workers, self._trace.ranks))]
        gradients, updates = zip(*((timeline.gradients_s, timeline.update_s) for timeline in timelines), strict=True)
        ready_s = take([timeline.ready_s for timeline in timelines], axis=0)
        return Timeline(float(take(gradients)), ready_s.tolist(), float(take(updates)))

    def fastest_s(self, iterations: Sequence[int]) -> float:
        ranks = range(min(self._workers, self._trace.ranks))
        return min(float(np.mean([self.timeline(i, rank).total_s for i in iterations])) for rank in ranks)


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
