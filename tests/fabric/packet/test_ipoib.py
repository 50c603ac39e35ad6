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


@pytest.mark.parametrize(("name", "drops"), [("ipoib", True), ("ipoib-connected", False)])
def test_a_receive_ring_that_is_full_drops_datagrams_only(name, drops):
    """56 Gbit/s come, the stack takes 20: a ring of 256 packets, 1 MB, drops some of 4 MB, which TCP resends.

    Between the ring and the link nothing is dropped. In connected mode what finds no room is held back: nothing is sent
    again, though more than two rings of packets wait at a time (what RNR NAKs are for; they are not packets here).
    """
    overrides = {
        "connection_cap_bytes_per_s": math.inf,
        "host_send_capacity_bytes_per_s": math.inf,
        "host_receive_capacity_bytes_per_s": 20 * GIGABIT,
        "initial_window_packets": 1024.0,
        "connection_setup_s": 0.0,
    }
    topology = star_of(2, 4e-6, 56 * GIGABIT, kind="infiniband")
    _, fabric = play(sends(2, (0, 1, 4e6)), topology=topology, protocol=resolve(name, overrides))
    counts = fabric.connection_counts()
    assert (counts["retransmitted"].sum() > 0) == drops
    wire = fabric._wire
    waited = int(wire.tables.ports["highest"][wire.ports.is_stack].max())
    ring = 256 * 4130
    assert waited <= ring if drops else waited > 2 * ring
    assert fabric.queue_counts().dropped.sum() == 0
    assert counts["goodput_bytes"].sum() == 4e6
