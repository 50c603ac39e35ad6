"""The exchanges of a plan: what travels among workers for each of its parts, as schedules in their places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric, Placed
from simnet.traffic import Schedule, with_pulls, with_sent_milestones
from simnet.training.communication.architectures import other_collective
from simnet.training.communication.arrangement import Alone, Arrangement
from simnet.training.communication.asynchronous import AloneExchange
from simnet.training.communication.communicator import Exchange, Fusion
from simnet.training.plan import Plan
from simnet.training.settings import TrainingSettings

__all__ = ["lay_out_alone", "lay_out_exchanges", "lay_out_fusion", "measure_exchange"]


def lay_out_exchanges(
    fabric: Fabric, plan: Plan, arrangement: Arrangement, training: TrainingSettings, job: str, *, own_queues: bool
) -> tuple[Exchange, ...]:
    """Lay out the exchange of each part of a plan.

    Parameters
    ----------
    fabric : Fabric
    plan : Plan
    arrangement : Arrangement
    training : TrainingSettings
    job : str
        Its name: jobs have connections of their own.
    own_queues : bool
        Whether members want to know when all that each sends has arrived.
    """
    workers, divisible = training.grid.data, fabric.network.protocol.divisible

    @cache
    def as_played(schedule: Schedule, pulled_bytes: int | None) -> Schedule:
        if pulled_bytes is not None:
            schedule = with_pulls(schedule, workers, pulled_bytes)
        return with_sent_milestones(schedule, workers) if own_queues else schedule

    exchanges: dict[int, Exchange] = {}
    for collective in dict.fromkeys(part.collective for part in plan.parts):
        ours = [index for index, part in enumerate(plan.parts) if part.collective == collective]
        how = _how(arrangement, training, collective)
        nodes = np.concatenate([how.nodes, how.nodes[:workers]]) if own_queues else how.nodes
        buffers = [plan.parts[index].buffer(training.gradient_element_bytes) for index in ours]
        element_bytes = buffers[0][1]
        schedules = how.schedules([elements for elements, _ in buffers], element_bytes, divisible)
        for index, schedule, (elements, _) in zip(ours, schedules, buffers, strict=True):
            part = plan.parts[index]
            exchanges[index] = Exchange(
                training.architecture.name,
                elements * element_bytes,
                _always(fabric.place(as_played(schedule, part.pulled_bytes), nodes, owner=job)),
                priority=part.bucket.first_layer if training.scheduling.order == "priority" else 0,
                bucket=part.bucket.index,
                what=collective,
                first_sent=schedule.ranks if own_queues else 0,
            )
    return tuple(exchanges[index] for index in range(len(plan.parts)))


def lay_out_fusion(
    fabric: Fabric,
    plan: Plan,
    arrangement: Arrangement,
    training: TrainingSettings,
    job: str,
    exchanges: tuple[Exchange, ...],
) -> Fusion | None:
    """Return how parts travel together that are ready at the end of a cycle; None where each travels by itself."""
    scheduling = training.scheduling
    if scheduling.fusion != "cycle" or not plan.parts:
        return None
    element_bytes = plan.parts[0].buffer(training.gradient_element_bytes)[1]
    elements = [part.buffer(element_bytes)[0] for part in plan.parts]

    @cache
    def make(collective: str, size: int) -> Schedule:
        how = _how(arrangement, training, collective)
        [schedule] = how.schedules([size], element_bytes, fabric.network.protocol.divisible)
        return schedule

    def exchange(like: Exchange, size: int) -> Exchange:
        nodes = _how(arrangement, training, like.what).nodes
        placement = _always(fabric.place(make(like.what, size), nodes, owner=job))
        return replace(like, size_bytes=size * element_bytes, placement=placement)

    def together(parts: tuple[int, ...]) -> Exchange:
        return exchange(exchanges[parts[0]], sum(elements[part] for part in parts))

    at_least = []
    for kind in dict.fromkeys(one.what for one in exchanges):
        own = [part for part, one in enumerate(exchanges) if one.what == kind]
        whole = sum(elements[part] for part in own)
        # Cut by themselves, the chunks of each part may be shorter by less than an element.
        cut = len(own) * make(kind, whole).partition.chunks
        at_least.append(exchange(exchanges[own[0]], max(whole - cut, 0)))
    return Fusion(scheduling.cycle_s, scheduling.buffer_bytes, together, at_least)


def measure_exchange(
    fabric: Fabric, arrangement: Arrangement, training: TrainingSettings, most_elements: int
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return what the exchange of so many elements takes when there is nothing else on the network [s].

    It is played for sizes from one element to the most, at flow level; between these it goes by straight lines.

    Parameters
    ----------
    fabric : Fabric
        Whose network it is.
    arrangement, training
        How it is done.
    most_elements : int
    """
    sizes = np.unique(np.geomspace(1, max(most_elements, 1), _MEASURED_SIZES).astype(np.int64))
    schedules = arrangement.schedules(
        sizes.tolist(), training.gradient_element_bytes, fabric.network.protocol.divisible
    )
    times_s = []
    for schedule in schedules:
        env = simpy.Environment()
        alone = FluidFabric(env, fabric.network)
        play = alone.play(alone.place(schedule, arrangement.nodes), schedule.name)
        env.run(until=play.complete)
        times_s.append(play.duration_s)
    # What chance makes of a larger exchange may take less.
    measured_s = np.maximum.accumulate(times_s)
    return lambda elements: np.interp(elements, sizes, measured_s)


_MEASURED_SIZES = 12


def lay_out_alone(plan: Plan, alone: Alone, training: TrainingSettings, divisible: bool) -> tuple[AloneExchange, ...]:
    """Return what one worker exchanges by itself for each part of a plan."""
    if not plan.parts:
        return ()
    buffers = [part.buffer(training.gradient_element_bytes) for part in plan.parts]
    element_bytes = buffers[0][1]
    pushed = [elements for elements, _ in buffers]
    pulled = [
        elements if part.pulled_bytes is None else part.pulled_bytes
        for part, elements in zip(plan.parts, pushed, strict=True)
    ]
    pushes = alone.push(pushed, element_bytes, divisible)
    pulls = alone.pull(pulled, element_bytes, divisible) if alone.pull is not None else [None] * len(pushes)
    return tuple(
        AloneExchange(training.architecture.name, elements * element_bytes, part.bucket.index, push, pull)
        for part, elements, push, pull in zip(plan.parts, pushed, pushes, pulls, strict=True)
    )


def _how(arrangement: Arrangement, training: TrainingSettings, collective: str) -> Arrangement:
    """Return how a collective is done: an all-reduce as the architecture does it."""
    if collective == "all_reduce":
        return arrangement
    return other_collective(training.architecture, arrangement.nodes, collective)


def _always(placement: Placed) -> Callable[[int], Placed]:
    return lambda _: placement
