"""From plain data, as a YAML file gives it, to a dataflow graph, with everything that is wrong with it at once.

::

    operations:
      - {name: conv1, device: 0, time: 1.2 ms, output: 4 MiB}
      - {name: conv2, device: 1, time: 2 ms, output: 2 MiB, inputs: [conv1]}
      - {name: conv2_gradient, device: 1, time: 2 ms, gradient: 9408, inputs: [conv2]}

``name``, ``device`` and ``time`` are always there. ``output`` is what operations that have this one among their
``inputs`` read; without it they only wait. ``gradient`` counts the parameters whose gradient the operation yields.
Instead of text with a unit there may be a number with the unit in the name: ``time_s``, ``output_bytes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simnet.errors import InputError, KeyPath, Problem, nearest
from simnet.units import UnitError, parse_duration, parse_size
from simnet.workload.csv_table import (
    COUNT_WANTED,
    LARGEST,
    LARGEST_COUNT,
    NUMBER_WANTED,
    parse_count,
    parse_number,
    shown,
)
from simnet.workload.dataflow import DataflowGraph, DataflowOperation, topological_order

__all__ = ["OPERATION_KEYS", "WrittenEdge", "WrittenOperation", "dataflow_from_data", "graph_of", "name_of"]

OPERATION_KEYS = ("name", "device", "time", "output", "gradient", "inputs")
"""What an operation may say."""

_TWINS = {"time": "time_s", "output": "output_bytes"}
_NAME_WANTED = "a name is wanted: one line of at most 200 characters"
_EXAMPLE = "{name: conv1, device: 0, time: 1.2 ms, output: 4 MiB, inputs: [data]}"
_MOST_DEVICES = 10**6
_LONGEST_NAME = 200  # characters
_LONGEST_CIRCLE = 10  # operations that are named


@dataclass(frozen=True)
class WrittenOperation:
    """An operation as it was written: its name, what else it says, and its path in the document."""

    name: str
    given: Mapping[Any, Any]
    path: KeyPath


@dataclass(frozen=True)
class WrittenEdge:
    """An edge as it was written: names of its ends, and the paths of these in the document."""

    before: str
    after: str
    before_path: KeyPath
    after_path: KeyPath


def dataflow_from_data(data: Any, name: str) -> DataflowGraph:
    """Return the dataflow graph that plain data describes.

    Parameters
    ----------
    data : mapping
        With the key ``operations``: a list of mappings, whose keys are described above.
    name : str
        Of the graph.

    Returns
    -------
    DataflowGraph

    Raises
    ------
    InputError
        Everything that is wrong, each with its path from the root of `data`.
    """
    if not isinstance(data, Mapping) or "operations" not in data:
        raise InputError(Problem("there is no list of operations", f"operations: [{_EXAMPLE}, …] is wanted"))
    problems = [
        Problem(f"unknown key {shown(key)}", nearest(str(key), ["operations"]), path=(str(key),))
        for key in data
        if key != "operations"
    ]
    rows = data["operations"]
    if not _is_list(rows):
        problems.append(Problem(f"operations is {shown(rows)}", "a list is wanted", path=("operations",)))
        raise InputError(problems)
    operations: list[WrittenOperation] = []
    edges: list[WrittenEdge] = []
    for index, row in enumerate(rows):
        path = ("operations", index)
        if not isinstance(row, Mapping):
            problems.append(Problem(f"operation {index} is not a mapping", f"like {_EXAMPLE}", path=path))
            continue
        read_name = name_of(row, "name", path, problems)
        inputs = row.get("inputs")
        if read_name is None:
            continue
        operations.append(WrittenOperation(read_name, {key: row[key] for key in row if key != "name"}, path))
        if inputs is None:
            continue
        if not _is_list(inputs):
            problems.append(Problem(f"inputs is {shown(inputs)}", "a list of names is wanted", path=(*path, "inputs")))
            continue
        for place, value in enumerate(inputs):
            of_input = (*path, "inputs", place)
            before = _name(value)
            if before is None:
                problems.append(Problem(f"an input is {shown(value)}", _NAME_WANTED, path=of_input))
            else:
                edges.append(WrittenEdge(before, read_name, of_input, path))
    return graph_of(name, operations, edges, problems, OPERATION_KEYS[1:])


def name_of(row: Mapping[Any, Any], key: str, path: KeyPath, problems: list[Problem]) -> str | None:
    """Return the name that a key has; where there is none, add what is wrong."""
    if row.get(key) is None:
        problems.append(Problem(f"{key!r} is missing", path=path))
        return None
    name = _name(row[key])
    if name is None:
        problems.append(Problem(f"{key} is {shown(row[key])}", _NAME_WANTED, path=(*path, key)))
    return name


def graph_of(
    name: str,
    operations: Sequence[WrittenOperation],
    edges: Sequence[WrittenEdge],
    problems: list[Problem],
    keys: Sequence[str],
) -> DataflowGraph:
    """Return the graph of what was written, or raise everything that is wrong with it.

    Parameters
    ----------
    name : str
    operations : sequence of WrittenOperation
    edges : sequence of WrittenEdge
    problems : list of Problem
        What is known to be wrong already; what else is, is added.
    keys : sequence of str
        That operations may have, besides their name.
    """
    before = len(problems)
    made = [_operation(written, keys, problems) for written in operations]
    if not operations and not before:
        problems.append(Problem("there are no operations", f"like {_EXAMPLE}", path=("operations",)))
    index: dict[str, int] = {}
    for number, written in enumerate(operations):
        if written.name in index:
            problems.append(Problem(f"two operations are called {written.name!r}", path=written.path))
        index.setdefault(written.name, number)
    found: dict[tuple[int, int], WrittenEdge] = {}
    for edge in edges:
        for called, path in ((edge.before, edge.before_path), (edge.after, edge.after_path)):
            if called not in index:
                problems.append(Problem(f"there is no operation {called!r}", nearest(called, index), path=path))
        if edge.before not in index or edge.after not in index:
            continue
        pair = (index[edge.before], index[edge.after])
        if pair in found:
            message = f"{edge.after!r} has the input {edge.before!r} twice"
            problems.append(Problem(message, "leave one out", path=edge.before_path))
        found.setdefault(pair, edge)
    problems += _circles(operations, found)
    if problems:
        raise InputError(problems)
    return DataflowGraph(name, tuple(operation for operation in made if operation), tuple(found))


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _name(value: object) -> str | None:
    """Return text or a whole number as a name, or None."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT:
        return str(value)
    usable = isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= _LONGEST_NAME
    return str(value) if usable else None


