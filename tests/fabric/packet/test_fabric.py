"""Schedules on a network of packets: against closed forms, against the flow level, and with losses."""

from __future__ import annotations

import math

import pytest

from simnet.protocols import FlowProtocol
from simnet.topology import HostSpec, fat_tree, leaf_spine, star
from simnet.traffic import ALL_REDUCE

from .building import DELAY, HEADER, PAYLOAD, B, play, sends


def wire_bytes(size):
    return size + math.ceil(size / PAYLOAD) * HEADER


@pytest.mark.parametrize("size", [1, 4096, 4097, 10_000, 1_000_000])
def test_a_message_alone(size):
    """Two links: all packets over the first, then the last over the second, and both latencies: exact to 2 ps a hop."""
    last = size - (math.ceil(size / PAYLOAD) - 1) * PAYLOAD + HEADER
    full = PAYLOAD + HEADER
    # The last packet leaves the switch behind the one before it, which may be longer.
    packets = math.ceil(size / PAYLOAD)
    first_done = wire_bytes(size) / B
    behind = (wire_bytes(size) - last + full) / B if packets > 1 else 0.0
    expected = max(first_done, behind) + last / B + 2 * DELAY
    assert play(sends(2, (0, 1, size)))[0] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("size", [1e4, 1e5, 1e6, 1e7, 1e8])
def test_a_lone_flow_is_within_5_percent_of_the_flow_level(size):
    schedule = sends(2, (0, 1, size))
    assert play(schedule)[0] == pytest.approx(play(schedule, packets=False)[0], rel=0.05)


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_flows_that_share_a_link_are_within_10_percent_of_the_flow_level(count):
    """All to one host: nothing is dropped, and the last is over when its link has carried all."""
    schedule = sends(count + 1, *((sender, count, 1e6) for sender in range(count)))
    duration, fabric = play(schedule)
    assert duration == pytest.approx(play(schedule, packets=False)[0], rel=0.10)
    counts = fabric.queue_counts()
    assert counts.dropped.sum() == 0
    assert counts.paused_s.sum() > 0 or count == 2


@pytest.mark.parametrize("name", ["ring", "butterfly", "tree", "halving_doubling"])
def test_all_reduces_are_within_5_percent_of_the_flow_level(name):
    schedule = ALL_REDUCE[name](8, 500_000, 4.0)
    topology = leaf_spine(leaves=2, hosts_per_leaf=4, spines=2, bandwidth_bytes_per_s=B, latency_s=DELAY)
    flow = play(schedule, topology=topology, packets=False)[0]
    assert play(schedule, topology=topology)[0] == pytest.approx(flow, rel=0.05)


def test_tables_grow_while_a_connection_is_opened():
    """The paths of 400 connections over 6 links, there and back, need more rows than there are at first."""
    pairs = [(source, (source + 17 * step) % 128) for step in range(1, 5) for source in range(128)][:400]
    schedule = sends(128, *((source, target, 1000) for source, target in pairs))
    topology = fat_tree(k=8, bandwidth_bytes_per_s=B, latency_s=DELAY)
    duration, fabric = play(schedule, topology=topology)
    assert duration < 1e-3
    counts = fabric.connection_counts()
    assert counts["packets"].tolist() == [1] * 400
    assert counts["goodput_bytes"].tolist() == [1000.0] * 400


def lossy_star(probability, delay):
    return star(hosts=2, bandwidth_bytes_per_s=B, latency_s=delay, loss_probability=probability)


def test_the_same_seed_gives_the_same_and_another_does_not():
    def run(seed):
        return play(sends(2, (0, 1, 1e6)), topology=lossy_star(0.01, DELAY), seed=seed)[0]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_ranks_in_one_host_do_not_go_by_packets():
    """Between GPUs of a host nothing goes over a wire: as long as at flow level, with no packet."""
    topology = star(hosts=1, host=HostSpec(gpus=2))
    schedule = sends(2, (0, 1, 1e6))
    duration, fabric = play(schedule, topology=topology, protocol=FlowProtocol())
    assert duration == play(schedule, topology=topology, protocol=FlowProtocol(), packets=False)[0]
    assert fabric.queue_counts().packets.sum() == 0
