"""Everything that can be wrong with a topology file is said at once, and at its place.

In the texts below every § stands right before a place that must be pointed at; they are taken out before reading.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError, Problem
from simnet.topology import HostSpec, load_topology_file, save_topology, star, topology_from_graph
from simnet.topology.document import MOST_PROBLEMS


def problems(folder: Path, suffix: str, marked: str, **defaults: object) -> list[Problem]:
    """Read a text that is wrong at the marked places, and expect problems there in this order."""
    path = folder / f"cluster{suffix}"
    path.write_text(marked.replace("§", ""), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_topology_file(path, defaults or None)
    found = list(caught.value.problems)
    assert [(problem.line, problem.column) for problem in found if problem.line] == places(marked)
    for problem in found:
        if problem.line:
            assert problem.source == str(path)
            assert problem.text == marked.replace("§", "").split("\n")[problem.line - 1]
    return found


def places(marked: str) -> list[tuple[int, int]]:
    found = []
    for number, line in enumerate(marked.split("\n"), start=1):
        parts = line.split("§")
        column = 1
        for part in parts[:-1]:
            column += len(part)
            found.append((number, column))
    return found


def said(found: list[Problem]) -> list[str]:
    return [f"{problem.message}; {problem.hint}" for problem in found]


def expect(found: list[Problem], *fragments: str) -> None:
    assert len(found) == len(fragments), said(found)
    for text, fragment in zip(said(found), fragments, strict=True):
        assert fragment in text


def test_values_in_json(tmp_path: Path) -> None:
    text = """{
 "nodes": [
  {"id": "a", "kind": "host", "memory_bandwidth": §"0 GB/s"},
  {"id": "b", "kind": §"hosst"}, {"id": "c", "kind": "gpu", "host": §"d"}
 ],
 "edges": [
  {"source": "a", "target": "b", "bandwidth": §"0 Gbps", "latency": §"-1 us", "kind": "ethernet"},
  {"source": "a", "target": "b", "bandwidth": §"nan Gbps", "latency": §"1 Gbps", "kind": §"infinband"},
  {"source": "a", "target": "b", "bandwidth": §"1e999 Gbps", "latency": §1, "kind": "wan", "loss_probability": §1.0},
  {"source": "a", "target": "b", "bandwidth": §100, "latency": "1 us", "kind": "wan", "buffer": §"0 B"},
  {"source": "a", "target": "b", "bandwidth_bytes_per_s": §NaN, "latency_s": §-1, "kind": "wan"},
  {"source": "a", "target": "b", "bandwidth_bytes_per_s": §Infinity, "latency_s": §true, "kind": "wan"}
 ]}"""
    expect(
        problems(tmp_path, ".json", text),
        "node 'a': memory_bandwidth is '0 GB/s'; it must be more than 0",
        "node 'b': unknown kind of node 'hosst'; did you mean 'host'?",
        "node 'c': there is no node 'd'; the name of a host is wanted",
        "link 'a' -> 'b': bandwidth is '0 Gbps'; it must be more than 0",
        "latency: '-1 us' is negative",
        "'nan Gbps' is not a bandwidth",
        "'1 Gbps' is a bandwidth, not a duration",
        "unknown kind of link 'infinband'; did you mean 'infiniband'?",
        "'1e999 Gbps' is too large",
        "latency: 1 has no unit",
        "loss_probability is 1.0; a number from 0 to below 1",
        "bandwidth: 100 has no unit; write it like '100 Gbps'",
        "buffer is '0 B'; it must be more than 0",
        "bandwidth_bytes_per_s is nan",
        "latency_s is -1; it must be 0 or more",
        "bandwidth_bytes_per_s is inf",
        "latency_s is True",
    )


def test_missing_attributes_are_all_listed_with_a_hint_at_defaults(tmp_path: Path) -> None:
    text = """{"nodes": [§{"id": "a"}, {"id": "b", "kind": "host"}],
      "links": [§{"source": "a", "target": "b"},
                §{"source": "b", "target": "a", "kind": "wan", "latency": "1 ms"}]}"""
    found = problems(tmp_path, ".json", text)
    expect(
        found,
        "node 'a' has no kind; give one of gpu, host, nic, storage, switch, or for all nodes 'defaults: {node_kind",
        "link 'a' -> 'b' has no bandwidth, no latency, no kind; ",
        "link 'b' -> 'a' has no bandwidth; ",
    )
    assert "'defaults: {bandwidth: 100 Gbps, latency: 1 us, kind: ethernet}'" in found[1].hint


def test_structure_of_json(tmp_path: Path) -> None:
    text = """{"directed": §"no", "graph": §[], "nodes": [
      {"id": "a", "kind": "host"}, {"id": §"a", "kind": "host"}, §7, §{"kind": "host"}, {"id": §null}, {"id": §""},
      {"id": §"b\\n", "kind": "host"}],
     "edges": [{"source": "a", "target": §"x", "bandwidth": "1 Gbps", "latency": "1 us", "kind": "wan"},
      {"source": §"y", "target": §"z", "bandwidth": "1 Gbps", "latency": "1 us", "kind": "wan"},
      {"source": "a", "target": §"a", "bandwidth": "1 Gbps", "latency": "1 us", "kind": "wan"},
      §{"target": "a"}, {"source": §[1], "target": "a"}]}"""
    expect(
        problems(tmp_path, ".json", text, node_kind="host"),
        'directed is "no"; true or false',
        "graph is not an object",
        "two nodes have the id 'a'",
        "nodes[2] is not an object",
        "nodes.3 has no id",
        "id is null; text or a whole number",
        "'' cannot be the name of a node",
        "'b\\n' cannot be the name of a node; printable",
        "link 'a' -> 'x': there is no node 'x'; add it",
        "link 'y' -> 'z': there is no node 'y'",
        "link 'y' -> 'z': there is no node 'z'",
        "link 'a' -> 'a' ends where it begins",
        "edges.3 has no source",
        "source is a list; text or a whole number",
    )


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ('{"nodes": [\n  {"id": "a" §"kind": "host"}]}', "this is not JSON: expecting ',' delimiter"),
        ('{"nodes": [\n  {"id": §"a}]}', "this is not JSON: unterminated string"),
        ("§", "this is not JSON: expecting value"),
        ("§[1, 2]", "is not an object"),
        ("[" * 100 + "§" + "[" * 100_000, "this JSON is nested too deeply: more than 100 levels"),
        ("[" * 100 + "§[" + "]" * 101, "this JSON is nested too deeply: more than 100 levels"),
        ('{"nodes": [],\n "x": §' + "9" * 6000 + "}", "a number of 6000 digits is too long; at most 4300"),
        ('{"nodes": §{}, "edges": []}', "nodes is not a list"),
        ('§{"nodes": [], "edge": []}', "there is no list of edges; is 'edge' meant to be it?"),
        ('§{"edges": []}', 'there is no list of nodes; expected "nodes": [{…}, …]'),
        ('{"nodes": [{"id": 1, "kind": "host"}], "edges": [], "links": §[]}', "both edges and links are given"),
        ('{"nodes": §[], "edges": []}', "there are no ranks; at least one node of kind gpu or host"),
        ('{"nodes": [{"id": 1, "kind": "host", §"id": 2}], "edges": []}', "'id' is given twice"),
        ('{"nodes": [{"id": 1, "kind": "host", "x": [0, {"z": 1, §"z": 2}]}], "edges": []}', "'z' is given twice"),
        ('{"graph": {"defaults": §1}, "nodes": [{"id": 1, "kind": "host"}], "edges": []}', "defaults is not an object"),
    ],
)  # fmt: skip
def test_json_that_is_no_topology(text: str, fragment: str, tmp_path: Path) -> None:
    expect(problems(tmp_path, ".json", text), fragment)


@pytest.mark.parametrize("key", ["directed", "multigraph"])
@pytest.mark.parametrize("value", ["null", "[]", '"x"', "5"])
def test_truth_values_of_json(key: str, value: str, tmp_path: Path) -> None:
    text = f'{{"{key}": §{value}, "nodes": [{{"id": 1, "kind": "host"}}], "edges": []}}'
    shown = "a list" if value == "[]" else value
    expect(problems(tmp_path, ".json", text), f"{key} is {shown}; true or false is wanted")


@pytest.mark.parametrize("name", ["loss_probability", "bandwidth_bytes_per_s", "latency_s"])
def test_numbers_that_no_float_can_hold(name: str, tmp_path: Path) -> None:
    others = {"bandwidth": '"1 Gbps"', "latency": '"1 us"', "kind": '"wan"'}
    given = "".join(f', "{key}": {value}' for key, value in others.items() if not name.startswith(key))
    text = f"""{{"nodes": [{{"id": "a", "kind": "host"}}, {{"id": "b", "kind": "host"}}],
     "edges": [{{"source": "a", "target": "b", "{name}": §{10**400}{given}}}]}}"""
    expect(problems(tmp_path, ".json", text), f"{name} is 1000")


def test_slips_beside_what_is_meant(tmp_path: Path) -> None:
    """Other attributes are kept, also such as hold a known name whole; hardly a letter off, they are a slip."""
    link = '{"source": "a", "target": "b", "bandwidth": "1 Gbps", "latency": "1 s", "kind": "wan", '
    text = f"""{{"nodes": [{{"id": "a", "kind": "host", "knd": 1}}, {{"id": "b", "kind": "host", "kinds": "x"}}],
      "edges": [
      {link}"bandwith": §"9 Gbps"}},
      {link}"latncy": §"1 us"}},
      {link}"Latency": §"1 us"}},
      {link}"label": "x", "latency_ms": 3, "bandwidths": [1], "weight": 2, "width": 1, "color": "red"}}
      ]}}"""
    expect(
        problems(tmp_path, ".json", text.replace('"knd": 1', '"knd": §1')),
        "node 'a': unknown attribute 'knd'; did you mean 'kind'?",
        "unknown attribute 'bandwith'; did you mean 'bandwidth'?",
        "unknown attribute 'latncy'; did you mean 'latency'?",
        "unknown attribute 'Latency'; did you mean 'latency'?",
    )


def test_a_slip_in_a_name_with_a_unit(tmp_path: Path) -> None:
    text = """{"nodes": [{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"}], "edges": [
      {"source": "a", "target": "b", "bandwidth_bytes_per_s": 1, "latency_s": 1, "bandwith_bytes_per_s": §2}]}"""
    expect(
        problems(tmp_path, ".json", text, kind="wan"), "'bandwith_bytes_per_s'; did you mean 'bandwidth_bytes_per_s'?"
    )


def test_defaults_of_a_file(tmp_path: Path) -> None:
    text = """{"graph": {"defaults": {"bandwidth": §"100 Gb", "latncy": §"1 us", "kind": §"ethernt",
      "node_kind": §"hosts", "colour": §"blue"}}, "nodes": [{"id": "a", "kind": "host"}], "edges": []}"""
    expect(
        problems(tmp_path, ".json", text),
        "bandwidth: '100 Gb' is an amount, not a bandwidth; did you mean 'Gb/s'?",
        "unknown attribute 'latncy'; did you mean 'latency'?",
        "unknown kind of link 'ethernt'; did you mean 'ethernet'?",
        "unknown kind of node 'hosts'; did you mean 'host'?",
        "unknown default 'colour'; known: bandwidth, latency, kind, buffer, loss_probability, node_kind",
    )


def test_defaults_of_the_caller_have_their_own_path(tmp_path: Path) -> None:
    text = '{"nodes": [{"id": "a", "kind": §"x"}], "edges": []}'
    found = problems(tmp_path, ".json", text, bandwidth="fast")
    assert found[1].path == ("defaults", "bandwidth")
    assert (found[1].source, found[1].line) == ("", 0)
    expect(found, "unknown kind of node", "'fast' is not a bandwidth")
    found = problems(tmp_path, ".json", '{"nodes": [{"id": "a", "kind": "host"}], "edges": []}', latency="1 MB")
    expect(found, "'1 MB' is a size, not a duration")


def test_slips_of_the_pen(tmp_path: Path) -> None:
    text = """{"nodes": [{"id": "a", "knd": §"host", "colour": 1}, {"id": "b", "kind": "host", "hosts": §"a"}],
      "edges": [
      §{"source": "a", "target": "b", "bandwidth": "1 Gbps", "latancy": §"1 us", "kind": "wan", "label": "x"},
      {"source": "a", "target": "b", "bandwidth": "1 Gbps", "bandwidth_bytes_per_s": §1, "latency": "1 s"}
      ]}"""
    expect(
        problems(tmp_path, ".json", text, node_kind="host", kind="wan"),
        "node 'a': unknown attribute 'knd'; did you mean 'kind'?",
        "node 'b': unknown attribute 'hosts'; did you mean 'host'?",
        "link 'a' -> 'b' has no latency",
        "unknown attribute 'latancy'; did you mean 'latency'?",
        "bandwidth and bandwidth_bytes_per_s are both given",
    )


DISCONNECTED = """{"directed": %s, "nodes": [{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"},
  §{"id": "c", "kind": "host"}, {"id": "d", "kind": "host"}, {"id": "s", "kind": "switch"}],
 "edges": [%s]}"""
DEFAULTS = {"bandwidth": "1 Gbps", "latency": "1 us", "kind": "wan"}


def links(*pairs: str) -> str:
    return ", ".join(f'{{"source": "{source}", "target": "{target}"}}' for source, target in pairs)


def test_disconnected_ranks(tmp_path: Path) -> None:
    text = DISCONNECTED % ("false", links("ab", "cs", "sd"))
    found = problems(tmp_path, ".json", text, **DEFAULTS)
    expect(found, "there is no way from 'a' to 2 of 4 ranks: c, d; every rank must reach every other")


def test_ranks_that_hear_but_cannot_answer(tmp_path: Path) -> None:
    text = DISCONNECTED % ("true", links("ab", "ba", "as", "sc", "sd", "cd", "dc"))
    expect(problems(tmp_path, ".json", text, **DEFAULTS), "there is no way to 'a' from 2 of 4 ranks: c, d")


def test_disconnection_and_values_are_said_together(tmp_path: Path) -> None:
    text = '{"nodes": [{"id": 1, "kind": "host", "memory_bandwidth": §"0 B/s"}, §{"id": 2, "kind": "host"},\n'
    text += '{"id": 3, "kind": "switch"}],'
    text += '"edges": [{"source": 1, "target": 3, "bandwidth": §"0 bps"}]}'
    found = problems(tmp_path, ".json", text, latency="1 us", kind="wan")
    expect(found, "memory_bandwidth is '0 B/s'", "no way from '1'", "bandwidth is '0 bps'")


def test_switches_may_be_left_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"nodes": [{"id": 1, "kind": "host"}, {"id": 2, "kind": "switch"}], "edges": []}')
    assert load_topology_file(tmp_path / "a.json").compiled.ranks == ("1",)


def test_a_long_list_is_cut_off(tmp_path: Path) -> None:
    nodes = ", ".join(f'{{"id": {number}}}' for number in range(1000))
    (tmp_path / "a.json").write_text(f'{{"nodes": [{nodes}], "edges": []}}')
    with pytest.raises(InputError) as caught:
        load_topology_file(tmp_path / "a.json")
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert caught.value.problems[-1].message == f"and {1000 - MOST_PROBLEMS} more problems"


GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k" for="node" attr.name="kind" attr.type="string"/>
  <key id="b" for="edge" attr.name="bandwidth" attr.type="string"/>
  <key id="l" for="edge" attr.name="latency" attr.type="string"/>
  <key id="e" for="edge" attr.name="kind" attr.type="string"><default>ethernet</default></key>
  <key id="p" for="edge" attr.name="loss_probability" attr.type="double"/>
%s
</graphml>"""


def test_values_in_graphml(tmp_path: Path) -> None:
    text = """  <graph edgedefault="undirected">
    <node id="a"><data key="k">host</data></node>
    §<node id="a"/>
    <node id="b">§<data key="k">hosst</data></node>
    §<node id="c"/>
    §<edge source="a" target="b"><data key="b">1 Gbps</data></edge>
    §<edge source="a" target="x"><data key="b">1 Gbps</data><data key="l">1 us</data></edge>
    <edge source="a" target="b">§<data key="b">-1 Gbps</data>§<data key="l">1</data>§<data key="p">2.0</data></edge>
    <edge source="a" target="b"><data key="b">1 Gbps</data><data key="l">1 us</data>§<data key="l">2 us</data></edge>
    <edge source="a" target="b">§<data key="q"/><data key="b">1 Gbps</data><data key="l">1 us</data></edge>
  </graph>"""
    expect(
        problems(tmp_path, ".graphml", GRAPHML % text),
        "two nodes have the id 'a'",
        "node 'b': unknown kind of node 'hosst'",
        "node 'c' has no kind",
        "link 'a' -> 'b' has no latency",
        "there is no node 'x'",
        "'-1 Gbps' is negative",
        "'1' has no unit",
        "loss_probability is 2.0",
        "'latency' is given twice",
        "no <key> declares 'q'",
    )


def test_structure_of_graphml(tmp_path: Path) -> None:
    text = """  §<key id="z" for="node" attr.name="size" attr.type="decimal"/>
  §<graph edgedefault="both">
    <node id="a"><data key="k">host</data></node>§<node><data key="k">host</data></node>
    <node id="b"><data key="k">host</data>
      §<graph edgedefault="directed"><node id="c"><data key="k">host</data></node></graph>
    </node>
    §<edge source="a"/>
    §<hyperedge/>
    §<edge source="a" target="b">§<data key="p">often</data></edge>
  </graph>
  §<graph edgedefault="directed"/>"""
    expect(
        problems(tmp_path, ".graphml", GRAPHML % text),
        "unknown attr.type 'decimal'; known: boolean, double",
        "edgedefault is 'both'; 'directed' or 'undirected'",
        "this node has no id",
        "a graph inside of a node is not read; one flat graph",
        "this edge has no target",
        "a hyperedge is not a link",
        "link 'a' -> 'b' has no bandwidth, no latency",
        "loss_probability: 'often' is not of type double",
        "a second graph is not read",
    )


def test_a_wrong_default_of_a_graphml_key_is_said_once(tmp_path: Path) -> None:
    text = """<graphml>
  <key id="b" for="edge" attr.name="bandwidth">§<default>0 Gbps</default></key>
  <graph><node id="a"/><node id="b"/><edge source="a" target="b"/><edge source="a" target="b"/></graph>
</graphml>"""
    found = problems(tmp_path, ".graphml", text, latency="1 us", kind="wan", node_kind="host")
    expect(found, "bandwidth is '0 Gbps'")


def test_graphml_nested_without_end(tmp_path: Path) -> None:
    inside = "<graph>" * 99 + "§" + "<graph>" * 400_000
    path = tmp_path / "cluster.graphml"
    path.write_text("<graphml>" + inside.replace("§", ""))
    with pytest.raises(InputError) as caught:
        load_topology_file(path)
    assert caught.value.problems[-1].message == "more than 100 elements inside each other"
    assert (caught.value.problems[-1].line, caught.value.problems[-1].column) == (1, len("<graphml>") + 99 * 7 + 1)


def test_graphml_keys_that_clash(tmp_path: Path) -> None:
    """Ids for nodes and for edges are told apart, as writers that make ids of names need it; else they must differ."""
    text = """<graphml>
  <key id="b" for="edge" attr.name="bandwidth"/><key id="kind" for="edge" attr.name="kind"/>
  §<key id="b" for="edge" attr.name="latency"/><key id="kind" for="node" attr.name="kind"/>
  §<key id="b" for="all" attr.name="latency"/>
  §<key for="edge" attr.name="latency"/>
  <key id="x" for="node" attr.name="x"><default>1</default>§<default>2</default></key>
  <key id="y" for="all" attr.name="x">§<default>3</default></key>
  <graph><node id="a"><data key="kind">host</data></node></graph>
</graphml>"""
    expect(
        problems(tmp_path, ".graphml", text),
        "two keys have the id 'b'; ids must differ",
        "two keys have the id 'b'",
        "this <key> has no id",
        "'x' has a default already; leave one out",
        "'x' has a default already",
    )


@pytest.mark.parametrize("value", ["1_000", "\u0663", "9" * 5000, "", "0x1"])
@pytest.mark.parametrize("kind", ["int", "long"])
def test_numbers_of_graphml_are_ascii_digits(kind: str, value: str, tmp_path: Path) -> None:
    text = f"""<graphml><key id="x" for="node" attr.name="x" attr.type="{kind}"/>
      <graph><node id="a">§<data key="x">{value}</data></node></graph></graphml>"""
    [problem] = problems(tmp_path, ".graphml", text, node_kind="host")
    assert problem.message.endswith(f"is not of type {kind}")
    assert len(problem.message) < 100


def test_the_direction_of_an_edge_is_true_or_false(tmp_path: Path) -> None:
    text = """<graphml><graph><node id="a"/><node id="b"/>
      §<edge source="a" target="b" directed="maybe"/></graph></graphml>"""
    found = problems(tmp_path, ".graphml", text, node_kind="host", **DEFAULTS)
    expect(found, "directed is 'maybe'; 'true' or 'false' is wanted")


LAUGHS = """<?xml version="1.0"?>
§<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>"""
OUTSIDE = """§<!DOCTYPE graphml [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<graphml><graph><node id="a">&a;</node></graph></graphml>"""


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        (LAUGHS, "a document type (DOCTYPE) is not accepted; leave it out"),
        (OUTSIDE, "a document type (DOCTYPE) is not accepted"),
        ('<graphml>\n  <graph>§<node id="&a;"/></graph></graphml>', "undefined entity"),
        ("<graphml>\n  <graph></§node></graphml>", "this is not XML: mismatched tag"),
        ("§<html></html>", "this is <html>, not GraphML"),
        ("§", "this is not XML: no element found"),
        ("§hello", "this is not XML: syntax error"),
    ],
)
def test_graphml_that_is_no_topology(text: str, fragment: str, tmp_path: Path) -> None:
    expect(problems(tmp_path, ".graphml", text), fragment)


