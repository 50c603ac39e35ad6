"""All-reduce as NCCL would do it: for each bucket the algorithm that NCCL would choose on this cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.topology import CompiledTopology, Topology
from simnet.topology.model import nodes_of_each_host
from simnet.traffic import Schedule, hierarchical_all_reduce, ring_all_reduce
from simnet.traffic.nccl import NcclCluster, nccl_choice
from simnet.training.communication.arrangement import Arrangement, each_bucket

__all__ = ["nccl", "nccl_cluster"]

_TREE_CHUNKS = 8


def nccl(
    topology: Topology,
    nodes: NDArray[np.int64],
    options: Mapping[str, Any],
    busy: frozenset[int],  # noqa: ARG001
) -> Arrangement:
    """Arrange a ring, or chains inside of hosts with a double tree across them, for each bucket by its size.

    Where hosts do not have equally many workers there is no tree: NCCL's is made of hosts.
    """
    cluster = nccl_cluster(topology.compiled, nodes, int(options.get("channels", 1)))
    group = nodes_of_each_host(topology.compiled.host_of_node[nodes])

    def make(elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
        common = (len(nodes), elements, element_bytes)
        if group is not None and len(nodes) > 1 and nccl_choice(cluster, elements * element_bytes).algorithm == "tree":
            chunks = {"chunks": _TREE_CHUNKS}
            return hierarchical_all_reduce(
                *common, divisible=divisible, group=group, inside="chain", across="double_tree", inside_options=chunks
            )
        return ring_all_reduce(*common, divisible=divisible, channels=cluster.channels)

    return Arrangement(nodes, each_bucket(make))


def nccl_cluster(compiled: CompiledTopology, nodes: NDArray[np.int64], channels: int) -> NcclCluster:
    """Return what NCCL knows of some workers: how many on how many hosts, and the links that leave them.

    Inside of a host the fastest link of the first GPU counts; between hosts all that leaves its host, but no more than
    what a GPU can send.
    """
    source, target = compiled.link_source, compiled.link_target
    host_of = compiled.host_of_node
    first = int(nodes[0])
    own = (source == first) & (host_of[target] == host_of[first])
    leaving = (host_of[source] == host_of[first]) & (host_of[target] != host_of[first])
    kinds = np.array(compiled.link_kind, dtype=object)
    across = float(compiled.link_bandwidth[leaving].sum())
    inside = float(compiled.link_bandwidth[own].max(initial=0.0)) or across
    return NcclCluster(
        ranks=len(nodes),
        hosts=len(np.unique(host_of[nodes])),
        inside="nvlink" if (kinds[own] == "nvlink").any() else "pcie",
        inside_bytes_per_s=inside,
        across_bytes_per_s=across or inside,
        channels=channels,
    )
