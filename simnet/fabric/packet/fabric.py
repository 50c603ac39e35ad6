"""The packet-level fabric: the same interface and the same ranks, with every packet on every hop between hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.kernels.compiled import compile_once
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Network
from simnet.fabric.packet.kernels import engine, tables
from simnet.fabric.packet.kernels.ports import look_at
from simnet.fabric.packet.kernels.receivers import ACKNOWLEDGEMENT
from simnet.fabric.packet.kernels.records import LEVELS
from simnet.fabric.packet.player import PacketPlayer
from simnet.fabric.packet.ports import PICOSECOND
from simnet.fabric.packet.settings import DEFAULT_PACKETS, PacketSettings
from simnet.fabric.packet.wire import Wire
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.protocols import FlowProtocol
from simnet.protocols.congestion import Control
from simnet.protocols.transports import Rules
from simnet.topology import star
from simnet.traffic import Partition, ScheduleBuilder

__all__ = ["PacketFabric", "QueueCounts", "compile_packet_kernels"]


class QueueCounts:
    """What has become of the packets at each port, shape (ports,).

    Attributes
    ----------
    links : indices of the links
    packets, dropped, marked, lost : numbers of packets
    mean_bytes : held in the mean, since the beginning [bytes]
    p99_bytes : held at most for 99 % of the time, to within a third [bytes]
    highest_bytes : held at most [bytes]
    paused_s : for how long its classes were paused, together [s]
    """

    def __init__(self, wire: Wire) -> None:
        links = np.flatnonzero(~wire.ports.is_stack)
        ports = wire.tables.ports[links]
        self.links: NDArray[np.int64] = wire.ports.resources[links]
        self.packets, self.dropped = ports["packets"], ports["dropped"]
        self.marked, self.lost = ports["marked"], ports["lost"]
        self.highest_bytes = ports["highest"]
        self.mean_bytes = ports["byte_time"] / max(wire.now, 1)
        self.p99_bytes = np.minimum(
            _quantile(wire.tables.levels["time"].reshape(-1, LEVELS)[links], wire.now, 0.99), self.highest_bytes
        )
        self.paused_s = ports["paused_time"] * PICOSECOND


def _quantile(time: NDArray[np.float64], total: int, share: float) -> NDArray[np.float64]:
    """Return what was held at most for a share of the time, shape (ports,) [bytes].

    Parameters
    ----------
    time : ndarray, shape (ports, LEVELS)
        For how long so much was held; see `simnet.fabric.packet.kernels.packets.count_held`.
    total : int
        Since the beginning.
    share : float
    """
    if total <= 0:
        return np.zeros(len(time))
    beyond = total - time.sum(axis=1)
    reached = np.cumsum(time, axis=1) + beyond[:, None]
    level = np.argmax(reached >= share * total, axis=1)
    # The highest of each level: 0, then 3/4 and all of each power of two.
    power = (level + 1) // 2
    highest = np.where(level % 2 == 1, 0.75, 1.0) * 2.0**power
    return np.where(level == 0, 0.0, highest)


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
    controls, rules : mapping, optional
        Congestion controls, and rules of transports, that do not come with simnet, by the names that
        `Transport.congestion_control` and `Transport.reliability` have for them.
    slow_hosts : collection of int
        Hosts whose protocol stacks may be slower than usual for a while.
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
        controls: Mapping[str, type[Control]] | None = None,
        rules: Mapping[str, type[Rules]] | None = None,
        slow_hosts: Collection[int] = (),
    ) -> None:
        self._wire = Wire(network, settings, seed, controls, rules, slow_hosts)
        player = PacketPlayer(network, reduce_s_per_byte, engine, record, self._wire)
        super().__init__(env, network, reduce_s_per_byte, engine, record, player)

    def connection_counts(self) -> dict[str, Any]:
        """Return what has become of each connection, by column: nodes, packets, bytes, window and pace."""
        connections, names = self._wire.connections, self.network.compiled.node_names
        table = connections.tables.connections[: len(connections)]
        return {
            "source": [names[source] for source, _ in connections.ends],
            "target": [names[target] for _, target in connections.ends],
            "packets": table["sent"],
            "retransmitted": table["retransmitted"],
            "timeouts": table["timeouts"],
            "notifications": table["notified"],
            "wire_bytes": table["sent_bytes"],
            "goodput_bytes": np.array(connections.arrived_bytes),
            "lost_bytes": np.array(connections.lost_bytes),
            "round_trip_s": np.where(table["round_trip"] > 0, table["round_trip"] * PICOSECOND, np.nan),
            "window_packets": table["window"],
            "pace_bytes_per_s": np.where(table["pace"] > 0, table["pace"], np.inf),
        }

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
    # What only happens where packets are lost or links change, on a connection and a message that are over.
    state = fabric._wire.tables
    look_at(state, 0, fabric._wire.now)
    engine.send_back(state, 0, ACKNOWLEDGEMENT, 0, 0)
    engine.go_back(state, 0, 0)
    engine.send_again(state, 0, 1)
    engine.wait_longer(state, 0)
    engine.set_window(state, 0, 1.0, 0.0)
