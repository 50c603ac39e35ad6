"""A cluster: hosts in a row."""

from itertools import pairwise
from typing import Annotated

from simnet.scenario.fields import Whole
from simnet.topology import Cable
from simnet.topology.building import TopologyBuilder


def chain(
    *,
    hosts: Annotated[int, Whole(1, 4096), "Number of hosts."],
    bandwidth_bytes_per_s: float = 1.25e9,
    latency_s: float = 1e-6,
    name: str = "chain",
):
    """Hosts in a row, each with a cable to the next."""
    build = TopologyBuilder(name)
    names = [build.node(f"host{number}", "host") for number in range(hosts)]
    for one, other in pairwise(names):
        build.cable(one, other, Cable(bandwidth_bytes_per_s, latency_s))
    return build.topology()
