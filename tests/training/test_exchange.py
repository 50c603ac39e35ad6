"""From the name of an architecture to a schedule and the nodes that take part."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.topology import HostSpec, star
from simnet.traffic.schedule import Kind
from simnet.training.exchange import exchange_schedule, most_messages_at_once, participants, server_count
from simnet.training.settings import Architecture


def names(topology, workers, architecture):
    compiled = topology.compiled
    return [compiled.node_names[node] for node in participants(compiled, workers, architecture)]


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
        participants(star(hosts=4).compiled, 5, Architecture())


def test_options_reach_the_schedule():
    assert exchange_schedule(Architecture("mesh", {"exchange": "full"}), 4, 100, 4.0).messages() == 12
    assert exchange_schedule(Architecture("mesh"), 4, 100, 4.0).messages() == 24
    assert exchange_schedule(Architecture("star", {"hub": 2}), 4, 100, 4.0).bytes_sent().tolist() == [
        400,
        400,
        1200,
        400,
    ]
    servers = exchange_schedule(Architecture("parameter_server", {"servers": 3}), 2, 100, 4.0)
    assert servers.ranks == 5
    assert server_count(Architecture("parameter_server")) == 1
    assert server_count(Architecture("ring")) == 0


@pytest.mark.parametrize("name", ["ring", "star", "tree", "butterfly", "mesh"])
def test_divisible_cuts_elements(name):
    """All ranks of a ring or mesh send the same then, 2 (N - 1)/N S, which is no whole number of elements."""
    schedule = exchange_schedule(Architecture(name), 3, 100, 4.0, divisible=True)
    assert schedule.ranks == 3
    if name in ("ring", "mesh"):
        assert schedule.bytes_sent() == pytest.approx([4 / 3 * 400.0] * 3, rel=1e-12)


def test_operations_of_exchanges_that_grow_with_pairs():
    """Mesh: all pairs, twice; parameter server: each worker with each server, twice; others are not counted."""
    assert most_messages_at_once(Architecture("mesh"), 10) == 2 * 10 * 9
    assert most_messages_at_once(Architecture("parameter_server", {"servers": 3}), 10) == 2 * 3 * 10
    assert most_messages_at_once(Architecture("ring"), 10) == 0
    for architecture in (Architecture("mesh"), Architecture("parameter_server", {"servers": 3})):
        schedule = exchange_schedule(architecture, 10, 100, 4.0)
        assert (schedule.operations.kind == Kind.SEND).sum() == most_messages_at_once(architecture, 10)
