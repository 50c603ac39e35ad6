"""Multicast trees: shortest paths, one copy a link, and exactly the links that a router takes between their nodes."""

from __future__ import annotations

from itertools import chain

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.shipped import shipped_folder
from simnet.topology import (
    HostSpec,
    MulticastTree,
    Router,
    Topology,
    dragonfly,
    fat_tree,
    full_mesh,
    leaf_spine,
    load_topology_file,
    multicast_tree,
    nvlink_node,
    rail_optimised,
    ring,
    star,
    topology_from_graph,
    torus,
)

LINK = {"bandwidth": "10 Gbps", "latency": "1 us", "kind": "ethernet"}
CASES = {
    "star": star(hosts=5),
    "two NICs": star(hosts=3, host=HostSpec(nics=2)),
    "leaf and spine": leaf_spine(leaves=3, hosts_per_leaf=2, spines=2, uplinks=2),
    "fat tree": fat_tree(k=4),
    "ring": ring(hosts=6),
    "torus": torus(dims=[3, 4]),
    "mesh": full_mesh(hosts=4),
    "dragonfly": dragonfly(routers_per_group=2, hosts_per_router=1, global_links_per_router=1),
    "GPUs": star(hosts=3, host=HostSpec(gpus=4)),
    "GPUs, two NICs": leaf_spine(leaves=2, hosts_per_leaf=2, spines=2, host=HostSpec(gpus=4, nics=2)),
    "fewer GPUs than NICs": star(hosts=2, host=HostSpec(gpus=2, nics=4)),
    "one GPU, two NICs": star(hosts=2, host=HostSpec(gpus=1, nics=2)),
    "GPUs in a ring": ring(hosts=4, host=HostSpec(gpus=2, nics=2)),
    "rails": rail_optimised(hosts=2),
    "rails alone": rail_optimised(hosts=2, spines=0, hosts_per_unit=2),
    "NVSwitch": nvlink_node(gpus=4),
    "cube mesh": load_topology_file(shipped_folder("topologies") / "v100_cube_mesh_8.graphml"),
    "two sites": load_topology_file(shipped_folder("topologies") / "two_sites_wan.json"),
}  # fmt: skip


def named(topology: Topology, tree: MulticastTree) -> dict[str, str]:
    """Each node's parent, by name; that of the root is empty."""
    names = topology.compiled.node_names
    of_tree = [names[node] for node in tree.nodes]
    return {of_tree[place]: of_tree[parent] if place else "" for place, parent in enumerate(tree.parents)}


def check(topology: Topology, root: int | None, leaves: list[int]) -> MulticastTree:
    """Everything that holds for any tree."""
    arrays = topology.compiled
    tree = multicast_tree(topology, root, leaves)
    assert tree == multicast_tree(topology, root, leaves[::-1])
    assert len(set(tree.nodes)) == len(tree.nodes) == len(tree.parents) == len(tree.links)
    assert set(leaves) <= set(tree.nodes)
    assert root is None or tree.nodes[0] == root
    assert (tree.parents[0], tree.links[0]) == (-1, ())
    used = list(chain.from_iterable(tree.links))
    assert len(set(used)) == len(used), "one copy a link"
    inner = {tree.nodes[parent] for parent in tree.parents[1:]}
    outer = set(tree.nodes) - inner
    assert outer <= set(leaves) | {tree.nodes[0]}
    routers = [Router(topology, seed) for seed in range(3)]
    ends = list(zip(arrays.link_source.tolist(), arrays.link_target.tolist(), strict=True))
    for place, links in list(enumerate(tree.links))[1:]:
        node, parent = tree.nodes[place], tree.nodes[tree.parents[place]]
        assert tree.parents[place] < place
        walked = [ends[link] for link in links]
        assert [walked[0][0], *(target for _, target in walked)] == [parent, *(s for s, _ in walked[1:]), node]
        for router in routers:
            for key in range(3):
                # Of parallel links a router may take another.
                assert [ends[link] for link in router.path(parent, node, key)] == walked
                back = [ends[link] for link in router.path(node, parent, key)]
                assert back == [(target, source) for source, target in walked[::-1]]
        # Between them lies only what passes on inside of a host.
        for _, passed in walked[:-1]:
            assert arrays.node_kind[passed] in ("nic", "switch")
            assert arrays.host_of_node[passed] >= 0
    return tree


