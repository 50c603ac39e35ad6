"""How long each worker computes in each iteration, and when it has come how far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simnet.training.computing.slowdowns import Slowdowns
from simnet.training.plan import Plan
from simnet.training.settings import JobSettings
from simnet.workload import AnyWorkload, DataflowWorkload, RecordedTrace, Workload, parts_of

__all__ = ["ComputeTimes", "compute_times", "ratio", "ready_times_s"]


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

    def fastest_samples_per_s(self, iterations: Sequence[int]) -> float:
        """Return the rate of the fastest worker if it does nothing but compute [samples/s].

        Without jitter and stragglers; as recorded, over some iterations.
        """

    def extra_s(self, iterations: Sequence[int]) -> float:
        """Return the mean time over workers and some iterations that is computed besides the model [s]."""

    def usual(self, iteration: int, rank: int) -> Sequence[float]:
        """Return the timeline of a worker that nothing holds up, and that is no slower than the median worker."""

    def of_model(self, iteration: int, rank: int) -> Sequence[float]:
        """Return how far in the model a worker has come at the end of each stretch, in times of its workload [s]."""


def compute_times(job: JobSettings, plan: Plan, seed: int) -> ComputeTimes:
    """Return the compute times of a job, from a table or as recorded."""
    if isinstance(job.workload, RecordedTrace):
        return _Recorded(job.workload, plan, job.training.workers)
    return _Modelled(plan, job, seed)


class _Modelled:
    """The same timeline for all that have the same workload, slowed down by each worker's own factor.

    Of several passes an iteration the parameters of a layer are needed by the first, and gradients ready in the last.
    """

    def __init__(self, plan: Plan, job: JobSettings, seed: int) -> None:
        self._passes = job.training.accumulation
        self._parts = [part for part in parts_of(job.workload) if isinstance(part, Workload)]
        self._part_of = np.array([job.part_of(rank) for rank in range(job.training.workers)])
        self._moments_s = [self._moments_of(part, plan) for part in self._parts]
        self._plan_extra_s = np.array(plan.extra_s)
        self._extra_s = plan.extra_s[-1]
        self._slowdowns = Slowdowns(job, seed)
        self._timelines: dict[tuple[int, float], Sequence[float]] = {}

    def timeline(self, iteration: int, rank: int) -> Sequence[float]:
        part, factor = int(self._part_of[rank]), self._slowdowns.of_worker(iteration, rank)
        if self._slowdowns.varies:
            return self._slowed(part, factor)
        found = self._timelines.get((part, factor))
        if found is None:
            found = self._timelines[part, factor] = self._slowed(part, factor)
        return found

    def slowest(self, iteration: int) -> Sequence[float]:
        return self._extreme(iteration, np.max)

    def quickest(self, iteration: int) -> Sequence[float]:
        return self._extreme(iteration, np.min)

    def fastest_samples_per_s(self, iterations: Sequence[int]) -> float:  # noqa: ARG002
        rates = np.array([ratio(part.batch_size, part.compute_time_s) for part in self._parts])
        return float((rates[self._part_of] / self._slowdowns.slowness).max())

    def _moments_of(self, workload: Workload, plan: Plan) -> NDArray[np.float64]:
        pass_s = workload.compute_time_s
        before_s, total_s = (self._passes - 1) * pass_s, self._passes * pass_s
        times = {
            "forward": np.concatenate([[0.0], np.cumsum(workload.forward_s)]),
            "ready": before_s + float(workload.forward_s.sum()) + np.asarray(workload.tensor_ready_s),
            "gradients": np.array([total_s]),
            "end": np.array([total_s]),
        }
        moments = np.array([times[moment.kind][moment.place] for moment in plan.moments])
        return np.maximum.accumulate(np.minimum(moments, total_s)) + plan.extra_s

    def extra_s(self, iterations: Sequence[int]) -> float:
        if not self._extra_s:
            return 0.0
        return self._extra_s * float(np.mean([self._slowdowns.of(iteration) for iteration in iterations]))

    def usual(self, iteration: int, rank: int) -> Sequence[float]:  # noqa: ARG002
        slowness = self._slowdowns.slowness
        whole_s = np.array([moments[-1] for moments in self._moments_s])[self._part_of] * slowness
        factor = min(1.0, ratio(float(np.median(whole_s)), float(whole_s[rank]))) if whole_s[rank] > 0.0 else 1.0
        return self._slowed(int(self._part_of[rank]), float(slowness[rank]) * factor)

    def of_model(self, iteration: int, rank: int) -> Sequence[float]:  # noqa: ARG002
        moments: list[float] = (self._moments_s[self._part_of[rank]] - self._plan_extra_s).tolist()
        return moments

    def _extreme(self, iteration: int, take: Callable[..., Any]) -> Sequence[float]:
        """Return the latest or earliest of each moment."""
        factors = self._slowdowns.of(iteration)
        ends = [moments * take(factors[self._part_of == part]) for part, moments in enumerate(self._moments_s)]
        found: list[float] = take(ends, axis=0).tolist()
        return found

    def _slowed(self, part: int, factor: float) -> Sequence[float]:
        moments: list[float] = (self._moments_s[part] * factor).tolist()
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

    def usual(self, iteration: int, rank: int) -> Sequence[float]:
        ranks = range(min(self._workers, self._trace.ranks))
        stretches_s = np.diff([self.timeline(iteration, one) for one in ranks], axis=1, prepend=0.0)
        own_s = stretches_s[rank % self._trace.ranks]
        # A worker that takes as long as the median one, at another time, is not held up.
        factor = min(1.0, ratio(float(np.median(stretches_s.sum(axis=1))), float(own_s.sum())))
        ends: list[float] = np.cumsum(own_s * factor).tolist()
        return ends

    def of_model(self, iteration: int, rank: int) -> Sequence[float]:
        moments: list[float] = (np.array(self.timeline(iteration, rank)) - self._extra_s).tolist()
        return moments

    def _extreme(self, iteration: int, take: Callable[..., Any]) -> Sequence[float]:
        """Return the latest or earliest of each moment."""
        timelines = [self.timeline(iteration, rank) for rank in range(min(self._workers, self._trace.ranks))]
        moments: list[float] = take(timelines, axis=0).tolist()
        return moments

    def fastest_samples_per_s(self, iterations: Sequence[int]) -> float:
        ranks = range(min(self._workers, self._trace.ranks))
        everything_s = min(float(np.mean([self.timeline(i, rank)[-1] for i in iterations])) for rank in ranks)
        return ratio(self._trace.batch_size, everything_s - self._extra_s[-1])

    def extra_s(self, iterations: Sequence[int]) -> float:  # noqa: ARG002
        return self._extra_s[-1]


def ready_times_s(workload: AnyWorkload) -> NDArray[np.float64]:
    """Return when the gradients of each tensor are usually ready, from the beginning of the backward pass on [s].

    As the first worker computes, and in the first iteration of what is recorded.
    """
    [first, *_] = parts_of(workload)
    if isinstance(first, DataflowWorkload):
        raise ValueError("the gradients of a graph are ready as its operations say")
    ready_s = first.step(0, 0).tensor_ready_s if isinstance(first, RecordedTrace) else first.tensor_ready_s
    return np.maximum.accumulate(np.asarray(ready_s, dtype=np.float64))


def ratio(part: float, whole: float) -> float:
    """Return a ratio that is infinite, or not a number, where nobody computes at all."""
    return part / whole if whole > 0 else math.inf if part > 0 else math.nan
