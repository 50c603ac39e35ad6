"""The work of benchmarks/packets.py: packets, hops and events, which do not depend on the machine, and how fast.

What is asserted of speed is relative to bare SimPy in the same process, so that a slow machine does not matter.
"""

from __future__ import annotations

import math

import pytest
from packets import INCAST_BYTES, ROOMY, bare_events_per_s, flows_on_a_fat_tree, incast
from works import BANDWIDTH_BYTES_PER_S, LATENCY_S, WORKS

from simnet.fabric.packet.fabric import compile_packet_kernels
from simnet.fabric.packet.settings import DEFAULT_PACKETS

SENDERS = 8
PAYLOAD, HEADER = 4096, 82
PACKETS = SENDERS * math.ceil(INCAST_BYTES / PAYLOAD)
LEAST_PACKETS_A_BARE_EVENT = 80_000 / 0.8e6
"""Data packets a second that are asked for where bare SimPy handles 0.8 million events a second."""


@pytest.fixture(autouse=True, scope="module")
def _packet_kernels():
    compile_packet_kernels(lambda _: None)
    incast(senders=2, size_bytes=1e4)  # loads them


def measure(benchmark, work):
    """Play a work some times; leave what does not depend on the machine with the measurement, and the bare rate."""
    result = benchmark.pedantic(work, rounds=3, iterations=1)
    counts = {name: value for name, value in vars(result).items() if name != "cpu_s"}
    rate, bare = result.data_packets / result.cpu_s, bare_events_per_s()
    benchmark.extra_info |= counts | {"data_packets_per_cpu_s": rate, "bare_events_per_s": bare}
    assert rate >= LEAST_PACKETS_A_BARE_EVENT * bare
    return result


def incast_time_s():
    """All packets go over the receiver's link, after the first has come over its own, and then both latencies."""
    wire_bytes = SENDERS * (INCAST_BYTES + math.ceil(INCAST_BYTES / PAYLOAD) * HEADER)
    return (wire_bytes + PAYLOAD + HEADER) / BANDWIDTH_BYTES_PER_S + 2 * LATENCY_S


@pytest.mark.parametrize(
    ("settings", "most_events"), [(ROOMY, 1.0), (DEFAULT_PACKETS, 1.5)], ids=["no pauses", "pauses"]
)
def test_incast(benchmark, settings, most_events):
    """W5: one event a packet and hop, two more a message; with pauses departures are events too."""
    result = measure(benchmark, lambda: incast(settings))
    assert result.data_packets == PACKETS
    assert result.hops >= 2 * PACKETS
    assert result.events <= most_events * result.hops + 2 * SENDERS
    assert (result.dropped, result.paused_s > 0) == (0, settings is DEFAULT_PACKETS)
    # Hosts take 1.3 us besides, and the receiver 0.64 us for each message, of which all may end at about the same time.
    assert incast_time_s() + 1.9e-6 <= result.simulated_s <= incast_time_s() + 1.3e-6 + SENDERS * 0.65e-6


def test_flows_on_a_fat_tree(benchmark):
    """W4 with 500 flows over RoCE: as many packets as their sizes are, nothing dropped, and some pauses."""
    flows = WORKS["W4"](0, 500, 0.0, 1).flows
    result = measure(benchmark, flows_on_a_fat_tree)
    assert result.data_packets == sum(math.ceil(size / PAYLOAD) for size in flows.size_bytes.tolist())
    assert result.dropped == 0
    # At least from a host to its switch and from there to another host; at most over two more and the core.
    assert 2 * result.data_packets <= result.hops <= 6 * 1.15 * result.data_packets
    assert result.events <= 1.5 * result.hops
