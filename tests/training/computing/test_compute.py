"""How long workers compute, and when their buckets are ready."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simnet.training.communication.buckets import make_buckets
from simnet.training.computing.compute import compute_times
from simnet.training.plan import plan_iteration
from simnet.training.settings import Jitter, JobSettings, TrainingSettings
from tests.training.building import workload

LOAD = workload([10, 20, 30], forward_s=0.6, backward_s=[0.4, 0.2, 0.1])


def times_of(training: TrainingSettings, *, bucket_bytes: float = 0.0, seed: int = 0, name: str = "job"):
    buckets = make_buckets(LOAD.model.tensors, 4.0, bucket_bytes)
    return compute_times(JobSettings(name, LOAD, training), plan_iteration(LOAD.model, buckets, training), seed)


def test_buckets_are_ready_when_their_last_tensor_is():
    """Forward 0.6 s, backward 0.1, 0.2, 0.4 s from the last layer on: tensors at 0.7, 0.9 and 1.3 s, which is the end.

    Buckets of at least 100 bytes: the first two tensors (120 bytes), and the third.
    """
    alone = times_of(TrainingSettings(2)).timeline(0, 0)
    assert alone == pytest.approx([0.7, 0.9, 1.3, 1.3, 1.3], rel=1e-12)
    assert alone == sorted(alone)
    two = times_of(TrainingSettings(2), bucket_bytes=100.0).timeline(0, 1)
    assert two == pytest.approx([0.9, 1.3, 1.3, 1.3], rel=1e-12)


def test_speed_stretches_everything():
    """Speed 0.5 takes twice as long, speed 4 a quarter."""
    times = times_of(TrainingSettings(3, speed_factors=(1.0, 0.5, 4.0)))
    for rank, stretch in enumerate((1.0, 2.0, 0.25)):
        timeline = times.timeline(5, rank)
        assert timeline[-1] == pytest.approx(1.3 * stretch, rel=1e-12)
        assert timeline[:3] == pytest.approx([0.7 * stretch, 0.9 * stretch, 1.3 * stretch], rel=1e-12)
    assert times.slowest(0)[-1] == pytest.approx(2.6, rel=1e-12)
    assert times.fastest_samples_per_s([0, 1]) == pytest.approx(8 / 0.325, rel=1e-12)


# Mean and standard deviation of each distribution, where theory has them, for a spread of 0.2.
MOMENTS = {
    "lognormal": (1.0, np.sqrt(np.exp(0.04) - 1)),
    "normal": (1.0, 0.2),
    "uniform": (1.0, 0.2 / np.sqrt(3)),
    "exponential": (1.0, 0.2),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_jitter_has_the_mean_and_spread_of_its_distribution(name):
    """Over 20,000 draws: mean within 4 standard errors, standard deviation within 3 %."""
    times = times_of(TrainingSettings(2000, jitter=Jitter(name, 0.2)))
    factors = np.array([[times.timeline(i, rank)[-1] for rank in range(2000)] for i in range(10)]) / 1.3
    mean, deviation = MOMENTS[name]
    assert factors.mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(factors.size))
    assert factors.std() == pytest.approx(deviation, rel=0.03)
    assert factors.min() > 0


@pytest.mark.parametrize(("workers", "deviations"), [(1, 0.0), (2, 1 / np.sqrt(np.pi)), (3, 1.5 / np.sqrt(np.pi))])
def test_the_slowest_of_n_takes_as_long_as_the_largest_of_n_normal_numbers(workers, deviations):
    """The largest of 2 normal numbers is 1/sqrt(pi) deviations above their mean, of 3 it is 3/(2 sqrt(pi)).

    Over 4,000 iterations, within 4 standard errors, each of at most sigma/sqrt(4000).
    """
    times = times_of(TrainingSettings(workers, jitter=Jitter("normal", 0.023)))
    slowest = np.mean([times.slowest(iteration)[-1] for iteration in range(4000)]) / 1.3
    assert slowest == pytest.approx(1 + deviations * 0.023, abs=4 * 0.023 / np.sqrt(4000))


@pytest.mark.parametrize("name", MOMENTS)
def test_no_spread_is_no_jitter(name):
    times = times_of(TrainingSettings(4, jitter=Jitter(name, 0.0)))
    assert times.timeline(0, 3)[-1] == pytest.approx(1.3, rel=1e-12)


def test_a_large_spread_never_makes_a_time_negative():
    times = times_of(TrainingSettings(1000, jitter=Jitter("normal", 5.0)))
    assert min(times.timeline(0, rank)[-1] for rank in range(1000)) == 0.0


def test_jitter_depends_on_seed_job_iteration_and_rank_and_on_nothing_else():
    """Not on who asks first, nor on how often."""
    training = TrainingSettings(3, jitter=Jitter("lognormal", 0.3))

    def table(order, **which):
        times = times_of(training, **which)
        found = {(i, rank): times.timeline(i, rank) for i, rank in order}
        return [found[i, rank][-1] for i in range(2) for rank in range(3)]

    forwards = [(i, rank) for i in range(2) for rank in range(3)]
    first = table(forwards)
    assert table([(0, 2), (0, 2), (1, 1), *forwards]) == first
    assert len(set(first)) == 6
    assert table(forwards, seed=1) != first
    assert table(forwards, name="another job") != first


def test_jitter_stretches_the_whole_timeline_of_a_worker():
    timeline = times_of(TrainingSettings(2, jitter=Jitter("uniform", 0.5))).timeline(0, 1)
    stretch = timeline[-1] / 1.3
    assert timeline[:3] == pytest.approx([0.7 * stretch, 0.9 * stretch, 1.3 * stretch], rel=1e-12)


def test_the_slowest_is_the_latest_at_every_moment():
    training = TrainingSettings(5, jitter=Jitter("lognormal", 0.3), speed_factors=(1.0, 0.9, 1.1, 1.0, 0.7))
    times = times_of(training)
    timelines = [times.timeline(2, rank) for rank in range(5)]
    slowest = times.slowest(2)
    assert slowest[-1] == pytest.approx(max(timeline[-1] for timeline in timelines), rel=1e-12)
    assert slowest == pytest.approx(np.max(timelines, axis=0), rel=1e-12)


def test_an_unknown_distribution_is_refused():
    with pytest.raises(ValueError, match="unknown distribution 'gauss'"):
        times_of(replace(TrainingSettings(2), jitter=Jitter("gauss", 0.1))).timeline(0, 0)
