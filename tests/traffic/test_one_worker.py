"""What one worker exchanges by itself: bytes, messages and steps as the docstrings state them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.traffic import (
    average_in_pair,
    count,
    gossip_round,
    neighbours_of,
    pull_from_servers,
    push_to_servers,
    send_to_all,
)

SIZES = st.integers(1, 1000)


@given(st.integers(1, 8), SIZES)
def test_a_push_and_a_pull_move_the_buffer_once_each(servers: int, elements: int) -> None:
    """The worker sends S in M messages, and gets S in M messages; one step each."""
    push, pull = push_to_servers(servers, elements, 4.0), pull_from_servers(servers, elements, 4.0)
    assert push.bytes_sent()[0] == pull.bytes_sent()[1:].sum() == 4.0 * elements
    assert push.messages() == pull.messages() == servers
    assert count(push).steps == count(pull).steps == 1


def test_only_one_server_gets_it_all() -> None:
    """With `only` the shard of that server is the whole buffer."""
    assert pull_from_servers(3, 10, 4.0, only=1).bytes_sent().tolist() == [0, 0, 40, 0]


def test_servers_that_are_not_there_are_refused() -> None:
    """A push needs a server, and one that exists."""
    with pytest.raises(ValueError, match="at least one server"):
        push_to_servers(0, 10, 4.0)
    with pytest.raises(ValueError, match="one of 0"):
        push_to_servers(2, 10, 4.0, only=2)


@given(st.sampled_from(["ring", "mesh"]), st.integers(1, 9), SIZES)
def test_gossip_sends_the_degree_times_the_buffer(graph: str, workers: int, elements: int) -> None:
    """Each worker sends d n, and gets as much; alone or together."""
    neighbours = neighbours_of(graph, workers)
    sent = gossip_round(workers, elements, 4.0, graph=graph).bytes_sent()
    for worker, others in enumerate(neighbours):
        assert all(worker in neighbours[other] for other in others)
        assert sent[worker] == len(others) * 4.0 * elements
        assert send_to_all(len(others), elements, 4.0).bytes_sent()[0] == sent[worker]


def test_a_pair_exchanges_what_each_has() -> None:
    """Two messages of n, one after the other."""
    schedule = average_in_pair(10, 4.0)
    np.testing.assert_array_equal(schedule.bytes_sent(), [40, 40])
    assert count(schedule).steps == 2


def test_unknown_graphs_are_refused() -> None:
    """Neighbours are those of a ring or of a mesh."""
    with pytest.raises(ValueError, match="neither ring nor mesh"):
        neighbours_of("star", 3)


def test_each_push_goes_on_to_the_replica_of_its_server() -> None:
    """Two of three servers have a replica: 2 S/3 more, in a second step."""
    push = push_to_servers(3, 60, 4.0, replicated=(2, 0))
    assert push.bytes_sent().tolist() == [240.0, 80.0, 0.0, 80.0, 0.0, 0.0]
    assert count(push).steps == 2
    assert pull_from_servers(3, 60, 4.0, replicas=2).ranks == push.ranks
