"""Generators: numbers of nodes and links, degrees, distances and cuts, from the definition of each network."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.topology import (
    GENERATORS,
    HostSpec,
    Topology,
    bisection_bandwidth,
    dragonfly,
    fat_tree,
    full_mesh,
    leaf_spine,
    nvlink_node,
    oversubscription,
    rail_optimised,
    ring,
    star,
    torus,
)

B = 12.5e9  # bytes/s, 100 Gbit/s
SMALL = [
    star(hosts=5),
    star(hosts=3, host=HostSpec(gpus=4, nics=2)),
    leaf_spine(leaves=3, hosts_per_leaf=2, spines=2, uplinks=2),
    fat_tree(k=4),
    ring(hosts=5),
    torus(dims=[3, 2, 4]),
    full_mesh(hosts=4),
    dragonfly(routers_per_group=2, hosts_per_router=1, global_links_per_router=1),
    rail_optimised(hosts=4, hosts_per_unit=2, spines=2),
    nvlink_node(gpus=4),
]


def kinds(topology: Topology) -> dict[str, int]:
    return dict(Counter(topology.compiled.node_kind))


def cables(topology: Topology) -> int:
    return topology.graph.number_of_edges() // 2


def degree(topology: Topology, kind: str) -> set[int]:
    """How many cables the nodes of a kind have."""
    graph = topology.graph
    return {graph.out_degree(name) for name, of in graph.nodes.items() if of["kind"] == kind}


@pytest.mark.parametrize("topology", SMALL, ids=lambda topology: topology.name)
def test_every_cable_is_two_equal_links_and_all_ranks_are_joined(topology: Topology) -> None:
    there = Counter((a, b, tuple(sorted(of.items()))) for (a, b, _), of in topology.graph.edges.items())
    back = Counter((b, a, tuple(sorted(of.items()))) for (a, b, _), of in topology.graph.edges.items())
    assert there == back
    assert nx.is_strongly_connected(topology.graph)


def test_every_generator_is_listed_and_made_above() -> None:
    # Those at the edge are in a file of their own, because their links differ by direction.
    assert {topology.name for topology in SMALL} == set(GENERATORS) - {"edge_cloud"}


@pytest.mark.parametrize("hosts", [1, 2, 16])
def test_star_has_a_cable_for_each_host(hosts: int) -> None:
    topology = star(hosts=hosts, bandwidth_bytes_per_s=B, latency_s=2e-6, kind="infiniband")
    assert kinds(topology) == {"host": hosts, "switch": 1}
    assert cables(topology) == hosts
    compiled = topology.compiled
    assert set(compiled.link_bandwidth) == {B}
    assert set(compiled.link_latency) == {2e-6}
    assert set(compiled.link_kind) == {"infiniband"}
    assert compiled.ranks == tuple(f"host{number}" for number in range(hosts))


def test_leaf_spine_counts() -> None:
    """L leaves of h hosts, s spines, u uplinks: L h + L s u cables; any two racks are four links apart."""
    topology = leaf_spine(leaves=4, hosts_per_leaf=3, spines=2, uplinks=2)
    assert kinds(topology) == {"host": 12, "switch": 6}
    assert cables(topology) == 4 * 3 + 4 * 2 * 2
    assert nx.shortest_path_length(topology.graph, "host0", "host2") == 2
    assert nx.shortest_path_length(topology.graph, "host0", "host3") == 4


@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0])
def test_leaf_spine_oversubscription(ratio: float) -> None:
    """Of N/2 hosts at B, 1/ratio gets across: N/2 * B / ratio."""
    topology = leaf_spine(leaves=4, hosts_per_leaf=4, spines=2, bandwidth_bytes_per_s=B, oversubscription=ratio)
    assert bisection_bandwidth(topology) == pytest.approx(8 * B / ratio, rel=1e-12)
    assert oversubscription(topology) == pytest.approx(ratio, rel=1e-12)


def test_leaf_spine_uplinks_have_their_own_bandwidth_and_latency() -> None:
    topology = leaf_spine(
        leaves=2, hosts_per_leaf=2, spines=1, uplink_bandwidth_bytes_per_s=4 * B, uplink_latency_s=5e-6
    )
    uplink = topology.graph.edges["leaf0", "spine0", 0]
    assert (uplink["bandwidth_bytes_per_s"], uplink["latency_s"]) == (4 * B, 5e-6)
    assert topology.graph.edges["host0", "leaf0", 0]["bandwidth_bytes_per_s"] == B


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_counts(k: int) -> None:
    """k^3/4 hosts, 5 k^2/4 switches of k ports each, 3 k^3/4 cables; half of the hosts send k^3/8 * B to the rest."""
    topology = fat_tree(k=k, bandwidth_bytes_per_s=B)
    assert kinds(topology) == {"host": k**3 // 4, "switch": 5 * k**2 // 4}
    assert cables(topology) == 3 * k**3 // 4
    assert degree(topology, "switch") == {k}
    assert degree(topology, "host") == {1}
    assert bisection_bandwidth(topology) == pytest.approx(k**3 / 8 * B, rel=1e-12)


def test_fat_tree_distances() -> None:
    """Two, four or six links: below one edge switch, in one pod, between pods. k = 4: 2 hosts an edge, 4 a pod."""
    distances = nx.single_source_shortest_path_length(fat_tree(k=4).graph, "host0")
    assert [distances[f"host{number}"] for number in range(16)] == [0, 2, 4, 4] + [6] * 12


@pytest.mark.parametrize("hosts", [1, 2, 3, 8])
def test_ring_counts(hosts: int) -> None:
    """N cables, but one for two hosts and none for one."""
    topology = ring(hosts=hosts)
    assert kinds(topology) == {"host": hosts}
    assert cables(topology) == {1: 0, 2: 1}.get(hosts, hosts)


@pytest.mark.parametrize("dims", [[4, 4], [3, 5], [2, 3], [4, 4, 4], [2, 3, 4], [5], [1, 3]])
def test_torus_degree(dims: list[int]) -> None:
    """Two cables per dimension of length >= 3, one for length 2, none for 1; farthest: sum of floor(L/2)."""
    topology = torus(dims=dims)
    hosts = len(topology.compiled.ranks)
    per_host = sum(min(length - 1, 2) for length in dims)
    assert degree(topology, "host") == {per_host}
    assert cables(topology) == hosts * per_host // 2
    assert nx.diameter(topology.graph) == sum(length // 2 for length in dims)


def test_torus_names_are_coordinates_in_row_major_order() -> None:
    topology = torus(dims=[3, 3])
    assert topology.compiled.ranks[:4] == ("host0_0", "host0_1", "host0_2", "host1_0")
    assert set(topology.graph["host0_0"]) == {"host0_1", "host0_2", "host1_0", "host2_0"}


def test_full_mesh_counts() -> None:
    """N (N - 1) / 2 cables; the halves of N = 6 are joined by 9."""
    topology = full_mesh(hosts=6, bandwidth_bytes_per_s=B)
    assert cables(topology) == 15
    assert degree(topology, "host") == {5}
    assert bisection_bandwidth(topology) == pytest.approx(9 * B, rel=1e-12)


@pytest.mark.parametrize(("a", "p", "h"), [(4, 2, 2), (2, 1, 1), (3, 2, 1)])
def test_dragonfly_counts(a: int, p: int, h: int) -> None:
    """g = a h + 1 groups, a p g hosts; every router has p + (a - 1) + h cables; at most 3 links between routers."""
    topology = dragonfly(routers_per_group=a, hosts_per_router=p, global_links_per_router=h)
    g = a * h + 1
    assert kinds(topology) == {"host": a * p * g, "switch": a * g}
    assert degree(topology, "switch") == {p + a - 1 + h}
    assert cables(topology) == a * p * g + g * a * (a - 1) // 2 + g * (g - 1) // 2
    assert nx.diameter(topology.graph) == 5
    pairs = Counter(
        tuple(sorted((one[6:].split("_")[0], other[6:].split("_")[0])))
        for one, other in topology.graph.edges()
        if one.startswith("router") and other.startswith("router")
    )
    assert {count for (one, other), count in pairs.items() if one != other} == {2}  # one cable, two links


@given(a=st.integers(1, 4), h=st.integers(1, 3), data=st.data())
@settings(max_examples=40, deadline=None)
def test_dragonfly_with_fewer_groups(a: int, h: int, data: st.DataObject) -> None:
    """Each pair of g groups has floor(a h / (g - 1)) cables, and no router more than h."""
    g = data.draw(st.integers(1, a * h + 1))
    topology = dragonfly(routers_per_group=a, hosts_per_router=1, global_links_per_router=h, groups=g)
    between = a * h // (g - 1) if g > 1 else 0
    assert cables(topology) == a * g + g * a * (a - 1) // 2 + between * g * (g - 1) // 2
    assert max(degree(topology, "switch")) <= 1 + a - 1 + h
    assert nx.is_strongly_connected(topology.graph)


def test_rail_optimised_counts() -> None:
    """Units of u hosts with r NICs: r rail switches a unit, a cable a NIC, and one to each spine."""
    topology = rail_optimised(hosts=8, hosts_per_unit=4, spines=2)
    outside = (topology.compiled.host_of_node < 0).sum()
    assert outside == 2 * 8 + 2
    counted = Counter(topology.compiled.link_kind)
    assert counted["ethernet"] == 2 * (8 * 8 + 2 * 8 * 2)
    # Nothing is oversubscribed by default: 4 NICs below a rail switch over 2 spines are 2 B each.
    assert oversubscription(topology) == pytest.approx(1.0, rel=1e-12)
    assert topology.graph.edges["rail0_0", "spine0", 0]["bandwidth_bytes_per_s"] == 2 * B


def test_gpus_of_equal_number_are_one_switch_apart_on_rails() -> None:
    """GPU, PCIe switch, NIC, rail, NIC, PCIe switch, GPU: six links."""
    graph = rail_optimised(hosts=2).graph
    assert nx.shortest_path_length(graph, "host0.gpu3", "host1.gpu3") == 6
    assert "rail0_3" in nx.shortest_path(graph, "host0.gpu3", "host1.gpu3")


def test_nvlink_node() -> None:
    topology = nvlink_node(gpus=8, bandwidth_bytes_per_s=240e9, gpu_model="a100")
    assert kinds(topology) == {"host": 1, "gpu": 8, "switch": 1}
    assert Counter(topology.compiled.link_kind) == {"pcie": 16, "nvlink": 16}
    assert topology.graph.edges["host0.gpu0", "host0.nvswitch", 0]["bandwidth_bytes_per_s"] == 240e9
    assert topology.graph.nodes["host0.gpu5"] == {"kind": "gpu", "host": "host0", "model": "a100"}


@pytest.mark.parametrize(
    ("spec", "nodes", "inside", "outside"),
    [
        # A plain host: only itself, and a cable for each NIC.
        (HostSpec(), {"host": 1}, 0, 1),
        (HostSpec(nics=3), {"host": 1}, 0, 3),
        # One NIC: all hang on the host node.
        (HostSpec(gpus=4), {"host": 1, "gpu": 4, "nic": 1}, 5, 1),
        (HostSpec(gpus=1, nics=2), {"host": 1, "gpu": 1, "nic": 2}, 3, 2),
        # Several NICs: a PCIe switch for each, or for each GPU if there are fewer.
        (HostSpec(gpus=4, nics=2), {"host": 1, "gpu": 4, "nic": 2, "switch": 2}, 2 + 4 + 2, 2),
        (HostSpec(gpus=2, nics=4), {"host": 1, "gpu": 2, "nic": 4, "switch": 2}, 2 + 2 + 4, 4),
        # NVLink: an NVSwitch besides.
        (HostSpec(gpus=4, intra="nvlink"), {"host": 1, "gpu": 4, "nic": 1, "switch": 1}, 5 + 4, 1),
    ],
)
def test_inside_of_hosts(spec: HostSpec, nodes: dict[str, int], inside: int, outside: int) -> None:
    topology = star(hosts=2, host=spec)
    counted = {kind: 2 * count for kind, count in nodes.items()}
    counted["switch"] = counted.get("switch", 0) + 1
    assert kinds(topology) == counted
    assert cables(topology) == 2 * (inside + outside)
    of_host = topology.compiled.host_of_node
    assert (of_host < 0).sum() == 1
    assert of_host[topology.compiled.node_index["switch"]] == -1


def test_gpus_are_ranks_in_the_order_of_the_hosts() -> None:
    topology = leaf_spine(leaves=2, hosts_per_leaf=1, spines=1, host=HostSpec(gpus=2))
    assert topology.compiled.ranks == ("host0.gpu0", "host0.gpu1", "host1.gpu0", "host1.gpu1")
    first = topology.compiled.host_of_node[topology.compiled.rank_nodes]
    assert [topology.compiled.node_names[host] for host in first] == ["host0", "host0", "host1", "host1"]


def test_optional_attributes_reach_the_arrays() -> None:
    spec = HostSpec(memory_bandwidth_bytes_per_s=100e9)
    compiled = star(hosts=2, loss_probability=1e-5, buffer_bytes=1e6, host=spec).compiled
    assert set(compiled.link_loss_probability) == {1e-5}
    assert set(compiled.link_buffer_bytes) == {1e6}
    assert list(compiled.node_memory_bandwidth) == [100e9, 100e9, float("inf")]


@pytest.mark.parametrize(
    ("generator", "arguments", "paths"),
    [
        (
            "star",
            {"hosts": 0, "bandwidth_bytes_per_s": -1.0, "latency_s": float("nan")},
            {"hosts", "bandwidth", "latency"},
        ),
        ("star", {"hosts": 2.5, "kind": "ehternet"}, {"hosts", "kind"}),
        ("star", {"hosts": 2, "loss_probability": 1.0, "buffer_bytes": 0.0}, {"loss_probability", "buffer"}),
        (
            "star",
            {"hosts": 2, "host": HostSpec(gpus=-1, nics=0, intra="nvlnk")},
            {"host.gpus", "host.nics", "host.intra"},
        ),
        ("fat_tree", {"k": 5}, {"k"}),
        ("torus", {"dims": []}, {"dims"}),
        ("torus", {"dims": [4, 0]}, {"dims.1"}),
        (
            "leaf_spine",
            {"leaves": 1, "hosts_per_leaf": 1, "spines": 1, "oversubscription": 2.0, "uplink_bandwidth_bytes_per_s": B},
            {"oversubscription"},
        ),
        ("leaf_spine", {"leaves": 1, "hosts_per_leaf": 1, "spines": 1, "oversubscription": 0.0}, {"oversubscription"}),
        ("rail_optimised", {"hosts": 5, "hosts_per_unit": 2}, {"hosts_per_unit"}),
        ("rail_optimised", {"hosts": 4, "hosts_per_unit": 2, "spines": 0}, {"spines"}),
        ("rail_optimised", {"hosts": 4, "spines": 0, "host": HostSpec(nics=2)}, {"spines"}),
        (
            "dragonfly",
            {"routers_per_group": 2, "hosts_per_router": 1, "global_links_per_router": 1, "groups": 4},
            {"groups"},
        ),
        ("nvlink_node", {"gpus": 0, "pcie_bandwidth_bytes_per_s": float("inf")}, {"gpus", "pcie_bandwidth"}),
    ],
)
def test_wrong_arguments_are_all_named(generator: str, arguments: dict[str, object], paths: set[str]) -> None:
    with pytest.raises(InputError) as caught:
        GENERATORS[generator](**arguments)
    assert {".".join(map(str, problem.path)) for problem in caught.value.problems} == paths
