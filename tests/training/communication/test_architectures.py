"""From the name of an architecture to a schedule and the nodes that take part."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.topology import HostSpec, star
from simnet.traffic.schedule import Kind
from simnet.training.communication.architectures import ARCHITECTURES, arrange, most_messages_at_once
from simnet.training.communication.servers import server_of_each
from simnet.training.communication.settings import Architecture
from simnet.training.layout import lay_out_workers
from simnet.training.settings import JobSettings, TrainingSettings
from tests.training.building import workload


def lay_out(topology, workers, **settings):
    """Nodes of the workers of a job."""
    return lay_out_workers(
        topology.compiled, JobSettings("job", workload([1]), TrainingSettings(workers, **settings)), 0
    )


def arranged(topology, workers, architecture):
    return arrange(architecture, topology, lay_out(topology, workers))


def names(topology, workers, architecture):
    compiled = topology.compiled
    return [compiled.node_names[node] for node in arranged(topology, workers, architecture).nodes]


def one_schedule(architecture, workers, elements, element_bytes, *, divisible=False):
    """Of one bucket, on a star with hosts enough."""
    [schedule] = arranged(star(hosts=workers + 5), workers, architecture).schedules(
        [elements], element_bytes, divisible
    )
    return schedule


def test_workers_are_the_first_ranks():
    assert names(star(hosts=4), 3, Architecture("ring")) == ["host0", "host1", "host2"]
    gpus = star(hosts=2, host=HostSpec(gpus=2))
    assert names(gpus, 3, Architecture("ring")) == ["host0.gpu0", "host0.gpu1", "host1.gpu0"]


def test_servers_take_hosts_of_their_own_where_there_are_any():
    servers = Architecture("parameter_server", {"servers": 2})
    assert names(star(hosts=4), 2, servers) == ["host0", "host1", "host2", "host3"]
    gpus = star(hosts=3, host=HostSpec(gpus=2))
    assert names(gpus, 2, servers) == ["host0.gpu0", "host0.gpu1", "host1", "host2"]


def test_servers_share_the_hosts_of_workers_where_there_are_not_enough():
    """First those that are free, then those of workers in turn."""
    assert names(star(hosts=3), 2, Architecture("parameter_server", {"servers": 4}))[2:] == [
        "host2",
        "host0",
        "host1",
        "host0",
    ]


def test_more_workers_than_ranks_are_refused():
    with pytest.raises(InputError, match="5 workers do not fit on 4 ranks, at most 4 is wanted"):
        lay_out(star(hosts=4), 5)


def test_options_reach_the_schedule():
    assert one_schedule(Architecture("mesh", {"exchange": "full"}), 4, 100, 4.0).messages() == 12
    assert one_schedule(Architecture("mesh"), 4, 100, 4.0).messages() == 24
    assert one_schedule(Architecture("star", {"hub": 2}), 4, 100, 4.0).bytes_sent().tolist() == [
        400,
        400,
        1200,
        400,
    ]
    servers = one_schedule(Architecture("parameter_server", {"servers": 3}), 2, 100, 4.0)
    assert servers.ranks == 5
    assert ARCHITECTURES["parameter_server"].servers(2, {}) == 1
    assert ARCHITECTURES["ring"].servers(2, {}) == 0


@pytest.mark.parametrize("name", ["ring", "star", "tree", "butterfly", "mesh"])
def test_divisible_cuts_elements(name):
    """All ranks of a ring or mesh send the same then, 2 (N - 1)/N S, which is no whole number of elements."""
    schedule = one_schedule(Architecture(name), 3, 100, 4.0, divisible=True)
    assert schedule.ranks == 3
    if name in ("ring", "mesh"):
        assert schedule.bytes_sent() == pytest.approx([4 / 3 * 400.0] * 3, rel=1e-12)


def test_operations_of_exchanges_that_grow_with_pairs():
    """Mesh: all pairs, twice; parameter server: each worker with each server, twice; others are not counted."""
    assert most_messages_at_once(Architecture("mesh"), 10) == 2 * 10 * 9
    assert most_messages_at_once(Architecture("parameter_server", {"servers": 3}), 10) == 2 * 3 * 10
    assert most_messages_at_once(Architecture("ring"), 10) == 0
    for architecture in (Architecture("mesh"), Architecture("parameter_server", {"servers": 3})):
        schedule = one_schedule(architecture, 10, 100, 4.0)
        assert (schedule.operations.kind == Kind.SEND).sum() == most_messages_at_once(architecture, 10)


def test_servers_beside_workers_or_strictly_apart():
    """colocated: on the workers' hosts in turn; dedicated: refused where there are not as many free hosts."""
    beside = Architecture("parameter_server", {"servers": 3, "placement": "colocated"})
    assert names(star(hosts=4), 2, beside)[2:] == ["host0", "host1", "host0"]
    apart = Architecture("parameter_server", {"servers": 3, "placement": "dedicated"})
    with pytest.raises(InputError, match="3 servers do not fit on the 2 hosts without workers"):
        names(star(hosts=4), 2, apart)


def test_which_server_a_bucket_is_for():
    """even: all of them; round_robin: in turn; by_size: 5 to the first, 4 and 3 to the second, then 2 to the first."""
    assert server_of_each([5, 4, 3, 2], 2, "even") == [None] * 4
    assert server_of_each([5, 4, 3, 2], 2, "round_robin") == [0, 1, 0, 1]
    assert server_of_each([5, 4, 3, 2], 2, "by_size") == [0, 1, 1, 0]


def test_a_tree_of_servers_has_aggregators_behind_its_roots():
    """8 workers with a fan-in of 2: 4, then 2 aggregators, then the root: 8 + 1 + 6 ranks."""
    tree = Architecture("parameter_server", {"servers": 1, "fan_in": 2, "placement": "colocated"})
    assert len(names(star(hosts=8), 8, tree)) == 15
    assert ARCHITECTURES["parameter_server"].servers(8, {"fan_in": 2}) == 7


def test_switches_that_reduce_are_ranks():
    """On a star the switch is the only one, below it the workers."""
    assert names(star(hosts=3), 3, Architecture("in_network")) == ["host0", "host1", "host2", "switch"]


def test_the_driver_of_map_reduce_has_a_host_of_its_own():
    assert names(star(hosts=4), 3, Architecture("mapreduce")) == ["host0", "host1", "host2", "host3"]


def test_placements():
    """Two hosts with two GPUs: in order 00 01 10 11, by host 00 10 01 11, or as listed."""
    topology = star(hosts=2, host=HostSpec(gpus=2))
    rank = {name: node for node, name in enumerate(topology.compiled.node_names)}
    order = [rank[f"host{host}.gpu{gpu}"] for host, gpu in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert lay_out(topology, 4).tolist() == order
    assert lay_out(topology, 3, placement="by_host").tolist() == [order[0], order[2], order[1]]
    listed = ("host1.gpu1", "host0.gpu0")
    assert lay_out(topology, 2, placement=listed).tolist() == [order[3], order[0]]
    assert sorted(lay_out(topology, 4, placement="random").tolist()) == sorted(order)
    with pytest.raises(InputError, match="listed more than 1 times"):
        lay_out(topology, 2, placement=("host1.gpu1", "host1.gpu1"))
