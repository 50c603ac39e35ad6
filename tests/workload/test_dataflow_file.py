"""Dataflow graphs as node-link JSON: what networkx writes is read, and what is wrong is told at its place."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.workload import DataflowGraph, DataflowOperation, load_dataflow_json

GRAPH = DataflowGraph(
    "step",
    (
        DataflowOperation("forward", 0, 1.5e-3, 4096.0),
        DataflowOperation("loss", 1, 1e-6, 16.0),
        DataflowOperation("backward", 0, 3e-3, 0.0, 9408),
    ),
    ((0, 1), (0, 2), (1, 2)),
)
MARK = "§"


@pytest.mark.parametrize("key", ["edges", "links"])
def test_what_networkx_writes_is_read_back(key: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(nx.node_link_data(GRAPH.to_networkx(), edges=key)))
    assert load_dataflow_json(tmp_path / "a.json") == GRAPH


def test_quantities_may_be_text(tmp_path: Path) -> None:
    text = """{"nodes": [{"id": "a", "device": 0, "time": "1.5 ms", "output": "4 KiB"},
      {"id": 7, "device": 1, "time": "1 us", "gradient": 3}], "edges": [{"source": "a", "target": 7}]}"""
    (tmp_path / "mine.json").write_text(text)
    graph = load_dataflow_json(tmp_path / "mine.json")
    assert graph.name == "mine"
    assert graph.operations[0] == DataflowOperation("a", 0, 1.5e-3, 4096.0)
    assert graph.operations[1] == DataflowOperation("7", 1, 1e-6, 0.0, 3)
    assert graph.edges == ((0, 1),)


def told(tmp_path: Path, marked: str) -> list[str]:
    """Read a text that is wrong at the marked places, and expect problems there in this order."""
    path = tmp_path / "g.json"
    path.write_text(marked.replace(MARK, ""), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_dataflow_json(path)
    places = []
    for number, line in enumerate(marked.split("\n"), start=1):
        parts = line.split(MARK)
        places += [(number, 1 + sum(map(len, parts[: count + 1]))) for count in range(len(parts) - 1)]
    assert [(problem.line, problem.column) for problem in caught.value.problems] == places
    assert {problem.source for problem in caught.value.problems} == {str(path)}
    return [f"{problem.message}; {problem.hint}" for problem in caught.value.problems]


def expect(found: list[str], *fragments: str) -> None:
    assert len(found) == len(fragments), found
    for text, fragment in zip(found, fragments, strict=True):
        assert fragment in text


def test_everything_wrong_is_told_at_its_place(tmp_path: Path) -> None:
    text = """{"directed": §false, "multigraph": §true, "graph": §[], "graphs": §1,
     "nodes": [{"id": "a", "device": §0.5, "time": §"1", "colour": §"red"}, §7, §{"device": 0, "time": "1 s"},
      {"id": §null, "device": 0}, §{"id": "b"}, {"id": "c", "device": 0, "time": "1 s", "device": 1},
      §{"id": "c", "device": 0, "time": "1 s"}],
     "edges": [{"source": "c", "target": §"z"}, {"source": §"c", "target": "c"}, §{"source": "c"},
      {"source": "a", "target": "b", "weight": §1}, {"source": §"a", "target": "b"}]}"""
    text = text.replace('§{"id": "b"}', '§§{"id": "b"}').replace('"1 s", "device": 1', '"1 s", §"device": 1')
    found = told(tmp_path, text.replace('{"id": §null', '§{"id": null'))
    expect(
        found,
        "directed is false, not true; an edge goes one way",
        "multigraph is true, not false; an edge goes one way, and only once",
        "graph is not an object",
        "unknown key 'graphs'; did you mean 'graph'?",
        "device is 0.5; a whole number",
        "'1' has no unit",
        "unknown key 'colour'; known: device",
        "nodes[1] is not an object",
        "'id' is missing",
        "'id' is missing",
        "operation 'b' has no device",
        "operation 'b' has no time",
        "'device' is given twice",
        "two operations are called 'c'",
        "there is no operation 'z'",
        "operations wait for each other in a circle: c -> c",
        "'target' is missing",
        "unknown key 'weight'; known: source, target",
        "'b' has the input 'a' twice",
    )


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("§", "this is not JSON: expecting value"),
        ('{"nodes": [\n  {"id": "a" §"device": 0}]}', "this is not JSON: expecting ',' delimiter"),
        ("§[1]", "this JSON is not an object"),
        ("[" * 100 + "§" + "[" * 1000, "nested too deeply"),
        ('§{"edges": []}', "there is no list of nodes"),
        ('§{"nodes": [{"id": 1, "device": 0, "time": "1 s"}]}', "there is no list of edges"),
        ('{"nodes": [{"id": 1, "device": 0, "time": "1 s"}], "edges": [], "links": §[]}', "both edges and links"),
        ('{"directed": §"x", "nodes": [{"id": 1, "device": 0, "time": "1 s"}], "edges": []}', "true or false"),
        ('§{"nodes": [], "edges": []}', "there are no operations"),
    ],
)  # fmt: skip
def test_json_that_is_no_graph(text: str, fragment: str, tmp_path: Path) -> None:
    expect(told(tmp_path, text), fragment)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_dataflow_json(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a directory"):
        load_dataflow_json(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'{\n "\xe9": 1}')
    with pytest.raises(InputError, match=r"latin.json:2:3: is not UTF-8 text"):
        load_dataflow_json(tmp_path / "latin.json")


@given(part=st.floats(0, 1), cut=st.integers(0, 12), piece=st.sampled_from([*'"[]{},0', "null", "-1", "\x00", "é"]))
@settings(deadline=None)
def test_damaged_files_are_read_or_refused(
    part: float, cut: int, piece: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = json.dumps(nx.node_link_data(GRAPH.to_networkx(), edges="edges"))
    at = int(part * len(text))
    path = tmp_path_factory.mktemp("damaged") / "g.json"
    path.write_text(text[:at] + piece + text[at + cut :], encoding="utf-8")
    with contextlib.suppress(InputError):
        load_dataflow_json(path)
