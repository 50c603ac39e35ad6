"""How long each worker computes in each iteration, and when it has come how far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.training.computing.stragglers import Constant, straggler_factors
from simnet.training.plan import Plan
from simnet.training.settings import Jitter, JobSettings
from simnet.workload import AnyWorkload, DataflowWorkload, RecordedTrace, Workload, parts_of

__all__ = ["ComputeTimes", "SlowedStretches", "Stretches", "compute_times", "ratio", "ready_times_s"]


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


def compute_times(job: JobSettings, plan: Plan, seed: int) -> ComputeTimes:
    """Return the compute times of a job, from a table or as recorded."""
    if isinstance(job.workload, RecordedTrace):
        return _Recorded(job.workload, plan, job.training.workers)
    return _Modelled(plan, job, seed)


class Stretches:
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


class SlowedStretches(Stretches):
    """The same where hosts are slow for a while: of a step the mean over what each computes, from its beginning on.

    Parameters
    ----------
    job, seed
        As of `Stretches`.
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


class _Modelled:
    """The same timeline for all that have the same workload, stretched by each worker's own factor.

    Of several passes an iteration the parameters of a layer are needed by the first, and gradients ready in the last.
    """

    def __init__(self, plan: Plan, job: JobSettings, seed: int) -> None:
        self._passes = job.training.accumulation
        self._parts = [part for part in parts_of(job.workload) if isinstance(part, Workload)]
        self._part_of = np.array([job.part_of(rank) for rank in range(job.training.workers)])
        self._moments_s = [self._moments_of(part, plan) for part in self._parts]
        self._extra_s = plan.extra_s[-1]
        self._stretches = Stretches(job, seed)
        self._timelines: dict[tuple[int, float], Sequence[float]] = {}

    def timeline(self, iteration: int, rank: int) -> Sequence[float]:
        part, stretch = int(self._part_of[rank]), self._stretches.of_worker(iteration, rank)
        if self._stretches.varies:
            return self._stretched(part, stretch)
        found = self._timelines.get((part, stretch))
        if found is None:
            found = self._timelines[part, stretch] = self._stretched(part, stretch)
        return found

    def slowest(self, iteration: int) -> Sequence[float]:
        return self._extreme(iteration, np.max)

    def quickest(self, iteration: int) -> Sequence[float]:
        return self._extreme(iteration, np.min)

    def fastest_samples_per_s(self, iterations: Sequence[int]) -> float:  # noqa: ARG002
        rates = np.array([ratio(part.batch_size, part.compute_time_s) for part in self._parts])
        return float((rates[self._part_of] / self._stretches.slowness).max())

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
        return self._extra_s * float(np.mean([self._stretches.of(iteration) for iteration in iterations]))

    def _extreme(self, iteration: int, take: Callable[..., Any]) -> Sequence[float]:
        """Return the latest or earliest of each moment."""
        factors = self._stretches.of(iteration)
        ends = [moments * take(factors[self._part_of == part]) for part, moments in enumerate(self._moments_s)]
        found: list[float] = take(ends, axis=0).tolist()
        return found

    def _stretched(self, part: int, stretch: float) -> Sequence[float]:
        moments: list[float] = (self._moments_s[part] * stretch).tolist()
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
