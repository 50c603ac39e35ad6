"""Collectives on a star under `ideal` take exactly what theory says, whenever they start.

N hosts around one switch, S bytes, links of B bytes/s, p the latency of the two links of a path.
"""

from __future__ import annotations

from math import ceil, floor, log2

import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol, message_time_s, resolve
from simnet.topology import star
from simnet.traffic import ALL_REDUCE, ScheduleBuilder, parameter_server_push_pull
from simnet.traffic import Partition as Buffer

S, B, P = 25_690_112.0, 12.5e9, 2e-6  # 256 * 100,352 bytes, so that all N divide the elements but 3 and 7
SIZES = [2, 3, 4, 7, 16, 64, 256]
STARTS = [0.0, 1.0, 1e3, 1e6]


def fabric_on_star(hosts: int, start_s: float = 0.0, latency_s: float = P / 2) -> FluidFabric:
    topology = star(hosts=hosts, bandwidth_bytes_per_s=B, latency_s=latency_s)
    return FluidFabric(simpy.Environment(start_s), Network(topology, resolve("ideal")))


def duration_s(fabric: FluidFabric, schedule) -> float:
    """Play a schedule on the first hosts; return how long it takes."""
    play = fabric.play(fabric.place(schedule, fabric.network.compiled.rank_nodes[: schedule.ranks]), schedule.name)
    fabric.env.run()
    fabric.require_conservation()
    return play.duration_s


def folded(n: int) -> int:
    """Rounds of the butterfly: log2 N, or two more than its floor where N is no power of two."""
    return floor(log2(n)) + (0 if n & (n - 1) == 0 else 2)


CLOSED_FORMS = {
    "ring": (ALL_REDUCE["ring"], {}, lambda n, s: 2 * (n - 1) * (s / (n * B) + P)),
    "star": (ALL_REDUCE["star"], {}, lambda n, s: 2 * ((n - 1) * s / B + P)),
    "tree": (ALL_REDUCE["tree"], {}, lambda n, s: 2 * ceil(log2(n)) * (s / B + P)),
    "butterfly": (ALL_REDUCE["butterfly"], {}, lambda n, s: folded(n) * (s / B + P)),
    "mesh": (ALL_REDUCE["mesh"], {}, lambda n, s: 2 * ((n - 1) * s / (n * B) + P)),
    "mesh, full": (ALL_REDUCE["mesh"], {"exchange": "full"}, lambda n, s: (n - 1) * s / B + P),
}
# With 256 ranks a mesh is 130,000 flows, worth a test but not a fast one.
CASES = [
    pytest.param(name, n, marks=[pytest.mark.slow] if n == 256 and name.startswith("mesh") else [])
    for name in CLOSED_FORMS
    for n in SIZES
]


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_all_reduce_takes_the_closed_form(name, ranks):
    """With chunks that are fractions of elements, within 1e-9."""
    make, options, expected_s = CLOSED_FORMS[name]
    schedule = make(ranks, int(S) // 4, 4.0, divisible=True, **options)
    assert duration_s(fabric_on_star(ranks), schedule) == pytest.approx(expected_s(ranks, S), rel=1e-9)


@pytest.mark.parametrize("start_s", STARTS)
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_it_takes_the_same_whenever_it_starts(name, start_s):
    """At 0, 1, 1,000 and 1,000,000 s, within 1e-9; twice in a row, the second time after a pause."""
    make, options, expected_s = CLOSED_FORMS[name]
    fabric = fabric_on_star(7, start_s)
    schedule = make(7, int(S) // 4, 4.0, divisible=True, **options)
    first = duration_s(fabric, schedule)
    fabric.env.run(until=fabric.env.now + 12.345)
    assert [first, duration_s(fabric, schedule)] == pytest.approx([expected_s(7, S)] * 2, rel=1e-9)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 16])
