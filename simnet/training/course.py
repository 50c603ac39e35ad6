"""How long a job goes on, and what of it is measured.

Workers in step do as many iterations each. Workers that exchange by themselves go on until all together have done
enough, or until a time is over: counted by worker, a slow one would be waited for at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.training.settings import RunSettings

__all__ = ["Course", "InStep", "InTotal"]


class Course(Protocol):
    """What workers ask before and after each iteration.

    Attributes
    ----------
    measured : simpy.Event
        Happens when measuring begins: when the last worker begins its first measured iteration, or all together have
        done their warm-up.
    done : simpy.Event
        Happens when what is measured is over.
    first : ndarray of int, shape (workers,)
        The first measured iteration of each worker.
    count : ndarray of int, shape (workers,)
        Measured iterations of each.
    duration_s : float
        For how long all were measured; NaN where each was in iterations of its own [s].
    """

    measured: simpy.Event
    done: simpy.Event
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    duration_s: float

    def goes_on(self, rank: int, iteration: int) -> bool:
        """Tell whether a worker is to begin an iteration; if not, it says when it has left."""

    def leave(self) -> None:
        """Say that a worker is through."""

    def end(self, rank: int, iteration: int) -> bool:
        """Say that a worker has done an iteration; return whether anybody wants to know of it."""

    def is_measured(self, iteration: int) -> bool:
        """Tell whether what has been sent for an iteration just now is measured."""

    def rewind(self) -> None:
        """All workers begin earlier iterations again, none of which is the first that is not measured."""


class InStep:
    """The course of workers in step: each does the warm-up and then the measured iterations.

    Parameters
    ----------
    env : simpy.Environment
    run : RunSettings
    workers : int
    is_alone : callable
        Tells whether all other jobs are through; until then workers go on, unmeasured.
    leaves_open : bool
        The exchanges of an iteration are over in the next one: a worker that goes on is through one iteration later.
    """

    def __init__(
        self,
        env: simpy.Environment,
        run: RunSettings,
        workers: int,
        is_alone: Callable[[], bool],
        *,
        leaves_open: bool = False,
    ) -> None:
        self.measured, self.done = env.event(), env.event()
        self.first, self.count = np.full(workers, run.warmup), np.full(workers, run.iterations)
        self.duration_s = math.nan
        self._begin, self._last = run.warmup, run.warmup + run.iterations - 1
        self._through = self._last + 1 + leaves_open
        self._is_alone = is_alone
        self._goes_on: bool | None = None  # beyond the last
        self._to_begin, self._to_leave = workers, workers

    def goes_on(self, rank: int, iteration: int) -> bool:  # noqa: ARG002
        """Tell whether a worker is to begin an iteration."""
        if iteration == self._begin and not self.measured.triggered:
            self._to_begin -= 1
            if self._to_begin == 0:
                self.measured.succeed()
        if iteration <= self._last:
            return True
        if self._goes_on is None:
            # What the first does all do: it waits for the others.
            self._goes_on = not self._is_alone()
        if self._goes_on and iteration == self._through:
            self.leave()
        return self._goes_on

    def leave(self) -> None:
        """Say that a worker is through with what is measured."""
        self._to_leave -= 1
        if self._to_leave == 0:
            self.done.succeed()

    def end(self, rank: int, iteration: int) -> bool:  # noqa: ARG002
        """Return whether an iteration is one of warm-up or measuring."""
        return iteration <= self._last

    def is_measured(self, iteration: int) -> bool:
        """Tell whether an iteration is a measured one."""
        return self._begin <= iteration <= self._last

    def rewind(self) -> None:
        """Count workers anew that come to where measuring begins and ends."""
        self._to_begin, self._to_leave = len(self.first), len(self.first)
        self._goes_on = None


class InTotal:
    """The course of workers that exchange by themselves: what all do together, for a number of updates or a time.

    An iteration that is under way when measuring begins counts, one that is when it ends does not.

    Parameters
    ----------
    env : simpy.Environment
    run : RunSettings
    workers : int
    is_alone : callable
        As of `InStep`.
    """

    def __init__(self, env: simpy.Environment, run: RunSettings, workers: int, is_alone: Callable[[], bool]) -> None:
        self.measured, self.done = env.event(), env.event()
        self.first, self.count = np.zeros(workers, dtype=np.int64), np.zeros(workers, dtype=np.int64)
        self.duration_s = math.nan
        self._env, self._run, self._is_alone = env, run, is_alone
        self._to_warm, self._to_measure = workers * run.warmup, math.inf
        if run.duration_s is None:
            self._to_measure = workers * run.iterations
        self._began_s = math.nan
        if not self._to_warm:
            self._begin()

    def goes_on(self, rank: int, iteration: int) -> bool:  # noqa: ARG002
        """Tell whether a worker is to begin another iteration."""
        return not (self.done.triggered and self._is_alone())

    def leave(self) -> None:
        """Nobody waits for a worker that leaves."""

    def end(self, rank: int, iteration: int) -> bool:
        """Count an iteration; return whether it is one of warm-up or measuring."""
        if self.done.triggered:
            return False
        if not self.measured.triggered:
            self.first[rank] = iteration + 1
            self._to_warm -= 1
            if self._to_warm == 0:
                self._begin()
            return True
        self.count[rank] += 1
        self._to_measure -= 1
        if self._to_measure == 0:
            self._end()
        return True

    def is_measured(self, iteration: int) -> bool:  # noqa: ARG002
        """Tell whether measuring is under way."""
        return self.measured.triggered and not self.done.triggered

    def rewind(self) -> None:
        """Count nothing anew: what each has done by itself was done."""

    def _begin(self) -> None:
        self.measured.succeed()
        self._began_s = self._env.now
        if self._run.duration_s is not None:
            self._env.timeout(self._run.duration_s).callbacks.append(lambda _: self._end())

    def _end(self) -> None:
        self.duration_s = self._env.now - self._began_s
        self.done.succeed()
