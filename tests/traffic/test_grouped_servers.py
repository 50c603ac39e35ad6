"""Groups of workers that push to servers as one."""

from __future__ import annotations

import pytest

from simnet.traffic import (
    INSIDE_GROUPS,
    all_reduce_goal,
    check_deadlock,
    count,
    grouped_push_pull,
    parameter_server_push_pull,
    prove,
    validate_schedule,
)

S = 4 * 120


@pytest.mark.parametrize("inside", INSIDE_GROUPS)
@pytest.mark.parametrize(("workers", "group"), [(4, 2), (6, 3), (8, 4), (4, 4), (12, 3)])
@pytest.mark.parametrize(("servers", "only"), [(1, None), (3, None), (3, 2)])
def test_every_worker_gets_the_sum_of_all_workers(workers, group, servers, only, inside):
    schedule = grouped_push_pull(workers, servers, 29, 4, group=group, inside=inside, only=only)
    validate_schedule(schedule)
    check_deadlock(schedule)
    prove(schedule, all_reduce_goal(schedule, contributors=range(workers), holders=range(workers)))


@pytest.mark.parametrize(("workers", "group"), [(4, 2), (8, 4), (12, 3)])
@pytest.mark.parametrize("servers", [1, 2])
def test_in_a_ring_each_worker_pushes_a_slice(workers, group, servers):
    """A worker sends 2(g - 1)/g S inside and S/g to servers, a server W/g S/M; steps 2(g - 1) + 2."""
    schedule = grouped_push_pull(workers, servers, 120, 4, group=group)
    assert schedule.bytes_sent().tolist() == pytest.approx(
        [2 * (group - 1) / group * S + S / group] * workers + [workers / group * S / servers] * servers
    )
    assert count(schedule)[0] == 2 * (group - 1) + 2


@pytest.mark.parametrize(("workers", "group"), [(4, 2), (8, 4), (12, 3)])
def test_in_a_star_the_first_of_a_group_pushes_all_of_it(workers, group):
    """The first sends (g - 1)S inside and S to servers, the others S; steps 4."""
    schedule = grouped_push_pull(workers, 2, 120, 4, group=group, inside="star")
    own = [group * S] + [S] * (group - 1)
    assert schedule.bytes_sent().tolist()[:workers] == pytest.approx(own * (workers // group))
    assert count(schedule)[0] == 4


def test_groups_of_one_are_no_groups():
    grouped, plain = grouped_push_pull(4, 2, 120, 4, group=1), parameter_server_push_pull(4, 2, 120, 4)
    assert count(grouped) == count(plain)
    assert grouped.bytes_sent().tolist() == plain.bytes_sent().tolist()


@pytest.mark.parametrize("group", [0, 3, 5])
def test_groups_are_equal(group):
    with pytest.raises(ValueError, match="groups of"):
        grouped_push_pull(4, 1, 120, 4, group=group)
