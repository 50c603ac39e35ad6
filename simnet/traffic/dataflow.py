"""A dataflow graph: operations placed on devices, and tensors that move wherever an edge crosses devices.

Every device computes one operation at a time, the one first that is ready first. A tensor that several operations of
one device need travels there once. So the bytes between two devices are those of the tensors that cross from one to the
other, and where no two operations wait for the same device or link the whole takes as long as its longest path.

References
----------
.. [1] M. Abadi et al., "TensorFlow: a system for large-scale machine learning", OSDI 2016, section 3.3: a graph is
   partitioned by device, and a send and a receive take the place of each edge between two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simnet.errors import InputError, Problem, nearest
from simnet.traffic.graph import waves
from simnet.traffic.schedule import Integers, Partition
from simnet.traffic.schedule_builder import ScheduleBuilder
from simnet.traffic.step import Step

__all__ = ["DataflowEdge", "DataflowOperation", "dataflow_step"]

_NAME = "dataflow step"
_SHOWN = 8
"""So many operations of a circle are named."""


@dataclass(frozen=True)
class DataflowOperation:
    """One operation of a dataflow graph.

    Parameters
    ----------
    name : str
    device : int
        Where it is placed, counted from 0.
    seconds : float
        How long it takes there [s].
    milestone : bool
        Whether somebody wants to know when it is over, because it computes gradients.
    memory_bytes : float
        What it reads and writes meanwhile in the memory of the host; it takes at least as long [bytes].
    """

    name: str
    device: int
    seconds: float
    milestone: bool = False
    memory_bytes: float = 0.0


@dataclass(frozen=True)
class DataflowEdge:
    """A tensor that one operation makes and another needs.

    Parameters
    ----------
    before, after : str
        Names of operations.
    size_bytes : float
        Size of the tensor; 0 for one that only says what comes first, which is a message all the same [bytes].
    output : str
        Which of the outputs of `before` it is. By default an operation has one.
    """

    before: str
    after: str
    size_bytes: float = 0.0
    output: str = ""


def dataflow_step(
    operations: Sequence[DataflowOperation], edges: Sequence[DataflowEdge], *, devices: int | None = None
) -> Step:
    """Return one run of a dataflow graph.

    An operation waits for all tensors that it needs. A tensor is sent when the operation that makes it is over, once to
    each other device where it is needed.

    Parameters
    ----------
    operations : sequence of DataflowOperation
    edges : sequence of DataflowEdge
    devices : int
        How many there are; by default as many as operations name. They are the workers.

    Returns
    -------
    Step
        ``ready[device, i]`` is the milestone of operation i where it wants one and is on that device, otherwise -1.

    Raises
    ------
    InputError
        Everything that is wrong: names that are there twice or unknown, devices that do not exist, times and sizes that
        are negative or no numbers, one output with two sizes; or else a circle, by name.

    References
    ----------
    .. [1] M. Abadi et al. (TensorFlow), OSDI 2016, section 3.3.
    """
    count = 1 + max((operation.device for operation in operations), default=0) if devices is None else devices
    problems = [*_operation_problems(operations, count), *_edge_problems(operations, edges)]
    if problems:
        raise InputError(problems)
    number = {operation.name: index for index, operation in enumerate(operations)}
    before = np.array([number[edge.before] for edge in edges], dtype=np.int64)
    after = np.array([number[edge.after] for edge in edges], dtype=np.int64)
    _refuse_circle(operations, before, after)

    device = np.array([operation.device for operation in operations], dtype=np.int64)
    wanted = np.flatnonzero([operation.milestone for operation in operations])
    ready = np.full((count, len(operations)), -1)
    ready[device[wanted], wanted] = count + np.arange(len(wanted))
    build = ScheduleBuilder(_NAME, count + len(wanted), Partition(0, 1.0))
    if not len(operations):
        return Step(build.schedule(), count, ready, device)
    calc = build.calc(device, [operation.seconds for operation in operations], stream=0)
    takes = np.array([operation.memory_bytes for operation in operations], dtype=np.float64)
    memory = np.full(len(operations), -1)
    memory[takes > 0] = build.memory(device[takes > 0], takes[takes > 0])

    def wait(first: Integers, second: Integers) -> None:
        some = (first >= 0) & (second >= 0)
        build.depend(first[some], second[some])

    # Who may begin when a tensor has come, or when the operation that makes it is over.
    crossing = device[before] != device[after]
    for first in (calc, memory):
        for second in (calc, memory):
            wait(first[before[~crossing]], second[after[~crossing]])
    sent: dict[tuple[int, str, int], int] = {}
    sizes: list[float] = []
    of = np.full(len(edges), -1)
    for index in np.flatnonzero(crossing).tolist():
        tensor = int(before[index]), edges[index].output, int(device[after[index]])
        if tensor not in sent:
            sent[tensor] = len(sent)
            sizes.append(edges[index].size_bytes)
        of[index] = sent[tensor]
    if sent:
        maker = np.array([tensor[0] for tensor in sent], dtype=np.int64)
        target = np.array([tensor[2] for tensor in sent], dtype=np.int64)
        send = build.send(device[maker], target, width=0, fixed_bytes=np.array(sizes, dtype=np.float64))
        for operation in (calc, memory):
            wait(operation[maker], send)
            wait(send[of[crossing]], operation[after[crossing]])
    if len(wanted):
        milestone = build.calc(count + np.arange(len(wanted)))
        for operation in (calc, memory):
            wait(operation[wanted], milestone)
    return Step(build.schedule(), count, ready, device[wanted])


def _operation_problems(operations: Sequence[DataflowOperation], devices: int) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, operation in enumerate(operations):
        path = ("operations", index)
        if operation.name in seen:
            yield Problem(f"operation {operation.name!r} is there twice", "names differ", path, _NAME)
        seen.add(operation.name)
        if not 0 <= operation.device < devices:
            hint = f"devices are 0 .. {devices - 1}"
            yield Problem(f"operation {operation.name!r} is on device {operation.device}", hint, path, _NAME)
        for column in ("seconds", "memory_bytes"):
            value = getattr(operation, column)
            if not (np.isfinite(value) and value >= 0):
                hint = "it is a finite number, 0 or more"
                yield Problem(f"operation {operation.name!r}: {column} {value}", hint, path, _NAME)


def _edge_problems(operations: Sequence[DataflowOperation], edges: Sequence[DataflowEdge]) -> Iterator[Problem]:
    known = {operation.name for operation in operations}
    sizes: dict[tuple[str, str], float] = {}
    for index, edge in enumerate(edges):
        path, what = ("edges", index), f"edge {edge.before!r} -> {edge.after!r}"
        for end in (edge.before, edge.after):
            if end not in known:
                yield Problem(f"{what}: there is no operation {end!r}", nearest(end, known), path, _NAME)
        if not (np.isfinite(edge.size_bytes) and edge.size_bytes >= 0):
            yield Problem(f"{what}: size_bytes {edge.size_bytes}", "it is a finite number, 0 or more", path, _NAME)
        size = sizes.setdefault((edge.before, edge.output), edge.size_bytes)
        if size != edge.size_bytes:
            hint = "an output has one size; name different outputs differently"
            yield Problem(f"{what}: {edge.size_bytes} bytes, elsewhere {size}", hint, path, _NAME)


def _refuse_circle(operations: Sequence[DataflowOperation], before: Integers, after: Integers) -> None:
    """Refuse operations that need each other's tensors, and name one such circle."""
    left = waves(len(operations), before, after)[1]
    if not left.any():
        return
    # Each that is left has a predecessor that is left: going back from any one ends in a circle.
    inside = left[before] & left[after]
    needs = dict(zip(after[inside].tolist(), before[inside].tolist(), strict=True))
    way: dict[int, None] = {}
    node = int(np.flatnonzero(left)[0])
    while node not in way:
        way[node] = None
        node = needs[node]
    circle = list(way)
    names = [operations[index].name for index in [*circle[circle.index(node) :], node]][::-1]
    if len(names) > _SHOWN + 1:
        names = [*names[:_SHOWN], "...", names[-1]]
    hint = "each needs what the one before it makes; a dataflow graph has no circles"
    raise InputError([Problem(f"operations wait for each other: {' -> '.join(names)}", hint, ("edges",), _NAME)])
