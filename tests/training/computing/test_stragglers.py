"""Workers that are slower than they should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simnet.training.computing.slowdowns import Slowdowns
from simnet.training.computing.stragglers import Constant, Drifting, Occasional, Periodic, Straggler
from simnet.training.settings import Jitter, JobSettings, RunSettings, TrainingSettings
from tests.training.building import iteration_s, run_job, workload

LOAD = workload([10, 20, 30])


def slowdowns(*stragglers: Straggler, workers: int = 4, **training) -> Slowdowns:
    settings = TrainingSettings(workers, stragglers=stragglers, **training)
    return Slowdowns(JobSettings("job", LOAD, settings), seed=1)


def test_a_constant_straggler_takes_so_many_times_as_long_beside_its_speed():
    """Factor 2 at speed 0.5: four times; what one worker alone would do does not know of it."""
    found = slowdowns(Straggler((1, 3), Constant(2.0)), speed_factors=(1.0, 0.5, 1.0, 1.0))
    assert found.of(7).tolist() == [1.0, 4.0, 1.0, 2.0]
    assert not found.varies
    assert found.slowness.tolist() == [1.0, 2.0, 1.0, 1.0]


def test_a_drifting_straggler_is_slower_and_slower_up_to_a_limit():
    found = slowdowns(Straggler((2,), Drifting(0.25, 2.0)))
    assert [found.of(i)[2] for i in range(6)] == [1.0, 1.25, 1.5, 1.75, 2.0, 2.0]
    assert found.of(5).tolist() == [1.0, 1.0, 2.0, 1.0]


def test_a_periodic_straggler_is_slow_at_the_beginning_of_each_period():
    found = slowdowns(Straggler((0,), Periodic(3.0, every=4, lasts=2)))
    assert [found.of(i)[0] for i in range(8)] == [3.0, 3.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0]


def test_an_occasional_straggler_is_slow_as_often_as_it_is_likely():
    """Of 40 workers and 1,000 iterations a tenth, within 4 standard errors; each by itself, others never."""
    found = slowdowns(Straggler(tuple(range(1, 41)), Occasional(5.0, 0.1)), workers=41)
    factors = np.array([found.of(i) for i in range(1000)])
    assert set(np.unique(factors)) == {1.0, 5.0}
    assert (factors[:, 0] == 1.0).all()
    slow = factors[:, 1:] == 5.0
    assert slow.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / slow.size))
    assert 0 < slow.all(axis=1).sum() + slow.any(axis=1).sum() < 1000 * 2


def test_patterns_and_jitter_multiply():
    jitter = Jitter("lognormal", 0.2)
    both = slowdowns(Straggler((1,), Constant(2.0)), Straggler((1, 2), Drifting(1.0, 9.0)), jitter=jitter)
    assert both.of(3) == pytest.approx(slowdowns(jitter=jitter).of(3) * [1.0, 8.0, 4.0, 1.0], rel=1e-12)


def test_factors_do_not_depend_on_who_asks_when():
    """Workers that are far apart, and one that asks again for what all have had."""
    jitter = Jitter("exponential", 1.0)
    whole, apart = slowdowns(jitter=jitter), slowdowns(jitter=jitter)
    expected = {(i, rank): whole.of(i)[rank] for i in range(50) for rank in range(4)}
    order = [*[(i, 0) for i in range(50)], *[(i, rank) for rank in (3, 1, 2) for i in range(50)], (0, 0), (17, 2)]
    assert [apart.of_worker(*key) for key in order] == [expected[key] for key in order]


def test_only_iterations_that_somebody_has_not_asked_for_are_kept():
    found = slowdowns(jitter=Jitter("exponential", 1.0))
    for iteration in range(100):
        for rank in range(3):
            found.of_worker(iteration, rank)
    assert len(found._kept) == 100
    for iteration in range(100):
        found.of_worker(iteration, 3)
    assert not found._kept


def test_pareto_has_mean_one_and_its_minimum():
    """Minimum (a - 1)/a; with a = 3 mean 1 and variance 1/(a (a - 2)) = 1/3, over 200,000 draws."""
    found = slowdowns(jitter=Jitter("pareto", 3.0), workers=20_000)
    factors = np.array([found.of(i) for i in range(10)])
    assert factors.min() == pytest.approx(2 / 3, rel=1e-3)
    assert factors.min() >= 2 / 3
    assert factors.mean() == pytest.approx(1.0, abs=4 * np.sqrt(1 / 3 / factors.size))


def test_exponential_of_scale_one_is_exponential():
    """P(factor > 1) = 1/e."""
    found = slowdowns(jitter=Jitter("exponential", 1.0), workers=100_000)
    assert (found.of(0) > 1.0).mean() == pytest.approx(np.exp(-1), abs=4 * np.sqrt(0.25 / 100_000))


def test_all_wait_for_the_slowest():
    """30 ms of computing, three times as much on one worker in each other iteration; an exchange of nearly nothing."""
    training = replace(TrainingSettings(4), overlap=False, stragglers=(Straggler((2,), Periodic(3.0, 2, 1)),))
    _, rows, _, _ = run_job(workload([4]), training, latency_s=0.0)
    for row in rows:
        assert iteration_s(row) == pytest.approx(0.09 if row.iteration % 2 == 0 else 0.03, rel=1e-5)


@pytest.mark.parametrize("overlap", [False, True])
def test_accumulation_sends_gradients_once_for_all_passes(overlap):
    """k passes of 30 ms and one exchange: the bytes of one pass, so 1/k for each sample."""
    sent, spans = [], []
    for passes in (1, 4):
        training = TrainingSettings(4, overlap=overlap, bucket_bytes=1.0, accumulation=passes)
        job, rows, _, _ = run_job(workload([1000, 2000, 3000]), training, latency_s=0.0)
        assert job.settings.samples_per_iteration == 4 * 8 * passes
        sent.append(job.sent.payload_bytes.sum())
        assert [row.compute_time_s for row in rows] == pytest.approx([0.03 * passes] * len(rows), rel=1e-12)
        spans.append(iteration_s(rows[0]))
    assert sent[0] == sent[1]
    assert spans[1] - spans[0] == pytest.approx(0.09, rel=1e-9)


@pytest.mark.parametrize("workers", [2, 8])
def test_in_step_with_exponential_factors_an_iteration_takes_the_harmonic_number(workers):
    """The largest of N exponentials of mean 1 has mean H_N = 1 + 1/2 + ... + 1/N and variance 1 + 1/4 + ... + 1/N^2.

    Within 3 standard errors, over 2,000 iterations; waiting is all that is not computing.
    """
    training = TrainingSettings(workers, overlap=False, jitter=Jitter("exponential", 1.0))
    run = RunSettings(iterations=2000, warmup=1, seed=3)
    _, rows, _, _ = run_job(workload([4]), training, run, latency_s=0.0)
    times = np.array([iteration_s(row) for row in rows if row.rank == 0 and 1 <= row.iteration <= 2000]) / 0.03
    numbers = np.arange(1, workers + 1)
    error = np.sqrt((1 / numbers**2).sum() / len(times))
    assert times.mean() == pytest.approx((1 / numbers).sum(), abs=3 * error)
