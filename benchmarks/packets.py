"""Time the packet level: ``python benchmarks/packets.py``.

W5   8 hosts send 10 MB each to a ninth at once: one switch, 100 Gbit/s and 1 us a link, packets of 4 KiB, stored and
     forwarded. Without pauses (nothing is there to limit buffers), and with them (PFC).
W4   500 of the flows of compare_simgrid.py on a fat tree k=8, RoCE.

Beside them how many events a second bare SimPy does in the same process: processes that wait for timeouts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import simpy
from simnet_workloads import flow_schedule
from works import BANDWIDTH_BYTES_PER_S, LATENCY_S, WORKS, build_topology

from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric, compile_packet_kernels
from simnet.fabric.packet.settings import DEFAULT_PACKETS, PacketSettings
from simnet.protocols import FlowProtocol, resolve
from simnet.topology import star
from simnet.traffic import Partition, ScheduleBuilder

__all__ = ["ROOMY", "PacketCounts", "bare_events_per_s", "flows_on_a_fat_tree", "incast"]

INCAST_BYTES = 10e6
ROOMY = PacketSettings(buffer_bytes=1e12, pause_at_bytes=1e12, resume_at_bytes=9e11)
"""Switches that have room for everything, and so never pause."""


@dataclass(frozen=True)
class PacketCounts:
    """What a work came to.

    Attributes
    ----------
    data_packets : int
        Sent by all connections.
    hops : int
        Packets of any kind that have arrived at the end of a link.
    events : int
        That the kernel has handled.
    dropped : int
    paused_s : float
        For how long links were paused, together [s].
    simulated_s : float
    cpu_s : float
        Playing alone [s].
    """

    data_packets: int
    hops: int
    events: int
    dropped: int
    paused_s: float
    simulated_s: float
    cpu_s: float


def roce(**overrides: float | str) -> FlowProtocol:
    """Return RoCE whose connections are open already: in these works each has one message."""
    return replace(resolve("roce", overrides), connection_setup_s=0.0, connection_setup_round_trips=0.0)


def incast(
    settings: PacketSettings = DEFAULT_PACKETS, senders: int = 8, size_bytes: float = INCAST_BYTES
) -> PacketCounts:
    """Play W5."""
    topology = star(hosts=senders + 1, bandwidth_bytes_per_s=BANDWIDTH_BYTES_PER_S, latency_s=LATENCY_S)
    build = ScheduleBuilder("incast", senders + 1, Partition(1, 1.0))
    for sender in range(senders):
        build.send(sender, senders, width=0, fixed_bytes=size_bytes)
    fabric = _fabric(Network(topology, roce(forwarding="store_and_forward")), settings)
    return _play(fabric, build.schedule(), list(topology.compiled.rank_nodes))


def flows_on_a_fat_tree(count: int = 500, seed: int = 1) -> PacketCounts:
    """Play W4."""
    work = WORKS["W4"](0, count, 0.0, seed)
    assert work.flows is not None
    topology = build_topology(work)
    nodes = topology.compiled.rank_nodes
    schedule = flow_schedule(work.flows, len(nodes), work.flows.start_s)
    return _play(
        _fabric(Network(topology, roce(), seed), DEFAULT_PACKETS), schedule, [*nodes[work.flows.source], *nodes]
    )


def bare_events_per_s(processes: int = 100, rounds: int = 2000) -> float:
    """Return how many events SimPy handles in a second of CPU, when all that happens is that processes wait."""
    env = simpy.Environment()

    def wait(delay: float) -> Iterator[simpy.Event]:
        for _ in range(rounds):
            yield env.timeout(delay)

    for number in range(processes):
        env.process(wait(1.0 + number / processes))
    begun = time.process_time()
    env.run()
    return processes * rounds / (time.process_time() - begun)


def _fabric(network: Network, settings: PacketSettings) -> PacketFabric:
    return PacketFabric(simpy.Environment(), network, settings=settings)


def _play(fabric: PacketFabric, schedule, nodes) -> PacketCounts:
    placement = fabric.place(schedule, nodes)
    begun = time.process_time()
    play = fabric.play(placement, "work")
    fabric.env.run()
    cpu_s = time.process_time() - begun
    fabric.require_conservation()
    queues, clock = fabric.queue_counts(), fabric._wire.tables.clock
    return PacketCounts(
        data_packets=int(np.sum(fabric.connection_counts()["packets"])),
        hops=int(clock["hops"][0]),
        events=int(clock["handled"][0]),
        dropped=int(queues.dropped.sum()),
        paused_s=float(queues.paused_s.sum()),
        simulated_s=play.duration_s,
        cpu_s=cpu_s,
    )


def main() -> None:
    compile_packet_kernels(print)
    incast(senders=2, size_bytes=1e5)  # loads them
    bare = bare_events_per_s()
    print(f"bare SimPy             {bare:12,.0f} events/s")
    works = {
        "W5, without pauses": lambda: incast(ROOMY),
        "W5, with pauses": incast,
        "W4, 500 flows": flows_on_a_fat_tree,
    }
    for name, run in works.items():
        runs = [run() for _ in range(3)]
        one, cpu = runs[0], min(each.cpu_s for each in runs)
        rate = one.data_packets / cpu if cpu > 0 else math.inf
        print(
            f"{name:22} {rate:12,.0f} data packets/s ({rate / bare:.2f} a bare event), {cpu:.3f} s of CPU, "
            f"{one.data_packets} data packets, {one.hops} hops, {one.events / one.hops:.4f} events a packet and hop, "
            f"paused {one.paused_s:.2e} s, dropped {one.dropped}, simulated {one.simulated_s:.6f} s"
        )


if __name__ == "__main__":
    main()
