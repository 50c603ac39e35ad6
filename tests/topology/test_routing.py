"""Routing: every path is a chain and shortest, and hosts are passed through only at need."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.topology import (
    HostSpec,
    Router,
    Topology,
    dragonfly,
    fat_tree,
    full_mesh,
    leaf_spine,
    nvlink_node,
    rail_optimised,
    ring,
    star,
    topology_from_graph,
    torus,
)

LINK = {"bandwidth": "10 Gbps", "latency": "1 us", "kind": "ethernet"}
BIG = 1_000_000  # so that a link counts more than any number of hosts


def names(topology: Topology, source: str, target: str, flow_key: int = 0, router: Router | None = None) -> list[str]:
    """The nodes on a path, by name; checks that it is a chain."""
    compiled = topology.compiled
    path = (router or Router(topology)).path(compiled.node_index[source], compiled.node_index[target], flow_key)
    nodes = [source]
    for link in path:
        assert compiled.node_names[compiled.link_source[link]] == nodes[-1]
        nodes.append(compiled.node_names[compiled.link_target[link]])
    assert nodes[-1] == target
    return nodes


def oracle(topology: Topology, source: str, target: str) -> int | None:
    """Length of the path by definition: the first step that finds one, fewest links, then fewest hosts passed.

    In the first step a path is first in the host of its source, then at switches, then in the host of its target.
    """
    graph, compiled = topology.graph, topology.compiled
    kind = {name: graph.nodes[name]["kind"] for name in graph}
    host = dict(zip(compiled.node_names, compiled.host_of_node.tolist(), strict=True))
    ends_only = ("gpu", "storage")

    def phases(name: str) -> set[int]:
        own = (name == source or (host[source] == host[name] >= 0 and kind[name] not in ends_only)) and name != target
        last = name == target or (host[target] == host[name] >= 0 and kind[name] not in ends_only)
        switch = kind[name] == "switch" and host[name] < 0 and name not in (source, target)
        return {phase for phase, here in enumerate((own, switch, last)) if here}

    def shortest(pairs: Iterable[tuple[Any, Any]], begin: Any, end: Any) -> int | None:
        weighted = nx.DiGraph()
        weighted.add_nodes_from([begin, end])
        for before, after in pairs:
            name = after[0] if isinstance(after, tuple) else after
            weighted.add_edge(before, after, weight=BIG + (name != target and kind[name] in ("gpu", "host", "storage")))
        return int(nx.dijkstra_path_length(weighted, begin, end)) if nx.has_path(weighted, begin, end) else None

    links = list(graph.edges())
    staged = (
        ((one, before), (other, after))
        for one, other in links
        for before in phases(one)
        for after in phases(other)
        if before <= after
    )
    found = shortest(staged, (source, 0), (target, 2))
    if found is None:
        allowed = {name for name in graph if kind[name] not in ends_only or name in (source, target)}
        found = shortest(((one, other) for one, other in links if {one, other} <= allowed), source, target)
    return found if found is not None else shortest(links, source, target)


def length(topology: Topology, nodes: list[str]) -> int:
    kind = topology.graph.nodes
    return BIG * (len(nodes) - 1) + sum(kind[name]["kind"] in ("gpu", "host", "storage") for name in nodes[1:-1])


# What is passed through.


def test_same_node_is_an_empty_path() -> None:
    assert Router(star(hosts=2)).path(0, 0) == ()


def test_star_is_two_links_always() -> None:
    """So the latency of a path is twice that of a link."""
    topology = star(hosts=4, latency_s=3e-6)
    for source, target in permutations(range(4), 2):
        path = Router(topology).path(source, target)
        assert len(path) == 2
        assert topology.compiled.link_latency[list(path)].sum() == pytest.approx(6e-6, rel=1e-12)


@pytest.mark.parametrize(("target", "links"), [("host1", 2), ("host2", 4), ("host15", 6)])
def test_fat_tree_is_two_four_or_six_links(target: str, links: int) -> None:
    assert len(names(fat_tree(k=4), "host0", target)) == links + 1


def test_gpus_go_through_host_and_nic() -> None:
    topology = star(hosts=2, host=HostSpec(gpus=2))
    expected = ["host0.gpu0", "host0", "host0.nic0", "switch", "host1.nic0", "host1", "host1.gpu1"]
    assert names(topology, "host0.gpu0", "host1.gpu1") == expected
    assert names(topology, "host0.gpu0", "host0.gpu1") == ["host0.gpu0", "host0", "host0.gpu1"]


def test_gpus_prefer_the_nvswitch_to_the_host() -> None:
    """Both ways have two links; the NVSwitch is no host."""
    assert names(nvlink_node(), "host0.gpu1", "host0.gpu6") == ["host0.gpu1", "host0.nvswitch", "host0.gpu6"]


def test_gpus_use_the_nic_beside_them() -> None:
    topology = star(hosts=2, host=HostSpec(gpus=4, nics=2))
    for gpu, nic in ((0, 0), (1, 0), (2, 1), (3, 1)):
        for flow_key in range(8):
            nodes = names(topology, f"host0.gpu{gpu}", f"host1.gpu{gpu}", flow_key)
            assert f"host0.nic{nic}" in nodes
            assert f"host1.nic{nic}" in nodes


def test_gpus_are_not_passed_through_while_there_is_another_way() -> None:
    """Three GPUs in a row by NVLink, and PCIe to the host: the ends meet in the host; both ways have two links."""
    graph = nx.Graph()
    graph.add_node("h", kind="host")
    graph.add_nodes_from(["g0", "g1", "g2"], kind="gpu", host="h")
    graph.add_edges_from([("g0", "g1"), ("g1", "g2")], bandwidth="20 GB/s", latency="1 us", kind="nvlink")
    graph.add_edges_from([("g0", "h"), ("g1", "h"), ("g2", "h")], bandwidth="12 GB/s", latency="1 us", kind="pcie")
    topology = topology_from_graph(graph)
    assert names(topology, "g0", "g1") == ["g0", "g1"]
    assert names(topology, "g0", "g2") == ["g0", "h", "g2"]


def test_gpus_of_one_host_are_not_a_way_in_or_out_for_each_other() -> None:
    """GPU 0 of each host has a cable of its own to the switch; GPU 1 does not use it, though it would be shorter."""
    graph = nx.Graph()
    for host in ("h", "i"):
        graph.add_node(host, kind="host")
        graph.add_node(f"{host}.n", kind="nic", host=host)
        graph.add_nodes_from([f"{host}.g0", f"{host}.g1"], kind="gpu", host=host)
        inside = [(host, f"{host}.g0"), (host, f"{host}.g1"), (f"{host}.g0", f"{host}.g1"), (host, f"{host}.n")]
        graph.add_edges_from(inside, bandwidth="12 GB/s", latency="1 us", kind="pcie")
        graph.add_edges_from([(f"{host}.n", "s"), (f"{host}.g0", "s")], **LINK)
    graph.nodes["s"]["kind"] = "switch"
    topology = topology_from_graph(graph)
    assert names(topology, "h.g0", "i.g0") == ["h.g0", "s", "i.g0"]
    assert names(topology, "h.g1", "i.g1") == ["h.g1", "h", "h.n", "s", "i.n", "i", "i.g1"]
    assert names(topology, "h.g0", "i.g1") == ["h.g0", "s", "i.n", "i", "i.g1"]


def test_gpus_are_passed_through_where_there_is_no_other_way() -> None:
    graph = nx.path_graph(["g0", "g1", "g2"])
    nx.set_node_attributes(graph, "gpu", "kind")
    nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, LINK))
    assert names(topology_from_graph(graph), "g0", "g2") == ["g0", "g1", "g2"]


def test_other_hosts_are_passed_through_only_without_switches_in_between() -> None:
    """Two links through a host, three through switches: the switches are taken."""
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b", "between"], kind="host")
    graph.add_nodes_from(["s", "t"], kind="switch")
    graph.add_edges_from([("a", "between"), ("between", "b"), ("a", "s"), ("s", "t"), ("t", "b")], **LINK)
    assert names(topology_from_graph(graph), "a", "b") == ["a", "s", "t", "b"]
    graph.remove_edge("s", "t")
    assert names(topology_from_graph(graph), "a", "b") == ["a", "between", "b"]


def test_storage_is_not_passed_through() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b", "c"], kind="host")
    graph.add_node("disk", kind="storage")
    graph.add_edges_from([("a", "disk"), ("disk", "b"), ("a", "c"), ("c", "b")], **LINK)
    topology = topology_from_graph(graph)
    assert names(topology, "a", "b") == ["a", "c", "b"]
    assert names(topology, "a", "disk") == ["a", "disk"]


def test_ring_takes_the_shorter_way_round() -> None:
    topology = ring(hosts=8)
    for distance in range(1, 8):
        assert len(names(topology, "host0", f"host{distance}")) == min(distance, 8 - distance) + 1


def test_ring_of_gpu_hosts_passes_through_their_nics() -> None:
    topology = ring(hosts=4, host=HostSpec(gpus=1, nics=2))
    nodes = names(topology, "host0.gpu0", "host2.gpu0")
    assert sum(topology.graph.nodes[name]["kind"] == "host" for name in nodes) == 3
    assert sum(topology.graph.nodes[name]["kind"] == "gpu" for name in nodes) == 2


def test_one_way_links_are_taken_one_way() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(["a", "b", "c", "d"], kind="host")
    graph.add_edges_from([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], **LINK)
    topology = topology_from_graph(graph)
    assert names(topology, "a", "b") == ["a", "b"]
    assert names(topology, "b", "a") == ["b", "c", "d", "a"]


def test_switches_can_be_ends() -> None:
    topology = leaf_spine(leaves=2, hosts_per_leaf=1, spines=1)
    assert names(topology, "leaf0", "host1") == ["leaf0", "spine0", "leaf1", "host1"]
    assert names(topology, "host0", "spine0") == ["host0", "leaf0", "spine0"]
    assert names(topology, "spine0", "leaf1") == ["spine0", "leaf1"]


def test_no_way_is_an_error() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", kind="host")
    graph.add_node("disk", kind="storage")
    graph.add_edge("a", "disk", **LINK)
    topology = topology_from_graph(graph)
    assert len(Router(topology).path(0, 1)) == 1
    with pytest.raises(InputError, match="no way from 'disk' to 'a'"):
        Router(topology).path(1, 0)


# Against the definition.


@st.composite
def random_topologies(draw: st.DrawFn) -> Topology:
    """Connected graphs of single nodes of all kinds, with parallel cables."""
    kinds = draw(
        st.lists(st.sampled_from(["host", "host", "switch", "switch", "gpu", "storage"]), min_size=2, max_size=12)
    )
    kinds[0] = "host"
    graph = nx.MultiGraph()
    for number, of in enumerate(kinds):
        graph.add_node(number, kind=of)
        if number:
            graph.add_edge(number, draw(st.integers(0, number - 1)))
    ends = st.integers(0, len(kinds) - 1)
    extra = draw(st.lists(st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1]), max_size=12))
    graph.add_edges_from(extra)
    return topology_from_graph(graph, defaults=LINK)


@given(topology=random_topologies(), seed=st.integers(0, 2**64 - 1), flow_key=st.integers(-(2**70), 2**70))
@settings(max_examples=100, deadline=None)
def test_random_graphs(topology: Topology, seed: int, flow_key: int) -> None:
    router = Router(topology, seed)
    for source, target in permutations(topology.graph, 2):
        nodes = names(topology, source, target, flow_key, router)
        assert length(topology, nodes) == oracle(topology, source, target)


@st.composite
def random_machines(draw: st.DrawFn) -> Topology:
    """Hosts with anything inside, wired inside and outside at random."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(["s0", "s1", "s2"], kind="switch")
    graph.add_edges_from([("s0", "s1"), ("s1", "s2")])
    for host in draw(st.lists(st.sampled_from("abc"), min_size=2, max_size=3, unique=True)):
        graph.add_node(host, kind="host")
        inside = [host]
        for number, kind in enumerate(draw(st.lists(st.sampled_from(["gpu", "gpu", "nic", "switch"]), max_size=5))):
            graph.add_node(f"{host}{number}", kind=kind, host=host)
            graph.add_edge(f"{host}{number}", draw(st.sampled_from(inside)))
            inside.append(f"{host}{number}")
        ends = st.sampled_from(inside)
        wires = st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1])
        graph.add_edges_from(draw(st.lists(wires, max_size=4)))
        graph.add_edges_from(draw(st.lists(st.tuples(ends, st.sampled_from(list(graph))), max_size=2)))
        graph.add_edge(draw(ends), draw(st.sampled_from(["s0", "s1", "s2"])))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return topology_from_graph(graph, defaults=LINK)


