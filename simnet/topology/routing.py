"""Which way messages go: shortest paths, and equal ones shared out by a hash of the flow (ECMP).

A host with all that is inside, or a node that stands alone, is a *machine*. A path leaves the machine of its source,
passes through *transit* nodes and enters the machine of its target. What may be passed through is tried in three steps,
each only where the one before finds no way:

1. switches outside of hosts;
2. also other hosts, as clusters without switches need it;
3. also GPUs and storage.

Of the paths of a step the shortest by links are taken, and of these the ones through the fewest hosts and PCIe
switches, so that GPUs prefer NVLinks. At every node a hash of (seed, flow key, node) chooses between the links left
over.

Distances are kept for transit nodes only, and per way of entering a machine: all hosts below a leaf switch share one
table, made when first needed, and a host with one attachment needs none of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simnet.errors import InputError, Problem
from simnet.topology.distances import FAR, LINK, DistanceTable, Links, TransitNetwork
from simnet.topology.model import Topology

__all__ = ["Router", "ecmp_hash"]

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_KEPT_DISTANCES = 1 << 21
"""How many distances one step keeps at most (some 200 MiB) before it forgets its oldest tables."""


def ecmp_hash(seed: int, flow_key: int, node: int) -> int:
    """Return 64 well-mixed bits of a flow at a node, the same in every process.

    It mixes three times by the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).

    Parameters
    ----------
    seed : int
    flow_key : int
        Flows with the same key go the same way.
    node : int
        Node index.

    Returns
    -------
    int
        0 .. 2^64 - 1.
    """
    return _hash_at(_mix(_mix(seed) ^ flow_key), node)


def _hash_at(flow: int, node: int) -> int:
    return _mix(flow + node * _GOLDEN)


def _mix(value: int) -> int:
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


_Chooser = Callable[[list[int], int], int]
"""Takes one of several links from a node."""


def _choose(flow: int, links: list[int], node: int) -> int:
    return links[0] if len(links) == 1 else links[(_hash_at(flow, node) * len(links)) >> 64]


class _SeveralError(Exception):
    """There are equal paths."""


def _take_only(links: list[int], node: int) -> int:  # noqa: ARG001
    if len(links) > 1:
        raise _SeveralError
    return links[0]


class Router:
    """Finds paths on a topology.

    Parameters
    ----------
    topology : Topology
    seed : int
        Of the choice between equal paths.
    without : collection of int
        Links that no path takes, as they are down.

    Examples
    --------
    >>> from simnet.topology import star
    >>> topology = star(hosts=3)
    >>> names = topology.compiled.link_name
    >>> [names[link] for link in Router(topology).path(0, 2)]
    ['host0->switch', 'switch->host2']
    """

    def __init__(self, topology: Topology, seed: int = 0, without: Collection[int] = ()) -> None:
        self.topology = topology
        self.seed = seed
        self._mixed_seed = _mix(seed)
        arrays = topology.compiled
        links = Links(arrays, without)
        kinds = np.array(arrays.node_kind, dtype=object)
        ends = np.isin(kinds, ("gpu", "storage"))
        alone = np.arange(len(kinds))
        machine = np.where(arrays.host_of_node < 0, alone, arrays.host_of_node)
        switches = (arrays.host_of_node < 0) & (kinds == "switch")
        self._passages = (
            (machine, switches),
            (alone, ~ends),
            (alone, np.ones(len(kinds), dtype=bool)),
        )
        self._ends_only: list[bool] = ends.tolist()
        self._steps: dict[int, _Step] = {}
        self._only_exit = _single_links(links.kept, arrays.link_source, arrays.link_target, machine, switches)
        self._only_entry = _single_links(links.kept, arrays.link_target, arrays.link_source, machine, switches)
        self._exit_list: list[int] = self._only_exit.tolist()
        self._entry_list: list[int] = self._only_entry.tolist()
        self._links = links

    def path(self, source: int, target: int, flow_key: int = 0) -> tuple[int, ...]:
        """Return the links from one node to another, in order.

        Parameters
        ----------
        source, target : int
            Node indices; where they are equal the path is empty.
        flow_key : int
            Flows with the same key and ends take the same path.

        Raises
        ------
        InputError
            There is no way.
        """
        if source == target:
            return ()
        links, leave, enter = self._links, self._exit_list[source], self._entry_list[target]
        if leave >= 0 and enter >= 0 and links.target[leave] == links.source[enter]:
            return leave, enter
        return self._path(source, target, partial(_choose, _mix(self._mixed_seed ^ int(flow_key))))

    def only_path(self, source: int, target: int) -> tuple[int, ...] | None:
        """Return the same as `path`, or None where it depends on the flow.

        Parameters
        ----------
        source, target : int
            Node indices.

        Raises
        ------
        InputError
            There is no way.
        """
        try:
            return self._path(source, target, _take_only) if source != target else ()
        except _SeveralError:
            return None

    def paths(
        self, sources: ArrayLike, targets: ArrayLike, flow_keys: ArrayLike = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return many paths at once, the same that `path` gives one by one.

        Parameters
        ----------
        sources, targets, flow_keys : array_like of int
            They broadcast to shape (paths,).

        Returns
        -------
        starts : ndarray of int64, shape (paths + 1,)
        links : ndarray of int64
            Path p is ``links[starts[p] : starts[p + 1]]``.
        """
        source, target, keys = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(column, dtype=np.int64)) for column in (sources, targets, flow_keys))
        )
        arrays = self.topology.compiled
        leave, enter = self._only_exit[source], self._only_entry[target]
        short = (leave >= 0) & (enter >= 0) & (source != target)
        short[short] = arrays.link_target[leave[short]] == arrays.link_source[enter[short]]
        rows = np.flatnonzero(~short).tolist()
        found = [self.path(int(source[row]), int(target[row]), int(keys[row])) for row in rows]
        lengths = np.full(len(source), 2, dtype=np.int64)
        lengths[rows] = [len(path) for path in found]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        links = np.empty(starts[-1], dtype=np.int64)
        links[starts[:-1][short]] = leave[short]
        links[starts[:-1][short] + 1] = enter[short]
        for row, path in zip(rows, found, strict=True):
            links[starts[row] : starts[row + 1]] = path
        return starts, links

    def _path(self, source: int, target: int, choose: _Chooser) -> tuple[int, ...]:
        for number in range(len(self._passages)):
            path = self._step(number).path(source, target, choose)
            if path:
                return tuple(path)
        names = self.topology.compiled.node_names
        raise InputError(Problem(f"there is no way from {names[source]!r} to {names[target]!r}", "are links missing?"))

    def _step(self, number: int) -> _Step:
        """Return a step, made at first need; the later ones seldom are needed."""
        step = self._steps.get(number)
        if step is None:
            machine, transit = self._passages[number]
            step = self._steps[number] = _Step(self._links, machine, transit, self._ends_only)
        return step


