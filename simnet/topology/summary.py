"""What a topology amounts to, in a few figures."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from simnet.topology.model import Topology
from simnet.topology.routing import Router
from simnet.units import format_bandwidth, format_duration

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx

__all__ = ["bisection_bandwidth", "oversubscription", "summary_lines", "topology_summary"]

_MOST_LINKS_FOR_BISECTION = 20_000
_RANKS_FOR_DISTANCE = (8, 128)  # as sources, as targets


def topology_summary(topology: Topology) -> dict[str, Any]:
    """Return the figures of a topology as plain data.

    Parameters
    ----------
    topology : Topology

    Returns
    -------
    dict
        ``name``; ``ranks``, ``rank_kind``, ``first_rank``, ``last_rank``; ``nodes`` (number by kind, those
        of switches inside of hosts apart); ``links`` (a list
        of dictionaries with kind, bandwidth_bytes_per_s, latency_s and count, one direction each);
        ``longest_path_links`` (the most links between two ranks, looked for between some of them where there are many);
        ``bisection_bandwidth_bytes_per_s`` (`bisection_bandwidth`, None where it would take too long);
        ``oversubscription`` (`oversubscription`, None without uplinks).

    Raises
    ------
    InputError
        There is no way between two ranks.
    """
    arrays = topology.compiled
    links = Counter(zip(arrays.link_kind, arrays.link_bandwidth.tolist(), arrays.link_latency.tolist(), strict=True))
    kinds = [
        "switch inside of a host" if kind == "switch" and host >= 0 else kind
        for kind, host in zip(arrays.node_kind, arrays.host_of_node.tolist(), strict=True)
    ]
    small = len(arrays.link_kind) <= _MOST_LINKS_FOR_BISECTION and len(arrays.ranks) > 1
    return {
        "name": topology.name,
        "ranks": len(arrays.ranks),
        "rank_kind": arrays.node_kind[arrays.rank_nodes[0]],
        "first_rank": arrays.ranks[0],
        "last_rank": arrays.ranks[-1],
        "nodes": dict(Counter(kinds)),
        "links": [
            {"kind": kind, "bandwidth_bytes_per_s": bandwidth, "latency_s": latency, "count": count}
            for (kind, bandwidth, latency), count in links.items()
        ],
        "longest_path_links": _longest_path(topology),
        "bisection_bandwidth_bytes_per_s": bisection_bandwidth(topology) if small else None,
        "oversubscription": oversubscription(topology),
    }


def summary_lines(topology: Topology) -> list[str]:
    """Return the summary as lines for people.

    Parameters
    ----------
    topology : Topology

    Returns
    -------
    list of str
        As of `topology_summary`, with units.

    Raises
    ------
    InputError
        There is no way between two ranks.
    """
    found = topology_summary(topology)
    nodes = ", ".join(f"{count} {kind}" for kind, count in found["nodes"].items())
    lines = [
        f"topology {found['name']}: {found['ranks']} ranks ({found['rank_kind']}), "
        f"{found['first_rank']} to {found['last_rank']}",
        f"  nodes: {nodes}",
    ]
    lines += [
        f"  links: {link['count']} {link['kind']}, {format_bandwidth(link['bandwidth_bytes_per_s'])}, "
        f"{format_duration(link['latency_s'])} (each direction)"
        for link in found["links"]
    ]
    lines.append(f"  longest path between ranks: {found['longest_path_links']} links")
    if found["bisection_bandwidth_bytes_per_s"] is not None:
        shown = format_bandwidth(found["bisection_bandwidth_bytes_per_s"])
        lines.append(f"  from the first half of the ranks to the second: {shown}")
    if found["oversubscription"] is not None:
        lines.append(f"  oversubscription at the switches of the hosts: {found['oversubscription']:.3g} to 1")
    return lines


def bisection_bandwidth(topology: Topology) -> float:
    """Return what all ranks of the first half can send to the second half together [bytes/s].

    The maximum flow between the halves, in order of rank; with an odd number the first half is the smaller one. Other
    halves may be harder to join, as in a torus whose first dimension is not the longest.

    Parameters
    ----------
    topology : Topology

    Returns
    -------
    float
        [bytes/s]; infinite where there is one rank.
    """
    import networkx as nx

    arrays = topology.compiled
    graph: nx.DiGraph[int] = nx.DiGraph()
    for source, target, bandwidth in zip(
        arrays.link_source.tolist(), arrays.link_target.tolist(), arrays.link_bandwidth.tolist(), strict=True
    ):
        before = graph[source][target]["capacity"] if graph.has_edge(source, target) else 0.0
        graph.add_edge(source, target, capacity=before + bandwidth)
    half = len(arrays.ranks) // 2
    ranks = arrays.rank_nodes.tolist()
    # No capacity means unlimited.
    graph.add_edges_from((-1, node) for node in ranks[:half])
    graph.add_edges_from((node, -2) for node in ranks[half:])
    return float(nx.maximum_flow_value(graph, -1, -2)) if half else math.inf


def oversubscription(topology: Topology) -> float | None:
    """Return the largest ratio, over switches that have hosts, of bandwidth from hosts to bandwidth to other switches.

    None where no such switch has a link to another one.

    Parameters
    ----------
    topology : Topology

    Returns
    -------
    float or None
        Without unit; at most 1 where hosts can send at full speed.
    """
    arrays = topology.compiled
    kinds = np.array(arrays.node_kind, dtype=object)
    switches = (kinds == "switch") & (arrays.host_of_node < 0)
    count = len(kinds)
    source, target, bandwidth = arrays.link_source, arrays.link_target, arrays.link_bandwidth
    down, up = ~switches[source] & switches[target], switches[source] & switches[target]
    from_hosts = np.bincount(target[down], weights=bandwidth[down], minlength=count)
    to_switches = np.bincount(source[up], weights=bandwidth[up], minlength=count)
    both = (from_hosts > 0) & (to_switches > 0)
    return float((from_hosts[both] / to_switches[both]).max()) if both.any() else None


def _longest_path(topology: Topology) -> int:
    """Return the most links on the way between some ranks, evenly chosen."""
    ranks = topology.compiled.rank_nodes
    sources, targets = (np.arange(0, len(ranks), math.ceil(len(ranks) / most)) for most in _RANKS_FOR_DISTANCE)
    # In a ring the farthest one is opposite.
    targets = np.union1d(targets, (sources + len(ranks) // 2) % len(ranks))
    pairs = ranks[np.repeat(sources, len(targets))], ranks[np.tile(targets, len(sources))]
    starts, _ = Router(topology).paths(*pairs)
    return int(np.diff(starts).max())
