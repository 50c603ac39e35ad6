"""What a job records; the experiment layer makes tables of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.interface import Placed
from simnet.fabric.play import Play

__all__ = ["CollectiveRow", "IterationRow", "PlayRow", "Sent", "SpanRow"]


class IterationRow(NamedTuple):
    """One iteration of one worker; times in seconds. Its fields are columns of the table of iterations.

    Attributes
    ----------
    start_s : when it began
    compute_time_s : forward and backward
    exposed_communication_time_s : stood still while its group was communicating
    waiting_time_s : stood still while its group was not, for a peer
    input_time_s : stood still for training data
    communication_time_s : with at least one transfer of its own under way
    staleness_updates : updates of others between the reading of its parameters and its own update; 0 where all update
        together
    ahead_iterations : iterations that it was ahead of the slowest when it began
    checkpoint_time_s : stood still for a checkpoint
    attempt : how often the worker had begun again after a crash
    """

    job: str
    iteration: int
    rank: int
    start_s: float
    compute_time_s: float
    exposed_communication_time_s: float
    waiting_time_s: float
    input_time_s: float
    communication_time_s: float
    staleness_updates: int = 0
    ahead_iterations: int = 0
    checkpoint_time_s: float = 0.0
    attempt: int = 0

    @property
    def iteration_time_s(self) -> float:
        """From its beginning to its end [s]."""
        return (
            self.compute_time_s
            + self.exposed_communication_time_s
            + self.waiting_time_s
            + self.input_time_s
            + self.checkpoint_time_s
        )


class SpanRow(NamedTuple):
    """What a worker did from one instant to another; recorded only where a timeline is wanted.

    Attributes
    ----------
    what : compute, exposed communication, waiting, input, checkpoint or step overhead; step, where several workers
        compute together
    start_s, end_s : from and until when [s]
    stretch : of the plan, of what is computed; -1 of all else
    """

    job: str
    iteration: int
    rank: int
    what: str
    start_s: float
    end_s: float
    stretch: int = -1


class PlayRow(NamedTuple):
    """An exchange, or a step, as it was played, and what it waited for; recorded only where causes are wanted.

    Attributes
    ----------
    queue : tells communicators apart: what one plays waits for what it has played before
    what : all_reduce, reduce_scatter or all_gather; push or pull of one worker; step
    parts : of the iteration, that travelled together
    members : workers that are its first ranks
    announced_s, announced_by : when the last member had it ready, and which worker that was
    set_out_s : when it had credit as well
    joined : what each member took part from: a pair of its number and a time [s], where members join late
    joins_late : whether they do
    first_sent : where each member has a queue of its own: rank ``first_sent + m`` is over when all is sent that m sends
    """

    job: str
    queue: int
    iteration: int
    what: str
    parts: tuple[int, ...]
    bucket: int
    algorithm: str
    size_bytes: float
    members: NDArray[np.int64]
    announced_s: float
    announced_by: int
    set_out_s: float
    joined: tuple[tuple[int, float], ...]
    joins_late: bool
    first_sent: int
    play: Play
    placement: Placed

    @property
    def start_s(self) -> float:
        """When it began [s]."""
        return self.play.started_at_s

    @property
    def end_s(self) -> float:
        """When it was over [s]."""
        return self.play.started_at_s + self.play.duration_s

    def over_s(self, rank: int) -> float:
        """Return when it was over for one of its ranks [s]."""
        return self.play.started_at_s + float(self.play.rank_duration_s[rank])


class CollectiveRow(NamedTuple):
    """One exchange of one bucket.

    Attributes
    ----------
    what : all_reduce, reduce_scatter or all_gather; push or pull of one worker
    size_bytes : of the bucket
    announced_s : when the last member had it ready
    start_s : when it began, after those before it
    duration_s : until its last rank was complete
    messages : sent for it
    bytes_sent : payload sent by all ranks together
    bytes_sent_by_busiest : payload sent by the rank that sends most
    lost_bytes : payload that was lost, and not sent again
    placement : what was played
    worker : whose it was; -1 of all together
    """

    job: str
    iteration: int
    bucket: int
    what: str
    algorithm: str
    size_bytes: float
    announced_s: float
    start_s: float
    duration_s: float
    messages: int
    bytes_sent: float
    bytes_sent_by_busiest: float
    lost_bytes: float
    placement: Placed
    worker: int = -1

    @classmethod
    def of(
        cls,
        job: str,
        iteration: int,
        bucket: int,
        what: str,
        algorithm: str,
        size_bytes: float,
        announced_s: float,
        play: Play,
        placement: Placed,
        worker: int = -1,
    ) -> CollectiveRow:
        """Return the row of an exchange that has been played."""
        sent_bytes = placement.payload_bytes_sent
        return cls(
            job,
            iteration,
            bucket,
            what,
            algorithm,
            size_bytes,
            announced_s,
            play.started_at_s,
            play.duration_s,
            placement.schedule.messages(),
            float(sent_bytes.sum()),
            float(sent_bytes.max(initial=0.0)),
            play.lost_bytes,
            placement,
            worker,
        )


class Sent:
    """What each worker of a job has sent in its measured iterations.

    Parameters
    ----------
    workers : int
    is_measured : callable
        Tells whether what has been sent for an iteration counts.
    can_forget : bool
        Keep what is needed for `forget`.

    Attributes
    ----------
    payload_bytes, wire_bytes : ndarray, shape (workers,)
        Without and with packet headers [bytes].
    lost_bytes : float
        Payload of all together that was lost, and not sent again [bytes].
    core_s : dict of (int, int) to float
        For how long cores of servers have worked, by node index and number of the core [s].
    """

    def __init__(self, workers: int, is_measured: Callable[[int], bool], *, can_forget: bool = False) -> None:
        self.payload_bytes: NDArray[np.float64] = np.zeros(workers)
        self.wire_bytes: NDArray[np.float64] = np.zeros(workers)
        self.lost_bytes = 0.0
        self.core_s: dict[tuple[int, int], float] = {}
        self._is_measured = is_measured
        self._kept: list[tuple[int, NDArray[np.int64], Placed]] | None = [] if can_forget else None

    def add(self, iteration: int, members: NDArray[np.int64], placement: Placed) -> None:
        """Count what has been played for an iteration; the workers are its first ranks."""
        if self._is_measured(iteration):
            self.payload_bytes[members] += placement.payload_bytes_sent[: len(members)]
            self.wire_bytes[members] += placement.wire_bytes_sent[: len(members)]
            if self._kept is not None:
                self._kept.append((iteration, members, placement))

    def forget(self, first: int) -> None:
        """Count no more what has been played from an iteration on, as all of it is done again."""
        kept, self._kept = self._kept or [], []
        self.payload_bytes[:], self.wire_bytes[:] = 0.0, 0.0
        for iteration, members, placement in kept:
            if iteration < first:
                self.add(iteration, members, placement)

    def add_lost(self, iteration: int, lost_bytes: float) -> None:
        """Count payload that was lost [bytes]."""
        if self._is_measured(iteration):
            self.lost_bytes += lost_bytes

    def add_cores(self, iteration: int, placement: Placed) -> None:
        """Count for how long cores have worked."""
        if self._is_measured(iteration):
            for core, seconds in placement.core_s.items():
                self.core_s[core] = self.core_s.get(core, 0.0) + seconds
