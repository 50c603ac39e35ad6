"""TCP over InfiniBand on a network of packets: datagram and connected mode."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simnet.protocols import resolve

from .building import GIGABIT, Traffic, lean, play, rates, sends, star_of

RATE = 100 * GIGABIT


@pytest.mark.parametrize(
    ("name", "mtu_bytes", "efficiency"),
    [("ipoib", 4092.0, 4040 / 4130), ("ipoib", 2044.0, 1992 / 2082), ("ipoib-connected", 65520.0, 65468 / 65940)],
)
def test_a_flow_has_the_link_but_for_headers(name, mtu_bytes, efficiency):
    """Payload of a segment over what it is on the wire: 0.9782, 0.9568 and 0.9928; within 0.1 %."""
    protocol = lean(name, mtu_bytes=mtu_bytes)
    traffic = Traffic(star_of(2, 4e-6, RATE), protocol)
    traffic.send(0, 1, 1e12)
    (rate,) = rates(traffic, 0.005, 0.025)
    assert rate * protocol.payload_bytes == pytest.approx(efficiency * RATE, rel=1e-3)
    assert traffic.counts.dropped.sum() == 0


@pytest.mark.parametrize("connections", [1, 4])
def test_cores_limit_what_connections_have(connections):
    """A core receives 30 Gbit/s: one connection has that, four on four cores all of the link, 97.8; within 2 %."""
    core = 30 * GIGABIT
    overrides = {
        "connection_cap_bytes_per_s": core,
        "host_send_capacity_bytes_per_s": 4 * core,
        "host_receive_capacity_bytes_per_s": 4 * core,
        "connection_setup_s": 0.0,
        "connection_setup_round_trips": 0.0,
    }
    protocol, size = resolve("ipoib", overrides), 5e7
    schedule = sends(connections + 1, *((sender, connections, size) for sender in range(connections)))
    topology = star_of(connections + 1, 4e-6, RATE, kind="infiniband")
    duration, fabric = play(schedule, topology=topology, protocol=protocol)
    expected = min(connections * core, 4040 / 4130 * RATE)
    assert connections * size / duration == pytest.approx(expected, rel=0.02)
    assert fabric.queue_counts().dropped.sum() == 0


@pytest.mark.parametrize("name", ["ipoib", "ipoib-connected"])
def test_a_slow_receiver_has_nothing_dropped(name):
    """4 MB at 56 Gbit/s to a host that takes 20: credits keep the network lossless, and the host has buffers."""
    protocol = replace(lean(name), host_receive_capacity_bytes_per_s=20 * GIGABIT)
    duration, fabric = play(sends(2, (0, 1, 4e6)), topology=star_of(2, 4e-6, 56 * GIGABIT), protocol=protocol)
    assert 4e6 / duration == pytest.approx(20 * GIGABIT, rel=0.02)
    assert fabric.queue_counts().dropped.sum() == 0


SLOW_RECEIVER = {
    "connection_cap_bytes_per_s": math.inf,
    "host_send_capacity_bytes_per_s": math.inf,
    "host_receive_capacity_bytes_per_s": 20 * GIGABIT,
    "initial_window_packets": 1024.0,
    "connection_setup_s": 0.0,
}
RING_BYTES = 256 * 4130


def to_a_slow_receiver(name):
    """Send 4 MB at 56 Gbit/s to a stack that takes 20; return the time, the fabric and what waited for the stack."""
    topology = star_of(2, 4e-6, 56 * GIGABIT, kind="infiniband")
    duration, fabric = play(sends(2, (0, 1, 4e6)), topology=topology, protocol=resolve(name, SLOW_RECEIVER))
    wire = fabric._wire
    return duration, fabric, int(wire.tables.ports["highest"][wire.ports.is_stack].max())


def test_a_receive_ring_that_is_full_drops_datagrams():
    """A ring of 256 packets, 1 MB, drops some of 4 MB, which TCP resends; the network between drops nothing."""
    _, fabric, waited = to_a_slow_receiver("ipoib")
    counts = fabric.connection_counts()
    assert counts["retransmitted"].sum() > 0
    assert waited <= RING_BYTES
    assert fabric.queue_counts().dropped.sum() == 0
    assert counts["goodput_bytes"].sum() == 4e6


def test_in_connected_mode_a_receiver_that_is_not_ready_is_waited_for():
    """What finds no room is held back, which is what RNR NAKs with endless retries come to: nothing is sent again.

    All of it may be under way, so that what waits grows by what comes, 56 Gbit/s with headers, less the 20 that the
    stack takes: S (1 - 20/56), 2.58 MB of wire, at the end, within a segment; two rings and more. The stack never
    rests, if the timer of a NAK is shorter than it takes to empty a ring: the first segment has to be there, then the
    message takes S / 20 Gbit/s, 1.6 ms; with opening, overheads and latency 1.655 ms, within 0.1 %.
    """
    size, link, stack = 4e6, 56 * GIGABIT, 20 * GIGABIT
    duration, fabric, waited = to_a_slow_receiver("ipoib-connected")
    counts = fabric.connection_counts()
    assert counts["retransmitted"].sum() == counts["timeouts"].sum() == 0
    assert fabric.queue_counts().dropped.sum() == 0
    assert counts["goodput_bytes"].sum() == size
    protocol = resolve("ipoib-connected", SLOW_RECEIVER)
    segment, wire = protocol.payload_bytes, protocol.payload_bytes + protocol.header_bytes
    assert waited == pytest.approx(size * (wire / segment - stack / link), abs=wire)
    assert waited > 2 * RING_BYTES
    one_way_s = 2e-6 + protocol.latency_s
    per_byte = protocol.send_overhead_s_per_byte + protocol.receive_overhead_s_per_byte
    overheads_s = protocol.send_overhead_s + protocol.receive_overhead_s + per_byte * protocol.pipeline_bytes
    expected = 2 * one_way_s + overheads_s + wire / link + one_way_s + size / stack
    assert duration == pytest.approx(expected, rel=1e-3)
