"""Stragglers, groups of workers, accumulation, memory and targets in a scenario."""

from __future__ import annotations

import pytest

import simnet
from simnet.errors import InputError
from simnet.scenario import load_scenario
from simnet.training.computing.stragglers import Constant, Drifting, Occasional, Periodic

STAR = {"star": {"hosts": 4, "bandwidth": "100 Gbps", "latency": "1 us"}}


def data(workload=None, **training):
    given = {"model": "resnet50", "batch_size": 32, "samples_per_s": 320, **(workload or {})}
    return {"topology": STAR, "protocol": "ideal", "workload": given, "training": {"workers": 4, **training}}


def told(workload=None, **training):
    with pytest.raises(InputError) as error:
        load_scenario(data(workload, **training))
    return str(error.value)


def test_patterns_of_stragglers():
    stragglers = [
        {"workers": [1], "pattern": {"constant": {"factor": 2}}},
        {"workers": [0, 3], "pattern": {"drifting": {"per_iteration": 0.01, "at_most": 3}}},
        {"workers": [2], "pattern": {"periodic": {"factor": 2, "every": 20, "lasts": 5}}},
        {"workers": [2], "pattern": {"occasional": {"factor": 5, "probability": 0.01}}},
    ]
    made = load_scenario(data(stragglers=stragglers)).jobs[0].training.stragglers
    assert [straggler.workers for straggler in made] == [(1,), (0, 3), (2,), (2,)]
    patterns = [Constant(2.0), Drifting(0.01, 3.0), Periodic(2.0, 20, 5), Occasional(5.0, 0.01)]
    assert [straggler.pattern for straggler in made] == patterns


@pytest.mark.parametrize(
    ("straggler", "said"),
    [
        ({"workers": [4], "pattern": {"constant": {"factor": 2}}}, "names rank 4, of 4 workers"),
        ({"workers": [1, 1], "pattern": {"constant": {"factor": 2}}}, "names rank 1 twice"),
        ({"workers": [1], "pattern": {"constant": {"factor": 0.5}}}, "factor is 0.5, a number of at least 1"),
        ({"workers": [1], "pattern": {"periodic": {"factor": 2, "every": 2, "lasts": 3}}}, "more than every 2"),
        ({"workers": [1], "pattern": "constant"}, "'factor' is missing in constant"),
        ({"workers": [1], "pattern": {"random": {}}}, "pattern does not know 'random'"),
    ],
)
def test_stragglers_that_cannot_be(straggler, said):
    assert said in told(stragglers=[straggler])


def test_groups_of_workers_compute_each_at_its_own_rate():
    """One worker computes 64 samples at 640/s, three 32 at 80/s: 0.1 s and 0.4 s. Together 160 samples; the baseline is
    640/s, that of the faster group."""
    groups = [{"workers": 1, "samples_per_s": 640, "batch_size": 64}, {"workers": 3, "samples_per_s": 80}]
    result = simnet.run(data({"groups": groups}, overlap=False))
    row = result.summary.iloc[0]
    assert row.samples_per_iteration == 64 + 3 * 32
    assert row.throughput_samples_per_s == pytest.approx(160 / row.iteration_time_s, rel=1e-12)
    assert row.speedup == pytest.approx(row.throughput_samples_per_s / 640, rel=1e-12)
    assert result.workers["compute_time_s"].tolist() == pytest.approx([0.1, 0.4, 0.4, 0.4], rel=1e-9)
    assert row.bound_iteration_time_s <= row.iteration_time_s


def test_groups_of_gpus():
    groups = [{"workers": 2, "gpu": "v100"}, {"workers": 2, "gpu": "k80"}]
    workload = {"model": "resnet50", "batch_size": 32, "groups": groups}
    made = load_scenario({"topology": STAR, "protocol": "ideal", "workload": workload}).jobs[0].workload
    assert made.gpu == "v100, k80"
    assert made.parts[0].compute_time_s < made.parts[1].compute_time_s


@pytest.mark.parametrize(
    ("workload", "training", "said"),
    [
        ({"groups": [{"workers": 3}]}, {}, "groups have 3 workers, but there are 4"),
        ({"groups": [{"workers": 4}]}, {"parallelism": {"pipeline": 2}}, "groups"),
        ({"serial_time": "1 ms"}, {"parallelism": {"pipeline": 2}}, "serial_time stands beside a model that is split"),
        ({}, {"accumulation": 2, "parallelism": {"pipeline": 2}}, "accumulation stands beside a model that is split"),
        ({}, {"accumulation": 2, "zero_stage": 2}, "accumulation stands beside zero_stage 2"),
        ({}, {"target": {"epochs": 90}}, "target has neither samples alone"),
        ({}, {"target": {"epochs": 90, "samples": 90, "dataset_samples": 1}}, "target has neither samples alone"),
        ({"memory_hierarchy": {"levels": [], "bytes_per_sample": "1 B", "uses": 1}}, {}, "levels is empty"),
        (
            {
                "memory_hierarchy": {
                    "levels": [{"size": "1 MB", "bandwidth": "1 GB/s"}],
                    "bytes_per_sample": "1 MB",
                    "uses": 1,
                }
            },
            {},
            "a working set of 32 MB fits into no level, the last of which has 1 MB",
        ),
        (
            {
                "memory_hierarchy": {
                    "levels": [{"size": "1 GB", "bandwidth": "1 GB/s"}, {"size": "1 MB", "bandwidth": "1 GB/s"}],
                    "bytes_per_sample": "1 B",
                    "uses": 1,
                }
            },
            {},
            "levels[1] is not larger than the one before",
        ),
    ],
)
def test_what_does_not_fit_together(workload, training, said):
    assert said in told(workload, **training)


def test_the_summary_says_how_long_the_whole_training_takes():
    """4 workers, 2 passes of 32 samples: 256 an iteration; 100 epochs of 1.28 million samples: 500,000 iterations."""
    target = {"epochs": 100, "dataset_samples": 1_280_000}
    row = simnet.run(data(accumulation=2, target=target)).summary.iloc[0]
    assert row.samples_per_iteration == 256
    assert (row.iterations_to_target, row.rounds_to_target) == (500_000, 500_000)
    assert row.time_to_target_s == pytest.approx(500_000 * row.iteration_time_s, rel=1e-12)


def test_memory_time_is_added_to_that_of_arithmetic():
    """32 samples at 320/s: 0.1 s; 32 MB used 100 times at 10 GB/s: 0.32 s."""
    hierarchy = {
        "levels": [{"size": "1 GB", "bandwidth": "10 GB/s"}],
        "bytes_per_sample": "1 MB",
        "uses": 100,
    }
    made = load_scenario(data({"memory_hierarchy": hierarchy, "serial_time": "5 ms"})).jobs[0].workload
    assert made.compute_time_s == pytest.approx(0.1 + 0.32 + 0.005, rel=1e-12)
    assert (made.memory_s, made.serial_s) == (pytest.approx(0.32, rel=1e-12), 0.005)
