"""Fabrics on a star with real links, lossy ones and short queues, under a transport of one's own."""

from __future__ import annotations

import math

import numpy as np
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.messages import Messages
from simnet.fabric.network import Network
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.protocols import FlowProtocol
from simnet.protocols.transport import Transport
from simnet.topology import star

from .building import begin, builder, sends

GIGABIT = 1e9 / 8
KIBIBYTE = 1024.0
TCP = {"mtu_bytes": 1500.0, "payload_bytes": 1448.0, "header_bytes": 90.0}
"""With timestamps: 1538 bytes of wire for 1448 of data."""
ROCE = {"mtu_bytes": 1000.0, "payload_bytes": 1000.0, "header_bytes": 82.0}


def fabric_with(
    transport: Transport,
    *,
    hosts: int = 2,
    rate: float = 10 * GIGABIT,
    round_trip_s: float = 100e-6,
    loss: float = 0.0,
    buffer_bytes: float | None = None,
    seed: int = 0,
    engine: EngineSettings = DEFAULT_ENGINE,
    **protocol: object,
) -> FluidFabric:
    """A star; `loss` is that of a path, over both of its links, and the round trip without packets."""
    topology = star(
        hosts=hosts,
        bandwidth_bytes_per_s=rate,
        latency_s=round_trip_s / 4,
        loss_probability=1.0 - math.sqrt(1.0 - loss) if loss else None,
        buffer_bytes=buffer_bytes,
    )
    network = Network(topology, FlowProtocol(transport=transport, **protocol), seed)
    return FluidFabric(simpy.Environment(), network, engine=engine)


def time_of(fabric: FluidFabric, *messages: tuple[int, int, float], repeat: int = 1) -> float:
    """Play sends (source, target, bytes); return how long they take."""
    schedule = sends(*messages, repeat=repeat)
    nodes = fabric.network.compiled.rank_nodes[: schedule.ranks]
    play = fabric.play(fabric.place(schedule, nodes), "sends")
    fabric.env.run()
    fabric.require_conservation()
    return play.duration_s


def times_of(network: Network, size: float, count: int) -> list[float]:
    """Send messages from host 0 to host 1, one after the other, in one play; return how long each takes."""
    taken: list[Messages] = []
    fabric = FluidFabric(simpy.Environment(), network, record=taken.append)
    build = builder(2)
    messages = build.send(np.zeros(count, int), 1, width=0, fixed_bytes=size)
    build.depend(messages[:-1], messages[1:])
    begin(fabric, build.schedule())
    fabric.env.run()
    fabric.require_conservation()
    fabric.close()
    return np.concatenate([some.delivered_s - some.start_s for some in taken]).tolist()
