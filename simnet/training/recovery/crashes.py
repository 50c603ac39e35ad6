"""What a job does when one of its processes dies: one supervisor a job, which ends and begins the processes of workers.

Workers in step cannot go on without each other. When they know of a crash, what is under way is given up, all wait
until everybody is there, read the last checkpoint, and go on from there. Workers that go on by themselves do so: who is
away is not waited for, and pulls the parameters when it is back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import simpy

from simnet.engine.alarm import NORMAL, Tick, only_ticks
from simnet.engine.recorder import Recorder
from simnet.errors import StalledError
from simnet.fabric.interface import Fabric
from simnet.training.communication.asynchronous import OwnCommunicator
from simnet.training.communication.communicator import Communicator
from simnet.training.course import Course
from simnet.training.loader import Loader
from simnet.training.records import CollectiveRow, IterationRow, Sent
from simnet.training.recovery.checkpoints import AloneCheckpoints, InStepCheckpoints
from simnet.training.recovery.settings import Crash, ServerCrash, WorkerCrash
from simnet.training.recovery.state import Holder, Move, State, played
from simnet.training.worker import Worker, work

__all__ = ["AloneSupervisor", "Crew", "InStepSupervisor", "Supervisor"]

Waits = Generator[simpy.Event, object, None]


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


@dataclass
class InStepSupervisor(Supervisor):
    """Of workers that cannot go on without each other.

    Parameters
    ----------
    communicators : sequence of (Communicator, bool)
        All of the job, each with whether servers are among its ranks, behind the workers.
    checkpoints : InStepCheckpoints or None
    """

    communicators: Sequence[tuple[Communicator, bool]] = ()
    checkpoints: InStepCheckpoints | None = None
    _recovers: bool = False
    _last_s: float = -math.inf  # when all began again for the last time

    def recovery_s(self) -> float:
        """Return the time that was no part of an iteration that counts, over measured iterations and workers [s]."""
        if self._last_s < self.measured_s:
            return 0.0
        course, found = self.crew.course, 0.0
        own: list[list[IterationRow]] = [[] for _ in self.crew.workers]
        for row in self.crew.recorder.rows(IterationRow):
            if row.job == self.crew.job and row.iteration >= course.first[row.rank]:
                own[row.rank].append(row)
        for rows in own:
            # Of those who have begun again the first measured iteration, what they did before has no row.
            begun_s = min(rows[0].start_s, self.measured_s)
            whole_s = rows[-1].start_s + rows[-1].duration_s - begun_s
            found += max(whole_s - sum(row.duration_s for row in rows), 0.0)
        return found / float(course.count.sum())

    def _crash(self, crash: Crash) -> None:
        if isinstance(crash, WorkerCrash):
            holder = Holder("worker", crash.worker)
            if not self._lives[crash.worker].is_alive and not self._recovers:
                return
        else:
            holder = Holder("server", crash.server)
        if self._is_away(holder, crash):
            return
        if isinstance(crash, WorkerCrash):
            self._end(crash.worker)
        if self.checkpoints is not None:
            self.checkpoints.leave(holder)
        for communicator, _ in self.communicators:
            communicator.hold()
        if isinstance(crash, ServerCrash) and crash.failover_s is not None:
            self.crew.env.process(self._fail_over(crash))
        elif not self._recovers:
            self._recovers = True
            self.crew.env.process(self._recover(crash.detect_after_s))

    def _fail_over(self, crash: ServerCrash) -> Waits:
        """Have the replica of a server take over, and what was under way begin again."""
        holder = Holder("server", crash.server)
        absence = self._away[holder]
        yield self.crew.env.timeout(crash.end_s - self.crew.env.now)
        self._replica_takes_over(crash, self._move)
        if self._recovers or self._away.get(holder) is not absence:
            return
        if not (yield from self._wait_for(absence)):
            raise self._stalled(holder, len(self._lives))
        self._is_back(holder)
        if not self._away:
            for communicator, _ in self.communicators:
                communicator.resume()

    def _move(self, nodes: dict[int, int]) -> None:
        for communicator, has_servers in self.communicators:
            if has_servers:
                first = len(communicator.members)
                communicator.move({first + number: node for number, node in nodes.items()})

    def _recover(self, detect_after_s: float) -> Waits:
        """Stop everybody when the crash is known, and go on from the last checkpoint when all are there."""
        crew = self.crew
        yield crew.env.timeout(detect_after_s)
        present = sum(life.is_alive for life in self._lives.values())
        for rank in self._lives:
            self._end(rank)
        # Nobody announces anything any more.
        yield crew.env.timeout(0.0)
        for communicator, _ in self.communicators:
            communicator.abandon()
        if self.checkpoints is not None:
            self.checkpoints.abandon()
        while self._away:
            for holder, absence in list(self._away.items()):
                if not (yield from self._wait_for(absence)):
                    raise self._stalled(holder, present)
            for holder in [one for one in self._away if self._away[one].crash.end_s <= crew.env.now]:
                self._is_back(holder)
            yield from self._restore()
        self._begin_again()

    def _restore(self) -> Waits:
        """Read the last checkpoint, if there is one."""
        crew, checkpoints = self.crew, self.checkpoints
        # What is complete at this very instant is told first.
        yield crew.env.timeout(0.0)
        if checkpoints is None or checkpoints.iteration == 0:
            return
        yield from checkpoints.store.read([(crew.state.node[one.holder], one.size_bytes) for one in crew.state.read])
        pulls = crew.state.pulls(range(len(crew.workers)))
        yield from played(crew.fabric, pulls, f"{crew.job}: pulling restored parameters")

    def _begin_again(self) -> None:
        crew = self.crew
        first = self.checkpoints.iteration if self.checkpoints is not None else 0
        lost = crew.recorder.take_back(IterationRow, lambda row: row.job == crew.job and row.iteration >= first)
        crew.recorder.take_back(CollectiveRow, lambda row: row.job == crew.job and row.iteration >= first)
        self.lost_iterations += len(lost) / len(crew.workers)
        crew.sent.forget(first)
        crew.course.rewind()
        self._recovers, self._last_s = False, crew.env.now
        for communicator, _ in self.communicators:
            communicator.resume()
        for rank in self._lives:
            self._attempts[rank] += 1
            self._let_work(rank, first)


@dataclass
class AloneSupervisor(Supervisor):
    """Of workers that go on by themselves.

    Parameters
    ----------
    own : sequence of OwnCommunicator
        One a worker.
    peers : sequence of sequence of int, or None
        Whom each worker exchanges with; None: with servers.
    checkpoints : AloneCheckpoints or None

    Attributes
    ----------
    absences : list of list of float
        From when until when a worker was away, each time [s].
    """

    own: Sequence[OwnCommunicator] = ()
    peers: Sequence[Sequence[int]] | None = None
    checkpoints: AloneCheckpoints | None = None
    absences: list[list[float]] = field(default_factory=list)

    def recovery_s(self) -> float:
        """Return for how long workers were away while it was measured, over measured iterations of all [s]."""
        end_s = self.measured_s + self.crew.course.duration_s
        away_s = sum(max(min(to, end_s) - max(since, self.measured_s), 0.0) for since, to in self.absences)
        return away_s / float(self.crew.course.count.sum())

    def _crash(self, crash: Crash) -> None:
        if isinstance(crash, WorkerCrash):
            self._worker_crashes(crash)
        else:
            self._server_crashes(crash)

    def _worker_crashes(self, crash: WorkerCrash) -> None:
        crew, holder = self.crew, Holder("worker", crash.worker)
        if self._is_away(holder, crash):
            return
        self._end(crash.worker)
        self.own[crash.worker].leave()
        for one in self.own if self.peers is not None else ():
            one.lose(crash.worker)
        if self.checkpoints is not None:
            self.checkpoints.leave(holder)
        ends = [self._away.get(Holder("worker", worker.rank)) for worker in crew.workers]
        if all(one is not None and math.isinf(one.crash.end_s) for one in ends):
            raise StalledError(
                f"{holder} crashed at {crash.begin_s:.9g} s as the last of the {len(ends)} workers of job {crew.job}, "
                f"none of which comes back"
            )
        self.absences.append([crew.env.now, math.inf])
        crew.env.process(self._come_back(crash.worker, self.absences[-1]))

    def _come_back(self, rank: int, away_s: list[float]) -> Waits:
        """Let a worker go on when it is there again and has pulled the parameters."""
        crew, holder = self.crew, Holder("worker", rank)
        absence = self._away[holder]
        while True:
            if not (yield from self._wait_for(absence)):
                return
            for server in [one for one in self._away if one.kind == "server"]:
                yield self._away[server].back if server in self._away else crew.env.timeout(0.0)
            yield from played(crew.fabric, self._parameters_for(rank), f"{crew.job}: parameters for worker {rank}")
            if absence.crash.end_s <= crew.env.now:
                break
        away_s[1] = crew.env.now
        self._is_back(holder)
        if self.checkpoints is not None:
            self.checkpoints.join(holder)
        first = self._next_iteration(rank)
        crew.recorder.take_back(
            CollectiveRow, lambda row: row.job == crew.job and row.worker == rank and row.iteration >= first
        )
        self.own[rank].clocks.join(rank, first)
        self._attempts[rank] += 1
        self._let_work(rank, first)

    def _parameters_for(self, rank: int) -> list[Move]:
        """Return what a worker pulls that was away: from servers, or from the first neighbour that is there."""
        state = self.crew.state
        if self.peers is None:
            return state.pulls([rank])
        there = [Holder("worker", peer) for peer in self.peers[rank] if Holder("worker", peer) not in self._away]
        return [Move(state.node[one], state.node[Holder("worker", rank)], state.parameters_bytes) for one in there[:1]]

    def _server_crashes(self, crash: ServerCrash) -> None:
        holder = Holder("server", crash.server)
        if self._is_away(holder, crash):
            return
        for one in self.own:
            one.hold(crash.server)
        if self.checkpoints is not None:
            self.checkpoints.leave(holder)
        self.crew.env.process(self._bring_back(holder, crash))

    def _bring_back(self, holder: Holder, crash: ServerCrash) -> Waits:
        """Have the replica of a server take over, or the server itself read its last checkpoint."""
        crew, checkpoints = self.crew, self.checkpoints
        absence = self._away[holder]
        if crash.failover_s is not None:
            yield crew.env.timeout(crash.failover_s)
            self._replica_takes_over(crash, self._move)
            yield from self._wait_for(absence)
        else:
            known = checkpoints.updates.get(holder, 0) if checkpoints is not None else 0
            self.lost_iterations += (self.own[0].clocks.updates - known) / len(crew.workers)
            while absence.crash.end_s > crew.env.now:
                if not (yield from self._wait_for(absence)):
                    yield crew.env.timeout(crash.detect_after_s)
                    raise self._stalled(holder, sum(life.is_alive for life in self._lives.values()))
                if checkpoints is not None and known:
                    wanted = [(crew.state.node[holder], crew.state.share_of(holder))]
                    yield from checkpoints.store.read(wanted)
        self._is_back(holder)
        if checkpoints is not None:
            checkpoints.join(holder)
        for one in self.own:
            one.resume(crash.server)

    def _move(self, nodes: dict[int, int]) -> None:
        for one in self.own:
            one.move(nodes)
