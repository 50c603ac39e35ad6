"""Where the nodes of a topology stand on a picture.

Hosts stand in a line, those of a switch side by side, and switches above them by their distance from hosts. Where there
is one level of switches that are joined with each other, or only one switch, the line is a circle around them. A torus
is a grid, other hosts without switches are a circle.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simnet.topology import CompiledTopology, Topology

__all__ = ["Layout", "lay_out"]

_MOST_INSIDE = 200
_MOST_HOSTS = 320
_GAP = 0.7
_DEEPER = 0.4
_SLANT = 0.28

Place = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where what stands.

    Attributes
    ----------
    place : by node that is drawn
    drawn : per node, which one is drawn for it: itself, its host, or the first of a bundle of alike hosts
    bundle : hosts that one drawn host stands for, at most
    is_round : whether it is a circle
    grid : place in a torus, by node; empty where it is none
    """

    place: dict[int, Place]
    drawn: NDArray[np.int64]
    bundle: int = 1
    is_round: bool = False
    grid: dict[int, tuple[int, ...]] = field(default_factory=dict)


def lay_out(topology: Topology) -> Layout:
    """Return where the nodes of a topology stand, the same each time."""
    arrays = topology.compiled
    host = np.where(arrays.host_of_node >= 0, arrays.host_of_node, np.arange(len(arrays.node_kind)))
    alone = len(set(host.tolist())) == 1
    if alone:
        host = np.arange(len(host))  # one host: what is inside of it is all that there is
    outer = _neighbours(arrays, host)
    hosts = [node for node in sorted(outer) if not _is_switch(arrays, node)]
    levels = _levels(outer, hosts)
    if not any(levels.values()):
        return _without_switches(arrays, host, hosts)
    # Hosts of the same switches stand side by side.
    if not alone:
        hosts.sort(key=lambda node: (float(np.mean(sorted(outer[node]))) if outer[node] else -1.0, node))
    bundle = -(-len(hosts) // _MOST_HOSTS)
    drawn, kept = _bundled(hosts, outer, bundle, host)
    inside = _inside(arrays, host, kept, drawn)
    place, around = _line(kept, outer, inside), alone or _is_around(levels, outer)
    switches = _switches(kept, outer, levels, drawn, place)
    if around:
        place = {node: _polar(along, 1.0 - 0.45 * down) for node, (along, down) in place.items()}
        only = len(switches) == 1
        place |= {node: _polar(along, 0.0 if only else 0.55) for node, (along, _) in switches.items()}
    else:
        place |= switches
    drawn = np.where([node in place for node in range(len(drawn))], np.arange(len(drawn)), drawn)
    return Layout(place, drawn, bundle, around)


def _is_switch(arrays: CompiledTopology, node: int) -> bool:
    return arrays.node_kind[node] in ("switch", "nic")


def _neighbours(arrays: CompiledTopology, host: NDArray[np.int64]) -> dict[int, set[int]]:
    """Return the neighbours of each host, and of each node outside of hosts."""
    found: dict[int, set[int]] = {node: set() for node in dict.fromkeys(host.tolist())}
    for source, target in zip(host[arrays.link_source].tolist(), host[arrays.link_target].tolist(), strict=True):
        if source != target:
            found[source].add(target)
            found[target].add(source)
    return found


def _levels(outer: dict[int, set[int]], hosts: Sequence[int]) -> dict[int, int]:
    """Return the distance of each node from the nearest host, by links."""
    levels = dict.fromkeys(hosts, 0)
    left = list(hosts)
    for node in left:
        for other in sorted(outer[node]):
            if other not in levels:
                levels[other] = levels[node] + 1
                left.append(other)
    return levels | {node: 1 for node in outer if node not in levels}


def _is_around(levels: dict[int, int], outer: dict[int, set[int]]) -> bool:
    switches = [node for node, level in levels.items() if level > 0]
    if max(levels.values()) > 1:
        return False
    return len(switches) == 1 or any(levels[other] for node in switches for other in outer[node])


def _bundled(
    hosts: Sequence[int], outer: dict[int, set[int]], bundle: int, host: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[int]]:
    """Return what is drawn for each node, and the hosts that are: of several alike ones side by side the first."""
    stands: dict[int, int] = {}
    kept: list[int] = []
    count = 0
    for node in hosts:
        if kept and count < bundle and outer[node] == outer[kept[-1]]:
            count += 1
        else:
            kept.append(node)
            count = 1
        stands[node] = kept[-1]
    return np.array([stands.get(one, one) for one in host.tolist()], dtype=np.int64), kept


def _inside(
    arrays: CompiledTopology, host: NDArray[np.int64], kept: Sequence[int], drawn: NDArray[np.int64]
) -> dict[int, dict[int, int]]:
    """Return how deep each node inside of a host is, seen from outside, by host; nothing where there are too many."""
    members: dict[int, list[int]] = defaultdict(list)
    for node, one in enumerate(host.tolist()):
        if one != node or arrays.node_kind[node] == "host":
            members[one].append(node)
    bundled = len(set(drawn.tolist())) < len(set(host.tolist()))
    if bundled or sum(len(nodes) for nodes in members.values()) > _MOST_INSIDE:
        members = defaultdict(list)
    links: dict[int, set[int]] = defaultdict(set)
    doors: dict[int, set[int]] = defaultdict(set)
    for source, target in zip(arrays.link_source.tolist(), arrays.link_target.tolist(), strict=True):
        if host[source] == host[target]:
            links[source].add(target)
            links[target].add(source)
        else:
            doors[int(host[source])].add(source)
            doors[int(host[target])].add(target)
    found = {}
    for one in kept:
        left = sorted(doors[one] & set(members[one])) or [one]
        depth = dict.fromkeys(left, 0)
        for node in left:
            for other in sorted(links[node]):
                if other not in depth and other in members[one]:
                    depth[other] = depth[node] + 1
                    left.append(other)
        found[one] = depth
    return found


def _line(kept: Sequence[int], outer: dict[int, set[int]], inside: dict[int, dict[int, int]]) -> dict[int, Place]:
    """Return how far along a line of length 1 each host, and what is inside of it, stands, and how deep below it."""
    rows, begin, before = [], 0.0, None
    for one in kept:
        layers: dict[int, list[int]] = defaultdict(list)
        for node, depth in inside[one].items():
            layers[depth].append(node)
        width = float(max(len(nodes) for nodes in layers.values()))
        if before is not None and (outer[one] != before or width > 1):
            begin += _GAP
        rows += [
            (node, begin + width * (number + 0.5) / len(nodes), -_DEEPER * depth)
            for depth, nodes in layers.items()
            for number, node in enumerate(nodes)
        ]
        begin, before = begin + width, outer[one]
    return {node: (along / (begin + _GAP), down) for node, along, down in rows}


def _switches(
    kept: Sequence[int],
    outer: dict[int, set[int]],
    levels: dict[int, int],
    drawn: NDArray[np.int64],
    place: dict[int, Place],
) -> dict[int, Place]:
    """Return where switches stand: each above the middle of what is below it, or evenly where these coincide."""
    along = {one: place[one][0] if one in place else 0.5 for one in kept}
    found: dict[int, Place] = {}
    for level in range(1, max(levels.values()) + 1):
        nodes = [node for node in outer if levels[node] == level]
        middles = {
            node: _middle(along[int(drawn[one])] for one in outer[node] if levels[one] < level) for node in nodes
        }
        nodes.sort(key=lambda node: (round(middles[node], 9), node))
        steps = np.diff([middles[node] for node in nodes])
        if len(steps) and steps.min() < 0.5 / len(nodes):
            middles = {node: (number + 0.5) / len(nodes) for number, node in enumerate(nodes)}
        for node in nodes:
            along[node] = middles[node]
            found[node] = (middles[node], float(level))
    return found


def _middle(values: Iterable[float]) -> float:
    known = sorted(values)
    return float(np.mean(known)) if known else 0.5


def _without_switches(arrays: CompiledTopology, host: NDArray[np.int64], hosts: Sequence[int]) -> Layout:
    """Return a grid where hosts are named by their places in one, else a circle."""
    matches = [re.fullmatch(r"host(\d+(?:_\d+)+)", arrays.node_names[node]) for node in hosts]
    places = [tuple(map(int, match[1].split("_"))) for match in matches if match is not None]
    if len(places) == len(hosts) and len({len(place) for place in places}) == 1 and len(places[0]) <= 3:
        slanted = max(place[0] for place in places) if len(places[0]) == 3 else 0
        stands = {}
        for node, place in zip(hosts, places, strict=True):
            back = place[-3] if len(place) == 3 else 0
            stands[node] = (place[-1] + _SLANT * back, place[-2] * (1.0 + _SLANT * slanted) + _SLANT * 1.3 * back)
        return Layout(stands, host, grid=dict(zip(hosts, places, strict=True)))
    circle = {node: _polar(number / len(hosts), 1.0) for number, node in enumerate(hosts)}
    return Layout(circle, host, is_round=True)


def _polar(along: float, radius: float) -> Place:
    """Return a place on a circle, from the top clockwise."""
    angle = 2.0 * np.pi * along
    return float(radius * np.sin(angle)), float(radius * np.cos(angle))
