"""Generators of clusters whose hosts are joined by switches.

All are pure functions of keyword arguments in SI units. The cables of hosts have `bandwidth_bytes_per_s`, `latency_s`,
`kind`, `loss_probability` and `buffer_bytes`; what is between switches takes after them unless it has arguments of its
own. Every NIC of a host has one cable.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from simnet.topology.building import (
    DEFAULT_BANDWIDTH_BYTES_PER_S,
    DEFAULT_LATENCY_S,
    PLAIN_HOST,
    Cable,
    Checks,
    HostSpec,
    TopologyBuilder,
)
from simnet.topology.model import Topology

__all__ = ["dragonfly", "fat_tree", "leaf_spine", "rail_optimised", "star"]

RAIL_HOST = HostSpec(gpus=8, nics=8, intra="nvlink")
"""A host with a NIC for each of its GPUs, which an NVSwitch joins."""


def star(
    *,
    hosts: int,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "star",
) -> Topology:
    """Return hosts around one switch.

    Parameters
    ----------
    hosts : int
        At least 1.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes
        Of each cable [bytes/s], [s], one of `LINK_KINDS`, of a packet, [bytes]; see `Cable`.
    host : HostSpec
        What is inside of each host.
    name : str

    Returns
    -------
    Topology
        The hosts, and a cable from each of their NICs to the switch.

    Raises
    ------
    InputError
        Every argument that is out of range.

    Examples
    --------
    >>> star(hosts=4).graph.number_of_edges()
    8
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    checks = Checks()
    checks.whole(1, hosts=hosts)
    checks.cable(cable)
    checks.host(host)
    checks.done()
    build = TopologyBuilder(name)
    nics = [build.host(f"host{number}", host) for number in range(hosts)]
    switch = build.node("switch", "switch")
    for nic in (nic for of_host in nics for nic in of_host):
        build.cable(nic, switch, cable)
    return build.topology()


