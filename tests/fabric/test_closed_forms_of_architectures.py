"""Parameter servers, given trees and map-reduce under `ideal`: what theory says of the time they take.

Hosts around one switch unless said otherwise, S bytes, links of B bytes/s, p the latency of the two links of a path;
x = S/B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, log2

import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import HostSpec, Topology, star
from simnet.traffic import (
    Schedule,
    Turns,
    aggregator_count,
    broadcast_down,
    map_reduce,
    parameter_server_push_pull,
    reduce_up,
    ring_all_reduce,
    tree_aggregate_rounds,
    tree_of_parents_all_reduce,
)

S, B, P = 25_690_112.0, 12.5e9, 2e-6
X = S / B
WHOLE = {"elements": int(S) // 4, "element_bytes": 4.0, "divisible": True}
MEMORY = 100e9


def hosts(count: int, memory: float | None = None) -> Topology:
    host = HostSpec(memory_bandwidth_bytes_per_s=memory)
    return star(hosts=count, host=host, bandwidth_bytes_per_s=B, latency_s=P / 2)


def time_s(schedule: Schedule, topology: Topology | None = None, nodes: Sequence[int] | None = None) -> float:
    """Play a schedule alone; return how long it takes."""
    topology = topology or hosts(schedule.ranks)
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol(divisible=True)))
    chosen = topology.compiled.rank_nodes[: schedule.ranks] if nodes is None else nodes
    play = fabric.play(fabric.place(schedule, chosen), schedule.name)
    fabric.env.run()
    fabric.require_conservation()
    return play.duration_s


def within(value: float):
    return pytest.approx(value, rel=1e-9)


# -- parameter servers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize(
    ("top", "fan_in", "levels"), [(1, 2, 0), (2, 2, 1), (2, 2, 3), (3, 3, 1), (4, 4, 2), (3, 4, 1)]
)
def test_tree_of_servers(top, fan_in, levels, servers):
    """W = k F^L: F messages share the link of an aggregator, k/M of S that of a root: 2((L F + max(k/M, 1)) x
    + (L + 1) p), where all shards go at once. One behind the other they are no later, and with one there is no other.
    """
    workers = top * fan_in**levels
    schedule = parameter_server_push_pull(workers, servers, **WHOLE, fan_in=fan_in)
    assert aggregator_count(workers, fan_in) == sum(top * fan_in**level for level in range(levels))
    expected_s = 2 * ((levels * fan_in + max(top / servers, 1)) * X + (levels + 1) * P)
    assert time_s(replace(schedule, turns=Turns.NONE)) == within(expected_s)
    took_s = time_s(schedule)
    assert took_s == within(expected_s) if servers == 1 else took_s <= expected_s * (1 + 1e-9)


def test_a_tree_of_servers_takes_a_logarithm_where_one_server_takes_as_long_as_workers_are_many():
    """64 workers: 2(64 x + p) with one server; with fan-in 4 2(12 x + 3 p)."""
    assert time_s(parameter_server_push_pull(64, 1, **WHOLE)) == within(2 * (64 * X + P))
    assert time_s(parameter_server_push_pull(64, 1, **WHOLE, fan_in=4)) == within(2 * (12 * X + 3 * P))


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_a_server_on_each_worker_takes_as_long_as_a_ring_without_its_latency(workers):
    """The own shard stays: 2((W - 1)/W x + p); a ring 2(W - 1)(x/W + p)."""
    schedule = parameter_server_push_pull(workers, workers, **WHOLE)
    topology = hosts(workers)
    nodes = [*topology.compiled.rank_nodes, *topology.compiled.rank_nodes]
    took_s = time_s(schedule, topology, nodes)
    assert took_s == within(2 * ((workers - 1) / workers * X + P))
    ring_s = time_s(ring_all_reduce(workers, **WHOLE))
    assert ring_s - took_s == pytest.approx(2 * (workers - 2) * P, abs=1e-12)


@pytest.mark.parametrize("only", [0, 1])
def test_one_server_of_several(only):
    """The others have no part: as with one server."""
    assert time_s(parameter_server_push_pull(5, 2, **WHOLE, only=only)) == within(2 * (5 * X + P))


@pytest.mark.parametrize(
    ("pull_requests", "update"), [("after_push", 0.0), ("after_push", 1e-13), ("after_update", 5e-10)]
)
@pytest.mark.parametrize("workers", [1, 2, 6])
def test_who_has_to_ask_waits_for_two_messages_more(workers, pull_requests, update):
    """2(W x + 2 p); what the update takes is within these 2 p, or comes before them: S u more."""
    costs = {"update_s_per_byte": update, "pull_requests": pull_requests}
    expected_s = 2 * (workers * X + 2 * P) + (S * update if pull_requests == "after_update" else 0.0)
    assert time_s(parameter_server_push_pull(workers, 1, **WHOLE, **costs)) == within(expected_s)


@pytest.mark.parametrize("cores", [1, 2, 3, 8])
@pytest.mark.parametrize("workers", [1, 2, 6, 7])
def test_a_server_adds_what_comes_at_once_on_its_cores(workers, cores):
    """All pushes arrive together: 2(W x + p) + ceil(W/c) S a + S u."""
    add, update = 2e-10, 5e-10
    costs = {"aggregate_s_per_byte": add, "update_s_per_byte": update, "cores": cores}
    schedule = parameter_server_push_pull(workers, 1, **WHOLE, **costs)
    assert time_s(schedule) == within(2 * (workers * X + P) + ceil(workers / cores) * S * add + S * update)


@pytest.mark.parametrize("workers", [1, 2, 6])
def test_a_server_takes_its_memory_for_each_push_and_for_the_update(workers):
    """3 accesses to each byte: all pushes at once 3 W S/memory, the update 3 S/memory."""
    schedule = parameter_server_push_pull(workers, 1, **WHOLE, memory_accesses=3.0)
    expected_s = 2 * (workers * X + P) + 3 * (workers + 1) * S / MEMORY
    assert time_s(schedule, hosts(workers + 1, MEMORY)) == within(expected_s)


def test_as_servers_grow_many_the_time_falls_until_the_workers_are_full():
    """8 workers on 1, 2, 4, 8, 16 servers with one core each, a s per byte: 2(max(8/M, 1) x + p) + 8/M S a."""
    add, found = 2e-10, []
    for servers in (1, 2, 4, 8, 16):
        schedule = parameter_server_push_pull(8, servers, **WHOLE, aggregate_s_per_byte=add)
        at_least_s = 2 * (max(8 / servers, 1) * X + P)
        took_s = time_s(schedule)
        assert at_least_s * (1 - 1e-9) <= took_s <= (at_least_s + 8 / servers * S * add) * (1 + 1e-9)
        found.append(took_s)
    assert found == sorted(found, reverse=True)
    assert found[0] == within(2 * (8 * X + P) + 8 * S * add)


# -- trees that are given --------------------------------------------------------------------------------------


def full_tree(children: int, depth: int) -> list[int]:
    """The parents of a tree in which every inner rank has so many children."""
    size = sum(children**level for level in range(depth + 1))
    return [-1, *((rank - 1) // children for rank in range(1, size))]


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize(("children", "depth"), [(1, 1), (4, 1), (2, 3), (3, 2)])
def test_hosts_along_a_full_tree(children, depth, chunks):
    """c messages share the link of an inner rank on each level: one way c (d + m - 1) x/m + d p; both ways with one
    chunk twice that."""
    parents = full_tree(children, depth)
    ranks = range(len(parents))
    one_way_s = children * (depth + chunks - 1) * X / chunks + depth * P
    for make in (reduce_up, broadcast_down):
        assert time_s(make(parents, ranks, **WHOLE, chunks=chunks)) == within(one_way_s)
    if chunks == 1:
        assert time_s(tree_of_parents_all_reduce(parents, ranks, **WHOLE)) == within(2 * one_way_s)


@pytest.mark.parametrize("chunks", [1, 2, 8])
@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_the_switch_adds_up_and_replicates(count, chunks):
    """The root is the switch: each cable, of latency p/2, carries S once each way, whatever the number of hosts.

    One way x + p/2; there and back (m + 1) x/m + p, as what comes back follows chunk by chunk.
    """
    topology = hosts(count)
    switch = list(topology.compiled.node_kind).index("switch")
    nodes = [*topology.compiled.rank_nodes, switch]
    tree = [*[count] * count, -1]
    for make in (reduce_up, broadcast_down):
        assert time_s(make(tree, range(count), **WHOLE, chunks=chunks), topology, nodes) == within(X + P / 2)
    both = tree_of_parents_all_reduce(tree, range(count), **WHOLE, chunks=chunks)
    assert time_s(both, topology, nodes) == within((chunks + 1) * X / chunks + P)


def test_multicast_is_one_copy_a_link():
    """Bytes that the links carry: S over the sender's, S over each receiver's, and nothing the other way."""
    topology = hosts(5)
    compiled = topology.compiled
    switch = list(compiled.node_kind).index("switch")
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol(divisible=True)))
    # Host 0 is the root, above the switch, which is above the others.
    schedule = broadcast_down([-1, 5, 5, 5, 5, 0], [1, 2, 3, 4], **WHOLE, chunks=3)
    fabric.play(fabric.place(schedule, [*compiled.rank_nodes, switch]), "multicast")
    fabric.env.run()
    carried = dict(zip(fabric.network.resource_names, fabric.carried_bytes().tolist(), strict=True))
    used = {name: size for name, size in carried.items() if size > 0}
    assert list(used.values()) == pytest.approx([S] * 5, rel=1e-12)
    source = compiled.node_names[compiled.rank_nodes[0]]
    assert [name.startswith(source) for name in used].count(True) == 1


# -- map-reduce ------------------------------------------------------------------------------------------------

EXECUTORS = [1, 2, 3, 5, 8, 9, 16, 64]


def reduce_s(n: int, depth: int) -> float:
    """Rounds in lockstep: of the n partitions of one n' stay; the fullest of these gets ceil(n/n') - 1 more."""
    left = [*tree_aggregate_rounds(n, depth)]
    rounds = [(ceil(before / after) - 1) * X + P for before, after in pairwise(left)]
    return sum(rounds) + left[-1] * X + P


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("n", EXECUTORS)
def test_map_reduce_by_trees(n, depth):
    """treeAggregate, then a binomial tree of N + 1: ceil(log2(N + 1))(x + p)."""
    schedule = map_reduce(n, **WHOLE, depth=depth, broadcast="tree")
    assert time_s(schedule) == within(reduce_s(n, depth) + ceil(log2(n + 1)) * (X + P))


@pytest.mark.parametrize("n", EXECUTORS)
def test_map_reduce_by_stars(n):
    """N x + p each way: the link of the driver carries all."""
    assert time_s(map_reduce(n, **WHOLE, reduce="star", broadcast="star")) == within(2 * (n * X + P))


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16])
def test_torrent(n, rounds):
    """b = m N blocks: the driver sends S, then its last N blocks are exchanged: (1 + (N - 1)/(m N)) x + 2 p."""
    schedule = map_reduce(n, **WHOLE, reduce="star", blocks=n * rounds)
    down_s = (1 + (n - 1) / (rounds * n)) * X + (2 if n > 1 else 1) * P
    assert time_s(schedule) == within(n * X + P + down_s)