def test_whole_elements_that_divide_take_the_closed_form(name, ranks):
    """A buffer of a multiple of N elements is cut into equal chunks anyway."""
    make, options, expected_s = CLOSED_FORMS[name]
    elements = 1000 * ranks
    schedule = make(ranks, elements, 4.0, **options)
    assert duration_s(fabric_on_star(ranks), schedule) == pytest.approx(expected_s(ranks, 4.0 * elements), rel=1e-9)


@pytest.mark.parametrize("name", ["ring", "mesh"])
@pytest.mark.parametrize("ranks", [3, 7, 16])
def test_chunks_of_whole_elements_lie_between_those_of_the_smaller_and_the_larger_size(name, ranks):
    """Chunks differ by at most one element: as slow as if all were the larger, at most, and as fast as the smaller."""
    make, options, expected_s = CLOSED_FORMS[name]
    elements = 50 * ranks + 2
    schedule = make(ranks, elements, 4.0, **options)
    found = duration_s(fabric_on_star(ranks, latency_s=0.5e-9), schedule)
    least, most = ((expected_s(ranks, 4.0 * ranks * chunk)) for chunk in (50, 51))
    latency = 2 * (ranks - 1 if name == "ring" else 1) * (P - 1e-9)
    assert least - latency < found <= (most - latency) * (1 + 1e-9)


def test_a_ring_of_whole_elements_of_different_sizes():
    """3 ranks, 4 elements: chunks of 2, 1, 1. Each step waits for its largest chunk's neighbour only.

    One second an element and no latency. Rank r sends chunk r - k in step k, each time when it has received it: chunk 0
    (2 s) is sent by 0, 1, 2, 0 in steps 0 to 3, chunks 1 and 2 (1 s) likewise behind each other. Chunk 0 needs 2 s a
    step and never waits: 8 s.
    """
    topology = star(hosts=3, bandwidth_bytes_per_s=1.0, latency_s=0.0)
    fabric = FluidFabric(simpy.Environment(), Network(topology, resolve("ideal")))
    assert duration_s(fabric, ALL_REDUCE["ring"](3, 4, 1.0)) == pytest.approx(8.0, rel=1e-12)


