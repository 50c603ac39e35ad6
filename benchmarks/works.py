"""The work that simnet and SimGrid are both given, and the text file that carries it to both.

The file has one thing a line, in SI units; hosts, links and ranks count from 0. ``simgrid_workloads.cpp`` describes its
lines; the one more that simnet reads instead of links and routes is ``topology NAME OPTIONS``, OPTIONS being JSON.
Routes are those that simnet chooses, and only the ones that are used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import GENERATORS, Topology

__all__ = ["BUFFER_ELEMENTS", "ELEMENT_BYTES", "WORKS", "Flows", "Work", "build_topology", "read_work", "write_work"]

BANDWIDTH_BYTES_PER_S = 12.5e9
LATENCY_S = 1e-6
BUFFER_ELEMENTS, ELEMENT_BYTES = 25_000_000, 4

HOSTS_PER_LEAF, SPINES = 16, 8
"""With one cable from each leaf to each spine, as fast as those of the hosts: 2:1 oversubscription."""

FLOW_BYTES = (10e3, 10e6)


@dataclass(frozen=True)
class Flows:
    """Flows between hosts, in the order in which they start; arrays of shape (flows,).

    Attributes
    ----------
    start_s : ndarray of float
    source, target : ndarray of int
        Hosts.
    size_bytes : ndarray of int
    """

    start_s: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    size_bytes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_s)


@dataclass(frozen=True)
class Work:
    """What is to be simulated.

    Attributes
    ----------
    topology : str
        Name of a generator of simnet.
    options : dict
        Its arguments. ``latency_at_hosts_only`` is ours: all links but those of the hosts have none.
    collective : str
        ``ring``, ``push_pull``, or ``flows``.
    hosts : ndarray of int, shape (ranks,)
        The host of each rank.
    start_s : ndarray of float, shape (ranks,)
        When each rank begins.
    divisible : bool
        Chunks are exactly equal, even if that is no whole number of bytes; only simnet can do that.
    flows : Flows or None
    """

    topology: str
    options: dict[str, Any]
    collective: str
    hosts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    start_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    divisible: bool = False
    flows: Flows | None = None


def all_reduce(topology: str, hosts: int, *, permuted: bool = False, skew_s: float = 0.0, seed: int = 0) -> Work:
    """Return a ring all-reduce of 100 MB over all hosts of a star or a leaf-spine, 100 Gbit/s and 1 us a link.

    Parameters
    ----------
    topology : str
        ``star`` or ``leaf_spine``; the latter has 16 hosts a rack and 2:1 oversubscription.
    hosts : int
    permuted : bool
        Lay the ring through the hosts in random order.
    skew_s : float
        Each rank begins at a random time up to this one [s].
    seed : int
    """
    options: dict[str, Any] = {"hosts": hosts}
    if topology == "leaf_spine":
        if hosts % HOSTS_PER_LEAF:
            raise SystemExit(f"W2 needs whole racks: {hosts} hosts are no multiple of {HOSTS_PER_LEAF}")
        options = {
            "leaves": hosts // HOSTS_PER_LEAF,
            "hosts_per_leaf": HOSTS_PER_LEAF,
            "spines": SPINES,
            "oversubscription": 2.0,
        }
    order = random_stream(seed, "permutation").permutation(hosts) if permuted else np.arange(hosts)
    start = random_stream(seed, "skew").uniform(0.0, skew_s, hosts)
    return Work(topology, options | _cables(), "ring", order, start)


def push_pull(hosts: int) -> Work:
    """Return N workers that push 100 MB to one server on a star and pull it back; `hosts` is N + 1."""
    return Work("star", {"hosts": hosts} | _cables(), "push_pull", np.arange(hosts), np.zeros(hosts))


def random_flows(count: int, *, equal_latency: bool, k: int = 8, load: float = 0.6, seed: int = 0) -> Work:
    """Return flows on a fat tree between random pairs of hosts.

    Sizes are log-uniform from 10 KB to 10 MB; arrivals are Poisson, so fast that the links of the hosts carry `load`
    on average.

    Parameters
    ----------
    count : int
    equal_latency : bool
        Only the links of the hosts have latency, so that all paths have the same; otherwise every link has it.
    k : int
        Ports of a switch.
    load : float
        Part of the bandwidth of the hosts' links.
    seed : int
    """
    hosts = k**3 // 4
    random = random_stream(seed, "flows")
    least, most = FLOW_BYTES
    size = np.exp(random.uniform(np.log(least), np.log(most), count)).astype(np.int64)
    mean_bytes = (most - least) / np.log(most / least)
    start = np.cumsum(random.exponential(mean_bytes / (load * hosts * BANDWIDTH_BYTES_PER_S), count))
    source = random.integers(hosts, size=count)
    target = (source + random.integers(1, hosts, size=count)) % hosts
    options = {"k": k, "latency_at_hosts_only": equal_latency} | _cables()
    return Work("fat_tree", options, "flows", flows=Flows(start, source, target, size))


WORKS: dict[str, Callable[[int, int, float, int], Work]] = {
    "W1": lambda hosts, _, skew_s, seed: all_reduce("star", hosts, skew_s=skew_s, seed=seed),
    "W2": lambda hosts, _, skew_s, seed: all_reduce("leaf_spine", hosts, skew_s=skew_s, seed=seed),
    "W2p": lambda hosts, _, skew_s, seed: all_reduce("leaf_spine", hosts, permuted=True, skew_s=skew_s, seed=seed),
    "W3": lambda hosts, _, __, ___: push_pull(hosts),
    "W4": lambda _, flows, __, seed: random_flows(flows, equal_latency=True, seed=seed),
    "W4w": lambda _, flows, __, seed: random_flows(flows, equal_latency=False, seed=seed),
}
"""``(hosts, flows, skew_s, seed) -> Work`` by name."""


def build_topology(work: Work) -> Topology:
    """Return the cluster of a work."""
    options = dict(work.options)
    only_hosts = options.pop("latency_at_hosts_only", False)
    topology = GENERATORS[work.topology](**options)
    if not only_hosts:
        return topology
    graph = topology.graph.copy()
    for source, target, link in graph.edges(data=True):
        if graph.nodes[source]["kind"] == graph.nodes[target]["kind"] == "switch":
            link["latency_s"] = 0.0
    return Topology.from_graph(topology.name, graph)


def write_work(work: Work, path: Path) -> None:
    """Write a work for both simulators, with the routes that simnet takes."""
    path.write_text("\n".join(_lines(work)) + "\n")


def read_work(path: Path) -> Work:
    """Read what simnet needs of a file that `write_work` wrote."""
    topology, options, collective, divisible = "", {}, "flows", False
    ranks: list[tuple[str, str]] = []
    flows: list[tuple[str, ...]] = []
    with path.open() as lines:
        for line in lines:
            what, *rest = line.split(maxsplit=2)
            if what == "flow":
                flows.append((rest[0], *rest[1].split()))
            elif what == "rank":
                ranks.append((rest[0], rest[1]))
            elif what == "topology":
                topology, options = rest[0], json.loads(rest[1])
            elif what in ("ring", "push_pull"):
                collective, divisible = what, "divisible" in rest[-1]
    table = np.array(ranks, dtype=np.float64).reshape(-1, 2)
    found = None
    if flows:
        start, source, target, size = zip(*flows, strict=True)
        found = Flows(
            np.array(start, dtype=np.float64),
            np.array(source, dtype=np.int64),
            np.array(target, dtype=np.int64),
            np.array(size, dtype=np.int64),
        )
    return Work(topology, options, collective, table[:, 0].astype(np.int64), table[:, 1].copy(), divisible, found)


def _cables() -> dict[str, float]:
    return {"bandwidth_bytes_per_s": BANDWIDTH_BYTES_PER_S, "latency_s": LATENCY_S}


def _lines(work: Work) -> Iterator[str]:
    yield f"topology {work.topology} {json.dumps(work.options)}"
    if work.topology == "star":
        yield f"star {work.options['hosts']} {BANDWIDTH_BYTES_PER_S!r} {LATENCY_S!r}"
    else:
        yield from _network_lines(work)
    for host, start in zip(work.hosts.tolist(), work.start_s.tolist(), strict=True):
        yield f"rank {host} {start!r}"
    if work.flows is None:
        yield f"{work.collective} {BUFFER_ELEMENTS} {ELEMENT_BYTES}{' divisible' if work.divisible else ''}"
        return
    flows = work.flows
    columns = (flows.start_s.tolist(), flows.source.tolist(), flows.target.tolist(), flows.size_bytes.tolist())
    for start, source, target, size in zip(*columns, strict=True):
        yield f"flow {start!r} {source} {target} {size}"


def _network_lines(work: Work) -> Iterator[str]:
    network = Network(build_topology(work), FlowProtocol())
    compiled = network.compiled
    yield f"hosts {len(compiled.rank_nodes)}"
    for bandwidth, latency in zip(compiled.link_bandwidth.tolist(), compiled.link_latency.tolist(), strict=True):
        yield f"link {bandwidth!r} {latency!r}"
    if work.flows is not None:
        pairs = zip(work.flows.source.tolist(), work.flows.target.tolist(), strict=True)
    else:
        pairs = zip(work.hosts.tolist(), np.roll(work.hosts, -1).tolist(), strict=True)
    for source, target in dict.fromkeys(pairs):
        route = network.route(int(compiled.rank_nodes[source]), int(compiled.rank_nodes[target]))
        yield f"route {source} {target} {' '.join(map(str, route.resources))}"
