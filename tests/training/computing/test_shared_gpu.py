"""Computing and communicating that slow each other down."""

from __future__ import annotations

from dataclasses import replace

import pytest
import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import HostSpec, star
from simnet.training.communication.settings import Architecture
from simnet.training.computing.shared_gpu import SharedGpu
from simnet.training.job import start_job
from simnet.training.records import IterationRow
from simnet.training.settings import JobSettings, OverlapSlowdown, RunSettings, TrainingSettings

from ..building import iteration_s, ring_s, run_job, workload

TWO = TrainingSettings(workers=2, architecture=Architecture("ring"), bucket_bytes=1.0)
PCIE = 1e9


@pytest.mark.parametrize("slowdown", [1.0, 1.16, 2.0, 10.0])
@pytest.mark.parametrize(
    ("work_s", "busy"), [(1.0, (0.0, 100.0)), (1.0, (0.5, 100.0)), (1.0, (0.2, 0.4)), (0.0, (0.0, 1.0))]
)
def test_what_is_computed_while_something_is_exchanged_takes_so_many_times_as_long(slowdown, work_s, busy):
    """Busy from b to e: done at b + (w - b) c where that is before e, else (e - b)/c of it is done until e."""
    env = simpy.Environment()
    fabric = FluidFabric(env, Network(star(hosts=2), FlowProtocol()))
    begin_s, end_s = busy
    shared = SharedGpu(fabric, 0, OverlapSlowdown(slowdown, 1.0))
    env.process(shared.compute(work_s, lambda: min(max(env.now - begin_s, 0.0), end_s - begin_s)))
    env.run()
    beside_s = begin_s + (work_s - begin_s) * slowdown
    expected_s = work_s if work_s <= begin_s else beside_s
    if beside_s > end_s:
        expected_s = end_s + work_s - begin_s - (end_s - begin_s) / slowdown
    assert env.now == pytest.approx(expected_s, rel=1e-7)


def test_an_exchange_that_is_hidden_costs_its_share_of_computing():
    """The first of two tensors takes x beside the backward pass of 0.5 s that follows: 0.5 + x (1 - 1/c) of it; the
    last tensor is small, and exposed."""
    load = workload([250_000, 4], forward_s=0.01, backward_s=[0.1, 0.5])
    _, rows, _, _ = run_job(load, replace(TWO, overlap_slowdown=OverlapSlowdown(1.25, 1.0)))
    hidden_s = ring_s(2, 1e6)
    for row in rows:
        assert iteration_s(row) == pytest.approx(0.61 + hidden_s * (1 - 1 / 1.25) + ring_s(2, 16.0), rel=1e-7)


def test_nothing_changes_where_nothing_overlaps():
    """Without overlap the exchange begins behind all computing: the same as without it."""
    load = workload([250_000, 100_000])
    plain = replace(TWO, overlap=False)
    times = [
        [iteration_s(row) for row in run_job(load, training)[1]]
        for training in (plain, replace(plain, overlap_slowdown=OverlapSlowdown(1.5, 2.0)))
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-12)


def _with_gpus(training: TrainingSettings) -> list[float]:
    env, recorder = simpy.Environment(), Recorder()
    host = HostSpec(gpus=2, pcie_bandwidth_bytes_per_s=PCIE, pcie_latency_s=0.0)
    fabric = FluidFabric(env, Network(star(hosts=1, host=host), FlowProtocol(divisible=True)))
    load = workload([500_000, 4], forward_s=0.01, backward_s=[0.1, 0.5])
    job = start_job(env, fabric, recorder, JobSettings("job", load, training), RunSettings(iterations=2, warmup=1))
    env.run(job.course.done)
    return [row.communication_time_s for row in recorder.rows(IterationRow)]


def test_links_of_a_gpu_carry_less_while_it_computes():
    """A ring of two sends S = 2 MB each way: 2 ms at 1 GB/s, twice that beside computing; the small one follows."""
    alone, beside = _with_gpus(TWO), _with_gpus(replace(TWO, overlap_slowdown=OverlapSlowdown(1.0, 2.0)))
    small_s = 16.0 / PCIE
    assert alone == pytest.approx([2e-3 + small_s] * len(alone), rel=1e-6)
    assert beside == pytest.approx([4e-3 + small_s] * len(beside), rel=1e-6)


def test_the_overhead_of_a_step_comes_behind_everything_and_only_where_something_is_exchanged():
    load = workload([250_000])
    plain = [iteration_s(row) for row in run_job(load, TWO)[1]]
    slower = [iteration_s(row) for row in run_job(load, replace(TWO, step_overhead_s=0.004))[1]]
    assert slower == pytest.approx([seconds + 0.004 for seconds in plain], rel=1e-9)
    alone = replace(TWO, workers=1, step_overhead_s=0.004)
    assert [iteration_s(row) for row in run_job(load, alone)[1]] == pytest.approx([0.03] * 4, rel=1e-9)
