"""Ways of synchronising against closed forms; what is exchanged is so small that it takes no time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.training.communication.settings import Architecture, Sync
from simnet.training.job import Job, start_job
from simnet.training.records import IterationRow
from simnet.training.settings import Jitter, JobSettings, RunSettings, TrainingSettings
from tests.training.building import B, P, ring_s, workload

SERVER = Architecture("parameter_server", {"servers": 1})
RING, MESH = Architecture("gossip", {"graph": "ring"}), Architecture("gossip", {"graph": "mesh"})
ASP = Sync("asp")
PASS_S = 0.03
"""Forward and backward pass of the workload [s]."""


def train(
    sync: Sync,
    run: RunSettings,
    *,
    workers: int = 16,
    architecture: Architecture = SERVER,
    elements: tuple[int, ...] = (1,),
    bandwidth: float = 1e18,
    latency_s: float = 0.0,
    **more: object,
) -> tuple[Job, list[IterationRow]]:
    """Train on a star that takes no time, where nothing else is said."""
    env, recorder = simpy.Environment(), Recorder()
    topology = star(hosts=workers + 1, bandwidth_bytes_per_s=bandwidth, latency_s=latency_s / 2)
    fabric = FluidFabric(env, Network(topology, FlowProtocol(divisible=True)))
    training = TrainingSettings(workers, architecture, sync, bucket_bytes=1.0, **more)  # type: ignore[arg-type]
    job = start_job(env, fabric, recorder, JobSettings("job", workload(elements), training), run)
    env.run(job.course.done)
    fabric.require_conservation()
    return job, recorder.rows(IterationRow)


def length_s(row: IterationRow) -> float:
    """Length of an iteration [s]."""
    return row.compute_time_s + row.exposed_communication_time_s + row.waiting_time_s


def throughput(job: Job, rows: list[IterationRow]) -> float:
    """Iterations of all workers in a second."""
    if math.isnan(job.course.duration_s):
        measured = [length_s(row) for row in rows if row.iteration >= job.course.first[row.rank]]
        return len(job.nodes) / float(np.mean(measured))
    return float(job.course.count.sum()) / job.course.duration_s


EXPONENTIAL = Jitter("exponential", 1.0)


@pytest.mark.parametrize("workers", [2, 8])
def test_bsp_waits_for_the_slowest_of_exponential_workers(workers: int) -> None:
    """The mean of the largest of N exponential times is H_N times their mean, its variance the sum of 1/k²."""
    iterations = 400
    run = RunSettings(iterations, warmup=5, seed=3)
    _, rows = train(Sync(), run, workers=workers, jitter=EXPONENTIAL)
    times = np.array([length_s(row) for row in rows if row.rank == 0 and row.iteration >= 5]) / PASS_S
    harmonic = sum(1.0 / k for k in range(1, workers + 1))
    error = math.sqrt(sum(1.0 / k**2 for k in range(1, workers + 1)) / iterations)
    assert abs(times.mean() - harmonic) < 3.0 * error


@pytest.mark.parametrize("iterations", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_throughput_rises_with_the_bound_from_bsp_to_asp(iterations: int) -> None:
    """With independent exponential times each further iteration of leave to go ahead is worth something."""
    run = RunSettings(iterations, warmup=10, seed=1)
    syncs = [Sync("ssp", staleness=bound) for bound in (0, 1, 3, 9)] + [ASP]
    rates = [throughput(*train(sync, run, workers=5, jitter=EXPONENTIAL)) for sync in syncs]
    assert all(slower < faster for slower, faster in itertools.pairwise(rates)), rates
    # Without waiting each does one in a mean pass; the mean of n exponential times is known within 1/sqrt(n).
    assert rates[-1] == pytest.approx(5 / PASS_S, rel=3.0 / math.sqrt(5 * iterations))
    bsp = throughput(*train(Sync(), run, workers=5, jitter=EXPONENTIAL))
    assert rates[0] == pytest.approx(bsp, rel=1e-9)


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_one_straggler_at_half_speed(count: int) -> None:
    """Of 16 workers in n passes of a fast one: BSP 1/2, ASP 31/32, SSP min(ASP, 1/2 + 15 s/(16 n)), within 1/n."""
    run = RunSettings(warmup=0, duration_s=count * PASS_S)
    speeds = (0.5, *[1.0] * 15)

    def share(sync: Sync) -> float:
        job, _ = train(sync, run, speed_factors=speeds)
        return float(job.course.count.sum()) / (16 * count)

    job, rows = train(Sync(), RunSettings(count // 2, warmup=0), speed_factors=speeds)
    assert throughput(job, rows) * PASS_S / 16 == pytest.approx(0.5, rel=1e-9)
    asp = share(ASP)
    assert asp == pytest.approx(31 / 32, abs=1.001 / count)
    for bound in (0, 1, 5, 1000):
        expected = min(31 / 32, 0.5 + 15 * bound / (16 * count))
        assert share(Sync("ssp", staleness=bound)) == pytest.approx(expected, abs=1.001 / count)


@pytest.mark.slow
def test_asp_with_a_straggler_in_the_long_run() -> None:
    """Over 1,000 fast passes 31/32 of full throughput within 0.2 %, as neither end of the window shows."""
    job, _ = train(ASP, RunSettings(warmup=0, duration_s=1000 * PASS_S), speed_factors=(0.5, *[1.0] * 15))
    assert float(job.course.count.sum()) / 16_000 == pytest.approx(31 / 32, rel=0.002)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 4),
    st.integers(2, 6),
    st.integers(0, 1000),
    st.sampled_from([SERVER, RING, MESH]),
)
def test_nobody_gets_more_than_the_bound_ahead(bound: int, workers: int, seed: int, architecture: Architecture) -> None:
    """Under SSP no iteration begins more than s ahead of the slowest peer; on a mesh and with servers that is anybody.

    Around a ring of N the farthest is N // 2 neighbours away, and each may be as far ahead of the next.
    """
    sync = Sync("ssp", staleness=bound)
    _, rows = train(sync, RunSettings(10, seed=seed), workers=workers, jitter=EXPONENTIAL, architecture=architecture)
    farthest = bound if architecture is not RING else (bound + 1) * (workers // 2)
    assert max(row.ahead_iterations for row in rows) <= farthest


@pytest.mark.parametrize(("architecture", "latency_s"), [(SERVER, P), (MESH, 0.0)])
def test_a_bound_of_0_is_bsp(architecture: Architecture, latency_s: float) -> None:
    """Nobody ahead of anybody: the same times as workers in step, communication included.

    Alone a push is over when it has arrived, together when the last byte has left: without latency that is the same.
    """
    run = RunSettings(4, seed=2)
    more = {"workers": 4, "elements": (300_000, 500_000), "bandwidth": B, "latency_s": latency_s}
    jitter = Jitter("lognormal", 0.3)
    _, together = train(Sync(), run, architecture=architecture, jitter=jitter, **more)  # type: ignore[arg-type]
    _, alone = train(Sync("ssp"), run, architecture=architecture, jitter=jitter, **more)  # type: ignore[arg-type]
    begins = {(row.rank, row.iteration): row.start_s for row in together}
    for row in alone:
        assert row.start_s == pytest.approx(begins[row.rank, row.iteration], rel=1e-9)


def test_an_endless_bound_is_asp() -> None:
    """Whom nobody waits for does what it does under ASP, to the last bit."""
    run = RunSettings(20, seed=4)
    assert train(Sync("ssp", staleness=1000), run, jitter=EXPONENTIAL)[1] == train(ASP, run, jitter=EXPONENTIAL)[1]


@pytest.mark.parametrize("period", [1, 2, 4])
def test_local_sgd_sends_one_over_its_period(period: int) -> None:
    """Of eight iterations 8/tau exchange: 2 (N - 1)/N n/tau bytes an iteration; period 1 is BSP."""
    ring = Architecture("ring")
    more = {"workers": 4, "architecture": ring, "elements": (4000, 8000), "bandwidth": B, "latency_s": P}
    job, rows = train(Sync("local_sgd", period=period), RunSettings(8), **more)  # type: ignore[arg-type]
    np.testing.assert_allclose(job.sent.payload_bytes / 8, 2 * 3 / 4 * 48_000 / period)
    if period == 1:
        assert rows == train(Sync(), RunSettings(8), **more)[1]  # type: ignore[arg-type]


def test_one_shot_sends_once_at_the_end() -> None:
    """T iterations without a word, and then one ring all-reduce, which nothing hides but the last backward pass."""
    ring = Architecture("ring")
    job, rows = train(
        Sync("one_shot"), RunSettings(5), workers=4, architecture=ring, elements=(12_000,), bandwidth=B, latency_s=P
    )
    np.testing.assert_allclose(job.sent.payload_bytes, 2 * 3 / 4 * 48_000)
    for row in rows:
        expected = ring_s(4, 48_000) if row.iteration == 5 else 0.0
        assert row.exposed_communication_time_s == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("architecture", "degree"), [(RING, 2), (MESH, 3)])
@pytest.mark.parametrize("sync", [Sync(), Sync("ssp", staleness=1), ASP])
def test_gossip_sends_the_degree_times_the_model(architecture: Architecture, degree: int, sync: Sync) -> None:
    """Each worker sends n to each neighbour in each iteration: d n."""
    job, _ = train(sync, RunSettings(6, warmup=0), workers=4, architecture=architecture, elements=(1000, 2000))
    np.testing.assert_allclose(job.sent.payload_bytes.sum() / job.course.count.sum(), degree * 12_000)


def test_pairs_exchange_the_model_twice() -> None:
    """Each averages with one other in an iteration, and both send: 2 n for each iteration of anybody."""
    pairs = Architecture("gossip", {"graph": "mesh", "partners": "one"})
    job, _ = train(ASP, RunSettings(6, warmup=0), workers=4, architecture=pairs, elements=(1000,))
    np.testing.assert_allclose(job.sent.payload_bytes.sum() / job.course.count.sum(), 2 * 4000)


def test_staleness_under_asp_is_what_the_others_do_meanwhile() -> None:
    """N equal workers: between reading and updating, the other N - 1 update once each."""
    _, rows = train(ASP, RunSettings(60, warmup=10, seed=5), workers=8, jitter=Jitter("lognormal", 0.2))
    stale = [row.staleness_updates for row in rows if row.iteration >= 10]
    assert np.mean(stale) == pytest.approx(7, rel=0.02)


def test_pushing_and_pulling_take_what_the_links_take() -> None:
    """One worker, no overlap: forward and backward, n/B + p there, and n/B + p back."""
    _, rows = train(ASP, RunSettings(3), workers=1, elements=(250_000,), bandwidth=B, latency_s=P, overlap=False)
    assert rows[-1].exposed_communication_time_s == pytest.approx(2 * (1e6 / B + P), rel=1e-9)
