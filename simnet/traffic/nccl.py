"""What NCCL chooses for an all-reduce: ring or tree, and in which of its protocols.

NCCL estimates the time of each algorithm and protocol as latency + bytes / bandwidth, and takes the shortest. Numbers
and formulas are those of its source, version 2.30.7: ``src/graph/tuning.cc`` (latencies, bandwidths, the correction for
trees) and ``src/graph/topo.h``.

*LL* sends 4 bytes of data with 4 bytes of flag, *LL128* 120 of 128 bytes, *Simple* everything, with a fence for each
chunk: the first has least latency, the last most bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from simnet.units import MICROSECOND

__all__ = ["NcclCluster", "NcclEstimate", "nccl_choice", "nccl_estimates", "nccl_latency_s"]

ALGORITHMS = ("ring", "tree")
NCCL_PROTOCOLS = ("LL", "LL128", "Simple")

_BASE_US: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {"ring": (6.6, 14.0, 8.4), "tree": (6.8, 14.0, 8.4)}
)
_HOP_US: Mapping[tuple[str, str], tuple[float, float, float]] = MappingProxyType(
    {
        ("ring", "nvlink"): (0.6, 1.9, 3.4),
        ("tree", "nvlink"): (0.6, 1.25, 4.0),
        ("ring", "pcie"): (1.0, 2.5, 5.7),
        ("tree", "pcie"): (1.0, 1.9, 4.0),
        ("ring", "network"): (2.7, 4.0, 14.0),
        ("tree", "network"): (5.0, 8.5, 14.0),
    }
)
_POST_OVERHEAD_US = (1.0, 1.0, 3.0)
"""Of a message to the network, with an Intel processor; three of them with Simple."""

_TREE_CORRECTION: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "LL": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
        "LL128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
        "Simple": (
            *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
            *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
        ),
    }
)
"""By the power of two of the size, from 64 bytes to 256 MB."""

_SMALLEST_CORRECTED_BYTES = 64
_PLATEAU_BYTES = 64.0
"""Bytes of each rank and channel from which a ring between hosts takes its Simple latency 1.4 times."""


@dataclass(frozen=True)
class NcclCluster:
    """What NCCL knows of the ranks when it chooses.

    Parameters
    ----------
    ranks, hosts : int
        With as many ranks on each host.
    inside : str
        ``nvlink`` or ``pcie``: how the GPUs of a host reach each other.
    inside_bytes_per_s, across_bytes_per_s : float
        What a ring can carry inside of a host, and between hosts [bytes/s].
    channels : int
        Rings side by side.
    """

    ranks: int
    hosts: int
    inside: str
    inside_bytes_per_s: float
    across_bytes_per_s: float
    channels: int = 1

    @property
    def bus_bytes_per_s(self) -> float:
        """What a ring through all ranks can carry [bytes/s]."""
        return self.inside_bytes_per_s if self.hosts == 1 else min(self.inside_bytes_per_s, self.across_bytes_per_s)


class NcclEstimate(NamedTuple):
    """What NCCL expects of an algorithm and protocol."""

    algorithm: str
    protocol: str
    time_s: float


def nccl_latency_s(cluster: NcclCluster, algorithm: str, protocol: str) -> float:
    """Return the latency of an all-reduce as NCCL estimates it [s].

    Ring: base + (steps - s) max(hop inside, overhead of a message) + s hop across, with 2(n - 1) steps for n ranks, s =
    2(N - 1) of them between N hosts. Tree: base + 2((n/N - 1) hop inside + floor(log2 N) hop across).

    Parameters
    ----------
    cluster : NcclCluster
    algorithm, protocol : str
        Out of `ALGORITHMS` and `NCCL_PROTOCOLS`.
    """
    which = NCCL_PROTOCOLS.index(protocol)
    each, hosts = cluster.ranks // cluster.hosts, cluster.hosts
    inside = _HOP_US[algorithm, cluster.inside][which]
    across = _HOP_US["tree" if each == 1 else algorithm, "network"][which]
    if algorithm == "tree":
        latency_us = 2 * ((each - 1) * inside + math.floor(math.log2(hosts)) * across)
    else:
        between = 2 * (hosts - 1)
        step = max(inside, _POST_OVERHEAD_US[which]) if hosts > 1 else inside
        latency_us = (2 * (cluster.ranks - 1) - between) * step + between * across
    return (_BASE_US[algorithm][which] + latency_us) * MICROSECOND


def nccl_estimates(cluster: NcclCluster, size_bytes: float) -> Iterator[NcclEstimate]:
    """Yield what NCCL expects of each algorithm and protocol for a buffer.

    Parameters
    ----------
    cluster : NcclCluster
    size_bytes : float
        Of the buffer of each rank [bytes].
    """
    for algorithm in ALGORITHMS:
        for protocol in NCCL_PROTOCOLS:
            latency_s = nccl_latency_s(cluster, algorithm, protocol)
            bytes_per_s = _bandwidth(cluster, algorithm, protocol, size_bytes)
            on_plateau = size_bytes / (cluster.channels * cluster.ranks) >= _PLATEAU_BYTES
            if algorithm == "ring" and protocol == "Simple" and cluster.hosts > 1 and on_plateau:
                latency_s *= 1.4
            yield NcclEstimate(algorithm, protocol, latency_s + size_bytes / bytes_per_s)


def nccl_choice(cluster: NcclCluster, size_bytes: float) -> NcclEstimate:
    """Return what NCCL takes for a buffer: the shortest; of equal ones, the first.

    Examples
    --------
    >>> eight_hosts = NcclCluster(64, 8, "nvlink", 120e9, 12e9)
    >>> [nccl_choice(eight_hosts, size)[:2] for size in (1e3, 1e9)]
    [('tree', 'LL'), ('ring', 'Simple')]
    """
    return min(nccl_estimates(cluster, size_bytes), key=lambda estimate: estimate.time_s)


def _bandwidth(cluster: NcclCluster, algorithm: str, protocol: str, size_bytes: float) -> float:
    """Return bytes of the buffer that are all-reduced in a second, without latency."""
    bus = cluster.bus_bytes_per_s
    if algorithm == "ring":
        share = {"LL": 0.5, "LL128": 0.92, "Simple": 1.0}[protocol]
        return share * bus * cluster.ranks / max(2 * (cluster.ranks - 1), 1)
    share = {"LL": 1 / 3.8, "LL128": 7 / 9 if cluster.hosts == 1 else 120 / 128, "Simple": 0.92}[protocol]
    return 0.5 * share * bus * _correction(protocol, size_bytes)


def _correction(protocol: str, size_bytes: float) -> float:
    factors = _TREE_CORRECTION[protocol]
    power = math.floor(math.log2(max(size_bytes, 1.0) / _SMALLEST_CORRECTED_BYTES))
    return factors[min(max(power, 0), len(factors) - 1)]