@pytest.mark.parametrize("name", CASES)
def test_one_copy_a_link_and_the_way_of_a_router(name: str) -> None:
    topology = CASES[name]
    ranks = topology.compiled.rank_nodes.tolist()
    for root in (None, ranks[0], ranks[-1]):
        check(topology, root, ranks)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_leaves_from_anywhere(name: str, data: st.DataObject) -> None:
    topology = CASES[name]
    nodes = len(topology.compiled.node_names)
    root = data.draw(st.none() | st.integers(0, nodes - 1))
    ranks = topology.compiled.rank_nodes.tolist()
    check(topology, root, data.draw(st.lists(st.sampled_from(ranks), min_size=1, max_size=6)))


@pytest.mark.parametrize(
    "name", ["star", "leaf and spine", "fat tree", "ring", "torus", "mesh", "dragonfly", "NVSwitch"]
)
def test_every_leaf_is_as_near_as_it_can_be(name: str) -> None:
    """The depth of a leaf is the distance that networkx finds."""
    topology = CASES[name]
    arrays = topology.compiled
    tree = check(topology, int(arrays.rank_nodes[0]), arrays.rank_nodes.tolist())
    depth = [0]
    for parent, links in zip(tree.parents[1:], tree.links[1:], strict=True):
        depth.append(depth[parent] + len(links))
    distance = nx.single_source_shortest_path_length(topology.graph, arrays.ranks[0])
    for node, found in zip(tree.nodes, depth, strict=True):
        assert found == distance[arrays.node_names[node]]


def test_star() -> None:
    """N links from the switch; from a host one to the switch and N - 1 on."""
    topology = CASES["star"]
    hosts = [topology.compiled.node_index[f"host{number}"] for number in range(5)]
    assert named(topology, check(topology, None, hosts)) == {"switch": "", **{f"host{n}": "switch" for n in range(5)}}
    assert named(topology, check(topology, hosts[2], hosts)) == {
        "host2": "",
        "switch": "host2",
        **{f"host{number}": "switch" for number in (0, 1, 3, 4)},
    }


def test_leaf_spine_uses_one_spine() -> None:
    """From the first spine: a link to each of L leaf switches, and to each of their hosts: L + L h links."""
    topology = CASES["leaf and spine"]
    tree = check(topology, None, topology.compiled.rank_nodes.tolist())
    parents = named(topology, tree)
    assert parents["spine0"] == ""
    assert [parents[f"leaf{number}"] for number in range(3)] == ["spine0"] * 3
    assert [parents[f"host{number}"] for number in range(6)] == ["leaf0", "leaf0", "leaf1", "leaf1", "leaf2", "leaf2"]
    assert sum(map(len, tree.links)) == 3 + 6
    # Below one leaf switch that one is nearest.
    index = topology.compiled.node_index
    assert named(topology, check(topology, None, [index["host2"], index["host3"]]))["leaf1"] == ""


@pytest.mark.parametrize("k", [4, 8])
def test_fat_tree_goes_through_one_core_switch(k: int) -> None:
    """k pods with one aggregation switch each, k/2 edge switches and k^2/4 hosts: k + k^2/2 + k^3/4 links.

    From a host: one aggregation switch and one core switch more on the way up, one link less for itself.
    """
    topology = fat_tree(k=k)
    ranks = topology.compiled.rank_nodes.tolist()
    tree = check(topology, None, ranks)
    assert sum(map(len, tree.links)) == k + k**2 // 2 + k**3 // 4
    tree = check(topology, ranks[0], ranks)
    assert sum(map(len, tree.links)) == k + k**2 // 2 + k**3 // 4


def test_gpus_get_their_copies_inside_of_their_host() -> None:
    """One copy enters a host by its NIC, which is left out, and the host copies it to its GPUs."""
    topology = CASES["GPUs"]
    parents = named(topology, check(topology, None, topology.compiled.rank_nodes.tolist()))
    assert parents == {
        "switch": "",
        **{f"host{number}": "switch" for number in range(3)},
        **{f"host{number}.gpu{gpu}": f"host{number}" for number in range(3) for gpu in range(4)},
    }