@given(topology=random_machines(), flow_key=st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_random_machines(topology: Topology, flow_key: int) -> None:
    router = Router(topology)
    for source, target in permutations(topology.graph, 2):
        nodes = names(topology, source, target, flow_key, router)
        assert length(topology, nodes) == oracle(topology, source, target)


HOSTS = st.builds(HostSpec, gpus=st.integers(0, 4), nics=st.integers(1, 3), intra=st.sampled_from(["pcie", "nvlink"]))


@given(host=HOSTS, which=st.sampled_from(["star", "leaf_spine", "rails", "ring", "torus", "mesh", "dragonfly"]))
@settings(max_examples=60, deadline=None)
def test_generated_clusters(host: HostSpec, which: str) -> None:
    make = {
        "star": lambda: star(hosts=3, host=host),
        "leaf_spine": lambda: leaf_spine(leaves=2, hosts_per_leaf=2, spines=2, uplinks=2, host=host),
        "rails": lambda: rail_optimised(hosts=4, hosts_per_unit=2, spines=2, host=host),
        "ring": lambda: ring(hosts=4, host=host),
        "torus": lambda: torus(dims=[2, 3], host=host),
        "mesh": lambda: full_mesh(hosts=4, host=host),
        "dragonfly": lambda: dragonfly(routers_per_group=2, hosts_per_router=1, global_links_per_router=1, host=host),
    }
    topology = make[which]()
    ranks = topology.compiled.ranks
    for source, target in [*pairwise(ranks), (ranks[-1], ranks[0]), (ranks[0], ranks[len(ranks) // 2])]:
        if source != target:
            nodes = names(topology, source, target, flow_key=len(ranks))
            assert length(topology, nodes) == oracle(topology, source, target)


@given(topology=random_topologies())
@settings(max_examples=30, deadline=None)
def test_there_and_back_are_equally_long(topology: Topology) -> None:
    for source, target in permutations(topology.graph, 2):
        assert len(names(topology, source, target)) == len(names(topology, target, source))


@pytest.mark.parametrize(
    "topology", [star(hosts=6), fat_tree(k=4), torus(dims=[3, 3]), rail_optimised(hosts=2)], ids=lambda t: t.name
)
def test_many_paths_at_once_are_the_same_paths(topology: Topology) -> None:
    ranks = topology.compiled.rank_nodes
    sources, targets = np.repeat(ranks, len(ranks)), np.tile(ranks, len(ranks))
    keys = np.arange(len(sources))
    starts, links = Router(topology, seed=3).paths(sources, targets, keys)
    one_by_one = Router(topology, seed=3)
    assert starts.shape == (len(sources) + 1,)
    for row, (source, target, key) in enumerate(zip(sources.tolist(), targets.tolist(), keys.tolist(), strict=True)):
        assert tuple(links[starts[row] : starts[row + 1]]) == one_by_one.path(source, target, key)
