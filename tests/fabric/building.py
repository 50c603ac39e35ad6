"""Small schedules and how to begin them."""

from __future__ import annotations

from collections.abc import Sequence

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.play import Play
from simnet.traffic import Partition, Schedule, ScheduleBuilder


def builder(ranks: int, name: str = "made up") -> ScheduleBuilder:
    """A builder whose sends carry fixed bytes."""
    return ScheduleBuilder(name, ranks, Partition(1, 4.0))


def sends(*messages: tuple[int, int, float], ranks: int = 0, repeat: int = 1, name: str = "sends") -> Schedule:
    """Sends (source, target, bytes) that wait for nothing."""
    build = builder(ranks or 1 + max(max(source, target) for source, target, _ in messages), name)
    for source, target, size in messages:
        build.send(source, target, width=0, fixed_bytes=size, repeat=repeat)
    return build.schedule()


def fail(fabric: FluidFabric, link: str, at_s: float) -> None:
    """Take all of its capacity from a link at a time."""

    def fault():
        yield fabric.env.timeout(at_s)
        fabric.conditions.set_capacity(fabric.network.resource_names.index(link), 0.0)

    fabric.env.process(fault())


def begin(fabric: FluidFabric, schedule: Schedule, hosts: Sequence[int] = (), **options) -> Play:
    """Play a schedule on some hosts of a star, the first ones if none are named."""
    nodes = fabric.network.compiled.rank_nodes
    chosen = nodes[list(hosts)] if len(hosts) else nodes[: schedule.ranks]
    return fabric.play(fabric.place(schedule, chosen), schedule.name, **options)
