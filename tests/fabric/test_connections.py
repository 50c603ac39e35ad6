"""What many connections bring, and what they cost.

A pair of hosts may have k connections: a message of 64 KiB or more has k times the cap of one. An adapter keeps the
state of K connections; a host with n of them pays c (1 - K / n) for each message that it sends or receives.
"""

from __future__ import annotations

import math

import pytest

from simnet.fabric.startup import start_up_idle_s
from simnet.protocols.transport import Transport
from simnet.traffic import ALL_REDUCE

from .links import GIGABIT, KIBIBYTE, ROCE, TCP, fabric_with, time_of

SIZE, RATE = 256e3, 100 * GIGABIT  # of the all-reduce [bytes], of each link [bytes/s]
ONE_WAY_S, SEND_S, RECEIVE_S = 2e-6, 0.15e-6, 0.10e-6
CACHED, MISS_S = 16.0, 5e-6


@pytest.mark.parametrize(("connections", "expected"), [(1, 20.0), (2, 40.0), (4, 80.0), (16, 94.15)])
def test_large_messages_go_over_all_connections(connections, expected):
    """One connection carries 20 Gbit/s of data; several as many times that, up to the 0.9415 C of the headers."""
    fabric = fabric_with(
        Transport(connections_per_pair=connections),
        rate=100 * GIGABIT,
        round_trip_s=0.0,
        connection_cap_bytes_per_s=20 * GIGABIT,
        **TCP,
    )
    assert 1e9 / time_of(fabric, (0, 1, 1e9)) / GIGABIT == pytest.approx(expected, rel=1e-4)


def test_small_messages_go_over_one():
    fabric = fabric_with(
        Transport(connections_per_pair=4), rate=100 * GIGABIT, round_trip_s=0.0, connection_cap_bytes_per_s=1e9
    )
    assert time_of(fabric, (0, 1, 64 * KIBIBYTE - 1)) == pytest.approx((64 * KIBIBYTE - 1) / 1e9)
    assert time_of(fabric, (0, 1, 64 * KIBIBYTE)) == pytest.approx(64 * KIBIBYTE / 4e9)


def test_each_connection_has_a_window_of_its_own():
    """Four first windows of 10 packets are one of 40."""
    transport = Transport(reliability="sack", initial_window_packets=10.0, connections_per_pair=4.0)
    packets, packet_s = 692, 1538 / (10 * GIGABIT)
    long = time_of(fabric_with(transport, **TCP), (0, 1, packets * 1448.0))
    idle_s, _ = start_up_idle_s(float(packets), 40.0, packet_s, 100e-6 + packet_s)
    assert idle_s > 0.0
    assert long == pytest.approx(packets * packet_s + 50e-6 + idle_s)


def test_opening_takes_as_many_times_the_work():
    """4 connections: 4 x 10 us of work, and the round trips of all of them at once."""
    transport = Transport(connections_per_pair=4.0)
    opening = {"connection_setup_s": 10e-6, "connection_setup_round_trips": 1.0}
    fabric = fabric_with(transport, **opening, **TCP)
    assert time_of(fabric, (0, 1, 1448.0)) - time_of(fabric, (0, 1, 1448.0)) == pytest.approx(140e-6)


def test_connections_are_counted_at_both_ends_and_once_a_pair():
    fabric = fabric_with(Transport(connections_per_pair=2.0, cached_connections=4.0), hosts=4, **TCP)
    time_of(fabric, (0, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (3, 0, 1.0))
    hosts = fabric.network.compiled.rank_nodes.tolist()
    assert [fabric.network.open_connections(host) for host in hosts] == [6.0, 2.0, 2.0, 2.0]
    assert [fabric.network.cache_miss_share(host) for host in hosts] == pytest.approx([1 / 3, 0.0, 0.0, 0.0])


# -- the limit of a mesh --------------------------------------------------------------------------------------------


def all_reduce_s(name: str, ranks: int) -> float:
    fabric = fabric_with(
        Transport(cached_connections=CACHED, cache_miss_s=MISS_S),
        hosts=ranks,
        rate=RATE,
        round_trip_s=2 * ONE_WAY_S,
        send_overhead_s=SEND_S,
        receive_overhead_s=RECEIVE_S,
        **ROCE,
    )
    schedule = ALL_REDUCE[name](ranks, round(SIZE / 4), 4.0)
    play = fabric.play(fabric.place(schedule, fabric.network.compiled.rank_nodes[:ranks]), name)
    fabric.env.run()
    return play.duration_s


def chunk_s(ranks: int) -> float:
    """What the N-th part of the buffer takes of a link, with headers."""
    part = SIZE / ranks
    return (part + math.ceil(part / 1000) * 82) / RATE


def mesh_s(ranks: int) -> float:
    """What sending, and receiving, costs for each of N - 1 messages, thrice, and once the links of all of them.

    All send to rank 0 first, then to rank 1: rank k has its parts, which share its link, after k + 1 messages, and has
    taken them in N - 1 messages later; then it sends its sum to rank 0 first.
    """
    missed = MISS_S * max(0.0, 1.0 - CACHED / (ranks - 1))
    return (ranks - 1) * (3.0 * missed + 2.0 * SEND_S + RECEIVE_S + chunk_s(ranks)) + 2.0 * (ONE_WAY_S + missed)


def ring_s(ranks: int) -> float:
    """Two connections a host, both in the adapter: 2 (N - 1) steps of overheads, a part of S/N, and the way."""
    return 2 * (ranks - 1) * (chunk_s(ranks) + SEND_S + ONE_WAY_S + RECEIVE_S)


def server_s(ranks: int) -> float:
    """All send all of S to one, which sends all of it back."""
    return 2 * (ranks - 1) * SIZE * 1.082 / RATE


@pytest.mark.parametrize("ranks", [4, 8, 16, 24, 32, 48])
def test_a_ring_takes_what_the_formula_says(ranks):
    assert all_reduce_s("ring", ranks) == pytest.approx(ring_s(ranks), rel=0.02)


@pytest.mark.parametrize("ranks", [24, 32, 48, 64])
def test_a_mesh_takes_what_the_formula_says(ranks):
    assert all_reduce_s("mesh", ranks) == pytest.approx(mesh_s(ranks), rel=0.02)


def test_a_mesh_beats_a_server_and_falls_behind_a_ring():
    """It falls behind where 3 c (1 - K / (N - 1)) = t + 2 L + o_r, t being the time of a part of S/N on the link.

    With 16 connections, 5 us for each that is fetched, 256 kB at 100 Gbit/s and 2 us of way, N is 25: from there on,
    what a mesh spends on its connections is more than what a ring waits for at each of its 2 (N - 1) steps.
    """
    derived = next(
        ranks
        for ranks in range(18, 200)
        if 3 * MISS_S * (1 - CACHED / (ranks - 1)) > chunk_s(ranks) + 2 * ONE_WAY_S + RECEIVE_S
    )
    assert derived == 25
    assert all_reduce_s("mesh", 8) < all_reduce_s("ring", 8) < all_reduce_s("star", 8)
    found = next(ranks for ranks in range(18, 40) if all_reduce_s("mesh", ranks) > all_reduce_s("ring", ranks))
    assert found == derived
    assert all_reduce_s("star", 8) == pytest.approx(server_s(8), rel=0.05)
