"""A worker: a SimPy process that computes, announces what it has ready, and waits for what it needs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Protocol

import simpy

from simnet.engine.recorder import Recorder
from simnet.engine.waits import Waits
from simnet.fabric.interface import Fabric
from simnet.fabric.play import Play
from simnet.training.communication.asynchronous import OwnCommunicator
from simnet.training.computing.compute import ComputeTimes
from simnet.training.computing.shared_gpu import SharedGpu
from simnet.training.computing.step import SplitStep
from simnet.training.course import Course
from simnet.training.loader import Loader
from simnet.training.plan import Plan, Stretch
from simnet.training.records import IterationRow
from simnet.training.recovery.checkpoints import Checkpoints

__all__ = ["Exchanges", "Worker", "as_usual", "untold", "work"]


def as_usual(begin_s: float, work_s: float) -> float:  # noqa: ARG001
    """Return how long work takes on a host that is never slow: as it does [s]."""
    return work_s


def untold(iteration: int, what: str, start_s: float, stretch: int = -1) -> None:
    """Take no note of what a worker has done since an instant."""


class Exchanges(Protocol):
    """What a worker exchanges, with a group or by itself."""

    joins_late: bool

    def announce(self, iteration: int, part: int, member: int) -> None:
        """Say that a member has a part of an iteration ready."""

    def finish(self, iteration: int, part: int, member: int) -> Generator[simpy.Event, Play, float]:
        """Wait until an exchange is over for a member; return since when all have taken part [s]."""

    def busy_s(self) -> float:
        """Return for how long something has been under way since the beginning [s]."""


@dataclass(frozen=True, eq=False)
class Worker:
    """One worker of a job.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
    job : str
        Name of the job.
    rank : int
    node : int
        Node index.
    course : Course
        How long it goes on.
    exchanges_in : callable
        Tells whether anything is exchanged in an iteration.
    start_s : float
        When it begins [s].
    plan : Plan
        What it does in an iteration; of a worker that has only a part of the model, what it exchanges.
    communicator : Exchanges or None
        Of those that it exchanges gradients with; None where there is nobody.
    member : int
        Its number among them, or that of the worker that exchanges them on its behalf.
    leads : bool
        Whether it exchanges gradients itself.
    compute : ComputeTimes or None
        How long it computes; None where a step of several workers says so.
    step : SplitStep or None
        The step of those that a model is split over.
    loader : Loader or None
        Where its samples come from.
    checkpoints : Checkpoints or None
        What it writes, or waits for, before some iterations.
    lasts_s : callable
        ``(begin_s, work_s) -> s``: how long computing takes that takes `work_s` where the host is not slow [s].
    tell : callable
        ``(iteration, what, start_s, stretch=-1)``: told what it has done since then, for a timeline.
    shared : SharedGpu or None
        Its GPU, where computing and communicating slow each other down.
    step_overhead_s : float
        What it does besides computing in each iteration in which something is exchanged, behind all else [s].
    """

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    job: str
    rank: int
    node: int
    course: Course
    exchanges_in: Callable[[int], bool]
    start_s: float
    plan: Plan
    communicator: Exchanges | None
    member: int
    leads: bool
    compute: ComputeTimes | None
    step: SplitStep | None
    loader: Loader | None
    checkpoints: Checkpoints | None = None
    lasts_s: Callable[[float, float], float] = as_usual
    tell: Callable[..., None] = untold
    shared: SharedGpu | None = None
    step_overhead_s: float = 0.0


@dataclass
class _Times:
    """What a worker has done in an iteration [s]."""

    iteration: int
    compute_s: float = 0.0
    exposed_s: float = 0.0
    waiting_s: float = 0.0
    input_s: float = 0.0
    checkpoint_s: float = 0.0


def work(worker: Worker, first: int = 0, attempt: int = 0) -> Waits:
    """Be a worker, as long as its course goes on.

    Parameters
    ----------
    worker : Worker
    first : int
        The iteration that it begins with.
    attempt : int
        How often it has begun again after a crash.
    """
    if worker.start_s > worker.env.now:
        yield worker.env.timeout(worker.start_s - worker.env.now)
    if worker.loader is not None:
        yield from worker.loader.prepare(worker.rank)
    for iteration in itertools.count(first):
        if not worker.course.goes_on(worker.rank, iteration):
            # Nobody comes after the last iteration who would wait for what it leaves open.
            if iteration > first:
                yield from _stall(worker, iteration - 1, worker.plan.left_open, _Times(iteration))
            worker.course.leave()
            return
        yield from _iterate(worker, iteration, attempt, begins=iteration == first)


def _iterate(worker: Worker, iteration: int, attempt: int, *, begins: bool) -> Waits:
    env, fabric = worker.env, worker.fabric
    start_s, transferred_s = env.now, fabric.transfer_s(worker.node)
    times, ahead = _Times(iteration), 0
    own = worker.communicator if isinstance(worker.communicator, OwnCommunicator) else None
    if worker.checkpoints is not None:
        yield from worker.checkpoints.before(worker.rank, iteration)
        times.checkpoint_s = env.now - start_s
        worker.tell(iteration, "checkpoint", start_s)
    if own is not None:
        ahead = own.begin()
    if worker.loader is not None:
        asked_s = env.now
        yield from worker.loader.next_batch(worker.rank, iteration)
        times.input_s = env.now - asked_s
        worker.tell(iteration, "input", asked_s)
    if worker.step is not None:
        yield from _take_part(worker, worker.step, iteration, times)
    elif worker.compute is not None:
        yield from _compute(worker, worker.compute, iteration, times, begins=begins)
    if not worker.course.end(worker.rank, iteration):
        return
    worker.recorder.add(
        IterationRow(
            worker.job,
            iteration,
            worker.rank,
            start_s,
            times.compute_s,
            times.exposed_s,
            times.waiting_s,
            times.input_s,
            fabric.transfer_s(worker.node) - transferred_s,
            own.staleness if own is not None else 0,
            ahead,
            times.checkpoint_s,
            attempt,
        )
    )


def _compute(worker: Worker, compute: ComputeTimes, iteration: int, times: _Times, *, begins: bool) -> Waits:
    """Go through the stretches of the plan; nothing comes from before the iteration that a worker begins with."""
    env, passed_s = worker.env, 0.0
    timeline = compute.timeline(iteration, worker.rank)
    for number, (stretch, end_s) in enumerate(zip(worker.plan.stretches, timeline, strict=True)):
        if stretch.after:
            yield from _stall(worker, iteration, stretch.after, times)
        if stretch.after_previous and not begins:
            yield from _stall(worker, iteration - 1, stretch.after_previous, times)
        if end_s > passed_s:
            began_s, lasts_s = env.now, worker.lasts_s(env.now, end_s - passed_s)
            if worker.shared is None or worker.communicator is None:
                yield env.timeout(lasts_s)
            else:
                yield from worker.shared.compute(lasts_s, worker.communicator.busy_s)
                lasts_s = env.now - began_s
            worker.tell(iteration, "compute", began_s, number)
            times.compute_s += lasts_s - (end_s - passed_s)
            passed_s = end_s
        _announce(worker, iteration, stretch)
    times.compute_s += passed_s
    if worker.step_overhead_s > 0.0 and worker.communicator is not None and worker.exchanges_in(iteration):
        began_s = env.now
        yield env.timeout(worker.step_overhead_s)
        worker.tell(iteration, "step overhead", began_s)
        times.compute_s += worker.step_overhead_s


def _take_part(worker: Worker, step: SplitStep, iteration: int, times: _Times) -> Waits:
    """Do one's part of a step that several workers do together, and exchange what becomes ready in it."""
    env, began_s = worker.env, worker.env.now
    member = step.member(worker.rank)
    step.communicator.announce(iteration, 0, member)
    for stretch, milestones in step.milestones(worker.rank):
        for milestone in milestones:
            yield from step.communicator.reach(iteration, 0, milestone)
        _announce(worker, iteration, stretch)
    together_s = yield from step.communicator.finish(iteration, 0, member)
    worker.tell(iteration, "step", began_s)
    compute_s, alone_s = step.times_of(iteration, worker.rank)
    # What takes the memory of a host takes a slower worker no longer.
    compute_s = min(compute_s, env.now - began_s)
    stall_s = env.now - began_s - compute_s
    # What the step takes longer than on a network that takes no time, once all that do it together are there. Without
    # network there is no memory to wait for either, so that all of it may take less time than it computes.
    exposed_s = min(max(env.now - max(began_s, together_s) - max(alone_s, compute_s), 0.0), stall_s)
    times.compute_s += compute_s
    times.exposed_s += exposed_s
    times.waiting_s += stall_s - exposed_s
    for stretch in worker.plan.stretches:
        if stretch.until.kind == "end":
            yield from _stall(worker, iteration, stretch.after, times)
            _announce(worker, iteration, stretch)


