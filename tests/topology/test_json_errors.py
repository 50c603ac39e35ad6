"""What is wrong with node-link JSON is said at once, and at its place; § marks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .marked_texts import expect, problems


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
