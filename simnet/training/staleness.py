"""How far workers that exchange by themselves may be ahead of each other, and how far they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import simpy

__all__ = ["Clocks", "Gate"]


class Gate:
    """Lets a worker go on when all that it waits for have come far enough, for one part of an iteration.

    Parameters
    ----------
    env : simpy.Environment
    groups : sequence of sequence of int
        Groups of workers; a group has come as far as its last member.
    members_of : sequence of sequence of int, shape (workers,)
        The groups that each worker is a member of.

    Notes
    -----
    Of each group the number of members is counted that have come to each iteration, so that a worker's step forward
    takes as long as it has groups, not as these have members.
    """

    def __init__(
        self, env: simpy.Environment, groups: Sequence[Sequence[int]], members_of: Sequence[Sequence[int]]
    ) -> None:
        self._env, self._members_of = env, members_of
        self._sizes = [len(group) for group in groups]
        self._arrived: list[dict[int, int]] = [{} for _ in groups]
        self._complete = [0 if group else math.inf for group in groups]  # iterations that all members have done
        self._waiting: list[dict[int, simpy.Event]] = [{} for _ in groups]

    def done(self, worker: int, iteration: int) -> None:
        """Say that a worker has done its part of an iteration; it does so in order."""
        for group in self._members_of[worker]:
            arrived = self._arrived[group]
            arrived[iteration] = arrived.get(iteration, 0) + 1
            if arrived[iteration] == self._sizes[group]:
                del arrived[iteration]
                self._complete[group] = iteration + 1
                waiting = self._waiting[group].pop(iteration, None)
                if waiting is not None:
                    waiting.succeed()

    def when_done(self, group: int, iteration: float) -> simpy.Event | None:
        """Return the event of all members of a group having done an iteration; None where they have."""
        if iteration < self._complete[group]:
            return None
        number = int(iteration)
        if number not in self._waiting[group]:
            self._waiting[group][number] = self._env.event()
        return self._waiting[group][number]


class Clocks:
    """How many iterations each worker has done, and which updates others have made meanwhile.

    Parameters
    ----------
    env : simpy.Environment
    workers : int
    parts : int
        Parts that each exchanges in an iteration.
    bound : float
        How many iterations a worker may be ahead of those that it waits for.
    peers : sequence of sequence of int, or None
        Those that each waits for; None: all.

    Attributes
    ----------
    updates : int
        Iterations that all together have done.
    """

    def __init__(
        self,
        env: simpy.Environment,
        workers: int,
        parts: int,
        bound: float,
        peers: Sequence[Sequence[int]] | None,
    ) -> None:
        self.updates = 0
        self._bound = bound
        self._done = [0] * workers
        self._at_least = [workers, 0]  # workers that have done at least so many iterations
        self._lowest = 0
        groups: Sequence[Sequence[int]] = [range(workers)] if peers is None else peers
        members_of: list[list[int]] = [[] for _ in range(workers)]
        for number, group in enumerate(groups):
            for worker in group:
                members_of[worker].append(number)
        self._group_of = [0] * workers if peers is None else list(range(workers))
        self._gates = [Gate(env, groups, members_of) for _ in range(parts)] if math.isfinite(bound) else []

    def part_done(self, worker: int, part: int, iteration: int) -> None:
        """Say that what a worker sends for a part has arrived."""
        if self._gates:
            self._gates[part].done(worker, iteration)

    def may_go_on(self, worker: int, part: int, iteration: int) -> simpy.Event | None:
        """Return what a worker waits for that has sent its part of an iteration; None where it waits for nobody."""
        if not self._gates or iteration < self._bound:
            return None
        return self._gates[part].when_done(self._group_of[worker], iteration - self._bound)

    def iteration_done(self, worker: int) -> None:
        """Say that all that a worker sends in an iteration has arrived."""
        self.updates += 1
        self._done[worker] += 1
        if self._done[worker] == len(self._at_least):
            self._at_least.append(0)
        self._at_least[self._done[worker]] += 1
        while self._lowest + 1 < len(self._at_least) and self._at_least[self._lowest + 1] == len(self._done):
            self._lowest += 1

    def ahead(self, worker: int) -> int:
        """Return how many iterations a worker is ahead of the slowest of all."""
        return self._done[worker] - self._lowest
