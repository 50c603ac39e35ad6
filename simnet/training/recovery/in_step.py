"""Crashes among workers in step, who cannot go on without each other.

When they know of a crash, what is under way is given up, all wait until everybody is there, read the last checkpoint,
and go on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simnet.engine.waits import Waits
from simnet.training.communication.communicator import Communicator
from simnet.training.records import CollectiveRow, IterationRow
from simnet.training.recovery.checkpoints import InStepCheckpoints
from simnet.training.recovery.settings import Crash, ServerCrash, WorkerCrash
from simnet.training.recovery.state import Holder, played
from simnet.training.recovery.supervisor import Supervisor

__all__ = ["InStepSupervisor"]


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
            whole_s = rows[-1].start_s + rows[-1].iteration_time_s - begun_s
            found += max(whole_s - sum(row.iteration_time_s for row in rows), 0.0)
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
