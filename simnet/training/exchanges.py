"""The exchanges of a plan: what travels among workers for each of its parts, as schedules in their places."""

from __future__ import annotations

from collections.abc import Callable

from simnet.fabric.interface import Fabric, Placed
from simnet.training.architectures import Alone, Arrangement, sharded
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
        how = arrangement if collective == "all_reduce" else sharded(arrangement.nodes, collective)
        elements = [plan.parts[index].bucket.elements for index in ours]
        element_bytes = training.gradient_element_bytes
        schedules = how.schedules(elements, element_bytes, fabric.network.protocol.divisible)
        algorithm = training.architecture.name if collective == "all_reduce" else "ring"
        for index, schedule in zip(ours, schedules, strict=True):
            bucket = plan.parts[index].bucket
            placement = fabric.place(schedule, how.nodes)
            exchanges[index] = Exchange(
                algorithm,
                bucket.elements * element_bytes,
                _always(placement),
                bucket=bucket.index,
                what=collective,
            )
    return tuple(exchanges[index] for index in range(len(plan.parts)))


def lay_out_alone(plan: Plan, alone: Alone, training: TrainingSettings, divisible: bool) -> tuple[AloneExchange, ...]:
    """Return what one worker exchanges by itself for each part of a plan."""
    buckets, element_bytes = [part.bucket for part in plan.parts], training.gradient_element_bytes
    elements = [bucket.elements for bucket in buckets]
    pushes = alone.push(elements, element_bytes, divisible)
    pulls = alone.pull(elements, element_bytes, divisible) if alone.pull is not None else [None] * len(pushes)
    return tuple(
        AloneExchange(training.architecture.name, bucket.elements * element_bytes, bucket.index, push, pull)
        for bucket, push, pull in zip(buckets, pushes, pulls, strict=True)
    )


def _always(placement: Placed) -> Callable[[int], Placed]:
    return lambda _: placement
