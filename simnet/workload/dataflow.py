"""A workload as a dataflow graph: operations placed on devices, and tensors that move along the edges between them.

An operation computes on its device for a known time and has one output. It starts when all of its inputs are there and
its device is free. An output that operations on another device need is moved there once, however many of them there
are (M. Abadi et al., *TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems*, 2015, section
3.2.2). A graph is one step of training; what operations yield gradients says how many elements are exchanged between
copies of the graph.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx

__all__ = ["DataflowGraph", "DataflowOperation", "DataflowTransfer", "topological_order"]


@dataclass(frozen=True)
class DataflowOperation:
    """One operation of a dataflow graph.

    Parameters
    ----------
    name : str
    device : int
        Counted from 0.
    time_s : float
        How long it keeps its device busy [s].
    output_bytes : float
        0 where others only wait for it [bytes].
    gradient_elements : int
        Parameters that it yields the gradient of.
    """

    name: str
    device: int
    time_s: float
    output_bytes: float = 0.0
    gradient_elements: int = 0


@dataclass(frozen=True)
class DataflowTransfer:
    """An output that moves to another device.

    Parameters
    ----------
    operation : int
        Index of the operation whose output it is.
    source, target : int
        Devices.
    size_bytes : float
        [bytes]
    readers : tuple of int
        Indices of the operations on the target that need it.
    """

    operation: int
    source: int
    target: int
    size_bytes: float
    readers: tuple[int, ...]


@dataclass(frozen=True)
class DataflowGraph:
    """Operations, and which of them need whose output.

    Parameters
    ----------
    name : str
    operations : tuple of DataflowOperation
        Names differ.
    edges : tuple of (int, int)
        Indices of an operation and of one that needs its output; without circles, and each once.

    Raises
    ------
    ValueError
        Operations wait for each other in a circle.
    """

    name: str
    operations: tuple[DataflowOperation, ...]
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if len(self.order) < len(self.operations):
            raise ValueError(f"operations of {self.name} wait for each other in a circle")

    @property
    def devices(self) -> int:
        """Number of devices: one more than the last that has operations."""
        return 1 + max(operation.device for operation in self.operations)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Indices of the operations, each after those that it needs; of several, the one that stands first goes first.

        It is also the order on each device: of two that are ready the one that comes first here.
        """
        return tuple(topological_order(len(self.operations), self.edges))

    @cached_property
    def transfers(self) -> tuple[DataflowTransfer, ...]:
        """What moves between devices, in the order of the operations and then of the devices."""
        readers: dict[tuple[int, int], list[int]] = {}
        for before, after in self.edges:
            target = self.operations[after].device
            if target != self.operations[before].device:
                readers.setdefault((before, target), []).append(after)
        return tuple(
            DataflowTransfer(
                before,
                self.operations[before].device,
                target,
                self.operations[before].output_bytes,
                tuple(sorted(readers[before, target])),
            )
            for before, target in sorted(readers)
        )

    @property
    def bytes_between_devices(self) -> Mapping[tuple[int, int], float]:
        """What moves from a device to another in one step; pairs between which nothing moves are left out [bytes]."""
        total: dict[tuple[int, int], float] = {}
        for transfer in self.transfers:
            pair = (transfer.source, transfer.target)
            total[pair] = total.get(pair, 0.0) + transfer.size_bytes
        return total

    @property
    def gradient_elements(self) -> int:
        """Elements of all gradients."""
        return sum(operation.gradient_elements for operation in self.operations)

    @property
    def critical_path_s(self) -> float:
        """The longest time that operations take one after the other [s].

        No step is shorter, on however many devices.
        """
        return self._end_s(one_at_a_time=False)

    @property
    def makespan_s(self) -> float:
        """Time of a step where moving takes none and each device goes through its operations in `order` [s]."""
        return self._end_s(one_at_a_time=True)

    def _end_s(self, *, one_at_a_time: bool) -> float:
        needed: list[list[int]] = [[] for _ in self.operations]
        for before, after in self.edges:
            needed[after].append(before)
        end_s = [0.0] * len(self.operations)
        free_s: dict[int, float] = {}
        for index in self.order:
            operation = self.operations[index]
            start_s = max((end_s[before] for before in needed[index]), default=0.0)
            if one_at_a_time:
                start_s = max(start_s, free_s.get(operation.device, 0.0))
            free_s[operation.device] = end_s[index] = start_s + operation.time_s
        return max(end_s, default=0.0)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return the graph with the names of operations as nodes.

        Nodes have ``device``, ``time_s``, ``output_bytes`` and ``gradient``; an edge moves the output of its source.
        Node-link JSON of it is read back as the same by `load_dataflow_json`.
        """
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph(name=self.name)
        for operation in self.operations:
            attributes: dict[str, Any] = {
                "device": operation.device,
                "time_s": operation.time_s,
                "output_bytes": operation.output_bytes,
                "gradient": operation.gradient_elements,
            }
            graph.add_node(operation.name, **attributes)
        names = [operation.name for operation in self.operations]
        graph.add_edges_from((names[before], names[after]) for before, after in self.edges)
        return graph


def topological_order(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return numbers below `count`, each after those that an edge to it comes from; of several the least goes first.

    Those that lie on a circle or behind one are left out.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, target in edges:
        after[source].append(target)
        missing[target] += 1
    ready = [index for index, number in enumerate(missing) if not number]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for target in after[index]:
            missing[target] -= 1
            if not missing[target]:
                heapq.heappush(ready, target)
    return order
