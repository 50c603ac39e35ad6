"""Generators of clusters without switches: hosts that are cabled to each other, and a node on its own.

Messages between hosts that are not neighbours pass through the hosts between them. A host with GPUs spreads its cables
over its NICs in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod

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
from simnet.units import parse_bandwidth, parse_duration

__all__ = ["full_mesh", "nvlink_node", "ring", "torus"]


def ring(
    *,
    hosts: int,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "ring",
) -> Topology:
    """Return hosts in a ring, each cabled to the next; two hosts have one cable.

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
        N hosts, and N cables from N = 3 on.

    Raises
    ------
    InputError
        Every argument that is out of range.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    checks = Checks()
    checks.whole(1, hosts=hosts)
    checks.cable(cable)
    checks.host(host)
    checks.done()
    names = [f"host{number}" for number in range(hosts)]
    return _cabled(name, names, _grid_neighbours((hosts,)), cable, host)


def torus(
    *,
    dims: Sequence[int],
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "torus",
) -> Topology:
    """Return hosts on a grid that wraps around: host ``host1_2_0`` is at 1, 2, 0; the last coordinate runs first.

    Parameters
    ----------
    dims : sequence of int
        Length in each of one to three dimensions or more, for example ``[4, 4, 4]``. In a dimension of length L >= 3
        each host has two neighbours, of length 2 one, of length 1 none.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes, host, name
        As of `ring`.

    Returns
    -------
    Topology
        As many hosts as the product of the lengths.

    Raises
    ------
    InputError
        Every argument that is out of range, and no dimension at all.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    checks = Checks()
    if not dims:
        checks.wrong("dims", "dims is empty", "one length per dimension is wanted, like [4, 4]")
    for position, length in enumerate(dims):
        checks.whole(1, **{f"dims.{position}": length})
    checks.cable(cable)
    checks.host(host)
    checks.done()
    names = ["host" + "_".join(map(str, place)) for place in product(*map(range, dims))]
    return _cabled(name, names, _grid_neighbours(tuple(dims)), cable, host)


def full_mesh(
    *,
    hosts: int,
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    latency_s: float = DEFAULT_LATENCY_S,
    kind: str = "ethernet",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    host: HostSpec = PLAIN_HOST,
    name: str = "full_mesh",
) -> Topology:
    """Return hosts with a cable between every two of them: N (N - 1) / 2 cables.

    Parameters
    ----------
    hosts : int
        At least 1.
    bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes, host, name
        As of `ring`.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        Every argument that is out of range.
    """
    cable = Cable(bandwidth_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    checks = Checks()
    checks.whole(1, hosts=hosts)
    checks.cable(cable)
    checks.host(host)
    checks.done()
    names = [f"host{number}" for number in range(hosts)]
    return _cabled(name, names, combinations(range(hosts), 2), cable, host)


def nvlink_node(
    *,
    gpus: int = 8,
    bandwidth_bytes_per_s: float = parse_bandwidth("120 GB/s"),
    latency_s: float = parse_duration("500 ns"),
    pcie_bandwidth_bytes_per_s: float = PLAIN_HOST.pcie_bandwidth_bytes_per_s,
    pcie_latency_s: float = PLAIN_HOST.pcie_latency_s,
    memory_bandwidth_bytes_per_s: float | None = None,
    gpu_model: str = "",
    name: str = "nvlink_node",
) -> Topology:
    """Return one host whose GPUs are joined by an NVSwitch, and by PCIe to the host.

    Parameters
    ----------
    gpus : int
        At least 1.
    bandwidth_bytes_per_s, latency_s : float
        Of the link between a GPU and the NVSwitch, in each direction [bytes/s], [s]; the defaults are those of
        `HostSpec`.
    pcie_bandwidth_bytes_per_s, pcie_latency_s, memory_bandwidth_bytes_per_s, gpu_model
        As of `HostSpec`.
    name : str

    Returns
    -------
    Topology
        Its ranks are the GPUs.

    Raises
    ------
    InputError
        Every argument that is out of range.
    """
    host = HostSpec(
        gpus=gpus,
        nics=0,
        intra="nvlink",
        pcie_bandwidth_bytes_per_s=pcie_bandwidth_bytes_per_s,
        pcie_latency_s=pcie_latency_s,
        nvlink_bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        nvlink_latency_s=latency_s,
        memory_bandwidth_bytes_per_s=memory_bandwidth_bytes_per_s,
        gpu_model=gpu_model,
    )
    checks = Checks()
    checks.whole(1, gpus=gpus)
    checks.cable(Cable(bandwidth_bytes_per_s, latency_s, "nvlink"))
    checks.cable(Cable(pcie_bandwidth_bytes_per_s, pcie_latency_s, "pcie"), prefix="pcie_")
    checks.done()
    build = TopologyBuilder(name)
    build.host("host0", host)
    return build.topology()


def _cabled(name: str, names: list[str], pairs: Iterator[tuple[int, int]], cable: Cable, host: HostSpec) -> Topology:
    """Build the hosts, and join each pair of them by the next NIC in turn of either."""
    build = TopologyBuilder(name)
    nics = [build.host(of_host, host) for of_host in names]
    used = [0] * len(names)
    for one, other in pairs:
        ends = [nics[number][used[number] % host.nics] for number in (one, other)]
        build.cable(ends[0], ends[1], cable)
        used[one] += 1
        used[other] += 1
    return build.topology()


def _grid_neighbours(dims: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield each pair of neighbours once, as positions in row-major order."""
    strides = [prod(dims[axis + 1 :]) for axis in range(len(dims))]
    for number, place in enumerate(product(*map(range, dims))):
        for at, length, stride in zip(place, dims, strides, strict=True):
            if at + 1 < length:
                yield number, number + stride
            elif length > 2:
                yield number, number - at * stride
