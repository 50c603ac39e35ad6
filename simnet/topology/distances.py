"""Distances from transit nodes to the places where a target is entered.

A distance counts links, and in its low bits the hosts, GPUs and PCIe switches that are passed through: of paths with
the same number of links the one through fewer of them is shorter. Sums and comparisons of plain integers so order
pairs.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from simnet.topology.model import CompiledTopology

__all__ = ["FAR", "LINK", "DistanceTable", "Links", "LinksByNode", "TransitNetwork"]

LINK = 1 << 32
"""What one link adds to a distance."""

FAR = 1 << 62
"""The distance where there is no way."""


class LinksByNode:
    """Which links have a node as one of their ends; slices of a list, which takes little memory.

    Parameters
    ----------
    links : ndarray of int64
        Link indices.
    ends : ndarray of int64, same shape
        The node at one end of each, always the same end.
    nodes : int
        Number of nodes.
    """

    def __init__(self, links: NDArray[np.int64], ends: NDArray[np.int64], nodes: int) -> None:
        order = np.argsort(ends, kind="stable")
        self._links: list[int] = links[order].tolist()
        self._starts: list[int] = np.searchsorted(ends[order], np.arange(nodes + 1)).tolist()

    def at(self, node: int) -> list[int]:
        """Return the links of a node."""
        return self._links[self._starts[node] : self._starts[node + 1]]


class Links:
    """The links of a topology as plain lists, which Python reads faster one by one.

    Parameters
    ----------
    arrays : CompiledTopology
    without : collection of int
        Links that no path takes.

    Attributes
    ----------
    kept : links that paths may take, in order
    source, target : node indices, per link
    out, into : links from and to each node, of those that paths may take
    passed : what passing through each node adds to a distance
    """

    def __init__(self, arrays: CompiledTopology, without: Collection[int] = ()) -> None:
        kept, nodes = np.delete(np.arange(len(arrays.link_kind)), list(without)), len(arrays.node_kind)
        self.kept: NDArray[np.int64] = kept
        self.source: list[int] = arrays.link_source.tolist()
        self.target: list[int] = arrays.link_target.tolist()
        self.out = LinksByNode(kept, arrays.link_source[kept], nodes)
        self.into = LinksByNode(kept, arrays.link_target[kept], nodes)
        on_a_bus = np.isin(np.array(arrays.link_kind, dtype=object), ("pcie", "upi"))
        buses = set(arrays.link_source[on_a_bus].tolist())
        self.passed = [
            int(kind in ("gpu", "host", "storage") or node in buses) for node, kind in enumerate(arrays.node_kind)
        ]


class TransitNetwork:
    """The links between transit nodes.

    Parameters
    ----------
    transit : ndarray of bool, shape (nodes,)
        Which nodes may be passed through.
    links : Links
        All links.
    """

    def __init__(self, transit: NDArray[np.bool_], links: Links) -> None:
        source, target = np.array(links.source, dtype=np.int64), np.array(links.target, dtype=np.int64)
        between = links.kept[transit[source[links.kept]] & transit[target[links.kept]]]
        self.size = int(transit.sum())
        self.links = links
        self.out = LinksByNode(between, source[between], len(transit))
        self.into = LinksByNode(between, target[between], len(transit))


class DistanceTable:
    """Distances of transit nodes to a target, worked out from there outwards as far as somebody asks (Dijkstra).

    Parameters
    ----------
    network : TransitNetwork
    entries : mapping of int to int
        Transit nodes from which the target can be entered, and how far it is from there.
    """

    def __init__(self, network: TransitNetwork, entries: Mapping[int, int]) -> None:
        self._network = network
        self._known = dict(entries)
        self._final: dict[int, int] = {}
        self._queue = [(distance, node) for node, distance in entries.items()]
        heapq.heapify(self._queue)
        self._next_links: dict[int, list[int]] = {}

    def distance(self, node: int) -> int:
        """Return the distance of a transit node; `FAR` where there is no way."""
        final, known, queue = self._final, self._known, self._queue
        links = self._network.links
        while node not in final and queue:
            distance, nearest = heapq.heappop(queue)
            if nearest in final:
                continue
            final[nearest] = distance
            through = distance + LINK + links.passed[nearest]
            for link in self._network.into.at(nearest):
                before = links.source[link]
                if through < known.get(before, FAR):
                    known[before] = through
                    heapq.heappush(queue, (through, before))
        return final.get(node, FAR)

    def next_links(self, node: int) -> list[int]:
        """Return the links to other transit nodes that begin a shortest path."""
        choices = self._next_links.get(node)
        if choices is None:
            links, onward = self._network.links, self.distance(node) - LINK
            # What is nearer is final already.
            choices = [
                link
                for link in self._network.out.at(node)
                if self._final.get(links.target[link], FAR) + links.passed[links.target[link]] == onward
            ]
            self._next_links[node] = choices
        return choices