def _operation(written: WrittenOperation, keys: Sequence[str], problems: list[Problem]) -> DataflowOperation | None:
    """Return an operation; add what is wrong with it."""
    given, path = written.given, written.path
    before = len(problems)
    known = (*keys, *(_TWINS[key] for key in keys if key in _TWINS))
    problems += [
        Problem(f"unknown key {shown(key)}", nearest(str(key), known), path=(*path, str(key)))
        for key in given
        if key not in known
    ]
    device = _count(given, "device", path, problems)
    if device is not None and device >= _MOST_DEVICES:
        message, hint = f"device is {device}", "devices are counted from 0"
        problems.append(Problem(message, hint, path=(*path, "device")))
    time_s = _quantity(given, "time", parse_duration, path, problems)
    output_bytes = _quantity(given, "output", parse_size, path, problems)
    gradient = _count(given, "gradient", path, problems)
    problems += [
        Problem(f"operation {written.name!r} has no {key}", f"like {_EXAMPLE}", path=path)
        for key in ("device", "time")
        if given.get(key) is None and given.get(_TWINS.get(key, key)) is None
    ]
    if len(problems) > before or device is None or time_s is None:
        return None
    return DataflowOperation(written.name, device, time_s, output_bytes or 0.0, gradient or 0)


def _count(given: Mapping[Any, Any], key: str, path: KeyPath, problems: list[Problem]) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    count = None if isinstance(value, str) else parse_count(value)
    if count is None:
        hint = f"{COUNT_WANTED}, without quotes" if isinstance(value, str) else COUNT_WANTED
        problems.append(Problem(f"{key} is {shown(value)}", hint, path=(*path, key)))
    return count


def _quantity(
    given: Mapping[Any, Any], key: str, parse: Callable[[object], float], path: KeyPath, problems: list[Problem]
) -> float | None:
    """Return a quantity that is given as text with a unit, or as a number with the unit in the name."""
    text, number = given.get(key), given.get(_TWINS[key])
    if text is not None and number is not None:
        message = f"{key} and {_TWINS[key]} are both given"
        problems.append(Problem(message, "leave one out", path=(*path, _TWINS[key])))
        return None
    if text is not None:
        try:
            value = parse(text)
        except UnitError as error:
            problems.append(Problem(f"{key}: {error.message}", error.hint, path=(*path, key)))
            return None
        if value <= LARGEST:
            return value
        problems.append(Problem(f"{key} is {shown(text)}", "nobody means that much", path=(*path, key)))
        return None
    if number is None:
        return None
    read = None if isinstance(number, str) else parse_number(number)
    if read is None:
        hint = f"{NUMBER_WANTED}; text with a unit goes under {key!r}"
        problems.append(Problem(f"{_TWINS[key]} is {shown(number)}", hint, path=(*path, _TWINS[key])))
    return read


def _circles(operations: Sequence[WrittenOperation], edges: Mapping[tuple[int, int], WrittenEdge]) -> list[Problem]:
    """Return a problem for each circle of operations that wait for each other; of circles that touch, for one."""
    problems: list[Problem] = []
    pairs = list(edges)
    while True:
        done = set(topological_order(len(operations), pairs))
        inputs = {
            after: before for before, after in sorted(pairs, reverse=True) if before not in done and after not in done
        }
        if not inputs:
            return problems
        # Whoever is left waits for somebody who is: going back to inputs leads into a circle.
        node = min(inputs)
        walk = {node: 0}
        while (node := inputs[node]) not in walk:
            walk[node] = len(walk)
        circle = list(walk)[walk[node] :][::-1]
        first = circle.index(min(circle))
        circle = circle[first:] + circle[:first]
        names = [operations[node].name for node in circle]
        if len(names) > _LONGEST_CIRCLE:
            names = [*names[: _LONGEST_CIRCLE - 1], "…", names[-1]]
        told = " -> ".join([*names, names[0]])
        place = edges[circle[-1], circle[0]].before_path
        problems.append(Problem(f"operations wait for each other in a circle: {told}", "cut it somewhere", path=place))
        pairs = [pair for pair in pairs if not set(pair) & set(circle)]
