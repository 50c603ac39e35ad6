"""What a topology is, and the same as arrays.

A topology is a directed multigraph of typed nodes and links. One cable is two links, one for each direction. The
latency of a path is the sum over its links: what a switch takes is part of the links beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simnet.reading import garbage_kept

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx

__all__ = [
    "LINK_KINDS",
    "NODE_KINDS",
    "CompiledTopology",
    "Topology",
    "compile_topology",
    "nodes_of_each_host",
    "rank_names",
]

NODE_KINDS = ("gpu", "host", "nic", "storage", "switch")
"""What a node can be."""

LINK_KINDS = ("ethernet", "infiniband", "nvlink", "other", "pcie", "upi", "wan", "wireless")
"""What a link can be; ``upi`` stands for every link between the sockets of a host."""


@dataclass(frozen=True, eq=False)
class Topology:
    """A cluster, not to be changed any more; `from_graph` makes one of a networkx graph, and `graph` is one again.

    Parameters
    ----------
    name : str
    nodes : sequence of (str, dict)
        Name and attributes: ``kind`` (one of `NODE_KINDS`); optionally ``host`` (name of the host node that it is
        inside of), ``memory_bandwidth_bytes_per_s`` (of a host, reading and writing together) and ``model`` (of a GPU).
    links : sequence of (str, str, dict)
        Source, target and attributes: ``bandwidth_bytes_per_s``, ``latency_s``, ``kind`` (one of `LINK_KINDS`);
        optionally ``loss_probability`` (of a packet) and ``buffer_bytes`` (of the queue in front of the link). In the
        order in which networkx gives the edges of a graph: by source, then by target, each in order of appearance.
    """

    name: str
    nodes: Sequence[tuple[str, dict[str, Any]]]
    links: Sequence[tuple[str, str, dict[str, Any]]]

    @classmethod
    def from_graph(cls, name: str, graph: nx.MultiDiGraph[str]) -> Topology:
        """Return the topology of a graph; its nodes are text, and it has the attributes that are described above.

        Parameters
        ----------
        name : str
        graph : MultiDiGraph
            Kept, and not to be changed any more.
        """
        topology = cls(name, list(graph.nodes.items()), list(graph.edges(data=True)))
        # The graph may say of itself what the topology does not.
        topology.__dict__["graph"] = graph
        return topology

    @cached_property
    def graph(self) -> nx.MultiDiGraph[str]:
        """The same as a networkx graph, made at first use: for large clusters that takes longer than all else."""
        import networkx as nx

        with garbage_kept():
            graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.name)
            graph.add_nodes_from(self.nodes)
            graph.add_edges_from(self.links)
        return graph

    @cached_property
    def compiled(self) -> CompiledTopology:
        """The same as arrays, made at first use."""
        with garbage_kept():
            return compile_topology(self)


@dataclass(frozen=True, eq=False)
class CompiledTopology:
    """A topology as arrays; nodes and links are counted from 0 in the order of the graph.

    Attributes
    ----------
    ranks : names of the nodes that compute, in order: the GPUs if there are any, else the hosts
    rank_nodes : their node indices, shape (ranks,)
    node_names, node_kind : per node
    node_index : node name -> node index
    host_of_node : index of the host that a node is inside of, of a host its own, -1 outside of hosts, shape (nodes,)
    node_memory_bandwidth : memory bandwidth of a host, infinite where not known, shape (nodes,) [bytes/s]
    link_name : per link, unique: ``a->b``, and ``a->b#1`` for the second of parallel ones
    link_kind : per link, one of `LINK_KINDS`
    link_source, link_target : node indices, shape (links,)
    link_bandwidth : shape (links,) [bytes/s]
    link_latency : shape (links,) [s]
    link_loss_probability : 0 where not given, shape (links,)
    link_buffer_bytes : infinite where not given, shape (links,) [bytes]
    """

    ranks: tuple[str, ...]
    rank_nodes: NDArray[np.int64]
    node_names: tuple[str, ...]
    node_kind: tuple[str, ...]
    node_index: dict[str, int]
    host_of_node: NDArray[np.int64]
    node_memory_bandwidth: NDArray[np.float64]
    link_name: tuple[str, ...]
    link_kind: tuple[str, ...]
    link_source: NDArray[np.int64]
    link_target: NDArray[np.int64]
    link_bandwidth: NDArray[np.float64]
    link_latency: NDArray[np.float64]
    link_loss_probability: NDArray[np.float64]
    link_buffer_bytes: NDArray[np.float64]


def compile_topology(topology: Topology) -> CompiledTopology:
    """Return the arrays of a topology; `Topology.compiled` keeps them.

    Parameters
    ----------
    topology : Topology

    Returns
    -------
    CompiledTopology

    Raises
    ------
    KeyError
        A node or link lacks an attribute that it must have. Topologies from files and generators never do.
    """
    nodes = dict(topology.nodes)
    names = tuple(nodes)
    index = {name: position for position, name in enumerate(names)}
    kinds = tuple(attributes["kind"] for attributes in nodes.values())
    ends = [(index[source], index[target]) for source, target, _ in topology.links]
    links = [attributes for _, _, attributes in topology.links]
    source, target = np.array(ends, dtype=np.int64).reshape(-1, 2).T.copy()
    link_kinds = tuple(link["kind"] for link in links)
    ranks = rank_names(nodes)

    def column(rows: list[dict[str, Any]], key: str, default: float) -> NDArray[np.float64]:
        return np.array([row.get(key, default) for row in rows], dtype=np.float64)

    return CompiledTopology(
        ranks=ranks,
        rank_nodes=np.array([index[name] for name in ranks], dtype=np.int64),
        node_names=names,
        node_kind=kinds,
        node_index=index,
        host_of_node=_hosts(nodes, index, kinds, link_kinds, source, target),
        node_memory_bandwidth=column(list(nodes.values()), "memory_bandwidth_bytes_per_s", math.inf),
        link_name=tuple(_link_names(names, ends)),
        link_kind=link_kinds,
        link_source=source,
        link_target=target,
        link_bandwidth=np.array([link["bandwidth_bytes_per_s"] for link in links], dtype=np.float64),
        link_latency=np.array([link["latency_s"] for link in links], dtype=np.float64),
        link_loss_probability=column(links, "loss_probability", 0.0),
        link_buffer_bytes=column(links, "buffer_bytes", math.inf),
    )


def nodes_of_each_host(hosts: NDArray[np.int64]) -> int | None:
    """Return how many nodes in a row each host has; None where these are not equally many.

    Parameters
    ----------
    hosts : ndarray of int, shape (nodes,)
        Host of each node.

    Examples
    --------
    >>> nodes_of_each_host(np.array([4, 4, 9, 9])), nodes_of_each_host(np.array([4, 4, 9]))
    (2, None)
    """
    group = int((hosts == hosts[0]).sum())
    whole = len(hosts) % group == 0 and bool((hosts.reshape(-1, group) == hosts[::group, np.newaxis]).all())
    return group if whole else None


def rank_names(nodes: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the nodes that compute, in order: the GPUs if there are any, else the hosts."""
    kinds = {name: attributes.get("kind") for name, attributes in nodes.items()}
    gpus = tuple(name for name, kind in kinds.items() if kind == "gpu")
    return gpus or tuple(name for name, kind in kinds.items() if kind == "host")


