"""Jobs in step (BSP): what an iteration takes, and what it is made of; against formulas on a star under `ideal`."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.training.communication.settings import Architecture
from simnet.training.settings import Jitter, RunSettings, TrainingSettings

from .building import B, P, iteration_s, ring_s, run_job, workload

ELEMENTS = [250_000, 1_000_000, 500_000]  # 1, 4 and 2 MB
PLAIN = TrainingSettings(4, bucket_bytes=1.0, overlap=False)


def test_one_worker_does_not_communicate():
    job, rows, collectives, fabric = run_job(workload(ELEMENTS), replace(PLAIN, workers=1))
    assert job.groups[0].exchanges == ()
    assert collectives == []
    assert fabric.counts.messages == 0
    assert [(row.exposed_communication_time_s, row.waiting_time_s, row.communication_time_s) for row in rows] == [
        (0.0, 0.0, 0.0)
    ] * 4
    assert [row.compute_time_s for row in rows] == pytest.approx([0.03] * 4, rel=1e-12)


ALL_REDUCE_S = {
    "ring": lambda n, s: ring_s(n, s),
    "star": lambda n, s: 2 * ((n - 1) * s / B + P),
    "tree": lambda n, s: 2 * math.ceil(math.log2(n)) * (s / B + P),
    "butterfly": lambda n, s: math.log2(n) * (s / B + P),
    "mesh": lambda n, s: 2 * ((n - 1) * s / (n * B) + P),
}


@pytest.mark.parametrize("name", ALL_REDUCE_S)
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_without_overlap_an_iteration_is_compute_and_all_exchanges_one_after_the_other(name, workers):
    """As the last worker sees it: the hub of a star and the root of a tree go on when their last send has drained, a
    latency before the others, and wait for them later."""
    training = replace(PLAIN, workers=workers, architecture=Architecture(name))
    _, rows, collectives, _ = run_job(workload(ELEMENTS), training)
    expected_s = 0.03 + sum(ALL_REDUCE_S[name](workers, 4.0 * size) for size in ELEMENTS)
    starts = [max(row.start_s for row in rows if row.iteration == iteration) for iteration in range(4)]
    assert np.diff(starts) == pytest.approx([expected_s] * 3, rel=1e-9)
    last = max(row.start_s + iteration_s(row) for row in rows)
    assert last == pytest.approx(4 * expected_s, rel=1e-9)
    durations = [row.duration_s for row in collectives[:3]]
    assert durations == pytest.approx([ALL_REDUCE_S[name](workers, 4.0 * size) for size in ELEMENTS], rel=1e-9)


def test_all_that_is_not_hidden_is_exposed():
    """Equal workers in a ring without overlap: exposed = communication = the sum of the exchanges, nobody waits."""
    _, rows, _, _ = run_job(workload(ELEMENTS), PLAIN)
    exchanges_s = sum(ring_s(4, 4.0 * size) for size in ELEMENTS)
    for row in rows:
        assert row.exposed_communication_time_s == pytest.approx(exchanges_s, rel=1e-9)
        assert row.communication_time_s == pytest.approx(exchanges_s, rel=1e-9)
        assert row.waiting_time_s == pytest.approx(0.0, abs=1e-12)


def test_with_overlap_buckets_go_when_they_are_ready_one_after_the_other():
    """Backward of 3 layers, 10 ms each, after 10 ms forward: buckets ready at 20, 30, 40 ms; exchanges of a ring of 4
    take x1, x2, x3: they end at e1 = 20 ms + x1, e2 = max(e1, 30 ms) + x2, e3 = max(e2, 40 ms) + x3, which is the
    iteration; exposed is e3 - 40 ms."""
    load = workload(ELEMENTS, forward_s=0.01, backward_s=[0.01, 0.01, 0.01])
    _, rows, collectives, _ = run_job(load, replace(PLAIN, overlap=True))
    end_s = 0.0
    for size, ready_s in zip(ELEMENTS, (0.02, 0.03, 0.04), strict=True):
        end_s = max(end_s, ready_s) + ring_s(4, 4.0 * size)
    for row in rows:
        assert iteration_s(row) == pytest.approx(end_s, rel=1e-9)
        assert row.exposed_communication_time_s == pytest.approx(end_s - 0.04, rel=1e-9)
    first = collectives[0]
    assert (first.announced_s, first.start_s) == pytest.approx((0.02, 0.02), rel=1e-9)
    assert first.duration_s == pytest.approx(ring_s(4, 1e6), rel=1e-9)


def test_communication_that_fits_under_the_backward_pass_costs_nothing():
    """A small first bucket, and a last one of next to nothing: exposed is the last exchange alone, two latencies."""
    load = workload([250_000, 4], forward_s=0.01, backward_s=[0.5, 0.1])
    _, rows, _, _ = run_job(load, replace(PLAIN, workers=2, overlap=True))
    for row in rows:
        assert row.exposed_communication_time_s == pytest.approx(ring_s(2, 16.0), rel=1e-9)


@given(
    st.lists(st.integers(4, 2_000_000), min_size=1, max_size=6),
    st.floats(0, 0.02),
    st.sampled_from(["ring", "tree", "mesh"]),
    st.integers(2, 6),
    st.sampled_from([1.0, 1e6, 1e9]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_overlap_helps_and_never_beyond_its_bounds(elements, backward_s, name, workers, bucket_bytes):
    """compute and exchanges, each alone, <= with overlap <= without = compute + exchanges (to 1e-9)."""
    load = workload(elements, backward_s=backward_s)
    training = TrainingSettings(workers, Architecture(name), bucket_bytes=bucket_bytes)
    spans = []
    for overlap in (True, False):
        _, rows, collectives, _ = run_job(load, replace(training, overlap=overlap))
        spans.append(max(row.start_s + iteration_s(row) for row in rows))
    compute_s, exchange_s = 4 * load.compute_time_s, sum(row.duration_s for row in collectives)
    assert max(compute_s, exchange_s) <= spans[0] * (1 + 1e-9)
    assert spans[0] <= spans[1] * (1 + 1e-9)
    assert spans[1] == pytest.approx(compute_s + exchange_s, rel=1e-9)


@given(st.integers(0, 2**32), st.sampled_from(["lognormal", "normal", "uniform", "exponential"]), st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_iteration_is_compute_exposed_communication_and_waiting(seed, distribution, overlap):
    """Exactly, with jitter: the next begins when they have passed; none of them is negative."""
    training = replace(PLAIN, overlap=overlap, jitter=Jitter(distribution, 0.3), speed_factors=(1.0, 0.7, 1.3, 1.0))
    _, rows, _, _ = run_job(workload(ELEMENTS), training, RunSettings(iterations=4, warmup=1, seed=seed))
    for rank in range(4):
        own = [row for row in rows if row.rank == rank]
        for row, following in pairwise(own):
            assert following.start_s - row.start_s == pytest.approx(iteration_s(row), rel=1e-12)
        assert min(min(row[4:]) for row in own) >= 0.0
        assert all(row.communication_time_s <= iteration_s(row) * (1 + 1e-12) for row in own)


def test_others_wait_for_a_constant_straggler():
    """Rank 2 computes twice as long. Without overlap and with next to nothing to exchange, the others wait for as long
    as they compute less: 30 ms; rank 2 never waits."""
    training = replace(PLAIN, speed_factors=(1.0, 1.0, 0.5, 1.0))
    _, rows, _, _ = run_job(workload([4]), training, latency_s=0.0)
    exchange_s = 6 * 4.0 / B
    for row in rows:
        expected_s = 0.0 if row.rank == 2 else 0.03
        assert row.waiting_time_s == pytest.approx(expected_s, abs=1e-12)
        assert row.exposed_communication_time_s == pytest.approx(exchange_s, rel=1e-6)
        assert iteration_s(row) == pytest.approx(0.06 + exchange_s, rel=1e-12)


def test_workers_stay_in_step():
    """Nobody begins an iteration before all have computed the one before."""
    training = replace(PLAIN, jitter=Jitter("exponential", 1.0))
    _, rows, _, _ = run_job(workload(ELEMENTS), training, RunSettings(iterations=6))
    for iteration in range(1, 7):
        begun = min(row.start_s for row in rows if row.iteration == iteration)
        computed = max(row.start_s + row.compute_time_s for row in rows if row.iteration == iteration - 1)
        assert begun >= computed - 1e-12


@pytest.mark.parametrize("start_s", [1.0, 1e3, 1e6])
def test_the_start_of_a_job_does_not_matter(start_s):
    """Exchanges to 1e-9; iterations as well as the clock can tell times apart at that start."""
    _, early, first, _ = run_job(workload(ELEMENTS), replace(PLAIN, overlap=True))
    _, late, last, _ = run_job(workload(ELEMENTS), replace(PLAIN, overlap=True), start_s=start_s)
    assert [row.duration_s for row in last] == pytest.approx([row.duration_s for row in first], rel=1e-9)
    digit = math.ulp(start_s)
    assert [iteration_s(row) for row in late] == pytest.approx(
        [iteration_s(row) for row in early], rel=1e-9, abs=8 * digit
    )


def test_a_parameter_server_of_its_own():
    """W workers push to and pull from one server on a host of its own: 2 (W S/B + p); workers send S."""
    training = replace(PLAIN, workers=3, architecture=Architecture("parameter_server", {"servers": 1}))
    job, rows, collectives, fabric = run_job(workload([250_000]), training, hosts=4)
    assert job.groups[0].nodes.tolist() == fabric.network.compiled.rank_nodes[:4].tolist()
    for row in rows:
        assert iteration_s(row) == pytest.approx(0.03 + 2 * (3 * 1e6 / B + P), rel=1e-9)
    assert [row.messages for row in collectives] == [6] * 4


def test_the_measured_iterations_begin_when_the_last_worker_is_through_the_warm_up():
    """2 iterations of warm-up: at the end of the second; `done` at the end of the fifth."""
    training = replace(PLAIN, speed_factors=(1.0, 0.5, 1.0, 1.0))
    job, rows, _, fabric = run_job(workload(ELEMENTS), training, RunSettings(iterations=3, warmup=2))
    assert job.course.measured.processed
    one_s = 0.06 + sum(ring_s(4, 4.0 * size) for size in ELEMENTS)
    assert fabric.env.now == pytest.approx(5 * one_s, rel=1e-9)
    assert {row.iteration for row in rows} == set(range(5))


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    training = replace(PLAIN, overlap=True, jitter=Jitter("lognormal", 0.2))
    runs = [run_job(workload(ELEMENTS), training, RunSettings(seed=seed)) for seed in (1, 1, 2)]
    rows = [(run[1], [row._replace(placement=None) for row in run[2]]) for run in runs]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_buckets_of_whole_elements_are_sent_whole():
    """Payload sent for each exchange by all ranks of a ring together: 2 (N - 1) S, and so much in each iteration."""
    _, _, collectives, fabric = run_job(workload([1001, 7]), PLAIN, divisible=False)
    assert [row.bytes_sent for row in collectives] == [6 * 4004.0, 6 * 28.0] * 4
    assert fabric._tables.clock["sent_bytes"][0] == pytest.approx(4 * 6 * 4032.0, rel=1e-12)


def test_ranks_in_random_order_are_on_the_same_nodes():
    """The nodes of the first workers, in an order that only the seed decides; on a star it takes as long."""
    settings_ = replace(PLAIN, placement="random", workers=8)
    job, rows, *_ = run_job(workload(ELEMENTS), settings_, run=RunSettings(1, 0, seed=3))
    again = run_job(workload(ELEMENTS), settings_, run=RunSettings(1, 0, seed=3))[0]
    other = run_job(workload(ELEMENTS), settings_, run=RunSettings(1, 0, seed=4))[0]
    plain, plain_rows, *_ = run_job(workload(ELEMENTS), replace(settings_, placement="in_order"), run=RunSettings(1, 0))
    assert sorted(job.nodes) == sorted(plain.nodes)
    assert job.nodes.tolist() == again.nodes.tolist()
    assert job.nodes.tolist() != plain.nodes.tolist()
    assert job.nodes.tolist() != other.nodes.tolist()
    times = [[row.compute_time_s + row.exposed_communication_time_s for row in each] for each in (rows, plain_rows)]
    assert times[0] == pytest.approx(times[1], rel=1e-12)
