"""Ports against a simulator with two events for each packet and hop, and against queueing theory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from simnet.fabric.packet.kernels.engine import ALL_SENT, DATA, QUIET, TOLD, allow, run
from simnet.fabric.packet.kernels.packets import give_back
from simnet.fabric.packet.kernels.tables import CLASSES, PacketTables, make_packet_tables

from .reference import Node, Packet, Port, Reference

HOSTS, SWITCHES = 6, 2
FAR = 1 << 60


def two_switches(stream: np.random.Generator, lossless: int) -> tuple[list[Port], list[Node]]:
    """Three hosts on each of two switches; rates of 10 to 40 Gbit/s, odd delays, so that nothing ties."""
    cables = [(host, HOSTS + host // 3) for host in range(HOSTS)] + [(HOSTS, HOSTS + 1)]
    # The ports of a node stand together.
    ends = sorted([*cables, *((b, a) for a, b in cables)])
    number = {end: row for row, end in enumerate(ends)}
    ports = []
    for source, target in ends:
        rate = int(stream.choice([1_250_000_000, 3_125_000_000, 4_999_999_999]))
        delay = int(stream.integers(100_000, 900_000))
        ports.append(Port(source, target, number[target, source], rate, delay, 40_000, mark_at=15_000))
    nodes = [Node() for _ in range(HOSTS)] + [
        Node(lossless, pause_at=12_000, resume_at=9_000, headroom=30_000) for _ in range(SWITCHES)
    ]
    return ports, nodes


def as_tables(ports: list[Port], nodes: list[Node], packets: int) -> PacketTables:
    tables = make_packet_tables(
        ports=len(ports), nodes=len(nodes), packets=4 * packets + 100, flows=packets, steps=4 * packets
    )
    for row, port in enumerate(ports):
        record = tables.ports[row]
        for column in ("source", "target", "reverse", "bytes_per_s", "delay", "limit"):
            record[column] = getattr(port, column)
        record["mark_from"] = record["mark_all"] = port.mark_at
        record["random"] = row + 1
    for row, node in enumerate(nodes):
        own = [number for number, port in enumerate(ports) if port.source == row]
        record = tables.nodes[row]
        record["first_port"], record["ports"] = own[0], len(own)
        for column in ("lossless", "pause_at", "resume_at", "headroom"):
            record[column] = getattr(node, column)
    return tables


def path_between(ports: list[Port], source: int, target: int) -> list[int]:
    number = {(port.source, port.target): row for row, port in enumerate(ports)}
    nodes = [source, HOSTS + source // 3, *([HOSTS + target // 3] if source // 3 != target // 3 else []), target]
    return [number[a, b] for a, b in pairwise(nodes)]


@pytest.mark.parametrize("lossless", [0b0000, 0b0110])
@pytest.mark.parametrize("seed", range(20))
def test_the_same_as_with_two_events_for_each_hop(seed, lossless):
    """Delivery times, drops, marks, pauses and highest queues are the same, to the picosecond; load from 0.5 to 3."""
    stream = np.random.default_rng(seed)
    ports, nodes = two_switches(stream, lossless)
    count = 600
    load = stream.uniform(0.5, 3.0)
    times = np.cumsum(stream.exponential(1500 * 8 / 20e9 * 1e12 / load / HOSTS * 2, count)).astype(np.int64)
    times += np.arange(count)  # no two at the same picosecond
    tables = as_tables(ports, nodes, count)
    reference = Reference(ports, nodes)
    for name in range(count):
        source, target = stream.choice(HOSTS, 2, replace=False).tolist()
        size, traffic_class = int(stream.integers(64, 4200)), int(stream.integers(1, CLASSES))
        path = path_between(ports, source, target)
        reference.put(int(times[name]), Packet(name, size, traffic_class, path))
        flow = tables.flows[name]
        tables.steps["port"][4 * name : 4 * name + len(path)] = path
        for column, value in {
            "port": path[0],
            "path": 4 * name,
            "hops": len(path),
            "traffic_class": traffic_class,
            "packets": 1,
            "last_bytes": size,
            "may_be_marked": True,
        }.items():
            flow[column] = value
    reference.run()

    delivered, marked = {}, set()

    def play(until: int) -> None:
        while (why := run(tables, until)) != QUIET:
            if why == ALL_SENT:
                continue
            assert why == TOLD
            row = int(tables.clock["reported"][0])
            packet = tables.packets[row]
            assert packet["kind"] == DATA
            delivered[int(packet["flow"])] = int(tables.clock["now"][0])
            if packet["is_marked"]:
                marked.add(int(packet["flow"]))
            give_back(tables, row)

    for name in range(count):
        play(int(times[name]))
        allow(tables, name, 0, 1, 0)
    play(FAR)
    assert delivered == reference.delivered
    assert set(range(count)) - set(delivered) == reference.dropped
    assert marked == reference.marked - reference.dropped
    switch_ports = [row for row, port in enumerate(ports) if port.source >= HOSTS]
    assert tables.ports["highest"][switch_ports].tolist() == [ports[row].highest for row in switch_ports]
    assert tables.ports["packets"].tolist() == [port.sent for port in ports]
    assert (tables.ports["held"] == 0).all()
    assert (tables.ingresses["bytes"] == 0).all()
    if lossless:
        assert sum(port.pauses for port in ports) > 0
        assert int(tables.clock["handled"][0]) < 2 * int(tables.clock["hops"][0]) + count
    else:
        # One event a packet and hop, and one a message.
        assert int(tables.clock["handled"][0]) == int(tables.clock["hops"][0]) + count