def test_nics_are_left_out_only_where_a_router_has_no_choice() -> None:
    """A GPU that has two NICs at one switch gets its copy through one of them, which has to be named."""
    topology = CASES["one GPU, two NICs"]
    parents = named(topology, check(topology, None, topology.compiled.rank_nodes.tolist()))
    assert parents["host0.nic0"] == "switch"
    alone = star(hosts=2, host=HostSpec(gpus=1))
    parents = named(alone, check(alone, None, alone.compiled.rank_nodes.tolist()))
    assert parents == {
        "switch": "",
        **{f"host{number}": "switch" for number in range(2)},
        **{f"host{number}.gpu0": f"host{number}" for number in range(2)},
    }


def test_the_nvswitch_copies_rather_than_the_host() -> None:
    topology = CASES["NVSwitch"]
    ranks = topology.compiled.rank_nodes.tolist()
    assert named(topology, check(topology, None, ranks))["host0.nvswitch"] == ""
    assert named(topology, check(topology, ranks[0], ranks))["host0.gpu3"] == "host0.nvswitch"


def test_without_switches_a_host_is_the_root_and_hosts_pass_on() -> None:
    """Ring of 6: two ways around, 5 links, three hosts deep."""
    topology = CASES["ring"]
    tree = check(topology, None, topology.compiled.rank_nodes.tolist())
    assert named(topology, tree) == {
        "host0": "",
        "host1": "host0",
        "host5": "host0",
        "host2": "host1",
        "host4": "host5",
        "host3": "host2",
    }


def test_a_host_is_not_passed_through_where_switches_lead_around_it() -> None:
    """a - s - t - b, and h between s and t too: s - h - t is no longer, but h is a host."""
    graph = nx.Graph()
    for name, kind in {"h": "host", "a": "host", "b": "host", "s": "switch", "t": "switch", "u": "switch"}.items():
        graph.add_node(name, kind=kind)
    graph.add_edges_from([("a", "s"), ("s", "h"), ("h", "t"), ("s", "u"), ("u", "t"), ("t", "b")], **LINK)
    topology = topology_from_graph(graph, "g")
    index = topology.compiled.node_index
    tree = check(topology, index["a"], [index["b"], index["h"]])
    assert named(topology, tree) == {"a": "", "s": "a", "h": "s", "u": "s", "t": "u", "b": "t"}


def test_the_root_may_be_a_leaf_and_leaves_may_repeat() -> None:
    topology = CASES["star"]
    assert multicast_tree(topology, 3, [3]) == MulticastTree((3,), (-1,), ((),))
    assert multicast_tree(topology, 3, [1, 3, 1]) == multicast_tree(topology, 3, np.array([1]))


def test_what_cannot_be_reached() -> None:
    graph = nx.DiGraph()
    for name, kind in {"a": "host", "b": "host", "s": "switch"}.items():
        graph.add_node(name, kind=kind)
    graph.add_edges_from([("a", "s"), ("b", "s"), ("s", "a")], **LINK)
    # As a file it would be refused; as data it may be cut.
    graph = nx.MultiDiGraph(graph)
    for _, _, of in graph.edges(data=True):
        of.update(bandwidth_bytes_per_s=1e9, latency_s=0.0)
    topology = Topology.from_graph("cut", graph)
    index = topology.compiled.node_index
    with pytest.raises(InputError, match="there is no way from 'a' to 'b'"):
        multicast_tree(topology, index["a"], [index["b"]])
    with pytest.raises(ValueError, match="without leaves"):
        multicast_tree(topology, index["a"], [])
    # Only b itself reaches both.
    assert multicast_tree(topology, None, [index["a"], index["b"]]).nodes[0] == index["b"]


@pytest.mark.slow
def test_large_clusters() -> None:
    """65,536 hosts at a switch, and 1,024 hosts under 320 switches: N links; k + k^2/2 + k^3/4."""
    topology = star(hosts=65_536)
    assert len(multicast_tree(topology, None, topology.compiled.rank_nodes).nodes) == 65_537
    topology = fat_tree(k=16)
    assert len(multicast_tree(topology, None, topology.compiled.rank_nodes).nodes) == 1 + 16 + 128 + 1024
