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
        self._sizes = [len(group) for group in groups]  # without members that are away
        self._next = [0] * len(members_of)  # the iteration that each worker does next
        self._arrived: list[dict[int, int]] = [{} for _ in groups]
        self._complete = [0 if group else math.inf for group in groups]  # iterations that all members have done
        self._waiting: list[dict[int, simpy.Event]] = [{} for _ in groups]

    def done(self, worker: int, iteration: int) -> None:
        """Say that a worker has done its part of an iteration; it does so in order."""
        self._next[worker] = iteration + 1
        for group in self._members_of[worker]:
            arrived = self._arrived[group]
            arrived[iteration] = arrived.get(iteration, 0) + 1
            if arrived[iteration] == self._sizes[group]:
                self._go_on(group, iteration)

    def when_done(self, group: int, iteration: float) -> simpy.Event | None:
        """Return the event of all members of a group having done an iteration; None where they have."""
        if iteration < self._complete[group]:
            return None
        number = int(iteration)
        if number not in self._waiting[group]:
            self._waiting[group][number] = self._env.event()
        return self._waiting[group][number]

    def leave(self, worker: int) -> None:
        """Wait for a worker no more; what it has done beyond the others is as if it had not been."""
        for group in self._members_of[worker]:
            arrived = self._arrived[group]
            self._sizes[group] -= 1
            for iteration in range(int(self._complete[group]), self._next[worker]):
                arrived[iteration] -= 1
            if not self._sizes[group]:
                # There is nobody to wait for.
                for waiting in self._waiting[group].values():
                    waiting.succeed()
                self._waiting[group].clear()
                self._arrived[group], self._complete[group] = {}, math.inf
                continue
            while arrived.get(int(self._complete[group])) == self._sizes[group]:
                self._go_on(group, int(self._complete[group]))

    def earliest(self, worker: int) -> int:
        """Return the first iteration that a worker can do when it comes back: the others may be through with some."""
        complete = (self._complete[group] for group in self._members_of[worker] if self._sizes[group])
        return int(max(complete, default=0))

    def join(self, worker: int, iteration: int) -> None:
        """Wait for a worker again, from an iteration on that is not too early."""
        self._next[worker] = iteration
        for group in self._members_of[worker]:
            if not self._sizes[group]:
                self._complete[group] = iteration
            self._sizes[group] += 1
            for earlier in range(int(self._complete[group]), iteration):
                self._arrived[group][earlier] = self._arrived[group].get(earlier, 0) + 1

    def _go_on(self, group: int, iteration: int) -> None:
        """Take note that all members of a group have done an iteration."""
        del self._arrived[group][iteration]
        self._complete[group] = iteration + 1
        waiting = self._waiting[group].pop(iteration, None)
        if waiting is not None:
            waiting.succeed()


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
    away : set of int
        Workers that nobody waits for, as they are not there.
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
        self.away: set[int] = set()
        self._bound = bound
        self._done = [0] * workers
        self._at_least = [workers, 0]  # workers that have done at least so many iterations
        self._lowest = 0
        self._skipped = [0] * workers  # iterations that others did while a worker was away
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
            self._gates[part].done(worker, iteration + self._skipped[worker])

    def may_go_on(self, worker: int, part: int, iteration: int) -> simpy.Event | None:
        """Return what a worker waits for that has sent its part of an iteration; None where it waits for nobody."""
        iteration += self._skipped[worker]
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
        while self._lowest + 1 < len(self._at_least) and self._at_least[self._lowest + 1] == self._at_least[0]:
            self._lowest += 1

    def ahead(self, worker: int) -> int:
        """Return how many iterations a worker is ahead of the slowest of all."""
        return self._done[worker] - self._lowest

    def leave(self, worker: int) -> None:
        """Count a worker no more, as it is not there."""
        self.away.add(worker)
        for gate in self._gates:
            gate.leave(worker)
        self._count_again()

    def join(self, worker: int, iteration: int) -> None:
        """Count a worker again that begins an iteration, by its own count, with what the others have done by now."""
        own = iteration + self._skipped[worker]
        present = [done for other, done in enumerate(self._done) if other not in self.away]
        begins = max([own, min(present, default=0), *(gate.earliest(worker) for gate in self._gates)])
        self.away.remove(worker)
        self._done[worker] = begins
        self._skipped[worker] = begins - iteration
        for gate in self._gates:
            gate.join(worker, begins)
        self._count_again()

    def _count_again(self) -> None:
        """Count how many of those that are there have done at least so many iterations."""
        present = [done for worker, done in enumerate(self._done) if worker not in self.away]
        self._at_least = [sum(done >= number for done in present) for number in range(max(present, default=0) + 1)]
        self._lowest = min(present, default=0)
