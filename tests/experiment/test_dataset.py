"""Training data: read from storage in each iteration, or a share of it for each worker."""

from __future__ import annotations

import json

import pytest

import simnet

from .building import B, C, layers, scenario, star, within

BATCH = 24
SAMPLE = 110_000.0  # bytes: a JPEG of ImageNet
WARMUP = 6
"""Iterations, which use up what was read ahead: more than the largest prefetch and one."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A workload with gradients of next to nothing."""
    return layers(tmp_path_factory.mktemp("workload"), [{"parameters": 1}])


def read(file, dataset, *, workers=4, topology=None, iterations=4, warmup=WARMUP, **training):
    """Run workers of a star that has one host more, for storage."""
    topology = topology or star(workers + 1, latency="0 s")
    run = {"iterations": iterations, "warmup": warmup}
    return simnet.run(scenario(file, topology, {"workers": workers, **training}, dataset=dataset, run=run))


# -- read in each iteration --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [1, 2, 4])
@pytest.mark.parametrize("bytes_per_sample", [400_000, 2_000_000])
def test_training_that_is_bound_by_storage(tiny, prefetch, bytes_per_sample):
    """N workers read from one node: throughput = B / bytes a sample, however much is read ahead.

    An iteration takes N b s/B, of which workers compute for C and wait for data for the rest.
    """
    dataset = {"bytes_per_sample": f"{bytes_per_sample} B", "storage": "host4", "prefetch": prefetch}
    summary = read(tiny, dataset).summary.iloc[0]
    reading_s = 4 * BATCH * bytes_per_sample / B
    assert reading_s > C
    assert summary.throughput_samples_per_s == pytest.approx(B / bytes_per_sample, rel=1e-6)
    assert summary.iteration_time_s == pytest.approx(reading_s, rel=1e-6)
    assert summary.input_time_s == pytest.approx(reading_s - C, abs=1e-8)  # the gradient takes some ns
    assert summary.bottleneck == "host4->switch"


def test_without_reading_ahead_workers_first_read_and_then_compute(tiny):
    """prefetch 0: N b s/B + C, and all of the reading is waited for."""
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "storage": "host4", "prefetch": 0}
    summary = read(tiny, dataset, warmup=1).summary.iloc[0]
    reading_s = 4 * BATCH * SAMPLE / B
    assert summary.input_time_s == pytest.approx(reading_s, rel=1e-6)
    assert summary.iteration_time_s == pytest.approx(reading_s + C, rel=1e-6)


def test_storage_that_is_faster_than_computing_costs_nothing(tiny):
    """N b s/B < C: after the first batch nobody waits for data, and an iteration takes C."""
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "storage": "host4", "prefetch": 2}
    result = read(tiny, dataset)
    assert 4 * BATCH * SAMPLE / B < C
    assert result.summary.input_time_s[0] == 0.0
    assert result.summary.iteration_time_s[0] == pytest.approx(C, rel=1e-6)
    first = result.iterations[result.iterations["iteration"] == -WARMUP]
    assert first["input_time_s"].to_numpy() == within([4 * BATCH * SAMPLE / B] * 4)


def test_each_worker_reads_from_a_storage_node_in_turn(tmp_path, tiny):
    """5 workers, 2 storage nodes: nodes 0, 2, 4 read from the first, 1 and 3 from the second, b s in each iteration."""
    names = [*(f"host{worker}" for worker in range(5)), "store0", "store1"]
    cable = {"bandwidth": "10 Gbps", "latency": "0 s", "kind": "ethernet"}
    nodes = [{"id": name, "kind": "storage" if name.startswith("store") else "host"} for name in names]
    edges = [
        {"source": source, "target": target, **cable}
        for name in names
        for source, target in ((name, "switch"), ("switch", name))
    ]
    file = tmp_path / "stores.json"
    graph = {"directed": True, "multigraph": True, "graph": {}, "nodes": [*nodes, {"id": "switch", "kind": "switch"}]}
    file.write_text(json.dumps(graph | {"edges": edges}))
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "prefetch": 0}
    result = read(tiny, dataset, workers=5, topology=str(file), warmup=1)
    carried = result.links.set_index("resource")["wire_bytes"] / 4
    assert carried["store0->switch"] == within(3 * BATCH * SAMPLE)
    assert carried["store1->switch"] == within(2 * BATCH * SAMPLE)
    assert carried["switch->host0"] == pytest.approx(BATCH * SAMPLE, abs=10)
    waited = result.workers["input_time_s"].to_numpy()
    assert waited == pytest.approx([readers * BATCH * SAMPLE / B for readers in (3, 2, 3, 2, 3)], rel=1e-6)


