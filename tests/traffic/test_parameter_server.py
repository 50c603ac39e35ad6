"""Bytes, messages and steps of the parameter server: one or many, a tree of them, servers that compute."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.traffic import (
    Kind,
    aggregator_count,
    all_reduce_goal,
    check_deadlock,
    count,
    goal_faults,
    parameter_server_push_pull,
    prove,
    validate_schedule,
)

from .spoiling import without_dependency

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


COSTS = [
    {},
    {"aggregate_s_per_byte": 1e-9},
    {"update_s_per_byte": 1e-9, "memory_accesses": 3.0, "cores": 2},
    {"aggregate_s_per_byte": 1e-9, "memory_accesses": 3.0, "cores": 3},
]


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("fan_in", [None, 2, 3, 4])
@pytest.mark.parametrize(("servers", "only"), [(1, None), (3, None), (3, 0), (3, 2)])
def test_with_a_tree_and_with_costs_every_worker_still_gets_the_sum(servers, only, fan_in, costs):
    for workers in (1, 2, 5, 9):
        schedule = parameter_server_push_pull(workers, servers, 29, 4, only=only, fan_in=fan_in, **costs)
        prove(schedule, all_reduce_goal(schedule, contributors=range(workers), holders=range(workers)))


def test_without_costs_and_trees_there_is_nothing_but_messages_and_one_calculation_a_server():
    """Options that cost nothing leave the schedule as it is: W M pushes, W M pulls, M calculations of 0 s."""
    plain = parameter_server_push_pull(5, 3, 60, 4)
    assert len(plain.operations) == 2 * 5 * 3 + 3
    for options in ({"fan_in": 5}, {"cores": 4}, {"fan_in": 8, "memory_accesses": 0.0}):
        same = parameter_server_push_pull(5, 3, 60, 4, **options)
        for table in ("operations", "dependencies"):
            for column, values in vars(getattr(plain, table)).items():
                assert np.array_equal(values, getattr(getattr(same, table), column))


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize(("workers", "fan_in"), [(4, 2), (5, 2), (8, 2), (9, 3), (16, 4), (17, 4), (27, 3), (4, 8)])
def test_a_tree_of_servers_relieves_the_root(workers, fan_in, servers):
    """2(L + 1) steps, 2(W + A) M messages, 2(W + A) S bytes; a root sends k S/M, an aggregator of c (c + 1) S."""
    schedule = parameter_server_push_pull(workers, servers, 60, 4, fan_in=fan_in)
    sizes, below = [], workers
    while below > fan_in:
        below = -(-below // fan_in)
        sizes.append(below)
    aggregators, top = sum(sizes), below
    assert aggregator_count(workers, fan_in) == aggregators
    assert schedule.ranks == workers + servers + aggregators
    messages = 2 * (workers + aggregators) * servers
    assert count(schedule) == (2 * (len(sizes) + 1), messages, 2 * (workers + aggregators) * 240)
    sent = schedule.bytes_sent().tolist()
    assert sent[:workers] == [240] * workers
    assert sent[workers : workers + servers] == [top * 240 / servers] * servers
    children = [min(fan_in, n - first) for n in [workers, *sizes[:-1]][: len(sizes)] for first in range(0, n, fan_in)]
    assert sent[workers + servers :] == [(c + 1) * 240 for c in children]


@pytest.mark.parametrize("pull_requests", ["after_push", "after_update"])
@pytest.mark.parametrize("options", [{}, {"fan_in": 2}, {"update_s_per_byte": 1e-9, "replicated": (0,)}])
def test_workers_that_ask_get_the_sum_and_send_no_bytes_more(options, pull_requests):
    """An acknowledgement and a request for each pull, without payload."""
    schedule = parameter_server_push_pull(5, 2, 29, 4, **options, pull_requests=pull_requests)
    unasked = parameter_server_push_pull(5, 2, 29, 4, **options)
    validate_schedule(schedule)
    check_deadlock(schedule)
    prove(schedule, all_reduce_goal(schedule, contributors=range(5), holders=range(5)))
    assert schedule.bytes_sent().tolist() == unasked.bytes_sent().tolist()
    pulls = (5 + aggregator_count(5, options.get("fan_in"))) * 2
    assert schedule.messages() == unasked.messages() + 2 * pulls


def test_the_whole_buffer_goes_to_the_only_server():
    schedule = parameter_server_push_pull(3, 4, 60, 4, only=2)
    assert schedule.bytes_sent().tolist() == [240, 240, 240, 0, 0, 3 * 240, 0]
    assert count(schedule)[:2] == (2, 6)


def test_servers_add_on_all_their_cores_and_take_their_memory():
    """6 pushes of 240 bytes on 3 cores, 2 each; 3 accesses to each byte of 6 pushes and of the update."""
    costs = {"aggregate_s_per_byte": 1e-9, "update_s_per_byte": 2e-9, "cores": 3, "memory_accesses": 3.0}
    ops = parameter_server_push_pull(6, 1, 60, 4, **costs).operations
    adds = (ops.kind == Kind.CALC) & np.isclose(ops.seconds, 240e-9)
    assert sorted(ops.stream[adds].tolist()) == [0, 0, 1, 1, 2, 2]
    assert ops.seconds[ops.kind == Kind.CALC].sum() == pytest.approx(6 * 240e-9 + 480e-9)
    assert ops.fixed_bytes[ops.kind == Kind.MEMORY].tolist() == [720.0] * 7
    assert set(ops.source[ops.kind == Kind.MEMORY].tolist()) == {6}


@pytest.mark.parametrize("options", [{}, {"fan_in": 2}, {"fan_in": 2, "aggregate_s_per_byte": 1e-9}])
def test_any_dependency_dropped_is_caught(options):
    """None of them is there for time only."""
    schedule = parameter_server_push_pull(5, 2, 29, 4, **options)
    goal = all_reduce_goal(schedule, contributors=range(5), holders=range(5))
    for row in range(len(schedule.dependencies)):
        assert goal_faults(without_dependency(schedule, row), goal, executions=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fan_in": 1}, "the fan-in of a tree of servers is at least 2: 1"),
        ({"only": 3}, r"the only server is one of 0 \.\. 2: 3"),
        ({"cores": 0}, "at least one core and costs of 0 or more"),
        ({"update_s_per_byte": -1.0}, "at least one core and costs of 0 or more"),
    ],
)
def test_impossible_servers_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        parameter_server_push_pull(3, 3, 10, 4, **options)


def test_nobody_to_serve_is_refused():
    with pytest.raises(ValueError, match="at least one worker and one server"):
        parameter_server_push_pull(0, 1, 10, 4)


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("only", [None, 0])
def test_a_replicated_server_sends_its_shard_once_more_and_answers_then(servers, only):
    """Replication after aggregation: S/M to the replica, whatever the number of workers; one step between the two."""
    plain = parameter_server_push_pull(4, servers, 60, 4, only=only)
    schedule = parameter_server_push_pull(4, servers, 60, 4, only=only, replicated=(0,))
    validate_schedule(schedule)
    check_deadlock(schedule)
    assert schedule.ranks == plain.ranks + 1
    shard = 240.0 / (servers if only is None else 1)
    assert schedule.bytes_sent().sum() == plain.bytes_sent().sum() + shard
    assert count(schedule).steps == count(plain).steps + 1
    prove(schedule, all_reduce_goal(schedule, contributors=range(4), holders=range(4)))


def test_a_server_without_the_bucket_replicates_nothing_of_it():
    schedule = parameter_server_push_pull(4, 2, 60, 4, only=1, replicated=(0,))
    assert schedule.bytes_sent().sum() == parameter_server_push_pull(4, 2, 60, 4, only=1).bytes_sent().sum()