def _announce(worker: Worker, iteration: int, stretch: Stretch) -> None:
    """Say what is ready at the end of a stretch."""
    if worker.communicator is not None and worker.leads and worker.exchanges_in(iteration):
        for part in stretch.announces:
            worker.communicator.announce(iteration, part, worker.member)


def _stall(worker: Worker, iteration: int, parts: Iterable[int], times: _Times) -> Waits:
    """Wait for exchanges: exposed while any of the group is under way, waiting for peers while none is.

    Where members join late, it is waiting for peers until the last of them has.
    """
    communicator = worker.communicator
    if communicator is None or not worker.exchanges_in(iteration):
        return
    if worker.shared is not None:
        worker.shared.rest()
    began_s, busy_s = worker.env.now, communicator.busy_s()
    together_s = began_s
    for part in parts:
        joined_s = yield from communicator.finish(iteration, part, worker.member)
        together_s = max(together_s, joined_s)
    stall_s = worker.env.now - began_s
    exposed_s = min(communicator.busy_s() - busy_s, stall_s)
    if communicator.joins_late:
        exposed_s = min(worker.env.now - together_s, stall_s)
    if stall_s - exposed_s <= 8.0 * math.ulp(worker.env.now):
        # Both come from the clock, which shows no shorter time.
        exposed_s = stall_s
    times.exposed_s += exposed_s
    times.waiting_s += stall_s - exposed_s
    worker.tell(times.iteration, "waiting" if exposed_s < stall_s / 2.0 else "exposed communication", began_s)
