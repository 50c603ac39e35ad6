"""The exchanges of a plan: what travels among workers for each of its parts, as schedules in their places."""

from __future__ import annotations

from collections.abc import Callable

from simnet.fabric.interface import Fabric, Placed
from simnet.traffic import with_pulls
from simnet.training.architectures import Alone, Arrangement, other_collective
from simnet.training.asynchronous import AloneExchange
from simnet.training.communicator import Exchange
from simnet.training.plan import Plan
from simnet.training.settings import TrainingSettings

__all__ = ["lay_out_alone", "lay_out_exchanges"]


def lay_out_exchanges(
    fabric: Fabric, plan: Plan, arrangement: Arrangement, training: TrainingSettings
) -> tuple[Exchange, ...]:
    """Lay out the exchange of each part of a plan."""
    exchanges: dict[int, Exchange] = {}
    for collective in dict.fromkeys(part.collective for part in plan.parts):
        ours = [index for index, part in enumerate(plan.parts) if part.collective == collective]
        how = arrangement
        if collective != "all_reduce":
            how = other_collective(training.architecture, arrangement.nodes, collective)
        buffers = [plan.parts[index].buffer(training.gradient_element_bytes) for index in ours]
        element_bytes = buffers[0][1]
        schedules = how.schedules(
            [elements for elements, _ in buffers], element_bytes, fabric.network.protocol.divisible
        )
        for index, schedule, (elements, _) in zip(ours, schedules, buffers, strict=True):
            part = plan.parts[index]
            if part.pulled_bytes is not None:
                schedule = with_pulls(schedule, training.grid.data, part.pulled_bytes)
            placement = fabric.place(schedule, how.nodes)
            exchanges[index] = Exchange(
                training.architecture.name,
                elements * element_bytes,
                _always(placement),
                bucket=part.bucket.index,
                what=collective,
            )
    return tuple(exchanges[index] for index in range(len(plan.parts)))


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


def _always(placement: Placed) -> Callable[[int], Placed]:
    return lambda _: placement
