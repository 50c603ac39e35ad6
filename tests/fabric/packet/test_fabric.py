"""Schedules on a network of packets: against closed forms, against the flow level, and with losses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric
from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.protocols import FlowProtocol
from simnet.topology import leaf_spine, star
from simnet.traffic import ALL_REDUCE, Partition, ScheduleBuilder

B, DELAY = 12.5e9, 1e-6
PAYLOAD, HEADER = 4096, 82


def sends(ranks, *messages):
    build = ScheduleBuilder("sends", ranks, Partition(1, 1.0))
    for source, target, size in messages:
        build.send(source, target, width=0, fixed_bytes=size)
    return build.schedule()


def play(schedule, *, topology=None, protocol=None, packets=True, settings=DEFAULT_PACKETS, seed=0):
    """Play a schedule; return how long it took, and the fabric."""
    topology = topology or star(hosts=schedule.ranks, bandwidth_bytes_per_s=B, latency_s=DELAY)
    network = Network(topology, protocol or RAW)
    env = simpy.Environment()
    fabric = PacketFabric(env, network, settings=settings, seed=seed) if packets else FluidFabric(env, network)
    one = fabric.play(fabric.place(schedule, network.compiled.rank_nodes[: schedule.ranks]), "test")
    env.run(until=one.complete)
    fabric.require_conservation()
    return one.duration_s, fabric


RAW = replace(FlowProtocol(), name="roce", payload_bytes=PAYLOAD, header_bytes=HEADER, forwarding="store_and_forward")
"""RoCE on hosts that take no time."""


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


@pytest.mark.parametrize("senders", [2, 8, 32, 64])
def test_pauses_keep_what_is_lossless_from_being_dropped(senders):
    """However many send at once; no ingress holds more than what it pauses at and what may still come."""
    schedule = sends(senders + 1, *((sender, senders, 3e5) for sender in range(senders)))
    _, fabric = play(schedule)
    counts = fabric.queue_counts()
    assert counts.dropped.sum() == counts.lost.sum() == 0
    headroom = 2 * DELAY * B + 3 * (PAYLOAD + HEADER) + 2 * 84
    assert counts.highest_bytes.max() <= senders * (DEFAULT_PACKETS.pause_at_bytes + headroom) + PAYLOAD + HEADER


@pytest.mark.parametrize("name", ["ring", "butterfly", "tree", "halving_doubling"])
def test_all_reduces_are_within_5_percent_of_the_flow_level(name):
    schedule = ALL_REDUCE[name](8, 500_000, 4.0)
    topology = leaf_spine(leaves=2, hosts_per_leaf=4, spines=2, bandwidth_bytes_per_s=B, latency_s=DELAY)
    flow = play(schedule, topology=topology, packets=False)[0]
    assert play(schedule, topology=topology)[0] == pytest.approx(flow, rel=0.05)


def test_a_victim_behind_a_paused_port_waits():
    """Two hosts of another switch send to host 0, and one of them to host 1 as well, which nobody else sends to.

    At flow level the victim gets what the hot one leaves of its host; here it shares the paused trunk.
    """
    topology = leaf_spine(leaves=2, hosts_per_leaf=4, spines=1, bandwidth_bytes_per_s=B, latency_s=DELAY)
    hot = [(sender, 0, 4e6) for sender in (1, 2, 4, 5, 6)]
    schedule = sends(8, *hot, (7, 3, 1e6))
    together, _ = play(schedule, topology=topology)
    alone, _ = play(sends(8, (7, 3, 1e6)), topology=topology)
    assert together > 4 * alone


def lossy_star(probability, delay):
    return star(hosts=2, bandwidth_bytes_per_s=B, latency_s=delay, loss_probability=probability)


@pytest.mark.parametrize("probability", [1e-4, 1e-3, 3e-3])
def test_go_back_n_on_random_loss(probability):
    """Efficiency (1 - p)/(1 + p R + p² T) with R packets between a loss and what it does, T in a timeout; within 15 %.

    Per path, of two links: p = 1 - (1 - q)². Only packets of data are lost here in any number.
    """
    full = PAYLOAD + HEADER
    path_loss = 1.0 - (1.0 - probability) ** 2
    round_trip = 4 * DELAY + (2 * full + 2 * 86) / B
    timeout = 50e-6
    losses = 300
    packets = int(losses / path_loss)
    size = packets * PAYLOAD
    settings = replace(DEFAULT_PACKETS, timeout_s=timeout, acknowledge_every=1)
    duration, fabric = play(sends(2, (0, 1, size)), topology=lossy_star(probability, DELAY), settings=settings, seed=3)
    outstanding, in_timeout = round_trip * B / full, timeout * B / full
    expected = (1 - path_loss) / (1 + path_loss * outstanding + path_loss**2 * in_timeout)
    assert packets * full / B / duration == pytest.approx(expected, rel=0.15)
    assert fabric.queue_counts().lost.sum() >= losses / 2


def test_a_lost_last_packet_costs_a_timeout():
    """Nothing comes behind it that would show that it is missing."""
    settings = replace(DEFAULT_PACKETS, timeout_s=1e-3)
    alone, _ = play(sends(2, (0, 1, 4096)))
    durations = [
        play(sends(2, (0, 1, 4096)), topology=lossy_star(0.3, DELAY), settings=settings, seed=seed)[0]
        for seed in range(12)
    ]
    extra = np.array(durations) - alone
    # Each loss on the way there costs one timeout.
    assert extra == pytest.approx(np.round(extra / 1e-3) * 1e-3, abs=1e-9)
    assert extra.max() > 0


def test_the_same_seed_gives_the_same_and_another_does_not():
    def run(seed):
        return play(sends(2, (0, 1, 1e6)), topology=lossy_star(0.01, DELAY), seed=seed)[0]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_ranks_in_one_host_do_not_go_by_packets():
    """Between GPUs of a host nothing goes over a wire: as long as at flow level, with no packet."""
    from simnet.topology import HostSpec

    topology = star(hosts=1, host=HostSpec(gpus=2))
    schedule = sends(2, (0, 1, 1e6))
    duration, fabric = play(schedule, topology=topology, protocol=FlowProtocol())
    assert duration == play(schedule, topology=topology, protocol=FlowProtocol(), packets=False)[0]
    assert fabric.queue_counts().packets.sum() == 0
