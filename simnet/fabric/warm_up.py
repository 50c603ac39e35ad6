"""Call every kernel once, so that all of them are compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import simpy

from simnet.fabric.bounds import bound
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.kernels.compiled import compile_once
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
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
    return compile_once(_warm_up, say)


def _warm_up() -> None:
    env = simpy.Environment()
    topology = star(hosts=3)
    fabric = FluidFabric(env, Network(topology, FlowProtocol()))
    placement = fabric.place(ring_all_reduce(3, 7, 4.0), topology.compiled.rank_nodes)
    bound(placement, fabric.network.capacity, fabric.costs)
    play = fabric.play(placement, "warm-up", gates_open=False)
    play.open([0, 1, 2])
    fabric.set_capacity(0, float(fabric.network.capacity[0]))
    fabric.set_flow_cap(play, 0, np.inf)
    fabric.reroute(play, 0, [0, 3], 0.0)
    env.run()
    fabric.cancel(fabric.play(placement, "warm-up"))
