"""A training step that several workers do together, because the model is split over them: a schedule that is played.

A pipeline, layers that are shared, memory that is shared, and a dataflow graph all come down to calculations and
messages that wait for each other. *Milestones*, which are ranks of the schedule that do nothing but wait, tell when
gradients are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric, Placed
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import Kind, Schedule
from simnet.training.communication.communicator import Communicator, Exchange
from simnet.training.computing.slowdowns import Slowdowns
from simnet.training.plan import Stretch
from simnet.training.records import Sent

__all__ = ["SplitStep", "StepParts", "begin_steps", "durations_without_network"]


@dataclass(frozen=True, eq=False)
class StepParts:
    """A step of one replica.

    Parameters
    ----------
    name : str
        What it is, for records.
    schedule : Schedule
        Ranks are the workers of the replica, then milestones.
    milestone_owner : ndarray of int, shape (milestones,)
        Worker of the replica, by its number in it, on whose node each milestone is.
    announcing : sequence of sequence of (Stretch, tuple of int)
        For each worker of the replica the stretches of its plan that end in the step, each with its milestones.
    compute_s : ndarray, shape (members,)
        For how long each worker of the replica computes, at its usual speed [s].
    """

    name: str
    schedule: Schedule
    milestone_owner: NDArray[np.int64]
    announcing: Sequence[Sequence[tuple[Stretch, tuple[int, ...]]]]
    compute_s: NDArray[np.float64]


class SplitStep:
    """The steps of one replica.

    Parameters
    ----------
    parts : StepParts
    members : ndarray of int, shape (members,)
        The workers of the job that are those of the replica.
    slowdowns : Slowdowns
        How much longer than usual each worker of the job computes.

    Attributes
    ----------
    communicator : Communicator
        Plays it; set once, by `begin_steps`.
    """

    communicator: Communicator

    def __init__(self, parts: StepParts, members: NDArray[np.int64], slowdowns: Slowdowns) -> None:
        self._parts = parts
        self._members = members
        self._member = {int(rank): member for member, rank in enumerate(members.tolist())}
        self._slowdowns = slowdowns
        self._alone: tuple[int, NDArray[np.float64]] | None = None

    def member(self, rank: int) -> int:
        """Return the number of a worker in its replica."""
        return self._member[rank]

    def milestones(self, rank: int) -> Sequence[tuple[Stretch, tuple[int, ...]]]:
        """Return the stretches of a worker's plan that end in the step, each with the ranks that tell when."""
        return self._parts.announcing[self.member(rank)]

    def schedule(self, iteration: int) -> Schedule:
        """Return the step of an iteration, with everybody at its own speed."""
        return _slowed(self._parts.schedule, self._factors(iteration))

    def times_of(self, iteration: int, rank: int) -> tuple[float, float]:
        """Return for how long a worker computes, and how long its part would last if messages took no time [s]."""
        if self._alone is None or (self._slowdowns.varies and self._alone[0] != iteration):
            self._alone = iteration, durations_without_network(self.schedule(iteration))
        member = self.member(rank)
        compute_s = float(self._parts.compute_s[member] * self._slowdowns.of_worker(iteration, rank))
        return compute_s, float(self._alone[1][member])

    def usual_schedule(self, played: Schedule, factor: float) -> Schedule:
        """Return a step as it was played, but with nobody computing for more than so many times as long as usual."""
        seconds = np.minimum(played.operations.seconds, self._parts.schedule.operations.seconds * factor)
        return replace(played, operations=replace(played.operations, seconds=seconds))

    @property
    def longest_compute_s(self) -> float:
        """For how long the worker computes that computes longest, at its usual speed [s]."""
        return float(self._parts.compute_s.max())

    def _factors(self, iteration: int) -> NDArray[np.float64]:
        """Return how much longer than usual each rank of the schedule computes."""
        factors = self._slowdowns.of(iteration)[self._members]
        return np.concatenate([factors, np.ones(self._parts.schedule.ranks - len(factors))])


def begin_steps(
    env: simpy.Environment,
    fabric: Fabric,
    recorder: Recorder,
    job: str,
    step: SplitStep,
    parts: StepParts,
    nodes: NDArray[np.int64],
    members: NDArray[np.int64],
    sent: Sent,
    *,
    varies: bool,
    joins_late: bool,
    traced: bool = False,
) -> None:
    """Let the steps of a replica be played.

    Parameters
    ----------
    env, fabric, recorder, job
        Of the job.
    step : SplitStep
    parts : StepParts
    nodes : ndarray of int, shape (workers,)
        Node of each worker of the job.
    members, sent
        As of `Communicator`.
    varies : bool
        Workers compute for another time in each iteration.
    joins_late : bool
        Each worker begins by itself; otherwise all begin together.
    traced : bool
        As of `Communicator`.
    """
    own = nodes[members]
    everywhere = np.concatenate([own, own[parts.milestone_owner]])
    usual = None if varies else fabric.place(step.schedule(0), everywhere)

    def placement(iteration: int) -> Placed:
        return fabric.place(step.schedule(iteration), everywhere) if usual is None else usual

    exchange = Exchange(parts.name, 0.0, placement, what="step")
    step.communicator = Communicator(
        env, fabric, recorder, job, members, [exchange], sent, joins_late=joins_late, recorded=False, traced=traced
    )


def durations_without_network(schedule: Schedule) -> NDArray[np.float64]:
    """Return when each rank of a schedule would be over if messages took no time, shape (ranks,) [s]."""
    ops = schedule.operations
    nothing = np.zeros(len(ops))
    empty = replace(
        ops,
        chunk_width=np.where(ops.kind == Kind.SEND, 0, ops.chunk_width),
        fixed_bytes=np.where(ops.kind == Kind.SEND, nothing, ops.fixed_bytes),
    )
    env = simpy.Environment()
    hosts = star(hosts=schedule.ranks, latency_s=0.0)
    fabric = FluidFabric(env, Network(hosts, FlowProtocol()))
    play = fabric.play(fabric.place(replace(schedule, operations=empty), hosts.compiled.rank_nodes), schedule.name)
    env.run(until=play.complete)
    return play.rank_duration_s.copy()


def _slowed(schedule: Schedule, factors: NDArray[np.float64]) -> Schedule:
    """Return a schedule in which each rank computes so many times as long."""
    if (factors == 1.0).all():
        return schedule
    ops = schedule.operations
    return replace(schedule, operations=replace(ops, seconds=ops.seconds * factors[ops.source]))
