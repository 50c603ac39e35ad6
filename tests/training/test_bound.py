"""The lower bound on an iteration: never above what was simulated, and equal to it where nothing is in the way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.training.bound import bound_iteration_s
from simnet.training.communication.settings import Architecture, Scheduling
from simnet.training.settings import Jitter, RunSettings, TrainingSettings

from .building import run_job, workload

ELEMENTS = [250_000, 1_000_000, 500_000]
ARCHITECTURES = ["ring", "star", "tree", "butterfly", "mesh", "parameter_server"]


def both(training: TrainingSettings, run: RunSettings) -> tuple[float, float]:
    """The bound, and the mean over workers and measured iterations, of a job on a star [s]."""
    servers = 1 if training.architecture.name == "parameter_server" else 0
    job, rows, _, fabric = run_job(workload(ELEMENTS), training, run, hosts=training.workers + servers)
    measured = [row for row in rows if row.iteration >= run.warmup]
    begun_s = np.array([row.start_s for row in measured if row.iteration == run.warmup])
    numbers = range(run.warmup, run.warmup + run.iterations)
    taken = [row.compute_time_s + row.exposed_communication_time_s + row.waiting_time_s for row in measured]
    return bound_iteration_s(job, fabric, numbers, begun_s), float(np.mean(taken))


@given(
    st.sampled_from(ARCHITECTURES),
    st.integers(2, 9),
    st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    st.booleans(),
    st.integers(0, 2),
    st.integers(0, 10**6),
)
@settings(max_examples=150, deadline=None)
def test_no_run_is_faster(name, workers, sigma, overlap, warmup, seed):
    """Whatever finishes early or late, with and without jitter."""
    jitter = Jitter("lognormal", sigma) if sigma else None
    training = TrainingSettings(workers, Architecture(name), bucket_bytes=1.0, overlap=overlap, jitter=jitter)
    least, taken = both(training, RunSettings(4, warmup, seed))
    assert least <= taken * (1 + 1e-9)


@given(
    st.sampled_from(ARCHITECTURES),
    st.integers(2, 6),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
    st.builds(
        Scheduling,
        order=st.sampled_from(["first_ready", "priority"]),
        piece_bytes=st.sampled_from([math.inf, 400_000.0]),
        streams=st.sampled_from([None, 1, 3]),
    ),
    st.sampled_from([{}, {"fusion": "merged"}, {"fusion": "cycle", "cycle_s": 1e-3, "buffer_bytes": 2e6}]),
    st.fixed_dictionaries(
        {"negotiation_s": st.sampled_from([0.0, 1e-3]), "credit_bytes": st.sampled_from([math.inf, 1e6])}
    ),
)
@settings(max_examples=80, deadline=None)
def test_no_run_is_faster_whatever_goes_first(name, workers, forward_overlap, sigma, scheduling, fusion, before):
    """Nor whatever travels together."""
    if name != "parameter_server":
        scheduling = replace(scheduling, **before, **fusion)
    training = TrainingSettings(
        workers,
        Architecture(name),
        bucket_bytes=1.0,
        forward_overlap=forward_overlap,
        jitter=Jitter("lognormal", sigma) if sigma else None,
        scheduling=scheduling,
    )
    least, taken = both(training, RunSettings(4, 1))
    assert least <= taken * (1 + 1e-9)


@pytest.mark.parametrize("overlap", [True, False])
def test_a_ring_without_jitter_takes_just_that(overlap):
    """All ranks are complete at once, and all links are full."""
    training = TrainingSettings(8, Architecture("ring"), bucket_bytes=1.0, overlap=overlap)
    least, taken = both(training, RunSettings(3, 1))
    assert least == pytest.approx(taken, rel=1e-9)
    slower = both(replace(training, speed_factors=(1.0,) * 7 + (0.5,)), RunSettings(3, 1))
    assert slower[0] == pytest.approx(slower[1], rel=1e-9)
