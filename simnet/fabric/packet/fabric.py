"""The packet-level fabric: the same interface and the same ranks, with every packet on every hop between hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.kernels.compiled import compile_once
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Network
from simnet.fabric.packet.kernels import tables
from simnet.fabric.packet.player import PacketPlayer
from simnet.fabric.packet.settings import DEFAULT_PACKETS, PacketSettings
from simnet.fabric.packet.wire import PICOSECOND, Wire
from simnet.fabric.play import Play
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import Partition, ScheduleBuilder

__all__ = ["PACKET_PROTOCOLS", "PacketFabric", "QueueCounts", "compile_packet_kernels"]

PACKET_PROTOCOLS = ("ideal", "roce")
"""Protocols that go by packets: reliable connections over lossless switches."""


class QueueCounts:
    """What has become of the packets at each port, shape (ports,).

    Attributes
    ----------
    links : indices of the links
    packets, dropped, marked, lost : numbers of packets
    mean_bytes : held in the mean, since the beginning [bytes]
    highest_bytes : held at most [bytes]
    paused_s : for how long its classes were paused, together [s]
    """

    def __init__(self, wire: Wire) -> None:
        ports = wire.tables.ports
        self.links: NDArray[np.int64] = wire.links
        self.packets, self.dropped = ports["packets"].copy(), ports["dropped"].copy()
        self.marked, self.lost = ports["marked"].copy(), ports["lost"].copy()
        self.highest_bytes = ports["highest"].copy()
        self.mean_bytes = ports["byte_time"] / max(wire.now, 1)
        self.paused_s = ports["paused_time"] * PICOSECOND


class PacketFabric(FluidFabric):
    """Plays schedules on a network of packets.

    Within a host, bytes flow as at flow level; between hosts they go as packets.

    Parameters
    ----------
    env, network, reduce_s_per_byte, engine, record
        See `FluidFabric`.
    settings : PacketSettings
    seed : int
        Of losses and marks.
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: Network,
        reduce_s_per_byte: float = 0.0,
        engine: EngineSettings = DEFAULT_ENGINE,
        record: TakeMessages | None = None,
        *,
        settings: PacketSettings = DEFAULT_PACKETS,
        seed: int = 0,
    ) -> None:
        self._wire = Wire(network, settings, seed)
        player = PacketPlayer(network, reduce_s_per_byte, engine, record, self._wire)
        super().__init__(env, network, reduce_s_per_byte, engine, record, player)

    def cancel(self, play: Play) -> None:
        """Refuse: packets that are on their way cannot be called back yet."""
        raise ValueError(f"{play.name} cannot be cancelled at packet level")

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Refuse: the rate of a port does not change yet."""
        name = self.network.resource_names[resource]
        raise ValueError(f"{name} cannot have {bytes_per_s} bytes/s from now on at packet level")

    def queue_counts(self) -> QueueCounts:
        """Return what has become of the packets so far."""
        return QueueCounts(self._wire)


def compile_packet_kernels(say: Callable[[str], None]) -> float:
    """Compile the kernels of the packet level, unless an earlier process has; see `compile_once`."""
    return compile_once([send_a_packet], say, Path(tables.__file__).resolve().parent)


def send_a_packet() -> None:
    """Call the kernels of the packet level."""
    hosts = star(hosts=2)
    fabric = PacketFabric(simpy.Environment(), Network(hosts, FlowProtocol()))
    build = ScheduleBuilder("warm-up", 2, Partition(1, 1.0))
    build.send(0, 1, width=0, fixed_bytes=1.0)
    fabric.play(fabric.place(build.schedule(), hosts.compiled.rank_nodes), "warm-up")
    fabric.env.run()
