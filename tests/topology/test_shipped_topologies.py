"""The topologies that ship: what their names and comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnet.scenario import load_topology
from simnet.shipped import shipped_folder
from simnet.topology import Router, Topology, bisection_bandwidth, oversubscription
from simnet.units import parse_bandwidth

FILES = sorted(shipped_folder("topologies").iterdir())
ASKED_FOR = {
    "v100_8x4_10g",
    "v100_8x4_100g",
    "v100_25x4_10g",
    "v100_25x4_100g",
    "leaf_spine_256",
    "fat_tree_k8",
    "nvlink_node_8",
}


def shipped(name: str) -> Topology:
    [path] = [path for path in FILES if path.stem == name]
    return load_topology(path)


def path_names(topology: Topology, source: str, target: str) -> list[str]:
    compiled = topology.compiled
    path = Router(topology).path(compiled.node_index[source], compiled.node_index[target])
    return [compiled.node_names[compiled.link_target[link]] for link in path]


def test_all_that_were_asked_for_ship_and_names_differ() -> None:
    stems = [path.stem for path in FILES]
    assert set(stems) >= ASKED_FOR
    assert len(set(stems)) == len(stems)
    assert {path.suffix for path in FILES} == {".yaml", ".json", ".graphml"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_is_called_like_its_file(path: Path) -> None:
    assert load_topology(path).name == path.stem


@pytest.mark.parametrize(
    ("name", "hosts", "kind", "bandwidth"),
    [
        ("v100_8x4_10g", 8, "ethernet", "10 Gbps"),
        ("v100_8x4_100g", 8, "infiniband", "100 Gbps"),
        ("v100_25x4_10g", 25, "ethernet", "10 Gbps"),
        ("v100_25x4_100g", 25, "infiniband", "100 Gbps"),
    ],
)
def test_v100_clusters(name: str, hosts: int, kind: str, bandwidth: str) -> None:
    """Four V100 a host, which share one NIC; PCIe inside; no rack is oversubscribed."""
    topology = shipped(name)
    compiled = topology.compiled
    assert len(compiled.ranks) == 4 * hosts
    assert {topology.graph.nodes[rank]["model"] for rank in compiled.ranks} == {"v100"}
    assert compiled.node_kind.count("nic") == compiled.node_kind.count("host") == hosts
    assert set(compiled.link_kind) == {"pcie", kind}
    nics = [link for link, source in enumerate(compiled.link_source) if compiled.node_kind[source] == "nic"]
    assert {compiled.link_bandwidth[link] for link in nics if compiled.link_kind[link] == kind} == {
        parse_bandwidth(bandwidth)
    }
    assert (oversubscription(topology) or 0.0) <= 1.0
    # Neither GPU nor NIC is held up by PCIe at the speed of the network.
    pcie = [link for link, of in enumerate(compiled.link_kind) if of == "pcie"]
    assert compiled.link_bandwidth[pcie].min() >= parse_bandwidth(bandwidth)


def test_leaf_spine_256() -> None:
    """16 racks of 16 at 2 to 1: 128 hosts send at half speed to the others."""
    topology = shipped("leaf_spine_256")
    assert len(topology.compiled.ranks) == 256
    assert oversubscription(topology) == pytest.approx(2.0)
    assert bisection_bandwidth(topology) == pytest.approx(128 * parse_bandwidth("100 Gbps") / 2)


def test_fat_tree_k8() -> None:
    topology = shipped("fat_tree_k8")
    assert (topology.compiled.node_kind.count("host"), topology.compiled.node_kind.count("switch")) == (128, 80)
    assert bisection_bandwidth(topology) == pytest.approx(64 * parse_bandwidth("100 Gbps"))


def test_nvlink_node_8() -> None:
    topology = shipped("nvlink_node_8")
    assert len(topology.compiled.ranks) == 8
    assert path_names(topology, "host0.gpu0", "host0.gpu7") == ["host0.nvswitch", "host0.gpu7"]


def test_v100_cube_mesh_8() -> None:
    """Six NVLinks a GPU. Neighbours use them; others meet in the sockets; the NIC is the one beside the GPU."""
    topology = shipped("v100_cube_mesh_8")
    graph = topology.graph
    for rank in topology.compiled.ranks:
        assert sum(of["kind"] == "nvlink" for _, _, of in graph.out_edges(rank, data=True)) == 6
    assert path_names(topology, "gpu0", "gpu7") == ["gpu7"]
    assert path_names(topology, "gpu0", "gpu5") == ["pcie0", "host0", "socket1", "pcie2", "gpu5"]
    assert path_names(topology, "gpu2", "switch") == ["pcie1", "nic0", "switch"]


def test_two_sites_wan() -> None:
    """Light needs 5 us a kilometre of fibre: 5 ms for 1000 km, and 1 us to get to the line and off it."""
    topology = shipped("two_sites_wan")
    compiled = topology.compiled
    path = Router(topology).path(compiled.node_index["west0"], compiled.node_index["east3"])
    assert compiled.link_latency[list(path)].sum() == pytest.approx(5e-3 + 1e-6)
    assert bisection_bandwidth(topology) == pytest.approx(2 * parse_bandwidth("10 Gbps"))
