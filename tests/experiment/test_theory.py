"""What a run gives, against formulas: from the scenario down to the rates of flows and back up to the table."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

import simnet
from simnet.scenario import load_scenario
from simnet.workload import Throughput, list_gpus, list_throughput, throughput_curve

from .examples import BANDWIDTH, BATCH, LATENCY, RATE, RESNET50_BYTES, star_scenario


def _measured() -> list[Throughput]:
    """Every measured row that a scenario uses, for each model, GPU, precision and sequence length."""
    rows = []
    cases = {(row.model, row.gpu, row.precision, row.sequence_length) for row in list_throughput()}
    for case in sorted(cases, key=str):
        rows += throughput_curve(*case)
    return rows


MEASURED = _measured()


def _workload(row: Throughput) -> dict[str, object]:
    workload = {"model": row.model, "gpu": row.gpu, "precision": row.precision, "batch_size": row.batch_size}
    return workload | ({"sequence_length": row.sequence_length} if row.sequence_length else {})


def _one_worker(workload: dict[str, object]) -> dict[str, object]:
    return {"topology": {"star": {"hosts": 1}}, "protocol": "ideal", "workload": workload, "run": {"iterations": 2}}


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row.model}-{row.gpu}-{row.precision}-{row.batch_size}")
def test_compute_time_is_batch_by_measured_rate(row):
    """compute_time_s = batch / rate, within 1e-6, for every row of the table."""
    workload = load_scenario(_one_worker(_workload(row))).job.workload
    assert workload.compute_time_s == pytest.approx(row.batch_size / row.samples_per_s, rel=1e-6)


@pytest.mark.parametrize(
    "row",
    [next(rows) for _, rows in groupby(MEASURED, key=lambda row: (row.model, row.gpu))],
    ids=lambda row: f"{row.model}-{row.gpu}",
)
def test_so_it_is_through_a_whole_run(row):
    """On one worker: compute time = iteration time = batch / rate, and throughput = the measured rate."""
    summary = simnet.run(_one_worker(_workload(row))).summary.iloc[0]
    assert summary.compute_time_s == pytest.approx(row.batch_size / row.samples_per_s, rel=1e-6)
    assert summary.iteration_time_s == summary.compute_time_s
    assert summary.throughput_samples_per_s == pytest.approx(row.samples_per_s, rel=1e-6)


def test_every_gpu_with_a_rate_was_tried():
    assert {row.gpu for row in MEASURED} <= {gpu.name for gpu in list_gpus()}
    assert len(MEASURED) > 100


@pytest.mark.parametrize("architecture", ["ring", "star", "tree", "butterfly", "mesh"])
@pytest.mark.parametrize("overlap", [True, False])
def test_one_worker_communicates_with_nobody(architecture, overlap):
    """Communication, waiting, bytes and messages are 0; speedup and efficiency are 1."""
    result = simnet.run(star_scenario(1, architecture=architecture, overlap=overlap))
    summary = result.summary.iloc[0]
    for column in (
        *("communication_time_s", "exposed_communication_time_s", "waiting_time_s", "communication_compute_ratio"),
        *("bytes_sent_per_worker", "wire_bytes", "messages"),
    ):
        assert summary[column] == 0, column
    assert summary.speedup == summary.scaling_efficiency == 1.0
    assert summary.bottleneck == ""
    assert summary.bound_iteration_time_s == summary.iteration_time_s == summary.compute_time_s
    assert result.collectives.empty
    assert (result.links["wire_bytes"] == 0).all()


def _ring_s(workers: int, total_bytes: float, exchanges: int) -> float:
    """Return the time of ring all-reduces, one after the other: sum of 2(N-1)(S/(NB) + p), p of two links."""
    return 2 * (workers - 1) * (total_bytes / (workers * BANDWIDTH) + exchanges * 2 * LATENCY)


def _buckets(total: list[int], bucket_bytes: float) -> int:
    count, held = 0, 0.0
    for elements in total:
        held += 4 * elements
        if held >= bucket_bytes:
            count, held = count + 1, 0.0
    return count + (held > 0)


@pytest.mark.parametrize("workers", [2, 3, 8, 16])
@pytest.mark.parametrize("bucket_mib", [1, 25, 1000])
def test_without_overlap_an_iteration_is_computing_plus_all_rings(workers, bucket_mib):
    """iteration = batch / rate + sum over buckets of 2(N-1)(S/(NB) + p): nothing is hidden."""
    result = simnet.run(star_scenario(workers, overlap=False, bucket_size=f"{bucket_mib} MiB"))
    tensors = load_scenario(star_scenario(workers)).job.workload.tensor_elements.tolist()
    rings = _ring_s(workers, RESNET50_BYTES, _buckets(tensors, bucket_mib * 2**20))
    summary = result.summary.iloc[0]
    assert summary.compute_time_s == pytest.approx(BATCH / RATE, rel=1e-12)
    assert summary.exposed_communication_time_s == pytest.approx(rings, rel=1e-9)
    assert summary.waiting_time_s == pytest.approx(0, abs=1e-12)
    assert summary.iteration_time_s == pytest.approx(BATCH / RATE + rings, rel=1e-9)


def test_with_overlap_only_what_computing_does_not_hide_is_exposed():
    """The last bucket cannot be hidden; the others are when each ring is over before the next bucket is ready."""
    scenario = load_scenario(star_scenario(4))
    result = simnet.run(star_scenario(4))
    collectives = result.collectives[result.collectives["iteration"] == 0]
    assert (collectives["start_s"] == collectives["announced_s"]).all(), "no bucket had to wait for the one before"
    last = collectives["size_bytes"].iloc[-1]
    exposed = _ring_s(4, last, 1)
    summary = result.summary.iloc[0]
    assert summary.exposed_communication_time_s == pytest.approx(exposed, rel=1e-9)
    assert collectives["size_bytes"].sum() == RESNET50_BYTES
    assert summary.compute_time_s == pytest.approx(scenario.job.workload.compute_time_s, rel=1e-12)


def test_doubling_the_batch_doubles_computing_and_leaves_communication():
    """At one rate: compute = batch / rate doubles, bytes and rings stay, so that efficiency rises."""
    once = simnet.run(star_scenario(4, overlap=False)).summary.iloc[0]
    twice = simnet.run(star_scenario(4, overlap=False), {"workload.batch_size": 2 * BATCH}).summary.iloc[0]
    assert twice.compute_time_s == pytest.approx(2 * once.compute_time_s, rel=1e-12)
    assert twice.exposed_communication_time_s == pytest.approx(once.exposed_communication_time_s, rel=1e-9)
    assert twice.communication_time_s == pytest.approx(once.communication_time_s, rel=1e-9)
    assert (twice.bytes_sent_per_worker, twice.messages) == (once.bytes_sent_per_worker, once.messages)
    assert twice.scaling_efficiency > once.scaling_efficiency


def test_doubling_the_batch_by_the_table_follows_the_measured_rates():
    """ResNet-50 on a V100: 64 / 253.1 = 252.9 ms; 128 at the rate that was measured for 128."""
    rates = {row.batch_size: row.samples_per_s for row in throughput_curve("resnet50", "v100", "fp32", None)}
    for batch in (64, 128):
        run = simnet.run("resnet50_16gpu", {"workload.batch_size": batch, "run.iterations": 1})
        assert run.summary.compute_time_s[0] == pytest.approx(batch / rates[batch], rel=1e-6)
    assert rates[64] == 253.1


def test_halving_the_gpus_halves_throughput_less_what_communication_saves():
    """Weak scaling: compute stays, a ring of N/2 sends 2(N/2-1)/(N/2) S instead of 2(N-1)/N S."""
    many = simnet.run(star_scenario(16, overlap=False)).summary.iloc[0]
    half = simnet.run(star_scenario(8, overlap=False)).summary.iloc[0]
    assert half.compute_time_s == many.compute_time_s
    assert many.bytes_sent_per_worker == pytest.approx(2 * 15 / 16 * RESNET50_BYTES, rel=1e-12)
    assert half.bytes_sent_per_worker == pytest.approx(2 * 7 / 8 * RESNET50_BYTES, rel=1e-12)
    assert 0.5 < half.throughput_samples_per_s / many.throughput_samples_per_s < 0.51
    assert half.scaling_efficiency > many.scaling_efficiency


def test_halving_the_gpus_under_a_global_batch_doubles_what_each_computes():
    """Strong scaling: batch per worker = global batch / workers."""
    scenario = star_scenario(16, overlap=False)
    scenario["workload"] = {"model": "resnet50", "global_batch_size": 1024, "samples_per_s": RATE}
    many = simnet.run(scenario).summary.iloc[0]
    half = simnet.run(scenario, {"training.workers": 8}).summary.iloc[0]
    assert (many.batch_size_per_worker, half.batch_size_per_worker) == (64, 128)
    assert half.compute_time_s == pytest.approx(2 * many.compute_time_s, rel=1e-12)


def test_half_the_bytes_an_element_take_half_the_time():
    """gradient_dtype sets the bytes on the wire: fp16 sends half of fp32, whatever the precision."""
    full = simnet.run(star_scenario(4, overlap=False, bucket_size="1 GB")).summary.iloc[0]
    half = simnet.run(star_scenario(4, overlap=False, bucket_size="1 GB"), {"workload.gradient_dtype": "fp16"})
    assert half.summary.bytes_sent_per_worker[0] == full.bytes_sent_per_worker / 2
    latency = 2 * 3 * 2 * LATENCY
    assert half.summary.exposed_communication_time_s[0] - latency == pytest.approx(
        (full.exposed_communication_time_s - latency) / 2, rel=1e-9
    )


def test_a_straggler_makes_the_others_wait_by_the_difference():
    """One worker at half speed, all sent after the backward pass: the others wait for T / 0.5 - T = T."""
    result = simnet.run(star_scenario(4, overlap=False, speed_factors={2: 0.5}))
    workers = result.workers.set_index("rank")
    for rank in (0, 1, 3):
        assert workers.waiting_time_s[rank] == pytest.approx(BATCH / RATE, rel=1e-9)
    assert workers.compute_time_s[2] == pytest.approx(2 * BATCH / RATE, rel=1e-12)
    assert workers.waiting_time_s[2] == pytest.approx(0, abs=1e-12)
    assert np.ptp(workers.exposed_communication_time_s) == pytest.approx(0, abs=1e-12)
    # The baseline is a worker of the fastest group.
    assert result.summary.speedup[0] == pytest.approx(result.summary.throughput_samples_per_s[0] / RATE, rel=1e-12)


def test_a_socket_for_each_message_pays_the_set_up_for_each():
    """Each of the 2(N-1) rounds of a ring is later by set-up + round trips * 2 * latency."""
    both = []
    for connection in ("persistent", "per_message"):
        protocol = {"ideal": {"divisible": True, "connection": connection, "connection_setup": "50 us"}}
        protocol["ideal"]["connection_setup_round_trips"] = 1
        scenario = star_scenario(4, overlap=False, bucket_size="1 GB") | {"protocol": protocol}
        both.append(simnet.run(scenario).summary.exposed_communication_time_s[0])
    assert both[1] - both[0] == pytest.approx(2 * 3 * (50e-6 + 2 * 2 * LATENCY), rel=1e-6)


def test_bandwidth_and_size_scaled_alike_change_nothing(tmp_path):
    """Without latency: ten times the gradients over ten times the bandwidth take 2(N-1)/N S/B as before."""
    times = []
    for factor in (1, 10):
        file = tmp_path / f"{factor}.csv"
        file.write_text(f"layer,parameters,forward_s,backward_s\na,{factor * 1_000_000},0.01,0.02\n")
        scenario = star_scenario(4) | {"workload": {"file": str(file), "batch_size": 1}}
        scenario["topology"] = {"star": {"hosts": 4, "bandwidth": f"{factor * 10} Gbps", "latency": "0 s"}}
        times.append(simnet.run(scenario).summary.exposed_communication_time_s[0])
    assert times[0] == pytest.approx(times[1], rel=1e-9)
    assert times[0] == pytest.approx(2 * 3 / 4 * 4e6 / 1.25e9, rel=1e-9)