def test_values_in_gml(tmp_path: Path) -> None:
    text = """graph [
  node [ id 0 label "a" kind "host" ]
  node [ id §0 label "b" kind "host" ]
  node [ id 1 label "c" kind §"hosst" ]
  node §[ id 2 ]
  node §[ label "d" ]
  node §7
  edge §[ source 0 target 1 latency "1 us" kind "wan" ]
  edge [ source 0 target §9 bandwidth §"1 GB" latency "1 us" kind "wan" ]
  edge [ source 0 target 1 bandwidth "1 GB/s" latency §1.5 kind "wan" loss_probability §+INF ]
  edge §[ source 0 ]
]"""
    expect(
        problems(tmp_path, ".gml", text),
        "two nodes have the id '0'",
        "node 'c': unknown kind of node 'hosst'",
        "node '2' has no kind",
        "node 4 has no id",
        "node 5 is no list; expected node [ … ]",
        "link 'a' -> 'c' has no bandwidth",
        "link 'a' -> '9': there is no node '9'",
        "'1 GB' is a size, not a bandwidth",
        "latency: 1.5 has no unit",
        "loss_probability is inf",
        "edge 3 has no target; a node's id is wanted",
    )


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("§", "there is no 'graph [ … ]'"),
        ("§graph [ ]\ngraph [ ]", "there are 2 graphs"),
        ("graph §[\n  node [ id 0 kind \"host\" ]\n", "this '[' is never closed"),
        ("graph [ ]\n  §]", "nothing is open that ']' could close"),
        ("graph [\n  node [ id §] ]", "'id' has no value"),
        ("graph [\n  directed §node [ id 0 ] ]", "'directed' has no value"),
        ("graph [\n  directed 0 §1 ]", "a key is expected before a value"),
        ('graph [\n  directed 0 §"x" ]', "a key is expected before a value"),
        ("graph [\n  label §\"x ]", "this text is never closed"),
        ("graph [\n  label §x? ]", "'x?' is not expected"),
        ("graph [ ] §label", "'label' is not expected"),
        ('graph [ defaults §"x" node [ id 0 kind "host" ] ]', "defaults is no list"),
        ('graph §[ directed 0 ]', "there are no ranks"),
        ('graph [ directed §"yes" node [ id 0 kind "host" ] ]', "directed is 'yes'; 0 or 1 is wanted"),
        ('graph [ multigraph §[ ] node [ id 0 kind "host" ] ]', "multigraph is a list; 0 or 1 is wanted"),
        ("graph [ x §" + "9" * 5000 + " ]", "a number of 5000 digits is too long"),
        ("graph [ x §\u0663 ]", "'\u0663' is not expected"),
        ("graph [ " + "x [ " * 99 + "x §[ " + "x [ " * 5000, "more than 100 lists inside each other"),
    ],
)  # fmt: skip
def test_gml_that_is_no_topology(text: str, fragment: str, tmp_path: Path) -> None:
    expect(problems(tmp_path, ".gml", text), fragment)


