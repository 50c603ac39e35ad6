"""Classes of resources, in words: host links, links between switches of two levels, NVLink, stacks, memory."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from simnet.fabric.network import INSIDE_KINDS, Network
from simnet.topology import CompiledTopology, Topology

__all__ = ["MEMORY", "classes_of_links", "classes_of_resources", "faster"]

MEMORY = "memory of hosts"

_INSIDE = {"pcie": "PCIe", "nvlink": "NVLink", "upi": "link between sockets (UPI)"}
_MOST_LEVELS = 8
"""Where the names of switches give more pairs of levels than this, they tell no levels."""


def classes_of_links(compiled: CompiledTopology) -> list[str]:
    """Return the class of each link: by its kind inside a host, by its ends outside.

    The level of a switch is its name up to the first digit: ``leaf3`` is a leaf.
    """
    names = [_class_of(compiled, link) for link in range(len(compiled.link_name))]
    between = {name for name in names if " to " in name}
    return names if len(between) <= _MOST_LEVELS else ["between switches" if " to " in name else name for name in names]


def classes_of_resources(network: Network) -> list[str]:
    """Return the class of each resource of a network: links, then what hosts have."""
    links = classes_of_links(network.compiled)
    others = network.resource_names[len(links) :]
    return [*links, *(MEMORY if name.endswith(": memory") else name.rpartition(": ")[2] for name in others)]


def _class_of(compiled: CompiledTopology, link: int) -> str:
    kind = compiled.link_kind[link]
    if kind in INSIDE_KINDS:
        return _INSIDE[kind]
    ends = int(compiled.link_source[link]), int(compiled.link_target[link])
    if kind in ("wan", "wireless"):
        return "WAN link" if kind == "wan" else "wireless link"
    if any(compiled.node_kind[end] == "storage" for end in ends):
        return "link of storage"
    switches = sorted(end for end in ends if compiled.node_kind[end] == "switch")
    if len(switches) == 1:
        return "host link (NIC)"
    if not switches:
        return "link between hosts"
    lower, upper = (_level(compiled.node_names[switch]) for switch in switches)
    return f"{lower} to {upper}"


def _level(name: str) -> str:
    return re.split(r"[\d_]", name, maxsplit=1)[0].strip(" -.") or "switch"


def faster(
    topology: Topology, classes: Collection[str], factor: float, *, latency: float = 1.0, lossless: bool = False
) -> Topology:
    """Return a topology with other links.

    Parameters
    ----------
    topology : Topology
    classes : collection of str
        Of what is so many times as fast: of links, or `MEMORY`.
    factor : float
    latency : float
        So many times as long is the latency of every link.
    lossless : bool
        No link loses anything, and no queue is ever full.
    """
    names = classes_of_links(topology.compiled)
    links = []
    for name, (source, target, usual) in zip(names, topology.links, strict=True):
        link = {**usual, "latency_s": latency * usual["latency_s"]}
        if name in classes:
            link["bandwidth_bytes_per_s"] = factor * usual["bandwidth_bytes_per_s"]
        if lossless:
            link.pop("loss_probability", None)
            link.pop("buffer_bytes", None)
        links.append((source, target, link))
    nodes = list(topology.nodes)
    key = "memory_bandwidth_bytes_per_s"
    if MEMORY in classes:
        nodes = [(name, {**node, key: factor * node[key]} if key in node else node) for name, node in nodes]
    return replace(topology, nodes=nodes, links=links)
