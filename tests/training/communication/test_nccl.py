"""The architecture that chooses as NCCL does."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.topology import HostSpec, star
from simnet.traffic import all_reduce_goal, prove
from simnet.training.communication.architectures import arrange
from simnet.training.communication.nccl import nccl_cluster
from simnet.training.communication.settings import Architecture

NVLINK = HostSpec(gpus=4, intra="nvlink")


def schedules(topology, workers, sizes, **options):
    """Return what is exchanged by buckets of so many elements."""
    nodes = topology.compiled.rank_nodes[:workers]
    return arrange(Architecture("nccl", options), topology, nodes).schedules(sizes, 4.0, False)


def test_each_bucket_goes_by_its_size():
    small, large = schedules(star(hosts=4, host=NVLINK), 16, [100, 10**8])
    assert (small.name, large.name) == ("hierarchical all-reduce", "ring all-reduce")


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("elements", [7, 10**6])
def test_every_worker_gets_the_sum(workers, elements):
    [schedule] = schedules(star(hosts=4, host=NVLINK), workers, [elements])
    prove(schedule, all_reduce_goal(schedule))


def test_hosts_with_unequally_many_workers_have_a_ring():
    [schedule] = schedules(star(hosts=4, host=NVLINK), 10, [100])
    assert schedule.name == "ring all-reduce"


def test_channels_are_those_of_the_ring():
    [schedule] = schedules(star(hosts=4, host=NVLINK), 16, [10**8], channels=2)
    assert len(schedule.operations) == 2 * 16


def test_what_is_known_of_the_cluster():
    """Four hosts of four GPUs with NVLinks of 120 GB/s and a NIC of 12.5 GB/s; plain hosts have nothing inside."""
    topology = star(hosts=4, host=NVLINK)
    found = nccl_cluster(topology.compiled, topology.compiled.rank_nodes, 1)
    assert (found.ranks, found.hosts, found.inside) == (16, 4, "nvlink")
    assert (found.inside_bytes_per_s, found.across_bytes_per_s) == (120e9, 12.5e9)
    plain = star(hosts=3)
    found = nccl_cluster(plain.compiled, np.array(plain.compiled.rank_nodes), 1)
    assert (found.ranks, found.hosts, found.inside, found.bus_bytes_per_s) == (3, 3, "pcie", 12.5e9)