def test_of_a_model_that_is_split_the_first_workers_read(tiny, tmp_path):
    """2 replicas of 2 stages: only the first stage gets samples, b s for each replica."""
    file = layers(tmp_path, [{"parameters": 1}] * 2)
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "storage": "host4", "prefetch": 0}
    result = read(file, dataset, parallelism={"data": 2, "pipeline": 2}, warmup=0)
    carried = result.links.set_index("resource")["wire_bytes"] / 4
    assert [carried[f"switch->host{rank}"] > 1e6 for rank in range(4)] == [True, True, False, False]
    assert carried["host4->switch"] == within(2 * BATCH * SAMPLE)


# -- a share for each worker -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["sharded", "features"])
def test_shares_are_scattered_at_the_beginning(tiny, split):
    """Data set over the link of storage, all workers at once: m s/B, before the first iteration; nothing later."""
    samples = 5000
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "storage": "host4", "split": split, "samples": samples}
    result = read(tiny, dataset | {"partial_sum_size": "0 B"}, warmup=0)
    first = result.iterations[result.iterations["iteration"] == 0]
    assert first["start_s"].to_numpy() == within([samples * SAMPLE / B] * 4)
    assert result.summary.input_time_s[0] == 0.0
    assert result.links.set_index("resource")["wire_bytes"]["host4->switch"] == 0.0


def test_shares_that_are_there_already(tiny):
    """Without storage they are on the workers' own disks from the beginning."""
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "split": "sharded", "samples": 5000}
    result = read(tiny, dataset, warmup=0)
    assert (result.iterations.groupby("rank")["start_s"].min() == 0.0).all()


@pytest.mark.parametrize("workers", [2, 4])
def test_samples_are_exchanged_after_each_epoch(tmp_path, workers):
    """An epoch of m/(N b) = 3 iterations: before the 4th and the 7th each worker sends (N - 1)/N of its share of m s/N
    bytes, to all others alike, in (N - 1) m s/(N² B)."""
    samples, elements = 3 * workers * BATCH, 1_000
    file = layers(tmp_path, [{"parameters": elements}])
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "split": "sharded", "samples": samples, "reshuffle": True}
    result = read(file, dataset, workers=workers, topology=star(workers, latency="0 s"), iterations=8, warmup=1)
    exchanged = (workers - 1) / workers * samples * SAMPLE / workers
    by_iteration = result.iterations.groupby("iteration")["input_time_s"]
    # The warm-up is the first iteration of all, so that what counts as 2 is the fourth.
    expected = [exchanged / B if number in (2, 5) else 0.0 for number in range(-1, 8)]
    assert by_iteration.mean().to_numpy() == within(expected)
    assert by_iteration.max().to_numpy() == within(expected)
    gradients = 2 * (workers - 1) / workers * 4 * elements
    assert result.workers["bytes_sent"].to_numpy() == within([gradients + 2 * exchanged / 8] * workers)


def test_partial_sums_are_added_up_where_each_has_some_features(tmp_path):
    """A ring over u = 100 b bytes of partial sums before each iteration: 2(N - 1)/N u, in 2(N - 1)(u/(N B) + p)."""
    elements, workers = 240_000, 4
    file = layers(tmp_path, [{"parameters": elements}])
    dataset = {"bytes_per_sample": f"{SAMPLE} B", "split": "features", "samples": 5000, "partial_sum_size": "100 B"}
    result = read(file, dataset, topology=star(4), iterations=3, warmup=1)
    summed = 100 * BATCH
    assert result.workers["bytes_sent"].to_numpy() == within([2 * 3 / 4 * (summed + 4 * elements)] * workers)
    assert result.summary.input_time_s[0] == within(2 * 3 * (summed / (4 * B) + 4e-6))
    ring_s = 2 * 3 * (4 * elements / (4 * B) + 4e-6)
    assert result.summary.iteration_time_s[0] == within(C + result.summary.input_time_s[0] + ring_s)