def _single_links(
    kept: NDArray[np.int64],
    near: NDArray[np.int64],
    far: NDArray[np.int64],
    machine: NDArray[np.int64],
    switches: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Find, for each node that is a machine of its own, its only link if that leads to a switch; -1 for others."""
    count = len(machine)
    link = np.full(count, -1, dtype=np.int64)
    link[near[kept]] = kept
    fits = (np.bincount(machine, minlength=count)[machine] == 1) & (np.bincount(near[kept], minlength=count) == 1)
    fits[fits] = switches[far[link[fits]]]
    return np.where(fits, link, -1)


@dataclass(frozen=True)
class _Entry:
    """How a target is entered.

    Attributes
    ----------
    inside : distance to the target from nodes of its machine
    links : per transit node, the links by which it enters best
    offsets : per transit node, the distance by them, less `base`; sorted, to be the key of a table
    base : the least of these distances
    """

    inside: dict[int, int]
    links: dict[int, list[int]]
    offsets: tuple[tuple[int, int], ...]
    base: int


class _Step:
    """Paths through one set of transit nodes, and inside of machines through all nodes but the `ends_only`."""

    def __init__(
        self, links: Links, machine: NDArray[np.int64], transit: NDArray[np.bool_], ends_only: list[bool]
    ) -> None:
        self._links = links
        self._ends_only = ends_only
        self._machine: list[int] = machine.tolist()
        self._transit: list[bool] = transit.tolist()
        sizes = np.bincount(machine, minlength=len(machine))
        shared = np.flatnonzero(sizes[machine] > 1)
        self._members: dict[int, list[int]] = {}
        for node in shared.tolist():
            self._members.setdefault(self._machine[node], []).append(node)
        self._network = TransitNetwork(transit, links)
        self._tables: dict[tuple[tuple[int, int], ...], DistanceTable] = {}
        self._most_tables = max(16, _KEPT_DISTANCES // max(1, self._network.size))
        self._entries: dict[int, _Entry] = {}
        self._insides: dict[int, dict[int, int]] = {}
        self._exits: dict[int, list[int]] = {}

    def path(self, source: int, target: int, choose: _Chooser) -> list[int]:
        """Return a shortest path; empty where there is none."""
        entry = self._entry(target)
        table = self._table(entry)
        distance, leave = self._leave(source, entry, table)
        within = entry.inside.get(source, FAR)
        if min(within, distance) >= FAR:
            return []
        path: list[int] = []
        node = source
        if distance < within:
            link = choose(leave, source)
            self._walk_inside(source, self._inside(self._links.source[link]), choose, path)
            path.append(link)
            node = self._links.target[link]
            while node not in entry.inside:
                link = choose(self._onward(node, entry, table), node)
                path.append(link)
                node = self._links.target[link]
        self._walk_inside(node, entry.inside, choose, path)
        return path

    def _leave(self, source: int, entry: _Entry, table: DistanceTable) -> tuple[int, list[int]]:
        """Return the distance by way of other machines, and the links out of the source's that begin such a path."""
        links, passed = self._links, self._links.passed
        best, leave = FAR, []
        for link in self._exit_links(source):
            node, after = links.source[link], links.target[link]
            distance = LINK
            if node != source:
                if self._ends_only[node]:
                    continue
                distance += self._inside(node).get(source, FAR) + passed[node]
            if after in entry.inside:
                distance += self._onward_inside(after, entry.inside)
            elif self._transit[after]:
                distance += table.distance(after) + entry.base + passed[after]
            else:
                continue
            if distance < best:
                best, leave = distance, [link]
            elif distance == best:
                leave.append(link)
        return best, leave

    def _onward(self, node: int, entry: _Entry, table: DistanceTable) -> list[int]:
        """Return the links from a transit node that begin a shortest path."""
        enter = entry.links.get(node)
        if enter is None:
            return table.next_links(node)
        offset = next(offset for place, offset in entry.offsets if place == node)
        return enter + table.next_links(node) if offset == table.distance(node) else table.next_links(node)

    def _walk_inside(self, node: int, inside: dict[int, int], choose: _Chooser, path: list[int]) -> None:
        """Go on to the node of distance 0 without leaving the machine."""
        links = self._links
        while inside[node]:
            onward = inside[node] - LINK
            options = [link for link in links.out.at(node) if self._onward_inside(links.target[link], inside) == onward]
            link = choose(options, node)
            path.append(link)
            node = links.target[link]

    def _onward_inside(self, node: int, inside: dict[int, int]) -> int:
        """Return the distance from before a node to the node of distance 0, less the link to it."""
        onward = inside.get(node, FAR)
        if not onward:
            return 0
        return FAR if self._ends_only[node] else onward + self._links.passed[node]

    def _exit_links(self, source: int) -> list[int]:
        """Return the links that lead out of a node's machine."""
        machine = self._machine[source]
        exits = self._exits.get(machine)
        if exits is None:
            members = self._members.get(machine, [source])
            exits = [
                link
                for node in members
                for link in self._links.out.at(node)
                if self._machine[self._links.target[link]] != machine
            ]
            self._exits[machine] = exits
        return exits

    def _inside(self, target: int) -> dict[int, int]:
        """Return the distances to a node from the nodes of its machine, without leaving it (Dijkstra)."""
        inside = self._insides.get(target)
        if inside is not None:
            return inside
        links, machine = self._links, self._machine
        inside = {}
        queue = [(0, target)]
        while queue:
            distance, node = heapq.heappop(queue)
            if node in inside:
                continue
            inside[node] = distance
            if machine[node] not in self._members or (self._ends_only[node] and node != target):
                continue
            through = LINK + self._onward_inside(node, inside)
            for link in links.into.at(node):
                before = links.source[link]
                if machine[before] == machine[node] and before not in inside:
                    heapq.heappush(queue, (through, before))
        self._insides[target] = inside
        return inside

    def _entry(self, target: int) -> _Entry:
        entry = self._entries.get(target)
        if entry is not None:
            return entry
        links, machine = self._links, self._machine[target]
        inside = self._inside(target)
        best: dict[int, int] = {}
        enter: dict[int, list[int]] = {}
        for node in inside:
            distance = LINK + self._onward_inside(node, inside)
            if distance >= FAR:
                continue
            for link in links.into.at(node):
                before = links.source[link]
                if not self._transit[before] or self._machine[before] == machine:
                    continue
                known = best.get(before, FAR)
                if distance < known:
                    best[before], enter[before] = distance, [link]
                elif distance == known:
                    enter[before].append(link)
        base = min(best.values(), default=0)
        offsets = tuple(sorted((node, distance - base) for node, distance in best.items()))
        entry = self._entries[target] = _Entry(inside, enter, offsets, base)
        return entry

    def _table(self, entry: _Entry) -> DistanceTable:
        table = self._tables.get(entry.offsets)
        if table is None:
            while len(self._tables) >= self._most_tables:
                del self._tables[next(iter(self._tables))]
            table = self._tables[entry.offsets] = DistanceTable(self._network, dict(entry.offsets))
        return table