def test_repeated_labels_that_clash_with_another_name(tmp_path: Path) -> None:
    text = """graph [ node [ id 0 label "x" kind "host" ] node [ id 1 label "x" kind "host" ]
      node [ id 2 label §"x#1" kind "host" ] ]"""
    expect(problems(tmp_path, ".gml", text, **DEFAULTS), "two nodes have the name 'x#1'")


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".gml"])
def test_bytes_that_are_not_utf8(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes('{"é":\n "x'.encode() + b'\xe9"}')
    with pytest.raises(InputError) as caught:
        load_topology_file(path)
    [problem] = caught.value.problems
    assert (problem.line, problem.column) == (2, 4)
    assert problem.message == "byte 0xe9 is not UTF-8"


def test_errors_read_well(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"nodes": [\n  {"id": "a", "kind": "hosst"}], "edges": []}')
    with pytest.raises(InputError) as caught:
        load_topology_file(path)
    assert str(caught.value) == (
        f"{path}:2:23: node 'a': unknown kind of node 'hosst', did you mean 'host'?\n"
        '      {"id": "a", "kind": "hosst"}], "edges": []}\n'
        "                          ^"
    )


def test_graphs_are_checked_like_files() -> None:
    graph = nx.Graph()
    graph.add_node("a", kind="hosst")
    graph.add_edge("a", "b", bandwidth="0 bps")
    with pytest.raises(InputError) as caught:
        topology_from_graph(graph, defaults={"latency": "fast"})
    expect(
        list(caught.value.problems),
        "unknown kind of node 'hosst'",
        "node 'b' has no kind",
        "bandwidth is '0 bps'",
        "has no kind",
        "'fast' is not a duration",
    )


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, int, str]]:
    """Where, as a part of the length; how many characters to cut out; what to put there."""
    pieces = st.sampled_from([*'"[]{}<>&,0é', "", "-1", "null", "id", "NaN", "\x00", "\ud800"])
    return draw(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), pieces), min_size=1, max_size=4))


@given(damage=damages())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("suffix", [".json", ".graphml", ".gml"])
def test_damaged_files_are_read_or_refused(
    suffix: str, damage: list[tuple[float, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / f"cluster{suffix}"
    save_topology(star(hosts=2, host=HostSpec(gpus=1)), path)
    text = path.read_text(encoding="utf-8")
    for part, cut, piece in damage:
        at = int(part * len(text))
        text = text[:at] + piece + text[at + cut :]
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(InputError):
        load_topology_file(path)
