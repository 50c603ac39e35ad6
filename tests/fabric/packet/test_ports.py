"""Ports against a simulator with two events for each packet and hop, and against queueing theory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from simnet.fabric.packet.kernels.engine import ALL_SENT, QUIET, TOLD, begin_message, run
from simnet.fabric.packet.kernels.packets import give_back
from simnet.fabric.packet.kernels.receivers import DATA
from simnet.fabric.packet.kernels.records import CLASSES, NEVER, NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables, make_packet_tables

from .building import RAW, B, Traffic, behaving, into_one, star_of
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
        ports=len(ports),
        nodes=len(nodes),
        packets=4 * packets + 100,
        connections=packets,
        messages=packets,
        steps=4 * packets,
    )
    tables.clock["room"] = 64
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
    sizes: list[int] = []
    for name in range(count):
        source, target = stream.choice(HOSTS, 2, replace=False).tolist()
        size, traffic_class = int(stream.integers(64, 4200)), int(stream.integers(1, CLASSES))
        path = path_between(ports, source, target)
        reference.put(int(times[name]), Packet(name, size, traffic_class, path))
        connection = tables.connections[name]
        tables.steps["port"][4 * name : 4 * name + len(path)] = path
        for column, value in {
            "port": path[0],
            "path": 4 * name,
            "hops": len(path),
            "traffic_class": traffic_class,
            "full_bytes": size,
            "window": np.inf,
            "room": 1,
            "may_be_marked": True,
            "timeout": NEVER // 2,
            "timeout_at": NEVER,
            "timeout_event_at": NEVER,
            **dict.fromkeys(("first_message", "last_message", "sending", "receiving"), NOWHERE),
            **dict.fromkeys(("first_lost", "next_ready"), NOWHERE),
        }.items():
            connection[column] = value
        sizes.append(size)
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
            delivered[int(packet["connection"])] = int(tables.clock["now"][0])
            if packet["is_marked"]:
                marked.add(int(packet["connection"]))
            give_back(tables, row)

    for name in range(count):
        play(int(times[name]))
        begin_message(tables, name, 1, sizes[name])
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
        assert int(tables.clock["handled"][0]) < 1.5 * int(tables.clock["hops"][0]) + count
    else:
        # One event a packet and hop, and one a message.
        assert int(tables.clock["handled"][0]) == int(tables.clock["hops"][0]) + count


def after_each_other(arrived, packet_s):
    """When each packet has left a queue: the later of its arrival and when the one before has left, and its own time.

    D. Lindley 1952; `arrived` is sorted.
    """
    position = np.arange(len(arrived)) * packet_s
    return np.maximum.accumulate(arrived - position) + position + packet_s


def test_a_queue_with_random_arrivals():
    """Packets of one size that arrive at random wait rho/(2(1 - rho)) times what one takes, 2.0 at rho = 0.8 (M/D/1).

    Lindley's recursion has that within 3 % over a million packets, and the queue at a switch does as it does.
    """
    stream = np.random.default_rng(1)
    packet_s = 4178 / B
    arrived = np.cumsum(stream.exponential(packet_s / 0.8, 1_000_000))
    waits = after_each_other(arrived, packet_s) - packet_s - arrived
    assert waits.mean() == pytest.approx(2.0 * packet_s, rel=0.03)

    count, hosts, faster = 5000, 20, 10
    begun = np.cumsum(stream.exponential(packet_s / 0.8, count))
    senders = stream.integers(0, hosts, count)
    traffic = Traffic(into_one(hosts, 4e-6, faster=faster), RAW)
    for sender, at_s in zip(senders.tolist(), begun.tolist(), strict=True):
        traffic.send(sender, hosts, 4096, at_s=at_s)
    traffic.finish(1e-3)
    at_switch = np.empty(count)
    for sender in range(hosts):
        own = senders == sender
        at_switch[own] = after_each_other(begun[own], packet_s / faster) + 1e-6
    expected = after_each_other(np.sort(at_switch), packet_s) + 1e-6
    # Of connections that share a host's link the next is not always the one that began first.
    assert np.sort(traffic.over_s) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("flow_control", ["none", "pause", "credit"])
def test_no_packet_and_no_byte_comes_from_nowhere(flow_control):
    """At any time: what is held is what waits and what has not left; packets in the network wait or are on a link.

    At the end, what came to the switch was passed on or dropped.
    """
    protocol = behaving(link_flow_control=flow_control, minimum_timeout_s=1e-4)
    traffic = Traffic(star_of(9, 4e-6, loss_probability=1e-3, buffer_bytes=50e3), protocol)
    for sender in range(8):
        traffic.send(sender, 8 - (sender == 0), 2e6, at_s=sender * 1e-6)
    stream = np.random.default_rng(2)
    for at_s in np.cumsum(stream.exponential(50e-6, 30)).tolist():
        traffic.run(at_s)
        counts, tables = traffic.counts, traffic.wire.tables
        clock, now = tables.clock[0], traffic.wire.now
        in_use = len(tables.packets) - int(clock["free_packets"])
        on_links = int(tables.ports["packets"].sum() - clock["hops"])
        assert in_use == int(tables.ports["waiting"].sum()) + on_links
        for row, port in enumerate(tables.ports):
            leaving, release = 0, int(port["first_release"])
            while release != NOWHERE:
                assert tables.releases["finish"][release] > now
                leaving += int(tables.releases["bytes"][release])
                release = int(tables.releases["next"][release])
            waiting = int(tables.queues["bytes"][row * CLASSES : (row + 1) * CLASSES].sum())
            assert int(port["held"]) == waiting + leaving
    traffic.finish(1e-2)
    counts, tables = traffic.counts, traffic.wire.tables
    hosts = ~np.isin(tables.ports["source"], np.flatnonzero(tables.nodes["is_switch"]))
    sent, passed_on = tables.ports["packets"][hosts].sum(), tables.ports["packets"][~hosts].sum()
    at_switch = sent - tables.ports["lost"][hosts].sum()
    # Frames that pause and resume are the switch's own.
    if flow_control != "pause":
        assert at_switch == passed_on + counts.dropped.sum()
    assert (counts.dropped.sum() > 0) == (flow_control == "none")