def _link_names(names: tuple[str, ...], ends: list[tuple[int, int]]) -> Iterator[str]:
    """Name every link by its ends, and the later ones of parallel links by a number as well."""
    taken: set[str] = set()
    parallel: dict[str, int] = {}
    for source, target in ends:
        plain = name = f"{names[source]}->{names[target]}"
        # A node may itself be called "b#1": counting goes on until the name is free.
        while name in taken:
            parallel[plain] = parallel.get(plain, 0) + 1
            name = f"{plain}#{parallel[plain]}"
        taken.add(name)
        yield name


def _hosts(
    nodes: dict[str, dict[str, Any]],
    index: dict[str, int],
    kinds: tuple[str, ...],
    link_kinds: tuple[str, ...],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Find the host that each node is inside of: itself, the one it names, or the only one it reaches over PCIe."""
    host = np.full(len(nodes), -1, dtype=np.int64)
    for node, (kind, attributes) in enumerate(zip(kinds, nodes.values(), strict=True)):
        if kind == "host":
            host[node] = node
        elif "host" in attributes:
            host[node] = index[attributes["host"]]
    inside = [link for link, kind in enumerate(link_kinds) if kind == "pcie"]
    if not inside:
        return host
    import networkx as nx

    wires: nx.Graph[int] = nx.Graph()
    wires.add_edges_from(zip(source[inside].tolist(), target[inside].tolist(), strict=True))
    for together in nx.connected_components(wires):
        members = np.array(sorted(together), dtype=np.int64)
        found = np.unique(host[members][host[members] >= 0])
        if len(found) == 1:
            host[members] = found[0]
    return host
