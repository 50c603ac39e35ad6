"""Distances from transit nodes to the places where a target is entered.

A distance counts links, and in its low bits the hosts and GPUs that are passed through: of paths with the same number
of links the one through fewer of them is shorter. Sums and comparisons of plain integers so order pairs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "LINK", "DistanceTable", "TransitNetwork"]

LINK = 1 << 32
"""What one link adds to a distance."""

FAR = 1 << 62
"""The distance where there is no way."""


class TransitNetwork:
    """The links between transit nodes.

    Parameters
    ----------
    transit : ndarray of bool, shape (nodes,)
        Which nodes may be passed through.
    passed : ndarray of int64, shape (nodes,)
        What passing through a node adds to a distance, besides links.
    source, target : ndarray of int64, shape (links,)
        Node indices, of all links.
    """

    def __init__(
        self,
        transit: NDArray[np.bool_],
        passed: NDArray[np.int64],
        source: NDArray[np.int64],
        target: NDArray[np.int64],
    ) -> None:
        position = np.cumsum(transit) - 1
        links = np.flatnonzero(transit[source] & transit[target])
        links = links[np.argsort(source[links], kind="stable")]
        self.size = int(transit.sum())
        self.position: list[int] = np.where(transit, position, -1).tolist()
        self.link_ids: list[int] = links.tolist()
        self.link_target = position[target[links]]
        self.link_length = LINK + passed[target[links]]
        self.sources, self.first = np.unique(position[source[links]], return_index=True)
        bounds = np.searchsorted(position[source[links]], np.arange(self.size + 1))
        self.bounds: list[int] = bounds.tolist()


class DistanceTable:
    """Distances of all transit nodes to a target, worked out as far as somebody asks.

    Parameters
    ----------
    network : TransitNetwork
    entries : mapping of int to int
        Transit nodes from which the target can be entered, and how far it is from there.
    """

    def __init__(self, network: TransitNetwork, entries: Mapping[int, int]) -> None:
        self._network = network
        self._distance = np.full(network.size, FAR, dtype=np.int64)
        for node, distance in entries.items():
            self._distance[network.position[node]] = distance
        self._rounds = 0
        self._complete = False
        self._choices: dict[int, list[int]] = {}

    def distance(self, node: int) -> int:
        """Return the distance of a transit node; `FAR` or more where there is no way."""
        position = self._network.position[node]
        # After r rounds (Bellman and Ford) every path of up to r links is known, so any distance below r + 1 is final.
        while not self._complete and self._distance[position] >= (self._rounds + 1) * LINK:
            self._relax()
        return int(self._distance[position])

    def next_links(self, node: int) -> list[int]:
        """Return the links to other transit nodes that begin a shortest path."""
        choices = self._choices.get(node)
        if choices is None:
            network, distance = self._network, self.distance(node)
            of_node = slice(*network.bounds[network.position[node] : network.position[node] + 2])
            through = self._distance[network.link_target[of_node]] + network.link_length[of_node]
            first = of_node.start
            choices = [network.link_ids[first + offset] for offset in np.flatnonzero(through == distance)]
            self._choices[node] = choices
        return choices

    def _relax(self) -> None:
        """Let every node look one link further."""
        network = self._network
        self._rounds += 1
        if not network.link_ids:
            self._complete = True
            return
        through = np.minimum(self._distance[network.link_target] + network.link_length, FAR)
        shortest = np.minimum.reduceat(through, network.first)
        before = self._distance[network.sources]
        self._complete = bool((shortest >= before).all())
        self._distance[network.sources] = np.minimum(before, shortest)
