"""Crashes among workers that go on by themselves.

Who is away is not waited for, and pulls the parameters when it is back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from simnet.engine.waits import Waits
from simnet.errors import StalledError
from simnet.training.communication.asynchronous import OwnCommunicator
from simnet.training.records import CollectiveRow
from simnet.training.recovery.checkpoints import AloneCheckpoints
from simnet.training.recovery.settings import Crash, ServerCrash, WorkerCrash
from simnet.training.recovery.state import Holder, Move, played
from simnet.training.recovery.supervisor import Supervisor

__all__ = ["AloneSupervisor"]


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
        if not self._is_away(holder, crash):
            self._end(crash.worker)
            self.own[crash.worker].leave()
            for one in self.own if self.peers is not None else ():
                one.lose(crash.worker)
            if self.checkpoints is not None:
                self.checkpoints.leave(holder)
            self.absences.append([crew.env.now, math.inf])
            crew.env.process(self._come_back(crash.worker, self.absences[-1]))
        ends = [self._away.get(Holder("worker", worker.rank)) for worker in crew.workers]
        if all(one is not None and math.isinf(one.crash.end_s) for one in ends):
            raise StalledError(
                f"{holder} crashed at {crash.begin_s:.9g} s as the last of the {len(ends)} workers of job {crew.job}, "
                f"none of which comes back"
            )

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
            if not (yield from self._wait_for(absence)):
                raise self._stalled(holder, sum(life.is_alive for life in self._lives.values()))
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