@pytest.mark.parametrize(("workers", "servers"), [(4, 1), (4, 2), (3, 5), (16, 4)])
def test_parameter_server_takes_the_closed_form(workers, servers):
    """Equal shards, dedicated servers: 2 (max(W/M, 1) S/B + p)."""
    schedule = parameter_server_push_pull(workers, servers, int(S) // 4, 4.0, divisible=True)
    expected_s = 2 * (max(workers / servers, 1) * S / B + P)
    assert duration_s(fabric_on_star(workers + servers), schedule) == pytest.approx(expected_s, rel=1e-9)


def one_send_each(pairs, sizes) -> ScheduleBuilder:
    build = ScheduleBuilder("sends", 1 + max(max(pair) for pair in pairs), Buffer(1, 4.0))
    for (source, target), size in zip(pairs, sizes, strict=True):
        build.send(source, target, width=0, fixed_bytes=size)
    return build


def test_two_flows_on_one_link_take_twice_as_long():
    """Both out of host 0: 2 S/B + p."""
    schedule = one_send_each([(0, 1), (0, 2)], [S, S]).schedule()
    assert duration_s(fabric_on_star(3), schedule) == pytest.approx(2 * S / B + P, rel=1e-12)


def test_the_rest_of_the_longer_of_two_flows_has_the_link_to_itself():
    """S and 3 S out of host 0: the short one ends at 2 S/B, the long one, of which 2 S are left then, at 4 S/B."""
    fabric = fabric_on_star(3)
    schedule = one_send_each([(0, 1), (0, 2)], [S, 3 * S]).schedule()
    play = fabric.play(fabric.place(schedule, fabric.network.compiled.rank_nodes), "two")
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([4 * S / B, 2 * S / B + P, 4 * S / B + P], rel=1e-12)


def test_three_flows_on_two_links():
    """Flow a out of 0 into 2; b out of 0; c into 2: all at B/2 at first. a has S/2, so it is over at S/B, then b and c
    (S each, half of it left) have B: over at 1.5 S/B."""
    fabric = fabric_on_star(4)
    schedule = one_send_each([(0, 2), (0, 1), (3, 2)], [S / 2, S, S]).schedule()
    play = fabric.play(fabric.place(schedule, fabric.network.compiled.rank_nodes), "three")
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx(
        [1.5 * S / B, 1.5 * S / B + P, 1.5 * S / B + P, 1.5 * S / B], rel=1e-12
    )


def test_unequal_links_of_three_flows():
    """The textbook's long flow over two links: link out of 0 has B, into 2 has 0.4 B by a change of capacity.

    a: 0 -> 2, b: 0 -> 1, c: 3 -> 2. a and c have 0.2 B, b has 0.8 B. Sizes 0.2 S, 0.8 S, 0.2 S: all over at S/B.
    """
    fabric = fabric_on_star(4)
    into_2 = fabric.network.resource_names.index("switch->host2")
    fabric.conditions.set_capacity(into_2, 0.4 * B)
    schedule = one_send_each([(0, 2), (0, 1), (3, 2)], [0.2 * S, 0.8 * S, 0.2 * S]).schedule()
    play = fabric.play(fabric.place(schedule, fabric.network.compiled.rank_nodes), "three")
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([S / B, S / B + P, S / B + P, S / B], rel=1e-12)


def test_a_capped_flow_leaves_the_rest():
    """a and b out of 0, a capped at B/4 from the start: b has 3/4 B and is over at S/(0.75 B); a at S/(0.25 B)."""
    fabric = fabric_on_star(3)
    schedule = one_send_each([(0, 1), (0, 2)], [S, S]).schedule()
    play = fabric.play(fabric.place(schedule, fabric.network.compiled.rank_nodes), "capped")
    fabric.set_flow_cap(play, 0, B / 4)
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([4 * S / B, 4 * S / B + P, 4 / 3 * S / B + P], rel=1e-12)


def test_what_is_left_of_a_flow_is_left_however_little():
    """S at B, until another comes when 1e-7 of it is left: that takes twice as long, (1 + 1e-7) S/B in all."""
    fabric = fabric_on_star(3)
    nodes = fabric.network.compiled.rank_nodes
    first = fabric.play(fabric.place(one_send_each([(0, 1)], [S]).schedule(), nodes[:2]), "first")
    fabric.env.run(until=(1 - 1e-7) * S / B)
    fabric.play(fabric.place(one_send_each([(0, 1)], [S]).schedule(), nodes[[0, 2]]), "second")
    fabric.env.run()
    assert first.duration_s == pytest.approx((1 + 1e-7) * S / B + P, rel=1e-10)


def test_what_follows_soon_is_not_the_same_instant():
    """A calculation of 1 s, then 100 of 3 ns one after the other: 1 s and 300 ns."""
    build = ScheduleBuilder("soon", 1, Buffer(1, 4.0))
    long, short = build.calc(0, 1.0), build.calc(0, 3e-9, repeat=100)
    build.depend(long, short)
    assert duration_s(fabric_on_star(1), build.schedule()) == pytest.approx(1 + 300e-9, rel=1e-12)


@pytest.mark.parametrize("verb", ["write", "read"])
def test_messages_that_are_asked_for_or_announced(verb):
    """Three after each other: each takes what `message_time_s` says, of sizes below and above that of a rendezvous."""
    protocol = FlowProtocol(send_overhead_s=1e-6, latency_s=2e-6, rendezvous_bytes=1e5, verb=verb)
    network = Network(star(hosts=2, bandwidth_bytes_per_s=1e9, latency_s=1e-6), protocol)
    env = simpy.Environment()
    fabric = FluidFabric(env, network)
    for size in (1e3, 1e5, 1e6):
        build = ScheduleBuilder("send", 2, Buffer(1, 4.0))
        build.send(0, 1, width=0, fixed_bytes=size, repeat=1)
        play = fabric.play(fabric.place(build.schedule(), network.compiled.rank_nodes), "send")
        env.run(until=play.complete)
        assert play.duration_s == pytest.approx(float(message_time_s(protocol, size, 1e9, 2e-6)), rel=1e-9)
