"""Bytes, messages and steps of the parameter server's push and pull."""

from __future__ import annotations

import pytest

from simnet.traffic import (
    all_reduce_goal,
    check_deadlock,
    count,
    parameter_server_push_pull,
    prove,
    validate_schedule,
)

WORKERS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("servers", [1, 2, 3, 5])
def test_workers_send_their_buffer_and_servers_their_shard_to_each(workers, servers):
    """A worker sends S, a server W S/M, in 2 W M messages and two steps."""
    schedule = parameter_server_push_pull(workers, servers, 60, 4)
    validate_schedule(schedule)
    check_deadlock(schedule)
    assert schedule.ranks == workers + servers
    assert schedule.bytes_sent().tolist() == [240] * workers + [workers * 240 / servers] * servers
    assert count(schedule)[:2] == (2, 2 * workers * servers)


def test_shards_are_contiguous_and_even():
    """10 elements on 3 servers: 4, 3, 3 elements."""
    schedule = parameter_server_push_pull(1, 3, 10, 4)
    assert schedule.bytes_sent().tolist() == [40, 16, 12, 12]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("servers", [1, 2, 4])
def test_every_worker_gets_the_sum_of_all_workers_and_of_no_server(workers, servers):
    schedule = parameter_server_push_pull(workers, servers, 29, 4)
    prove(schedule, all_reduce_goal(schedule, contributors=range(workers), holders=range(workers)))


def test_nobody_to_serve_is_refused():
    with pytest.raises(ValueError, match="at least one worker and one server"):
        parameter_server_push_pull(0, 1, 10, 4)
