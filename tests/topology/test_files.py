"""Topology files: written and read back exactly, and read as networkx writes them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.topology import (
    LINK_KINDS,
    TOPOLOGY_SUFFIXES,
    HostSpec,
    Topology,
    dragonfly,
    fat_tree,
    leaf_spine,
    load_topology_file,
    nvlink_node,
    rail_optimised,
    save_topology,
    star,
    topology_from_graph,
    torus,
)

LINK = {"bandwidth": "10 Gbps", "latency": "1 us", "kind": "ethernet"}

TOPOLOGIES = [
    star(hosts=3, loss_probability=1e-7, buffer_bytes=1e6 / 3, bandwidth_bytes_per_s=1e9 / 7, latency_s=1e-6 / 3),
    leaf_spine(leaves=2, hosts_per_leaf=2, spines=2, uplinks=2, host=HostSpec(gpus=2, nics=2, intra="nvlink")),
    fat_tree(k=4),
    torus(dims=[3, 3]),
    dragonfly(routers_per_group=2, hosts_per_router=1, global_links_per_router=1),
    rail_optimised(hosts=2),
    nvlink_node(memory_bandwidth_bytes_per_s=1e11, gpu_model="a100"),
]


def assert_same(one: Topology, other: Topology) -> None:
    assert one.name == other.name
    assert one.graph.graph == other.graph.graph
    assert list(one.graph.nodes.items()) == list(other.graph.nodes.items())
    assert list(one.graph.edges.items()) == list(other.graph.edges.items())
    for field, expected in vars(one.compiled).items():
        np.testing.assert_array_equal(getattr(other.compiled, field), expected)


def load(folder: Path, name: str, text: str, **defaults: Any) -> Topology:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_topology_file(path, defaults or None)


@pytest.mark.parametrize("suffix", TOPOLOGY_SUFFIXES)
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.name)
def test_what_is_written_is_read_back_exactly(topology: Topology, suffix: str, tmp_path: Path) -> None:
    save_topology(topology, tmp_path / f"cluster{suffix}")
    assert_same(topology, load_topology_file(tmp_path / f"cluster{suffix}"))


NAMES = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Z")), min_size=1, max_size=8)


@st.composite
def odd_topologies(draw: st.DrawFn) -> Topology:
    """Any printable names, any positive floats, parallel links, and attributes that simnet does not know."""
    graph = nx.MultiDiGraph()
    for name in draw(st.lists(NAMES, min_size=2, max_size=5, unique=True)):
        graph.add_node(name, kind="host", rack=draw(st.integers(0, 9)), note=draw(NAMES))
    hosts = list(graph)
    numbers = st.floats(1e-12, 1e15)
    for one, other in [*pairwise(hosts), (hosts[0], hosts[-1])]:
        for source, target in ((one, other), (other, one)):
            graph.add_edge(
                source, target,
                bandwidth_bytes_per_s=draw(numbers), latency_s=draw(numbers), buffer_bytes=draw(numbers),
                kind=draw(st.sampled_from(LINK_KINDS)), loss_probability=draw(st.floats(0, 0.999)),
            )  # fmt: skip
    return topology_from_graph(graph, name=draw(NAMES))


@given(topology=odd_topologies())
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("suffix", TOPOLOGY_SUFFIXES)
def test_odd_topologies_are_read_back_exactly(
    topology: Topology, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("odd") / f"cluster{suffix}"
    save_topology(topology, path)
    assert_same(topology, load_topology_file(path))


def example(kind: type[nx.Graph]) -> nx.Graph:
    """Two hosts at a switch; one cable is double where that can be."""
    graph = kind(name="example")
    graph.add_nodes_from(["a", "b"], kind="host", memory_bandwidth="100 GB/s")
    graph.add_node("s", kind="switch")
    graph.add_edges_from([("a", "s"), ("b", "s"), ("b", "s")], **LINK, buffer="1 MiB", loss_probability=0.25)
    return graph


def written_by_networkx(graph: nx.Graph, path: Path) -> None:
    if path.suffix == ".graphml":
        nx.write_graphml(graph, path)
    elif path.suffix == ".gml":
        nx.write_gml(graph, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(graph)))


@pytest.mark.parametrize("suffix", TOPOLOGY_SUFFIXES)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (nx.Graph, [("a", "s"), ("b", "s"), ("s", "a"), ("s", "b")]),
        (nx.MultiGraph, [("a", "s"), ("b", "s"), ("b", "s"), ("s", "a"), ("s", "b"), ("s", "b")]),
        (nx.DiGraph, [("a", "s"), ("b", "s"), ("s", "a"), ("s", "b")]),
        (nx.MultiDiGraph, [("a", "s"), ("b", "s"), ("b", "s"), ("s", "a"), ("s", "b")]),
    ],
)
def test_files_of_networkx(kind: type[nx.Graph], expected: list[tuple[str, str]], suffix: str, tmp_path: Path) -> None:
    """One cable is two links; directed links are taken as they are; parallel ones are kept."""
    graph = example(kind)
    if graph.is_directed():
        graph.add_edges_from([("s", "a"), ("s", "b")], **LINK)
    path = tmp_path / f"example{suffix}"
    written_by_networkx(graph, path)
    topology = load_topology_file(path)
    assert topology.name == "example"
    assert sorted(topology.graph.edges()) == expected
    assert topology.graph.nodes["a"] == {"kind": "host", "memory_bandwidth_bytes_per_s": 100e9}
    link = topology.graph.edges["b", "s", 0]
    assert link == {
        "bandwidth_bytes_per_s": 1.25e9,
        "latency_s": 1e-6,
        "kind": "ethernet",
        "buffer_bytes": 2.0**20,
        "loss_probability": 0.25,
    }
    assert_same(topology, topology_from_graph(graph, name="example"))


def test_both_names_for_the_list_of_links(tmp_path: Path) -> None:
    """networkx before 3.4 wrote ``links``, since then ``edges``."""
    data = nx.node_link_data(example(nx.Graph))
    topologies = []
    for key in ("edges", "links"):
        written = {name: value for name, value in data.items() if name not in ("edges", "links")}
        written[key] = data["edges"] if "edges" in data else data["links"]
        topologies.append(load(tmp_path, f"{key}.json", json.dumps(written)))
    assert list(topologies[0].graph.edges()) == list(topologies[1].graph.edges())


def test_numbers_are_names_too(tmp_path: Path) -> None:
    text = json.dumps({"nodes": [{"id": 0, "kind": "host"}, {"id": "1", "kind": "host"}],
                       "edges": [{"source": "0", "target": 1, **LINK}]})  # fmt: skip
    assert load(tmp_path, "a.json", text).compiled.link_name == ("0->1", "1->0")


def test_numbers_with_the_unit_in_the_name(tmp_path: Path) -> None:
    link = {"bandwidth_bytes_per_s": 1e9, "latency_s": 0, "kind": "wan"}
    nodes = [{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"}]
    topology = load(tmp_path, "a.json", json.dumps({"nodes": nodes, "edges": [{"source": "a", "target": "b", **link}]}))
    assert topology.graph.edges["a", "b", 0] == link


# Defaults.

BARE = {"nodes": [{"id": "a"}, {"id": "b", "kind": "host"}], "edges": [{"source": "a", "target": "b"}]}


def test_defaults_of_the_file(tmp_path: Path) -> None:
    data = BARE | {"graph": {"defaults": LINK | {"node_kind": "host", "buffer": "1 kB"}, "owner": "us"}}
    topology = load(tmp_path, "bare.json", json.dumps(data))
    assert topology.graph.edges["a", "b", 0] == {
        "bandwidth_bytes_per_s": 1.25e9, "latency_s": 1e-6, "kind": "ethernet", "buffer_bytes": 1000.0,
    }  # fmt: skip
    assert topology.name == "bare"
    assert topology.graph.graph == {"name": "bare", "owner": "us"}
    assert topology.compiled.ranks == ("a", "b")


def test_defaults_of_the_caller_go_before_those_of_the_file_and_behind_the_link(tmp_path: Path) -> None:
    data = BARE | {"graph": {"defaults": LINK | {"node_kind": "host"}}}
    data["edges"] = [{"source": "a", "target": "b", "latency": "7 us"}]
    topology = load(tmp_path, "a.json", json.dumps(data), bandwidth="40 Gbps", latency="9 us")
    link = topology.graph.edges["a", "b", 0]
    assert (link["bandwidth_bytes_per_s"], link["latency_s"], link["kind"]) == (5e9, 7e-6, "ethernet")


def test_a_number_overrides_a_default_in_text(tmp_path: Path) -> None:
    data = BARE | {"edges": [{"source": "a", "target": "b", "bandwidth_bytes_per_s": 3.0}]}
    topology = load(tmp_path, "a.json", json.dumps(data), **LINK, node_kind="host")
    assert topology.graph.edges["a", "b", 0]["bandwidth_bytes_per_s"] == 3.0


def test_defaults_of_graphml_keys(tmp_path: Path) -> None:
    text = """<graphml>
      <key id="k" for="node" attr.name="kind"><default>host</default></key>
      <key id="d0" for="edge" attr.name="bandwidth"><default>10 Gbps</default></key>
      <key id="d1" for="edge" attr.name="latency"><default> 1 us </default></key>
      <key id="d2" for="all" attr.name="colour"><default>blue</default></key>
      <graph edgedefault="undirected"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>"""
    topology = load(tmp_path, "a.graphml", text, kind="wan")
    link = topology.graph.edges["a", "b", 0]
    assert (link["bandwidth_bytes_per_s"], link["latency_s"], link["kind"]) == (1.25e9, 1e-6, "wan")
    assert topology.graph.nodes["a"] == {"kind": "host", "colour": "blue"}
    assert link["colour"] == "blue"


def test_defaults_in_gml(tmp_path: Path) -> None:
    text = """graph [ defaults [ bandwidth "10 Gbps" latency "1 us" kind "ethernet" node_kind "host" ]
      node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]"""
    assert load(tmp_path, "a.gml", text).compiled.link_bandwidth.tolist() == [1.25e9, 1.25e9]


# What other tools write.


def test_graphml_with_drawing_data_and_single_directed_edges(tmp_path: Path) -> None:
    """yEd puts its own elements into keys without a name; an edge may be directed in an undirected graph."""
    text = """<?xml version="1.0" encoding="ISO-8859-1"?>
    <graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
      <key for="node" id="d6" yfiles.type="nodegraphics"/><key for="node" id="d1" attr.name="kind" attr.type="string"/>
      <graph edgedefault="undirected" id="G">
        <node id="é"><data key="d6"><y:Shape><y:node>x</y:node></y:Shape></data><data key="d1"> host </data></node>
        <node id="b"><desc>a host</desc><data key="d1">host</data></node>
        <edge source="é" target="b" directed="true"/><edge source="b" target="é" directed="true"/>
      </graph></graphml>"""
    topology = load(tmp_path, "a.graphml", text, **LINK)
    assert dict(topology.graph.nodes.items()) == {"é": {"kind": "host"}, "b": {"kind": "host"}}
    assert topology.compiled.link_name == ("é->b", "b->é")


def test_gml_with_comments_repeated_labels_and_lists(tmp_path: Path) -> None:
    """Labels name the nodes, and repeated ones with their id; the Topology Zoo has such files."""
    text = """# made by hand
