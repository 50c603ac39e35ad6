"""Dataflow graphs as workloads, through whole runs: who sends what to whom, and when it is over."""

from __future__ import annotations

from collections import Counter

import pytest

import simnet
from simnet.errors import InputError
from simnet.scenario import load_scenario
from simnet.shipped import shipped_folder

from .building import B, within

LATENCY = 2e-6
ALEXNET = str(shipped_folder("workloads") / "dataflow" / "alexnet_4_devices.yaml")

DIAMOND = """
operations:
  - {name: begin, device: 0, time: 10 ms, output: 1.25 MB}
  - {name: left, device: 1, time: 20 ms, output: 2.5 MB, inputs: [begin]}
  - {name: right, device: 2, time: 30 ms, output: 1.25 MB, inputs: [begin]}
  - {name: beside, device: 0, time: 4 ms, output: 5 MB, inputs: [begin]}
  - {name: end, device: 1, time: 5 ms, gradient: 250000, inputs: [left, right, beside]}
"""
"""A tensor of 1.25 MB takes 1 ms. From `begin` on device 0 to `end` on device 1:

by `left`: 10 + 1 + 20 ms; by `right`: 10 + 1 + 30 + 1 ms; by `beside`: 10 + 4 + 4 ms.
"""

DIAMOND_S = 10e-3 + 1e-3 + LATENCY + 30e-3 + 1e-3 + LATENCY + 5e-3


def run(graph, *, hosts, **training):
    return simnet.run(
        {
            "topology": {"full_mesh": {"hosts": hosts, "bandwidth": "10 Gbps", "latency": "2 us"}},
            "protocol": {"ideal": {"divisible": True}},
            "workload": {"graph": graph, "batch_size": 32},
            "training": {"workers": hosts, "overlap": False, **training},
            "run": {"iterations": 2, "warmup": 1},
        }
    )


def link_bytes(result):
    links = result.links[result.links["wire_bytes"] > 0]
    return dict(zip(links["resource"], links["wire_bytes"] / result.summary.iterations[0], strict=True))


@pytest.fixture
def diamond(tmp_path):
    file = tmp_path / "diamond.yaml"
    file.write_text(DIAMOND)
    return str(file)


def test_a_diamond_worked_out_by_hand(diamond):
    """It takes as long as its longest path, by `right`: 47 ms and two latencies; bytes are those of the cut edges.

    `left` and `end` are on one device, so that 2.5 MB stay there; `begin` goes to two devices, to each once.
    """
    result = run(diamond, hosts=3)
    summary = result.summary.iloc[0]
    assert summary.iteration_time_s == within(DIAMOND_S)
    assert result.workers["compute_time_s"].tolist() == within([14e-3, 25e-3, 30e-3])
    assert link_bytes(result) == within({"host0->host1": 1.25e6 + 5e6, "host0->host2": 1.25e6, "host2->host1": 1.25e6})
    assert summary.speedup == within((10 + 20 + 30 + 4 + 5) * 1e-3 / DIAMOND_S)
    assert summary.throughput_samples_per_s == within(32 / DIAMOND_S)


def test_replicas_of_a_graph_exchange_gradients_device_by_device(diamond):
    """2 replicas: worker 2 d + r is device d of replica r; only device 1 has gradients, S = 1 MB in a ring of 2.

    That takes 2(S/(2B) + p) after `end`, 0.8 ms. Meanwhile `begin` goes on, as device 0 has nothing to wait for; device
    1 is not needed again before 11 ms are over, so that a step follows the other after 47 ms as before.
    """
    result = run(diamond, hosts=6)
    assert result.workers[["stage", "replica"]].to_numpy().tolist() == [[d, r] for d in range(3) for r in range(2)]
    expected = {f"host{r}->host{2 + r}": 6.25e6 for r in range(2)}
    expected |= {f"host{r}->host{4 + r}": 1.25e6 for r in range(2)}
    expected |= {f"host{4 + r}->host{2 + r}": 1.25e6 for r in range(2)}
    expected |= {"host2->host3": 1e6, "host3->host2": 1e6}
    assert link_bytes(result) == within(expected)
    ring_s = 2 * (1e6 / (2 * B) + LATENCY)
    assert result.collectives["duration_s"].to_numpy() == within([ring_s] * 3)
    with_gradients = result.workers[result.workers["stage"] == 1]
    assert (with_gradients["exposed_communication_time_s"] >= ring_s * (1 - 1e-9)).all()
    assert result.summary.iteration_time_s[0] == within(DIAMOND_S)
    assert result.summary.parallelism[0] == "data 2, devices 3"


def test_the_graph_that_ships_sends_its_cut_edges():
    """Between each two devices the outputs of operations on one that the other reads, each once."""
    graph = load_scenario("dataflow_alexnet").job.workload.graph
    cut = {
        (before, graph.operations[after].device): graph.operations[before].output_bytes
        for before, after in graph.edges
        if graph.operations[before].device != graph.operations[after].device
    }
    expected: Counter[str] = Counter()
    for (before, device), size in cut.items():
        expected[f"host{graph.operations[before].device}->host{device}"] += size
    assert link_bytes(run(ALEXNET, hosts=4)) == within(dict(expected))


def test_the_graph_that_ships_takes_its_critical_path():
    """All that is on the way forward and back to the first device, 118.7 ms, and 6 tensors between devices.

    Of operations that become ready at once a device takes the one that stands first, which is the one on that way. The
    other gradients are there before: the last of them 31.46 ms after the last tensor leaves, that of the first device
    12.72 ms after it has come, at 10 Gbit/s 76 ms later.
    """
    on_the_way_ms = (9.667, 25.91, 11.06, 6.554, 7.105e-3, 8.038, 13.25, 31.46, 12.72)
    tensors = 2 * (91.125 + 63.375 + 18) * 2**20
    summary = run(ALEXNET, hosts=4).summary.iloc[0]
    assert summary.iteration_time_s == within(sum(on_the_way_ms) * 1e-3 + tensors / B + 6 * LATENCY)


def test_replicas_are_cut_into_groups_that_they_can_be_cut_into():
    """Two replicas of four devices exchange gradients; the four GPUs of a host are no group of these."""
    with pytest.raises(InputError, match="2 replicas of the graph do not go with group: 4, a divisor of 2 is wanted"):
        simnet.run("dataflow_alexnet", {"training.architecture": {"hierarchical": {"group": 4}}})
    fitting = simnet.run("dataflow_alexnet", {"training.architecture": {"hierarchical": {"group": 2}}})
    assert fitting.summary["iteration_time_s"].iloc[0] > 0.0
