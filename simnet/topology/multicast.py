"""The tree along which one message reaches many nodes, with one copy on each link.

The tree is one of shortest paths: every leaf is as near to the root as it can be, by links and then by the hosts that
are passed, and leaves share links as far as the same nodes lie on their ways. What may be passed through is tried in
the three steps of `simnet.topology.routing`: switches outside of hosts, and what is inside of the hosts of the root and
of the leaves; also other hosts; also GPUs and storage.

A node of the tree copies what it gets to its children. Nodes that only pass it on inside of a host (NICs, PCIe
switches) are left out where a `Router` goes the same way without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InputError, Problem
from simnet.topology.distances import LinksByNode
from simnet.topology.model import CompiledTopology, Topology
from simnet.topology.routing import Router

__all__ = ["MulticastTree", "multicast_tree"]


@dataclass(frozen=True)
class MulticastTree:
    """Who passes a message on to whom.

    Attributes
    ----------
    nodes : tuple of int
        Node indices, the root first, each after its parent.
    parents : tuple of int
        Place in `nodes` from where each gets its copy; -1 for the root.
    links : tuple of tuple of int
        Links from the parent to each, in order; none for the root. No link is in two of them. A `Router` takes exactly
        these; of parallel cables it may take another.
    """

    nodes: tuple[int, ...]
    parents: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]


def multicast_tree(topology: Topology, root: int | None, leaves: Sequence[int]) -> MulticastTree:
    """Return a tree of shortest paths from a root to leaves.

    Parameters
    ----------
    topology : Topology
    root : int or None
        Node index. None: the switch from where the farthest leaf is nearest, and of several the first. If all leaves
        are inside of one host it is a switch in there, else one outside of hosts; where there is none, a host.
    leaves : sequence of int
        Node indices, at least one; a node may be named twice, and may be the root.

    Returns
    -------
    MulticastTree
        Of the root, the leaves and the nodes between them.

    Raises
    ------
    InputError
        A leaf cannot be reached, or all leaves from no switch or host.
    ValueError
        There are no leaves.

    Examples
    --------
    >>> from simnet.topology import star
    >>> topology = star(hosts=3)
    >>> tree = multicast_tree(topology, 0, [1, 2])
    >>> [topology.compiled.node_names[node] for node in tree.nodes], tree.parents
    (['host0', 'switch', 'host1', 'host2'], (-1, 0, 1, 1))
    """
    if not len(leaves):
        raise ValueError("a multicast tree without leaves")
    arrays = topology.compiled
    wanted = np.unique(np.asarray(leaves, dtype=np.int64))
    passages = _Passages(arrays)
    if root is None:
        root = _central(passages, wanted)
    for allowed in passages.steps(root):
        came_by = _breadth_first(arrays, allowed, root)
        if all(leaf in came_by for leaf in wanted.tolist()):
            return _tree(topology, root, wanted.tolist(), came_by)
    names = arrays.node_names
    missing = next(names[leaf] for leaf in wanted.tolist() if leaf not in came_by)
    raise InputError(Problem(f"there is no way from {names[root]!r} to {missing!r}", "are links missing?"))


class _Passages:
    """Which links a message may take."""

    def __init__(self, arrays: CompiledTopology) -> None:
        self.arrays = arrays
        self.kinds = np.array(arrays.node_kind, dtype=object)
        self.outside = (arrays.host_of_node < 0) & (self.kinds == "switch")
        source, target = arrays.link_source, arrays.link_target
        self._host_left = arrays.host_of_node[source]
        self._from_end = np.isin(self.kinds, ("gpu", "storage"))[source]
        self._stays = self.outside[source] | ((self._host_left >= 0) & (self._host_left == arrays.host_of_node[target]))

    def steps(self, root: int) -> Iterator[NDArray[np.bool_]]:
        """Yield which links may be used, shape (links,); each time more of them."""
        begin = self.arrays.link_source == root
        host = self.arrays.host_of_node[root]
        # A way goes out of the root's host and into those of leaves, but not through a host.
        stays = self._stays | (self._host_left == host) if host >= 0 else self._stays
        yield begin | (~self._from_end & stays)
        yield begin | ~self._from_end
        yield np.ones(len(begin), dtype=bool)


def _breadth_first(arrays: CompiledTopology, allowed: NDArray[np.bool_], root: int) -> dict[int, int]:
    """Return by which link each node is reached best, in the order in which they are; -1 for the root."""
    usable = np.flatnonzero(allowed)
    out = LinksByNode(usable, arrays.link_source[usable], len(arrays.node_kind))
    targets: list[int] = arrays.link_target.tolist()
    passed = {root: 0}  # hosts on the way up to and with each node
    came_by = {root: -1}
    level = [root]
    while level:
        reached = []
        # Of equally long ways those through fewer hosts come first.
        for node in sorted(level, key=passed.__getitem__):
            for link in out.at(node):
                after = targets[link]
                if after not in came_by:
                    came_by[after] = link
                    passed[after] = passed[node] + (arrays.node_kind[after] in ("gpu", "host", "storage"))
                    reached.append(after)
        level = reached
    return came_by


def _tree(topology: Topology, root: int, leaves: Sequence[int], came_by: dict[int, int]) -> MulticastTree:
    arrays = topology.compiled
    source: list[int] = arrays.link_source.tolist()
    before = {node: source[link] for node, link in came_by.items() if link >= 0}
    needed = {root}
    for leaf in leaves:
        node = leaf
        while node not in needed:
            needed.add(node)
            node = before[node]
    children = dict.fromkeys(needed, 0)
    for node in needed - {root}:
        children[before[node]] += 1
    kept_always = set(leaves) | {root}
    left_out = {
        node
        for node in needed - kept_always
        if children[node] == 1 and arrays.host_of_node[node] >= 0 and arrays.node_kind[node] in ("nic", "switch")
    }
    router = Router(topology)
    place: dict[int, int] = {}
    nodes: list[int] = []
    parents: list[int] = []
    links: list[tuple[int, ...]] = []

    def add(node: int, parent: int, chain: Sequence[int]) -> None:
        place[node] = len(nodes)
        nodes.append(node)
        parents.append(place[parent] if chain else -1)
        links.append(tuple(chain))

    for node in came_by:
        if node not in needed or node in left_out:
            continue
        if node == root:
            add(node, node, ())
            continue
        chain = [came_by[node]]
        while source[chain[-1]] in left_out:
            chain.append(came_by[source[chain[-1]]])
        chain.reverse()
        parent = source[chain[0]]
        if len(chain) > 1 and not _is_the_way(router, parent, node, chain):
            for link in chain[:-1]:
                add(int(arrays.link_target[link]), source[link], [link])
            parent, chain = source[chain[-1]], chain[-1:]
        add(node, parent, chain)
    return MulticastTree(tuple(nodes), tuple(parents), tuple(links))


def _is_the_way(router: Router, parent: int, node: int, chain: Sequence[int]) -> bool:
    """Tell whether every flow from one node to the other takes these links, and every one back the same cables."""
    arrays = router.topology.compiled
    if router.only_path(parent, node) != tuple(chain):
        return False
    try:
        back = router.only_path(node, parent)
    except InputError:  # nothing goes back
        return True
    passed = [int(arrays.link_target[link]) for link in chain[:-1]]
    return back is not None and [int(arrays.link_source[link]) for link in back[1:]] == passed[::-1]


def _central(passages: _Passages, leaves: NDArray[np.int64]) -> int:
    """Return the node that is to be the root."""
    for candidates in _candidates(passages, leaves):
        best, least = -1, len(passages.kinds)
        for node in candidates.tolist():
            depth = _depth(passages, node, leaves, least)
            if depth < least:
                best, least = node, depth
        if best >= 0:
            return best
    raise InputError(Problem("there is no switch or host from which all of them can be reached", "are links missing?"))


def _candidates(passages: _Passages, leaves: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield nodes that may be the root, the better ones first."""
    of_node = passages.arrays.host_of_node
    hosts = np.unique(of_node[leaves])
    if len(leaves) > 1 and len(hosts) == 1 and hosts[0] >= 0:
        inside = of_node == hosts[0]
        yield np.flatnonzero(inside & (passages.kinds == "switch"))
        yield np.flatnonzero(inside & (passages.kinds == "host"))
    yield np.flatnonzero(passages.outside)
    yield np.flatnonzero(passages.kinds == "host")


def _depth(passages: _Passages, root: int, leaves: NDArray[np.int64], most: int) -> int:
    """Return the links between the root and the farthest leaf; `most` where it is not less."""
    arrays = passages.arrays
    for allowed in passages.steps(root):
        source, target = arrays.link_source[allowed], arrays.link_target[allowed]
        reached = np.zeros(len(arrays.node_kind), dtype=bool)
        reached[root] = True
        depth = 0
        while not reached[leaves].all() and depth < most:
            onward = target[reached[source] & ~reached[target]]
            if not len(onward):
                break
            reached[onward] = True
            depth += 1
        else:
            return depth
    return most
