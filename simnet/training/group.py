"""Workers that exchange the gradients of one part of a model: with whom, in which pieces, and by what schedules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric
from simnet.training.communication.architectures import arrange
from simnet.training.communication.arrangement import Arrangement
from simnet.training.communication.asynchronous import OwnCommunicator
from simnet.training.communication.buckets import Bucket, cut_buckets, make_buckets, merge_buckets
from simnet.training.communication.communicator import Communicator, Exchange
from simnet.training.communication.compression import compressed
from simnet.training.communication.exchanges import lay_out_alone, lay_out_exchanges, lay_out_fusion, measure_exchange
from simnet.training.communication.staleness import Clocks
from simnet.training.computing.compute import ready_times_s
from simnet.training.plan import Plan, plan_iteration
from simnet.training.records import Sent
from simnet.training.settings import JobSettings, RunSettings
from simnet.training.worker import Exchanges
from simnet.workload import Model

__all__ = ["Group", "Grouping"]


@dataclass(frozen=True, eq=False)
class Group:
    """Workers that exchange the gradients of one part of the model.

    Attributes
    ----------
    members : ndarray of int, shape (members,)
        The workers.
    nodes : ndarray of int, shape (ranks,)
        Node index of each of them, then of servers and switches.
    buckets : tuple of Bucket
    plan : Plan
    exchanges : tuple of Exchange
        One a part of the plan; empty where there is nobody to exchange with.
    communicator : Communicator or None
        None also where each worker exchanges by itself.
    own : tuple of OwnCommunicator
        That of each member, where it does.
    peers : sequence of sequence of int, or None
        Whom each member exchanges with, where that is not all.
    """

    members: NDArray[np.int64]
    nodes: NDArray[np.int64]
    buckets: tuple[Bucket, ...]
    plan: Plan
    exchanges: tuple[Exchange, ...]
    communicator: Communicator | None
    own: tuple[OwnCommunicator, ...] = ()
    peers: Sequence[Sequence[int]] | None = None

    def of_member(self, member: int) -> Exchanges | None:
        """Return what a member exchanges through."""
        return self.own[member] if self.own else self.communicator


@dataclass(frozen=True, eq=False)
class Grouping:
    """Forms the groups of a job.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
    settings : JobSettings
    run : RunSettings
    nodes : ndarray of int, shape (workers,)
        Node index of each worker of the job.
    busy : frozenset of int, or None
        Hosts with workers on them, of all jobs; None: those of each group alone.
    sent : Sent
    """

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    settings: JobSettings
    run: RunSettings
    nodes: NDArray[np.int64]
    busy: frozenset[int] | None
    sent: Sent

    def form(self, model: Model, members: NDArray[np.int64]) -> Group:
        """Lay out how some workers exchange the gradients of a model."""
        training, network, job = self.settings.training, self.fabric.network, self.settings.name
        arrangement = arrange(training.architecture, network.topology, self.nodes[members], self.busy)
        buckets = self._buckets(model, arrangement)
        plan = compressed(plan_iteration(model, buckets, training), model, training)
        if len(arrangement.nodes) == 1:
            return Group(members, arrangement.nodes, buckets, plan, (), None)
        if training.sync.waits_alone:
            own = self._own(members, plan, arrangement)
            return Group(members, arrangement.nodes, buckets, plan, (), None, own, arrangement.peers)
        streams = training.scheduling.streams_of(arrangement.streams, joins_late=arrangement.joins_late)
        own_queues = arrangement.joins_late and streams < math.inf
        exchanges = lay_out_exchanges(self.fabric, plan, arrangement, training, job, own_queues=own_queues)
        communicator = Communicator(
            self.env,
            self.fabric,
            self.recorder,
            job,
            members,
            exchanges,
            self.sent,
            training.grid.shared_memory,
            streams,
            arrangement.joins_late,
            own_queues,
            traced=self.run.records_plays,
            negotiation_s=training.scheduling.negotiation_s,
            credit_bytes=training.scheduling.credit_bytes,
            fusion=lay_out_fusion(self.fabric, plan, arrangement, training, job, exchanges),
        )
        return Group(members, arrangement.nodes, buckets, plan, exchanges, communicator)

    def _buckets(self, model: Model, arrangement: Arrangement) -> tuple[Bucket, ...]:
        """Put the gradients of a model into buckets, and cut these."""
        training = self.settings.training
        element_bytes, scheduling = training.gradient_element_bytes, training.scheduling
        if scheduling.fusion == "merged" and len(arrangement.nodes) > 1:
            exchange_s = measure_exchange(self.fabric, arrangement, training, model.parameters)
            buckets = merge_buckets(model.tensors, ready_times_s(self.settings.workload), exchange_s)
        else:
            bucket_bytes = 0.0 if scheduling.fusion == "cycle" else training.bucket_bytes
            buckets = make_buckets(model.tensors, element_bytes, bucket_bytes)
        return cut_buckets(buckets, element_bytes, scheduling.piece_bytes)

    def _own(self, members: NDArray[np.int64], plan: Plan, arrangement: Arrangement) -> tuple[OwnCommunicator, ...]:
        """Let each worker exchange by itself."""
        settings, sync = self.settings, self.settings.training.sync
        assert arrangement.alone is not None
        clocks = Clocks(self.env, len(members), len(plan.parts), sync.bound, arrangement.peers)
        found = []
        for worker in range(len(members)):
            alone = arrangement.alone(worker, self.run.seed, settings.name)
            exchanges = lay_out_alone(plan, alone, settings.training, self.fabric.network.protocol.divisible)
            own = OwnCommunicator(
                self.env,
                self.fabric,
                self.recorder,
                settings.name,
                worker,
                alone,
                exchanges,
                clocks,
                self.sent,
                self.run.records_plays,
            )
            found.append(own)
        return tuple(found)
