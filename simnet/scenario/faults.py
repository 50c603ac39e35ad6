"""From the faults of a scenario to settings: which links and hosts they happen to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from simnet.errors import InputError, Problem, attempt, under
from simnet.fabric.faults import HostSlow, LinkFault, NetworkFault
from simnet.fabric.network import INSIDE_KINDS
from simnet.scenario.fault_models import FaultSpec
from simnet.scenario.fields import hint_at
from simnet.topology import CompiledTopology, Topology
from simnet.units import format_duration

__all__ = ["SHORTEST_FLAP_S", "build_faults"]

SHORTEST_FLAP_S = 1e-3
"""Shortest time from a link going down to its going down again [s]; training of a link alone takes milliseconds."""


def build_faults(specs: Sequence[FaultSpec], topology: Topology) -> dict[int, NetworkFault]:
    """Return the faults of the network that a scenario names, each with its place in the list.

    Raises
    ------
    InputError
        Names of nodes and links that the topology does not have; paths are below the list.
    """
    problems: list[Problem] = []
    found = {
        number: attempt(problems, partial(_build, number, spec, topology.compiled))
        for number, spec in enumerate(specs)
        if spec.name in _KINDS
    }
    if problems:
        raise InputError(problems)
    return {number: fault for number, fault in found.items() if fault is not None}


def _build(number: int, spec: FaultSpec, compiled: CompiledTopology) -> NetworkFault:
    with under(number, spec.name):
        return _KINDS[spec.name](spec.name, spec.options, compiled)


def _times(options: Any) -> dict[str, float]:
    lasts_s = getattr(options, "for")
    return {"begin_s": options.at, "end_s": math.inf if lasts_s is None else options.at + lasts_s}


def _link_down(kind: str, options: Any, compiled: CompiledTopology) -> LinkFault:
    what, links = _cable(options, compiled)
    return LinkFault(kind, what, links, **_times(options), capacity_factor=0.0, reroute_after_s=options.reroute_after)


def _link_degraded(kind: str, options: Any, compiled: CompiledTopology) -> LinkFault:
    what, links = _cable(options, compiled)
    return LinkFault(kind, what, links, **_times(options), capacity_factor=options.bandwidth_factor)


def _packet_loss(kind: str, options: Any, compiled: CompiledTopology) -> LinkFault:
    what, links = _cable(options, compiled)
    if any(compiled.link_kind[link] in INSIDE_KINDS for link in links):
        message = f"between {' and '.join(options.between)} there are no packets"
        raise InputError(Problem(message, "links inside of hosts have none", ("between",)))
    return LinkFault(kind, what, links, **_times(options), loss=options.loss_rate)


def _switch_down(kind: str, options: Any, compiled: CompiledTopology) -> LinkFault:
    node = _node(options.switch, compiled, ("switch",), ("switch",))
    ends = (compiled.link_source == node) | (compiled.link_target == node)
    links = tuple(np.flatnonzero(ends).tolist())
    return LinkFault(
        kind, options.switch, links, **_times(options), capacity_factor=0.0, reroute_after_s=options.reroute_after
    )


def _nic_flapping(kind: str, options: Any, compiled: CompiledTopology) -> LinkFault:
    if options.up + options.down < SHORTEST_FLAP_S:
        message = f"up and down together are {format_duration(options.up + options.down)}"
        hint = f"at least {format_duration(SHORTEST_FLAP_S)} are wanted: no NIC finds its link again in less"
        raise InputError(Problem(message, hint, ("up",)))
    node = _node(options.host, compiled, ("host",), ("host", "nic"))
    owner = compiled.host_of_node if compiled.node_kind[node] == "host" else np.arange(len(compiled.node_names))
    leaves, enters = owner[compiled.link_source] == node, owner[compiled.link_target] == node
    outside = np.array([kind not in INSIDE_KINDS for kind in compiled.link_kind], dtype=np.bool_)
    links = tuple(np.flatnonzero((leaves ^ enters) & outside).tolist())
    if not links:
        raise InputError(Problem(f"{options.host!r} has no links to a network", path=("host",)))
    return LinkFault(
        kind,
        options.host,
        links,
        **_times(options),
        capacity_factor=0.0,
        down_s=options.down,
        up_s=options.up,
        reroute_after_s=options.reroute_after,
    )


def _host_slow(kind: str, options: Any, compiled: CompiledTopology) -> HostSlow:
    node = _node(options.host, compiled, ("host",), ("host",))
    return HostSlow(kind, options.host, node, options.factor, **_times(options))


_KINDS: dict[str, Callable[[str, Any, CompiledTopology], NetworkFault]] = {
    "link_down": _link_down,
    "link_degraded": _link_degraded,
    "switch_down": _switch_down,
    "nic_flapping": _nic_flapping,
    "packet_loss": _packet_loss,
    "host_slow": _host_slow,
}


def _node(name: str, compiled: CompiledTopology, path: tuple[str | int, ...], kinds: Sequence[str] = ()) -> int:
    """Return the index of a node of one of some kinds; none: of any."""
    known = [name for name, kind in zip(compiled.node_names, compiled.node_kind, strict=True) if kind in kinds]
    if name not in compiled.node_index:
        raise InputError(Problem(f"there is no node {name!r}", hint_at(name, known or compiled.node_names), path))
    node = compiled.node_index[name]
    kind = compiled.node_kind[node]
    if kinds and kind not in kinds:
        message = f"{name!r} is a node of kind {kind}, not {' or '.join(kinds)}"
        raise InputError(Problem(message, hint_at(name, known), path))
    return node


def _cable(options: Any, compiled: CompiledTopology) -> tuple[str, tuple[int, ...]]:
    """Return the name and the links, both directions, of the cables between two nodes."""
    problems: list[Problem] = []
    ends = [
        attempt(problems, partial(_node, name, compiled, ("between", place)))
        for place, name in enumerate(options.between)
    ]
    if problems:
        raise InputError(problems)
    name = " - ".join(options.between)
    source, target = compiled.link_source, compiled.link_target
    ways = [np.flatnonzero((source == one) & (target == other)).tolist() for one, other in (ends, ends[::-1])]
    if not any(ways):
        near = sorted({compiled.node_names[node] for node in target[source == ends[0]].tolist()})
        hint = hint_at(options.between[1], near).replace("known: ", f"{options.between[0]} is connected with ")
        raise InputError(Problem(f"there is no link between {name.replace(' - ', ' and ')}", hint, ("between",)))
    if options.parallel is None:
        return name, tuple(sorted(ways[0] + ways[1]))
    most = max(map(len, ways))
    if options.parallel >= most:
        hint = f"they are counted from 0; a number of at most {most - 1} is wanted"
        raise InputError(Problem(f"between {name} there is no cable {options.parallel}", hint, ("parallel",)))
    links = [way[options.parallel] for way in ways if options.parallel < len(way)]
    return f"{name}, cable {options.parallel}", tuple(sorted(links))
