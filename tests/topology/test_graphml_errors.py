"""What is wrong with GraphML is said at once, and at its place; § marks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnet.errors import InputError
from simnet.topology import load_topology_file

from .marked_texts import DEFAULTS, expect, problems

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