def leaf_spine(
    *,
    leaves: int,
    hosts_per_leaf: int,
    spines: int,
    uplinks: int = 1,
    oversubscription: float | None = None,
    uplink_bandwidth_bytes_per_s: float | None = None,
    uplink_latency_s: float | None = None,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "leaf_spine",
) -> Topology:
    """Return racks of hosts, each with a leaf switch that is joined to every spine switch.

    Parameters
    ----------
    leaves, hosts_per_leaf, spines : int
        At least 1.
    uplinks : int
        Cables between each leaf and each spine.
    oversubscription : float, optional
        What the NICs of a rack can send by what its uplinks carry; it gives the bandwidth of an uplink.
    uplink_bandwidth_bytes_per_s : float, optional
        The same directly [bytes/s]; by default as of the host cables.
    uplink_latency_s : float, optional
        [s]; by default as of the host cables.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes, host, name
        As of `star`.

    Returns
    -------
    Topology
        ``leaves hosts_per_leaf`` hosts; ``leaves spines uplinks`` cables between switches.

    Raises
    ------
    InputError
        Every argument that is out of range, or two that say the same.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    checks = Checks()
    checks.whole(1, leaves=leaves, hosts_per_leaf=hosts_per_leaf, spines=spines, uplinks=uplinks)
    checks.cable(cable)
    checks.host(host)
    _check_oversubscription(checks, oversubscription, uplink_bandwidth_bytes_per_s)
    checks.done()
    downlinks = hosts_per_leaf * host.nics
    uplink = _uplink(
        cable, uplink_bandwidth_bytes_per_s, uplink_latency_s, oversubscription, downlinks / (spines * uplinks)
    )
    checks.cable(uplink, prefix="uplink_")
    checks.done()
    build = TopologyBuilder(name)
    nics = [
        [build.host(f"host{leaf * hosts_per_leaf + number}", host) for number in range(hosts_per_leaf)]
        for leaf in range(leaves)
    ]
    leaf_switches = [build.node(f"leaf{leaf}", "switch") for leaf in range(leaves)]
    spine_switches = [build.node(f"spine{spine}", "switch") for spine in range(spines)]
    for leaf_switch, rack in zip(leaf_switches, nics, strict=True):
        for nic in (nic for of_host in rack for nic in of_host):
            build.cable(nic, leaf_switch, cable)
    _join(build, leaf_switches, spine_switches, uplinks, uplink)
    return build.topology()


def fat_tree(
    *,
    k: int,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "fat_tree",
) -> Topology:
    """Return the three-level fat tree of switches with k ports: k^3/4 hosts, 5 k^2/4 switches.

    Each of k pods has k/2 edge and k/2 aggregation switches; aggregation switch i of every pod is joined to the k/2
    core switches of group i. Any half of the hosts can send to the other at full speed (Al-Fares et al., SIGCOMM
    2008).

    Parameters
    ----------
    k : int
        Ports of a switch: even, at least 2.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes, host, name
        As of `star`, for all cables. Hosts of several NICs have all of them on one edge switch, which then has more
        than k ports.

    Returns
    -------
    Topology
        Switches: k^2/2 at the edge, as many for aggregation, k^2/4 at the core.

    Raises
    ------
    InputError
        Every argument that is out of range.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    checks = Checks()
    checks.whole(2, k=k)
    if k % 2:
        checks.wrong("k", f"k is {k}", "an even number of ports is wanted")
    checks.cable(cable)
    checks.host(host)
    checks.done()
    half = k // 2
    build = TopologyBuilder(name)
    nics = [build.host(f"host{number}", host) for number in range(k * half * half)]
    edges = [[build.node(f"edge{pod}_{i}", "switch") for i in range(half)] for pod in range(k)]
    aggregations = [[build.node(f"aggregation{pod}_{i}", "switch") for i in range(half)] for pod in range(k)]
    cores = [[build.node(f"core{i}_{j}", "switch") for j in range(half)] for i in range(half)]
    all_edges = [edge for pod in edges for edge in pod]
    for number, of_host in enumerate(nics):
        for nic in of_host:
            build.cable(nic, all_edges[number // half], cable)
    for pod_edges, pod_aggregations in zip(edges, aggregations, strict=True):
        _join(build, pod_edges, pod_aggregations, 1, cable)
        for aggregation, group in zip(pod_aggregations, cores, strict=True):
            _join(build, [aggregation], group, 1, cable)
    return build.topology()


def rail_optimised(
    *,
    hosts: int,
    hosts_per_unit: int | None = None,
    spines: int = 2,
    oversubscription: float | None = None,
    uplink_bandwidth_bytes_per_s: float | None = None,
    uplink_latency_s: float | None = None,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = RAIL_HOST,
    name: str = "rail_optimised",
) -> Topology:
    """Return hosts whose NIC number r is joined to rail switch number r of their unit.

    GPUs of the same number are one switch apart. Rail switches of all units are joined to the spines, as leaves are in
    `leaf_spine` (NVIDIA DGX SuperPOD reference architecture).

    Parameters
    ----------
    hosts : int
        In all.
    hosts_per_unit : int, optional
        Hosts that share rail switches; by default all. It divides `hosts`.
    spines : int
        0 for rails alone, which only one unit can do.
    oversubscription, uplink_bandwidth_bytes_per_s, uplink_latency_s
        As of `leaf_spine`, of the one cable between each rail switch and each spine; by default nothing is
        oversubscribed.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes, host, name
        As of `star`. The number of rails is ``host.nics``.

    Returns
    -------
    Topology
        ``host.nics`` rail switches a unit, each with a cable to every spine.

    Raises
    ------
    InputError
        Every argument that is out of range, two that say the same, hosts that do not fill their units, or units or
        rails that nothing joins.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    unit = hosts if hosts_per_unit is None else hosts_per_unit
    checks = Checks()
    checks.whole(1, hosts=hosts, hosts_per_unit=unit)
    checks.whole(0, spines=spines)
    checks.cable(cable)
    checks.host(host)
    _check_oversubscription(checks, oversubscription, uplink_bandwidth_bytes_per_s)
    checks.done()
    if hosts % unit:
        checks.wrong("hosts_per_unit", f"{hosts} hosts do not fill units of {unit}", "it must divide the hosts")
    if not spines and hosts > unit:
        checks.wrong("spines", "without spines the units are not joined", "at least 1 is wanted")
    if not spines and host.nics > 1 and not host.gpus:
        checks.wrong("spines", "without spines the rails are not joined", "at least 1 is wanted, or GPUs in the hosts")
    checks.done()
    if oversubscription is None and uplink_bandwidth_bytes_per_s is None:
        oversubscription = 1.0
    uplink = _uplink(
        cable, uplink_bandwidth_bytes_per_s, uplink_latency_s, oversubscription, unit / spines if spines else 1.0
    )
    checks.cable(uplink, prefix="uplink_")
    checks.done()
    build = TopologyBuilder(name)
    nics = [build.host(f"host{number}", host) for number in range(hosts)]
    rails = [
        [build.node(f"rail{number}_{rail}", "switch") for rail in range(host.nics)] for number in range(hosts // unit)
    ]
    spine_switches = [build.node(f"spine{spine}", "switch") for spine in range(spines)]
    for number, of_host in enumerate(nics):
        for nic, rail in zip(of_host, rails[number // unit], strict=True):
            build.cable(nic, rail, cable)
    for of_unit in rails:
        _join(build, of_unit, spine_switches, 1, uplink)
    return build.topology()


def dragonfly(
    *,
    routers_per_group: int,
    hosts_per_router: int,
    global_links_per_router: int,
    groups: int | None = None,
    local_bandwidth_bytes_per_s: float | None = None,
    local_latency_s: float | None = None,
    global_bandwidth_bytes_per_s: float | None = None,
    global_latency_s: float | None = None,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "dragonfly",
) -> Topology:
    """Return groups of fully meshed routers, and cables between all pairs of groups.

    With a routers per group, p hosts and h global links per router there are at most a h + 1 groups; then each pair
    has exactly one cable. Balanced: a = 2 p = 2 h (Kim et al., ISCA 2008).

    Parameters
    ----------
    routers_per_group, hosts_per_router, global_links_per_router : int
        a, p and h; at least 1.
    groups : int, optional
        By default a h + 1. With fewer each pair has as many cables as all pairs can have, and ports may be left over.
    local_bandwidth_bytes_per_s, local_latency_s : float, optional
        Between routers of a group [bytes/s], [s]; by default as of the host cables.
    global_bandwidth_bytes_per_s, global_latency_s : float, optional
        Between groups [bytes/s], [s]; by default as of the host cables.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes, host, name
        As of `star`.

    Returns
    -------
    Topology
        g groups of a routers, ``g a p`` hosts.

    Raises
    ------
    InputError
        Every argument that is out of range, and more groups than can all be joined.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    local = _uplink(cable, local_bandwidth_bytes_per_s, local_latency_s)
    far = _uplink(cable, global_bandwidth_bytes_per_s, global_latency_s)
    checks = Checks()
    checks.whole(
        1,
        routers_per_group=routers_per_group,
        hosts_per_router=hosts_per_router,
        global_links_per_router=global_links_per_router,
    )
    checks.cable(cable)
    checks.cable(local, prefix="local_")
    checks.cable(far, prefix="global_")
    checks.host(host)
    checks.done()
    ports = routers_per_group * global_links_per_router
    groups = ports + 1 if groups is None else groups
    checks.whole(1, groups=groups)
    checks.done()
    if groups > ports + 1:
        checks.wrong(
            "groups", f"{groups} groups cannot all be joined by {ports} global links each", f"at most {ports + 1}"
        )
    checks.done()
    build = TopologyBuilder(name)
    count = groups * routers_per_group
    nics = [build.host(f"host{number}", host) for number in range(count * hosts_per_router)]
    routers = [
        [build.node(f"router{group}_{number}", "switch") for number in range(routers_per_group)]
        for group in range(groups)
    ]
    all_routers = [router for group in routers for router in group]
    for number, of_host in enumerate(nics):
        for nic in of_host:
            build.cable(nic, all_routers[number // hosts_per_router], cable)
    for group_routers in routers:
        for one, other in combinations(group_routers, 2):
            build.cable(one, other, local)
    # Port q of a group leads to the group 1 + q mod (groups - 1) further on, so both ends of a cable follow from
    # the distance between the groups.
    for near, distant in combinations(range(groups), 2):
        ahead, back = distant - near, groups - (distant - near)
        for copy in range(ports // (groups - 1)):
            port, other_port = (copy * (groups - 1) + distance - 1 for distance in (ahead, back))
            build.cable(
                routers[near][port // global_links_per_router],
                routers[distant][other_port // global_links_per_router],
                far,
            )
    return build.topology()


def _join(build: TopologyBuilder, lower: list[str], upper: list[str], times: int, cable: Cable) -> None:
    """Join every switch of one tier to every switch of another."""
    for one in lower:
        for other in upper:
            for _ in range(times):
                build.cable(one, other, cable)


def _check_oversubscription(checks: Checks, oversubscription: float | None, bandwidth: float | None) -> None:
    if oversubscription is not None and bandwidth is not None:
        checks.wrong("oversubscription", "oversubscription and uplink_bandwidth are both given", "leave one out")
    if oversubscription is not None and not 0 < oversubscription < float("inf"):
        checks.wrong("oversubscription", f"oversubscription is {oversubscription!r}", "a number above 0 is wanted")


def _uplink(
    cable: Cable,
    bandwidth_bytes_per_s: float | None,
    latency_s: float | None,
    oversubscription: float | None = None,
    downlinks_per_uplink: float = 1.0,
) -> Cable:
    """Return a cable between switches, which takes after that of a host where nothing else is said."""
    if bandwidth_bytes_per_s is None:
        bandwidth_bytes_per_s = cable.bandwidth_bytes_per_s
        if oversubscription is not None:
            bandwidth_bytes_per_s *= downlinks_per_uplink / oversubscription
    latency_s = cable.latency_s if latency_s is None else latency_s
    return replace(cable, bandwidth_bytes_per_s=bandwidth_bytes_per_s, latency_s=latency_s)
