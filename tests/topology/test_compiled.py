"""The arrays of a topology: order, names, and which host a node is inside of."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from simnet.topology import Topology, compile_topology, leaf_spine, star, topology_from_graph

LINK = {"bandwidth": "10 Gbps", "latency": "1 us", "kind": "ethernet"}
PCIE = {"bandwidth": "10 GB/s", "latency": "1 us", "kind": "pcie"}


def test_arrays_follow_the_graph() -> None:
    topology = leaf_spine(leaves=2, hosts_per_leaf=2, spines=1)
    compiled = compile_topology(topology)
    assert compiled.node_names == tuple(topology.graph.nodes)
    ends = [
        (compiled.node_names[a], compiled.node_names[b])
        for a, b in zip(compiled.link_source, compiled.link_target, strict=True)
    ]
    assert ends == list(topology.graph.edges())
    assert [compiled.node_index[name] for name in compiled.node_names] == list(range(len(compiled.node_names)))
    assert compiled.link_bandwidth.dtype == compiled.link_latency.dtype == np.float64
    assert topology.compiled is topology.compiled


def test_link_names_are_readable_and_unique() -> None:
    """A node may itself be called so that counting parallel links would repeat a name."""
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(["a", "b", "b#1"], kind="host")
    graph.add_edges_from([("a", "b"), ("a", "b"), ("a", "b"), ("a", "b#1"), ("b", "a"), ("b#1", "a")], **LINK)
    names = topology_from_graph(graph).compiled.link_name
    assert names == ("a->b", "a->b#1", "a->b#2", "a->b#1#1", "b->a", "b#1->a")
    assert len(set(names)) == len(names)


def test_a_topology_without_links() -> None:
    graph = networkx.MultiDiGraph()
    graph.add_node("only", kind="host")
    compiled = topology_from_graph(graph).compiled
    assert compiled.ranks == ("only",)
    assert compiled.link_source.shape == compiled.link_target.shape == (0,)


def inside(graph: object) -> dict[str, str | None]:
    compiled = topology_from_graph(graph).compiled  # type: ignore[arg-type]
    hosts = [None if host < 0 else compiled.node_names[host] for host in compiled.host_of_node]
    return dict(zip(compiled.node_names, hosts, strict=True))


def test_what_hangs_on_one_host_by_pcie_is_inside_of_it() -> None:
    graph = networkx.Graph()
    graph.add_nodes_from(["h0", "h1"], kind="host")
    graph.add_nodes_from(["g0", "g1", "g2"], kind="gpu")
    graph.add_nodes_from(["plx", "net", "nv"], kind="switch")
    graph.add_node("n0", kind="nic")
    graph.add_edges_from([("g0", "plx"), ("plx", "h0"), ("n0", "plx"), ("g1", "h1"), ("g2", "h1")], **PCIE)
    graph.add_edges_from([("n0", "net"), ("h1", "net"), ("g1", "nv"), ("g2", "nv")], **LINK)
    assert inside(graph) == {
        "h0": "h0", "h1": "h1", "g0": "h0", "g1": "h1", "g2": "h1", "plx": "h0", "n0": "h0", "net": None, "nv": None,
    }  # fmt: skip


def test_what_is_between_two_hosts_by_pcie_is_inside_of_neither() -> None:
    graph = networkx.Graph()
    graph.add_nodes_from(["h0", "h1"], kind="host")
    graph.add_node("bridge", kind="switch")
    graph.add_edges_from([("h0", "bridge"), ("h1", "bridge")], **PCIE)
    assert inside(graph) == {"h0": "h0", "h1": "h1", "bridge": None}


def test_a_named_host_goes_before_wires() -> None:
    graph = networkx.Graph()
    graph.add_nodes_from(["h0", "h1"], kind="host")
    graph.add_node("g0", kind="gpu", host="h1")
    graph.add_edge("g0", "h0", **PCIE)
    graph.add_edge("h0", "h1", **LINK)
    assert inside(graph)["g0"] == "h1"


def test_topologies_are_frozen() -> None:
    topology = star(hosts=2)
    assert isinstance(topology, Topology)
    with pytest.raises(AttributeError):
        topology.name = "other"  # type: ignore[misc]
