"""What the values come to: against published latencies and bandwidths, and against each other.

Everything here is a formula; no simulation. Measured rows name their source; none of them is from training.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.protocols import PROTOCOLS, FlowProtocol, message_time_s, resolve, wire_bytes, with_no_overheads
from simnet.units import GIGABIT_PER_S, MICROSECOND, parse_size

LINK = 100 * GIGABIT_PER_S
SIZES = np.unique(np.geomspace(1, 1e9, 400).round())
TRANSPORTS = [name for name in PROTOCOLS if name != "ideal"]


def goodput(protocol: FlowProtocol, size: float = 1e9) -> float:
    """Gbit/s of one connection at 100 Gbit/s."""
    return float(size / message_time_s(protocol, size, LINK)) / GIGABIT_PER_S


def test_wire_bytes_are_payload_and_the_headers_of_all_packets():
    """TCP, 1448 B a packet and 90 B of headers: nothing for nothing, one packet up to 1448 B, two from 1449 on."""
    sizes = [0, 1, 1448, 1449, 14480, 0.5]
    assert wire_bytes(resolve("tcp"), sizes).tolist() == [0, 91, 1538, 1629, 15380, 90.5]


@pytest.mark.parametrize("name", PROTOCOLS)
@given(size=st.floats(0, 1e12), more=st.floats(0, 1e12))
def test_wire_bytes_grow_with_the_message(name, size, more):
    protocol = resolve(name)
    assert wire_bytes(protocol, size + more) >= wire_bytes(protocol, size) >= size
    assert wire_bytes(protocol, np.full((2, 3), size)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "mtu_bytes", "efficiency"),
    [
        ("tcp", 1500, 1448 / 1538),
        ("tcp", 9000, 8948 / 9038),
        ("roce", 1024, 0.9259),
        ("roce", 4096, 0.9804),
        ("infiniband", 2048, 0.9875),
        ("infiniband", 4096, 0.9937),
        ("ipoib", 2044, 0.9568),
        ("ipoib", 4092, 0.9782),
        ("ipoib-connected", 65520, 0.9928),
    ],
)
def test_header_efficiency(name, mtu_bytes, efficiency):
    """Payload over wire bytes of a full packet, from the sizes of the headers in the standards."""
    protocol = resolve(name, {"mtu_bytes": mtu_bytes})
    assert protocol.payload_bytes / wire_bytes(protocol, protocol.payload_bytes) == pytest.approx(efficiency, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "least_us", "most_us"),
    [("tcp", 16, 22), ("dpdk", 2, 2.6), ("infiniband", 1.6, 1.9), ("roce", 1.6, 1.9), ("ipoib", 16, 27)],
)
def test_round_trip_of_one_byte_between_two_hosts(name, least_us, most_us):
    """Twice overheads, protocol latency and one byte on the wire, with no switch in between."""
    round_trip_us = 2 * message_time_s(resolve(name), 1, LINK) / MICROSECOND
    assert least_us <= round_trip_us <= most_us


# IMB PingPong on TCP over IPoIB, 56 Gbit/s, half a round trip [us] (jebtang/RDMA-Experiment, ConnectX-3).
IMB_PING_PONG_US = {
    "1 B": 9.02, "64 B": 10.23, "512 B": 10.49, "1 KiB": 12.81, "2 KiB": 17.32, "4 KiB": 19.38, "8 KiB": 23.28,
    "16 KiB": 30.59, "32 KiB": 40.69, "64 KiB": 62.31,
}  # fmt: skip


@pytest.mark.parametrize("size", IMB_PING_PONG_US)
def test_ipoib_ping_pong_is_near_the_measured(size):
    """Within 35 % at every size up to 64 KiB."""
    time_us = message_time_s(resolve("ipoib"), parse_size(size), 54.5 * GIGABIT_PER_S) / MICROSECOND
    assert time_us == pytest.approx(IMB_PING_PONG_US[size], rel=0.35)


def test_ipoib_overheads_add_up_in_an_exchange():
    """Two sends and two receives of 0 B of each of two hosts, one after the other: 20.9 us measured (IMB Exchange)."""
    protocol = resolve("ipoib")
    time_s = 2 * (protocol.send_overhead_s + protocol.receive_overhead_s) + protocol.latency_s
    assert time_s / MICROSECOND == pytest.approx(20.9, rel=0.15)


@pytest.mark.parametrize(("size", "measured_us"), [("32 B", 0.83), ("1 KiB", 1.58), ("4 KiB", 2.26), ("32 KiB", 4.56)])
def test_verbs_latency_is_near_the_measured(size, measured_us):
    """ib_send_lat (D. Potter's thesis): within 5 %. What does not fit into the request is fetched, from 188 B on."""
    time_us = message_time_s(resolve("infiniband"), parse_size(size), LINK) / MICROSECOND
    assert time_us == pytest.approx(measured_us, rel=0.05)


def test_one_kernel_connection_has_one_core():
    """42 Gbit/s at 100 (Cai et al. 2021), for a message so long that nothing else counts."""
    assert goodput(resolve("tcp")) == pytest.approx(42, rel=0.02)


def test_four_kernel_connections_fill_the_link():
    """94.15 Gbit/s is what headers leave of 100; four cores are no limit to that."""
    protocol = resolve("tcp")
    assert min(4 * protocol.connection_cap_bytes_per_s, protocol.host_receive_capacity_bytes_per_s) > LINK
    assert protocol.payload_bytes / (protocol.payload_bytes + protocol.header_bytes) == pytest.approx(0.9415, abs=5e-5)


def test_ipoib_hosts_receive_what_was_measured():
    """Over 80 Gbit/s with ten connections, about 20 with one (open-mpi/ompi issue 9087)."""
    protocol = resolve("ipoib")
    assert protocol.host_receive_capacity_bytes_per_s / GIGABIT_PER_S == pytest.approx(83.6)
    assert goodput(protocol) == pytest.approx(20.9, rel=0.01)


def test_verbs_reach_the_measured_bandwidth():
    """97.4 Gbit/s of 100 in messages of 1 MiB under way together (ConnectX-5): the header limit, within 1 %."""
    assert goodput(resolve("roce")) == pytest.approx(97.4, rel=0.01)
    assert goodput(resolve("infiniband")) == pytest.approx(99.37, rel=0.001)


@pytest.mark.parametrize("hops", [1, 2, 4])
@pytest.mark.parametrize("verbs", ["infiniband", "roce"])
@pytest.mark.parametrize("kernel", ["tcp", "ipoib", "ipoib-connected"])
def test_verbs_beat_user_space_and_that_beats_the_kernel_at_every_size(hops, verbs, kernel):
    """On equal links of 100 Gbit/s, from 1 B to 1 GB."""
    fast, middle, slow = (message_time_s(resolve(name), SIZES, LINK, 2e-6, hops) for name in (verbs, "dpdk", kernel))
    assert (fast < middle).all()
    assert (middle < slow).all()


@pytest.mark.parametrize("name", TRANSPORTS)
def test_without_overheads_every_protocol_is_ideal(name):
    """Exactly the time of `ideal` at every size; and with overheads never below it."""
    ideal = message_time_s(resolve("ideal"), SIZES, LINK, 2e-6, hops=4)
    protocol = resolve(name, {"forwarding": "store_and_forward"})
    bare = with_no_overheads(protocol)
    assert message_time_s(bare, SIZES, LINK, 2e-6, hops=4).tolist() == ideal.tolist()
    assert (message_time_s(protocol, SIZES, LINK, 2e-6, hops=4) > ideal).all()
    assert bare.connection_setup_s == bare.connection_setup_round_trips == bare.copies_send == bare.copies_receive == 0
    assert (bare.name, bare.link_kinds, bare.mtu_bytes) == (protocol.name, protocol.link_kinds, protocol.mtu_bytes)


def test_time_is_the_sum_of_its_parts():
    """2 us and 1 us of overhead, 3 ns/B on 1000 B of 4000 B, 4 B/ns on the wire, 5 us and 7 us of latency."""
    protocol = FlowProtocol(
        send_overhead_s=2e-6,
        receive_overhead_s=1e-6,
        send_overhead_s_per_byte=1e-9,
        receive_overhead_s_per_byte=2e-9,
        pipeline_bytes=1000,
        latency_s=5e-6,
        payload_bytes=1000,
        header_bytes=100,
        forwarding="store_and_forward",
    )
    expected_s = 3e-6 + 1000 * 3e-9 + 4400 / 4e9 + 12e-6 + 2 * 1100 / 4e9
    assert message_time_s(protocol, 4000, 4e9, 7e-6, hops=3) == pytest.approx(expected_s, rel=1e-12)


def test_a_message_of_nothing_takes_overheads_and_latency():
    protocol = resolve("tcp")
    expected_s = protocol.send_overhead_s + protocol.receive_overhead_s + protocol.latency_s
    assert message_time_s(protocol, 0, LINK) == pytest.approx(expected_s, rel=1e-12)


def test_a_host_limits_what_its_cap_does_not():
    protocol = FlowProtocol(host_receive_capacity_bytes_per_s=1e9)
    assert message_time_s(protocol, 2e9, LINK) == pytest.approx(2.0, rel=1e-12)


def test_a_read_is_asked_for_and_a_large_message_announced():
    """A read takes an overhead, a latency and an overhead more; a rendezvous two of each, from its size on."""
    write = FlowProtocol(send_overhead_s=1e-6, receive_overhead_s=2e-6, latency_s=3e-6, rendezvous_bytes=1e4)
    sizes, bandwidth = [9999, 10_000], 1e9
    alone = np.array(sizes) / bandwidth + 1e-6 + 2e-6 + 3e-6 + 4e-6
    one_way = 1e-6 + 2e-6 + 3e-6 + 4e-6
    took = message_time_s(write, sizes, bandwidth, path_latency_s=4e-6)
    assert took == pytest.approx(alone + np.array([0.0, 2 * one_way]))
    read = message_time_s(replace(write, verb="read"), sizes, bandwidth, path_latency_s=4e-6)
    assert read == pytest.approx(alone + np.array([one_way, 3 * one_way]))


def test_few_packets_wait_for_a_batch():
    """F-Stack sends up to 32 packets at once and waits for them for 100 us: a small message takes that much longer."""
    overrides = {"batch_packets": 32.0, "batch_delay_s": 100e-6}
    alone, waiting = (
        message_time_s(resolve("dpdk", values), [64, 31 * 1448, 32 * 1448], LINK) for values in ({}, overrides)
    )
    assert waiting - alone == pytest.approx([100e-6, 100e-6, 0.0], abs=1e-12)
    assert waiting[0] >= 100e-6
