"""Models that are split over workers, through whole runs: pipelines, shared layers, grids of both, shared memory.

Hosts that are all cabled to each other (full mesh) show on their links who talks to whom.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simnet
from simnet.training.settings import Parallelism

from .building import BACKWARD_S, FORWARD_S, B, C, layers, scenario, star, within

MESH = {"bandwidth": "10 Gbps", "latency": "0 s"}
BATCH = 24


def link_bytes(result):
    """Bytes that each link carries in an iteration, of those that carry any."""
    links = result.links[result.links["wire_bytes"] > 0]
    return dict(zip(links["resource"], links["wire_bytes"] / result.summary.iterations[0], strict=True))


# -- pipelines ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.sampled_from([1, 2, 3, 4, 6, 8, 12]), st.sampled_from(["gpipe", "1f1b"]))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_bubble(tmp_path_factory, stages, micro_batches, order):
    """Equal stages, activations of 0 bytes, no latency: waiting / iteration = (p - 1)/(m + p - 1), on each stage.

    An iteration takes (m + p - 1)/m times what a stage computes; nothing of it is communication.
    """
    file = layers(tmp_path_factory.mktemp("workload"), [{"parameters": 1}] * stages)
    training = {"parallelism": {"pipeline": stages}, "pipeline": {"micro_batches": micro_batches, "order": order}}
    result = simnet.run(scenario(file, star(stages, latency="0 s"), training))
    longer = (micro_batches + stages - 1) / micro_batches
    for row in (result.summary.iloc[0], *result.workers.itertuples()):
        assert row.compute_time_s == within(C)
        assert row.iteration_time_s == within(C * longer)
        assert row.waiting_time_s / row.iteration_time_s == within((stages - 1) / (micro_batches + stages - 1))
        assert row.exposed_communication_time_s == within(0.0)


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 4), (3, 8)])
def test_activations_take_their_time_between_stages(tmp_path, stages, micro_batches):
    """GPipe, messages of x seconds, shorter than the passes of a micro-batch: 2(p - 1) x more, all of it exposed."""
    rows = [{"parameters": 1, "activation_bytes": 10_000.0}] * stages
    training = {"parallelism": {"pipeline": stages}, "pipeline": {"micro_batches": micro_batches, "order": "gpipe"}}
    result = simnet.run(scenario(layers(tmp_path, rows), star(stages, latency="0 s"), training))
    message_s = 10_000.0 * BATCH / micro_batches / B
    bubble_s = C * (stages - 1) / micro_batches
    summary = result.summary.iloc[0]
    assert summary.iteration_time_s == within(C + bubble_s + (stages - 1) * 2 * message_s)
    first = result.workers.iloc[0]
    assert first.exposed_communication_time_s == within((stages - 1) * 2 * message_s)
    assert first.waiting_time_s == within(bubble_s)


def test_1f1b_holds_fewer_activations_for_the_same_time(tmp_path):
    """The first of p stages holds the activations of p micro-batches instead of all m; the bubble is the same."""
    rows = [{"parameters": 0, "activation_bytes": 1e6}] * 3 + [{"parameters": 1, "activation_bytes": 1e6}]
    file, found = layers(tmp_path, rows), {}
    for order in ("gpipe", "1f1b"):
        training = {"parallelism": {"pipeline": 4}, "pipeline": {"micro_batches": 12, "order": order}}
        found[order] = simnet.run(scenario(file, star(4, bandwidth="400000 Gbps", latency="0 s"), training)).summary
    assert found["gpipe"].memory_bytes_per_worker[0] == within(1e6 * BATCH, rel=1e-5)
    assert found["1f1b"].memory_bytes_per_worker[0] == within(1e6 * BATCH * 4 / 12, rel=1e-5)
    assert found["1f1b"].iteration_time_s[0] == within(found["gpipe"].iteration_time_s[0], rel=1e-3)


# -- grids -------------------------------------------------------------------------------------------------------------


def test_places_in_a_grid():
    """As Megatron-LM: shares of a layer are next to each other, then replicas, and stages are farthest apart."""
    grid = Parallelism(data=2, pipeline=2, tensor=2)
    assert [grid.place_of(rank) for rank in range(8)] == [
        *((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)),
        *((1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)),
    ]
    assert all(grid.rank_of(*grid.place_of(rank)) == rank for rank in range(8))


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
@pytest.mark.parametrize(
    ("data", "pipeline", "tensor"),
    [(4, 1, 1), (1, 4, 1), (1, 1, 4), (2, 2, 1), (3, 2, 1), (2, 1, 3), (1, 3, 2), (2, 2, 2), (3, 2, 2)],
)
def test_who_sends_what_to_whom(tmp_path, data, pipeline, tensor, order):
    """Two layers a stage of n bytes of gradients each; a samples' activations of a bytes at each layer.

    Of d replicas each worker sends 2(d - 1)/d of its gradients, 2 n/t, to the next one with the same stage and share.
    Of t shares each sends 2(t - 1)/t of a to the next one of its stage and replica, after each of 2 layers, there and
    back. Between stages a goes to the same share and replica of the next stage, and as much comes back. Nothing else is
    sent, over all micro-batches together.
    """
    elements, per_sample = 240_000, 9600.0
    rows = [{"parameters": elements, "activation_bytes": per_sample}] * (2 * pipeline)
    workers = data * pipeline * tensor
    training = {
        "parallelism": {"data": data, "pipeline": pipeline, "tensor": tensor},
        "pipeline": {"micro_batches": 4, "order": order},
    }
    result = simnet.run(scenario(layers(tmp_path, rows), {"full_mesh": {"hosts": workers, **MESH}}, training))

    grid, activations = Parallelism(data, pipeline, tensor), per_sample * BATCH
    expected: Counter[str] = Counter()
    sent = np.zeros(workers)
    for rank in range(workers):
        stage, replica, share = grid.place_of(rank)
        to_replica = 2 * (data - 1) / data * 2 * 4 * elements / tensor
        to_share = 2 * (tensor - 1) / tensor * activations * 2 * 2
        others = [
            ((stage, (replica + 1) % data, share), to_replica),
            ((stage, replica, (share + 1) % tensor), to_share),
            ((stage + 1, replica, share), activations if stage + 1 < pipeline else 0.0),
            ((stage - 1, replica, share), activations if stage > 0 else 0.0),
        ]
        for place, size in others:
            if size:
                expected[f"host{rank}->host{grid.rank_of(*place)}"] += size
                sent[rank] += size
    assert link_bytes(result) == within(dict(expected))
    assert result.workers["bytes_sent"].to_numpy() == within(sent)
    assert result.workers[["stage", "replica", "part"]].to_numpy().tolist() == [
        list(grid.place_of(rank)) for rank in range(workers)
    ]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("tensor", [2, 4])
def test_shared_layers_add_up_activations(tmp_path, times, tensor):
    """k layers, r all-reduces after each: 2(t - 1)/t a r bytes a layer and pass, 2(t - 1)/t a r/B + latencies of them.

    Each layer computes in 1/t of the time; two passes of 3 layers: C/t + 6 * 2(t - 1)(a r/(t B) + p).
    """
    rows = [{"activation_bytes": 9600.0}] * 3
    training = {"parallelism": {"tensor": tensor}, "tensor": {"all_reduces_per_layer": times}}
    result = simnet.run(scenario(layers(tmp_path, rows), star(tensor), training))
    reduced = 9600.0 * BATCH * times
    summary = result.summary.iloc[0]
    assert summary.bytes_sent_per_worker == within(6 * 2 * (tensor - 1) / tensor * reduced)
    ring_s = 2 * (tensor - 1) * (reduced / (tensor * B) + 4e-6)
    assert summary.iteration_time_s == within(3 * C / tensor + 6 * ring_s)
    assert summary.exposed_communication_time_s == within(6 * ring_s)
    assert summary.compute_time_s == within(3 * C / tensor)


def test_stages_exchange_gradients_each_with_its_own_replicas(tmp_path):
    """2 x 2, GPipe: (m + p - 1) passes and messages without bytes there and back; then the gradients of the first
    stage, which are ready last, in a ring of 2: 2(S/(2B) + p)."""
    elements = 240_000
    rows = [{"parameters": elements}] * 2
    training = {"parallelism": {"data": 2, "pipeline": 2}, "pipeline": {"micro_batches": 4, "order": "gpipe"}}
    result = simnet.run(scenario(layers(tmp_path, rows), star(4), training))
    latencies_s = 2 * 4e-6
    ring_s = 2 * (4 * elements / (2 * B) + 4e-6)
    assert result.summary.iteration_time_s[0] == within(C * 5 / 4 + latencies_s + ring_s)
    exchanges = result.collectives[result.collectives["iteration"] == 0]
    assert exchanges["size_bytes"].tolist() == [4.0 * elements] * 2
    assert exchanges["duration_s"].to_numpy() == within([ring_s] * 2)
    assert result.summary.throughput_samples_per_s[0] == within(2 * BATCH / result.summary.iteration_time_s[0])


# -- workers that share memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("hosts_do", [1.0, 2.5, 100.0])
def test_speed_up_of_workers_that_share_memory(tmp_path, workers, hosts_do):
    """min(P, M/D): one worker alone moves D bytes/s, of the M bytes/s that the memory of their host does.

    D = (a b)/f in the forward pass and 2 (a b)/(2 f) in the backward pass of a bytes for each of b samples.
    """
    per_sample = 1e6
    file = layers(tmp_path, [{"parameters": 1, "memory_bytes": per_sample}])
    demand = per_sample * BATCH / FORWARD_S
    assert 2 * per_sample * BATCH / BACKWARD_S == demand
    topology = star(1, host={"memory_bandwidth": f"{hosts_do * demand / 1e9!r} GB/s"})
    result = simnet.run(scenario(file, topology, {"parallelism": {"data": 1, "shared_memory": workers}}))
    assert result.summary.speedup[0] == within(min(workers, hosts_do))
    assert result.summary.iteration_time_s[0] == within(C / min(workers, hosts_do))
    assert result.summary.exposed_communication_time_s[0] == within(0.0)


def test_replicas_that_share_memory_each_exchange_gradients_once(tmp_path):
    """2 hosts of 4 workers: C/4, then a ring of the two hosts, 2(S/(2B) + p), not of all workers."""
    file = layers(tmp_path, [{"memory_bytes": 1.0}])
    topology = star(2, host={"memory_bandwidth": "100 GB/s"})
    result = simnet.run(scenario(file, topology, {"parallelism": {"data": 2, "shared_memory": 4}}))
    ring_s = 2 * (4 * 240_000 / (2 * B) + 4e-6)
    assert result.summary.iteration_time_s[0] == within(C / 4 + ring_s)
    assert result.workers["node"].tolist() == ["host0"] * 4 + ["host1"] * 4
    # Whoever does not exchange them stands still for the same exchange.
    assert result.workers["exposed_communication_time_s"].tolist() == within([ring_s] * 8)


def test_parts_of_an_iteration_are_all_of_it_where_workers_vary(tmp_path):
    """Jitter stretches what a worker computes, not what its layers take of the memory, which is what limits here."""
    file = layers(tmp_path, [{"parameters": 1000, "memory_bytes": 1e6}] * 2)
    topology = star(4, host={"memory_bandwidth": "3 GB/s"})
    training = {
        "parallelism": {"data": 2, "pipeline": 2, "shared_memory": 2},
        "jitter": {"distribution": "lognormal", "sigma": 0.3},
        "speed_factors": {1: 0.5},
    }
    result = simnet.run(scenario(file, topology, training, run={"iterations": 4, "warmup": 1}))
    for _, rows in result.iterations.groupby("rank"):
        ends = (rows["start_s"] + rows["iteration_time_s"]).to_numpy()
        assert ends[:-1] == within(rows["start_s"].to_numpy()[1:])
    parts = ["compute_time_s", "exposed_communication_time_s", "waiting_time_s"]
    assert (result.iterations[parts] >= 0.0).all().all()
