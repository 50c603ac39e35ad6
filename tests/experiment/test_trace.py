"""A recorded trace is replayed as recorded, jitter and all."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import simnet

LAYERS = {"conv1": 9_408, "conv2": 36_864, "fc": 2_048_000}
ITERATIONS = 6


@pytest.fixture
def trace(tmp_path):
    """Write a trace of one rank with random times and gaps; return its file and what each iteration lasted."""
    random = np.random.default_rng(7)
    rows, lasted, now = [], [], 100.0
    for iteration in range(ITERATIONS):
        begin = now
        passes = [("forward", layer) for layer in LAYERS] + [("backward", layer) for layer in reversed(LAYERS)]
        for number, (phase, layer) in enumerate([*passes, ("optimizer", "sgd")]):
            now += random.exponential(1e-4) if number else 0.0
            duration = random.lognormal(-6, 0.5)
            rows.append(
                [iteration, 0, layer, phase, now, duration, LAYERS.get(layer, "") if phase == "forward" else ""]
            )
            now += duration
        lasted.append(now - begin)
        now += 0.5  # what is between iterations belongs to none
    file = tmp_path / "trace.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["iteration", "rank", "layer", "phase", "start_s", "duration_s", "parameters"])
        writer.writerows([[*row[:4], repr(float(row[4])), repr(float(row[5])), row[6]] for row in rows])
    return file, np.array(lasted)


def _scenario(file, workers=1, **run):
    return {
        "topology": {"star": {"hosts": workers}},
        "protocol": "ideal",
        "workload": {"trace": str(file), "batch_size": 32},
        "run": {"iterations": ITERATIONS, "warmup": 0} | run,
    }


@pytest.mark.parametrize("overlap", [True, False])
def test_the_optimizer_waits_for_the_gradients(tmp_path, overlap):
    """10 ms forward, 10 ms backward, 4 MB on 4 hosts at 10 Gbit/s, 5 ms of optimizer: one after the other.

    The ring takes 2 * 3 * (1 MB / 1.25 GB/s + 2 us) = 4.812 ms, none of which computing can hide.
    """
    rows = ["0,0,fc,forward,0,0.01,1000000", "0,0,fc,backward,0.01,0.01,", "0,0,sgd,optimizer,0.02,0.005,"]
    head = "iteration,rank,layer,phase,start_s,duration_s,parameters"
    (tmp_path / "t.csv").write_text("\n".join([head, *rows]))
    scenario = _scenario(tmp_path / "t.csv", 4, iterations=3)
    scenario["topology"] = {"star": {"hosts": 4, "bandwidth": "10 Gbps", "latency": "1 us"}}
    result = simnet.run(scenario | {"training": {"overlap": overlap}})
    ring_s = 2 * 3 * (1e6 / 1.25e9 + 2e-6)
    assert result.iterations["exposed_communication_time_s"].tolist() == pytest.approx([ring_s] * 12, rel=1e-9)
    assert result.summary["iteration_time_s"][0] == pytest.approx(0.025 + ring_s, rel=1e-9)
    assert result.summary["bound_iteration_time_s"][0] == pytest.approx(0.025 + ring_s, rel=1e-9)


def test_on_one_worker_each_iteration_lasts_as_recorded(trace):
    """Within 1e-9, one by one and all together."""
    file, lasted = trace
    result = simnet.run(_scenario(file))
    np.testing.assert_allclose(result.iterations["iteration_time_s"], lasted, rtol=1e-9)
    np.testing.assert_allclose(result.iterations["compute_time_s"], lasted, rtol=1e-9)
    assert result.iterations["iteration_time_s"].sum() == pytest.approx(lasted.sum(), rel=1e-9)
    assert result.about["simulated_s"] == pytest.approx(lasted.sum(), rel=1e-9)
    assert result.summary.scaling_efficiency[0] == pytest.approx(1.0, rel=1e-12)


def test_a_longer_run_begins_the_recording_anew(trace):
    file, lasted = trace
    result = simnet.run(_scenario(file, iterations=8, warmup=1))
    expected = lasted[np.arange(9) % ITERATIONS]
    np.testing.assert_allclose(result.iterations["compute_time_s"], expected, rtol=1e-9)
    assert result.summary.compute_time_s[0] == pytest.approx(expected[1:].mean(), rel=1e-9)


def test_on_several_workers_all_replay_it_and_communicate(trace):
    """Compute as recorded on each; what is added is communication."""
    file, lasted = trace
    result = simnet.run(_scenario(file, workers=4))
    for _, rows in result.iterations.groupby("rank"):
        np.testing.assert_allclose(rows["compute_time_s"], lasted, rtol=1e-9)
    assert (result.iterations["iteration_time_s"] >= result.iterations["compute_time_s"]).all()
    assert result.collectives["size_bytes"].sum() == ITERATIONS * 4 * sum(LAYERS.values())


def test_a_recorded_iteration_is_explained(trace):
    """Both workers do what one was recorded to do: nobody waits for a straggler, and computing is that of its step."""
    file, lasted = trace
    found = simnet.explain(_scenario(file, workers=2))
    [iteration] = found.iterations
    parts = found.parts.set_index("part")["time_s"]
    assert parts.sum() == pytest.approx(found.iteration_time_s, rel=1e-9)
    assert "stragglers" not in parts
    assert parts[["forward", "backward"]].sum() <= lasted[iteration] * (1 + 1e-9)
    assert found.sensitivity is not None
    assert found.sensitivity.set_index("change")["effect"]["computing x2"] < -0.2
