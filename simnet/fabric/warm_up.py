"""Call every kernel once, so that all of them are compiled."""

from __future__ import annotations

import math
from collections.abc import Callable

import simpy

from simnet.fabric.dcqcn import utilisation
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.kernels.compiled import compile_once
from simnet.fabric.network import Network
from simnet.fabric.placement import Placement
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.protocols import FlowProtocol
from simnet.protocols.transport import Transport
from simnet.topology import star
from simnet.traffic import ring_all_reduce

__all__ = ["compile_kernels"]


def compile_kernels(say: Callable[[str], None]) -> float:
    """Compile the kernels, unless an earlier process has.

    Parameters
    ----------
    say : callable
        Told, in one line, that it takes a while.

    Returns
    -------
    float
        Seconds spent; 0.0 where nothing was to be done.
    """
    return compile_once([play_by_events, foresee_and_disturb], say)


def play_by_events() -> None:
    """Call the kernels that play a schedule event by event."""
    fabric, placement = _ring(EngineSettings(recurrence=False))
    fabric.play(placement, "warm-up")
    fabric.env.run()


def foresee_and_disturb() -> None:
    """Call the kernels that foresee a schedule, and those that something comes with that nobody foresaw."""
    fabric, placement = _ring(DEFAULT_ENGINE)
    fabric.bound(placement)
    fabric.play(placement, "warm-up")
    fabric.env.run()
    fabric, placement = _ring(EngineSettings(recurrence=False))
    play = fabric.play(placement, "warm-up")
    fabric.conditions.set_capacity(0, float(fabric.network.capacity[0]))
    fabric.set_flow_cap(play, 0, math.inf)
    fabric.reroute(play, 0, [0, 3], 0.0)
    fabric.cancel(play)
    utilisation(Transport(mark_from_s=1e-6, mark_all_s=2e-6, increase_period_s=1e-6), 1e9, 1e3, 1e-6, 2)


def _ring(engine: EngineSettings) -> tuple[FluidFabric, Placement]:
    topology = star(hosts=3)
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol()), engine=engine)
    return fabric, fabric.place(ring_all_reduce(3, 7, 4.0), topology.compiled.rank_nodes)
