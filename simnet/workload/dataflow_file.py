"""Dataflow graphs in files: node-link JSON of a networkx graph.

``{"directed": true, "nodes": [{"id": "conv1", "device": 0, "time": "1.2 ms", "output": "4 MiB"}, …], "edges":
[{"source": "conv1", "target": "conv2"}, …]}``: nodes are operations, an edge moves the output of its source to an
operation that needs it. The list of edges is called ``edges`` since networkx 3.4 and was ``links`` before; both are
read. The attributes of nodes are those of `simnet.workload.dataflow_reading`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from simnet.errors import InputError, KeyPath, Problem, nearest
from simnet.json_text import json_places, parse_graph
from simnet.reading import read_text
from simnet.workload.csv_table import problem_order, shown
from simnet.workload.dataflow import DataflowGraph
from simnet.workload.dataflow_reading import OPERATION_KEYS, WrittenEdge, WrittenOperation, graph_of, name_of

__all__ = ["load_dataflow_json"]

_TOP_LEVEL = ("directed", "multigraph", "graph", "nodes", "edges", "links")
_FLAGS = {"directed": True, "multigraph": False}


def load_dataflow_json(path: str | Path) -> DataflowGraph:
    """Read a dataflow graph from node-link JSON; it is called like its ``graph``, or else like the file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataflowGraph

    Raises
    ------
    InputError
        Everything that is wrong, by line and column.
    """
    path = Path(path)
    source = str(path)
    text = read_text(path, "node-link JSON")
    try:
        return _graph(text, path.stem)
    except InputError as error:
        raise InputError(_placed(error.problems, source, text)) from None


def _graph(text: str, name: str) -> DataflowGraph:
    data, problems = parse_graph(text)
    problems += [
        Problem(f"unknown key {key!r}", nearest(key, _TOP_LEVEL), path=(key,)) for key in data if key not in _TOP_LEVEL
    ]
    for key, wanted in _FLAGS.items():
        if data.get(key, wanted) is not wanted:
            hint = "an edge goes one way, and only once" if isinstance(data[key], bool) else "true or false is wanted"
            problems.append(Problem(f"{key} is {shown(data[key])}, not {wanted}".lower(), hint, path=(key,)))
    attributes = data.get("graph", {})
    if not isinstance(attributes, dict):
        problems.append(Problem("graph is not an object", 'expected {"name": …}', path=("graph",)))
    elif attributes.get("name"):
        name = str(attributes["name"])
    operations: list[WrittenOperation] = []
    for path, node in _objects(data, "nodes", problems):
        operation = name_of(node, "id", path, problems)
        if operation is not None:
            given = {key: value for key, value in node.items() if key != "id"}
            operations.append(WrittenOperation(operation, given, path))
    if "edges" in data and "links" in data:
        problems.append(Problem("both edges and links are given", "leave one out", path=("links",)))
    edges: list[WrittenEdge] = []
    for path, edge in _objects(data, "links" if "links" in data else "edges", problems):
        problems += [
            Problem(f"unknown key {key!r}", nearest(key, ("source", "target")), path=(*path, key))
            for key in edge
            if key not in ("source", "target")
        ]
        before, after = (name_of(edge, key, path, problems) for key in ("source", "target"))
        if before is not None and after is not None:
            edges.append(WrittenEdge(before, after, (*path, "source"), (*path, "target")))
    keys = [key for key in OPERATION_KEYS if key not in ("name", "inputs")]
    return graph_of(name, operations, edges, problems, keys)


def _objects(data: dict[str, Any], key: str, problems: list[Problem]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yield the objects of a list with their paths; add what is wrong with it."""
    rows = data.get(key)
    if not isinstance(rows, list):
        problems.append(Problem(f"there is no list of {key}", f'expected "{key}": [{{…}}, …]'))
        return
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            yield (key, number), row
        else:
            problems.append(Problem(f"{key}[{number}] is not an object", "expected {…}", path=(key, number)))


def _placed(problems: tuple[Problem, ...], source: str, text: str) -> list[Problem]:
    """Return the problems at their lines, in the order of the file."""
    # A text that is no JSON has no places; its problems know their own.
    unplaced = {problem.path for problem in problems if not problem.line}
    places = json_places(text, unplaced) if unplaced else {}
    lines = text.split("\n")
    found = []
    for problem in problems:
        line, column = problem.line, problem.column
        if not line:
            parts = (problem.path[:length] for length in range(len(problem.path), -1, -1))
            line, column = next(places[part] for part in parts if part in places)
        shown_line = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
        found.append(replace(problem, source=source, line=line, column=column, text=shown_line))
    return sorted(found, key=problem_order)