Creator "someone"
graph
[
  directed 0
  label "zoo"
  node [ id 3 label "None" kind "host" Longitude -1.5e+2 tag 1 tag 2 ]
  node [ id 5 label "None" kind "host" host "h&#233;" ]
  node [ id 7 label "h&#233;" kind "host" graphics [ x 1 y .5 ] ]  # with a comment behind
  edge [ source 3 target 5 ] edge [ source 5 target 7 ]
]
"""
    topology = load(tmp_path, "a.gml", text, **LINK)
    assert topology.name == "zoo"
    assert list(topology.graph.nodes) == ["None#3", "None#5", "hé"]
    assert topology.graph.nodes["None#3"] == {"kind": "host", "Longitude": -150.0, "tag": [1, 2]}
    assert topology.graph.nodes["None#5"]["host"] == "hé"
    assert topology.graph.nodes["hé"]["graphics"] == {"x": 1, "y": 0.5}


def test_gml_refers_to_hosts_by_id_where_labels_repeat(tmp_path: Path) -> None:
    text = """graph [ node [ id 0 label "n" kind "host" ] node [ id 1 label "n" kind "gpu" host "0" ]
      edge [ source 0 target 1 bandwidth "1 GB/s" latency "1 us" kind "pcie" ] ]"""
    assert load(tmp_path, "a.gml", text).graph.nodes["n#1"]["host"] == "n#0"


def test_nested_attributes_survive_json(tmp_path: Path) -> None:
    graph = example(nx.MultiDiGraph)
    graph.add_edges_from([("s", "a"), ("s", "b")], **LINK)
    graph.nodes["a"]["place"] = {"row": [1, 2]}
    topology = topology_from_graph(graph)
    save_topology(topology, tmp_path / "a.json")
    assert_same(topology, load_topology_file(tmp_path / "a.json"))
    save_topology(topology, tmp_path / "a.graphml")
    assert load_topology_file(tmp_path / "a.graphml").graph.nodes["a"]["place"] == '{"row": [1, 2]}'


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    text = json.dumps(nx.node_link_data(example(nx.Graph)), indent=1).replace("\n", "\r\n")
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(load_topology_file(tmp_path / "a.json").compiled.ranks) == 2


def test_what_gml_cannot_hold_is_an_error(tmp_path: Path) -> None:
    graph = example(nx.Graph)
    graph.nodes["a"]["not a key"] = 1
    with pytest.raises(InputError, match="cannot be written as GML"):
        save_topology(topology_from_graph(graph), tmp_path / "a.gml")


def test_unknown_suffixes_and_places(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no topology file by its suffix, did you mean '.graphml'"):
        load_topology_file("cluster.grapml")
    with pytest.raises(InputError, match=r"known: .json, .graphml, .gml"):
        save_topology(star(hosts=2), tmp_path / "cluster")
    with pytest.raises(InputError, match=r"missing.json: there is no such file"):
        load_topology_file(tmp_path / "missing.json")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file.a.json: cannot be written: Not a directory"):
        save_topology(star(hosts=2), tmp_path / "file" / "a.json")
