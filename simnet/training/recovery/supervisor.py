"""What a job does when one of its processes dies: one supervisor a job, which ends and begins the processes of workers.

Workers in step cannot go on without each other: see `simnet.training.recovery.in_step`. Workers that go on by
themselves do so: see `simnet.training.recovery.alone`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import simpy

from simnet.engine.alarm import NORMAL, Tick, only_ticks
from simnet.engine.recorder import Recorder
from simnet.engine.waits import Waits
from simnet.errors import StalledError
from simnet.fabric.interface import Fabric
from simnet.training.course import Course
from simnet.training.loader import Loader
from simnet.training.records import IterationRow, Sent
from simnet.training.recovery.settings import Crash, ServerCrash
from simnet.training.recovery.state import Holder, Move, State, played
from simnet.training.worker import Worker, work

__all__ = ["Crew", "Supervisor"]


@dataclass(frozen=True, eq=False)
class Crew:
    """The processes of a job, and what they work with.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
    job : str
        Its name.
    workers : sequence of Worker
    course : Course
    sent : Sent
    loader : Loader or None
    state : State
        What the processes hold.
    """

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    job: str
    workers: Sequence[Worker]
    course: Course
    sent: Sent
    loader: Loader | None
    state: State


@dataclass
class _Absence:
    """Somebody who is not there: since when, until when, and the event of being back."""

    crash: Crash
    back: simpy.Event


@dataclass
class Supervisor:
    """What both kinds have in common: whose process is there, and who is away until when.

    Parameters
    ----------
    crew : Crew
    crashes : sequence of Crash
        All that are to come.

    Attributes
    ----------
    lost_iterations : float
        Iterations of all workers that were done for nothing, over their number.
    measured_s : float
        When measuring began; NaN before [s].
    """

    crew: Crew
    crashes: Sequence[Crash]
    lost_iterations: float = 0.0
    measured_s: float = math.nan
    _lives: dict[int, simpy.Process] = field(default_factory=dict)
    _away: dict[Holder, _Absence] = field(default_factory=dict)
    _attempts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._attempts = [0] * len(self.crew.workers)
        for worker in self.crew.workers:
            self._let_work(worker.rank, 0)
        for crash in self.crashes:
            self.crew.env.process(self._come(crash))
        self.crew.course.measured.callbacks.append(self._measure)

    def _measure(self, _: simpy.Event) -> None:
        self.measured_s = self.crew.env.now

    def recovery_s(self) -> float:
        """Return what crashes of workers took of each measured iteration, when all is over, mean [s]."""
        raise NotImplementedError

    def _come(self, crash: Crash) -> Waits:
        """Let a crash happen at its time, if there is anybody still whom it could concern."""
        env = self.crew.env
        yield Tick(env).set(max(crash.begin_s - env.now, 0.0), NORMAL)
        if not only_ticks(env) and not self.crew.course.done.triggered:
            self._crash(crash)

    def _crash(self, crash: Crash) -> None:
        raise NotImplementedError

    def _let_work(self, rank: int, first: int) -> None:
        """Begin the process of a worker, which an interrupt ends."""

        def life() -> Waits:
            try:
                yield from work(self.crew.workers[rank], first, self._attempts[rank])
            except simpy.Interrupt:
                return

        self._lives[rank] = self.crew.env.process(life())

    def _end(self, rank: int) -> None:
        """End the process of a worker, and what is read for it."""
        life = self._lives[rank]
        if life.is_alive:
            life.interrupt()
        if self.crew.loader is not None:
            self.crew.loader.leave(rank)

    def _is_away(self, holder: Holder, crash: Crash) -> bool:
        """Take note that somebody is away; tell whether it was already, and is now for longer perhaps."""
        absence = self._away.get(holder)
        if absence is None:
            self._away[holder] = _Absence(crash, self.crew.env.event())
            return False
        if crash.end_s > absence.crash.end_s:
            absence.crash = crash
        return True

    def _is_back(self, holder: Holder) -> None:
        self._away.pop(holder).back.succeed()

    def _wait_for(self, absence: _Absence) -> Generator[simpy.Event, object, bool]:
        """Wait until somebody is there again, who may crash once more before that; return False where that is never."""
        env = self.crew.env
        while absence.crash.end_s > env.now:
            if math.isinf(absence.crash.end_s):
                return False
            yield env.timeout(absence.crash.end_s - env.now)
        return True

    def _next_iteration(self, rank: int) -> int:
        """Return which iteration a worker does next, or is in."""
        rows = self.crew.recorder.rows(IterationRow)
        own = (row.iteration for row in rows if row.job == self.crew.job and row.rank == rank)
        return max(own, default=-1) + 1

    def _stalled(self, holder: Holder, waiting: int) -> StalledError:
        """Return the error of somebody not coming back, for whom others wait."""
        crew, crash = self.crew, self._away[holder].crash
        iteration = min((self._next_iteration(worker.rank) for worker in crew.workers), default=0)
        wait = {0: "nobody is left of", 1: "1 worker of"}.get(waiting, f"{waiting} workers of")
        since = f" wait{'s' if waiting == 1 else ''} for it since {crew.env.now:.9g} s" if waiting else ""
        return StalledError(
            f"{holder} crashed at {crash.begin_s:.9g} s and does not come back; "
            f"{wait} job {crew.job}{since} in iteration {iteration}"
        )

    def _replica_takes_over(self, crash: ServerCrash, move: Callable[[dict[int, int]], None]) -> None:
        """Put a replica in the place of its server; when the server itself is back, it is the replica."""
        holder = Holder("server", crash.server)
        former = self.crew.state.node[holder]
        self.crew.state.node[holder] = crash.replica
        move({crash.server: crash.replica})
        if crash.back_s < math.inf:
            self.crew.env.process(self._become_replica(crash, former, move))

    def _become_replica(self, crash: ServerCrash, node: int, move: Callable[[dict[int, int]], None]) -> Waits:
        crew = self.crew
        yield Tick(crew.env).set(max(crash.back_s - crew.env.now, 0.0), NORMAL)
        if only_ticks(crew.env):
            return
        share = crew.state.share_of(Holder("server", crash.server))
        yield from played(crew.fabric, [Move(crash.replica, node, share)], f"{crew.job}: state to a new replica")
        replicas = [one for one in self.crashes if isinstance(one, ServerCrash) and one.failover_s is not None]
        move({crew.state.first_replica + replicas.index(crash): node})
