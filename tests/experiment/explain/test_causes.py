"""Constructed cases whose cause is known, and what it takes by formula.

A ring of n on a star: 2 (n - 1) messages of S / n follow each other, each for S / (n B) on the wire and P on its way.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import simnet
from simnet import Explanation

from ..building import LATENCY, B, C, P, S, X, layers, scenario, star, within

CHEAP_MS = 1e-6


def explained(data: dict[str, Any], **options: Any) -> Explanation:
    return simnet.explain(data, sensitivity=False, **options)


def part(found: Explanation, name: str) -> float:
    """Return what a part takes; 0 where there is none [s]."""
    return float(found.parts.loc[found.parts["part"] == name, "time_s"].sum())


def computing(found: Explanation) -> float:
    return float(found.parts.loc[found.parts["group"] == "computing", "time_s"].sum())


def exposed(found: Explanation) -> float:
    return found.iteration_time_s - computing(found)


def ideal(**costs: Any) -> dict[str, Any]:
    return {"ideal": {"divisible": True, **costs}}


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_a_ring_takes_serialisation_and_latency(tmp_path, workers):
    """2 (n - 1)/n S/B on host links, 2 (n - 1) P of latency, and nothing else."""
    found = explained(scenario(layers(tmp_path), star(workers), {"workers": workers}))
    steps = 2 * (workers - 1)
    assert part(found, "serialisation: host link (NIC)") == within(steps * X / workers)
    assert part(found, "latency") == within(steps * P)
    assert computing(found) == within(C)
    assert found.iteration_time_s == within(C + steps * (X / workers + P))
    assert set(found.parts["group"]) == {"computing", "communication"}


def test_latency_bound(tmp_path):
    """16 workers with 400 bytes on fast links: 30 P, the rest is 30 x 25 bytes / B."""
    file = layers(tmp_path, [{"parameters": 100, "forward_s": CHEAP_MS, "backward_s": CHEAP_MS}])
    found = explained(scenario(file, star(16), {"workers": 16}))
    assert found.cause == "latency"
    assert part(found, "latency") == within(30 * P)
    assert part(found, "latency") > 0.9 * exposed(found)
    assert found.verdict.startswith("bound by: latency")


def test_nic_bound(tmp_path):
    file = layers(tmp_path, [{"parameters": 24_000_000}])
    found = explained(scenario(file, star(8), {"workers": 8}))
    assert found.cause == "serialisation: host link (NIC)"
    assert part(found, found.cause) == within(14 / 8 * 100 * X)
    assert part(found, found.cause) > 0.99 * exposed(found)
    assert found.verdict.startswith("bound by: serialisation: host link (NIC) (host0->switch)")


def test_stack_bound_by_what_a_core_can_do(tmp_path):
    """A core that does 1 Gbit/s where the link does 10: 2 (n - 1)/n S (1/cap - 1/B), and 2 (n - 1) overheads."""
    costs = {"connection_cap": "1 Gbps", "send_overhead": "3 us", "receive_overhead": "4 us"}
    found = explained(scenario(layers(tmp_path), star(4), {"workers": 4}, protocol=ideal(**costs)))
    assert found.cause == "host protocol stack"
    assert part(found, found.cause) == within(6 * (S / 4 * (10 / B - 1 / B) + 7e-6))
    assert part(found, "serialisation: host link (NIC)") == within(6 / 4 * X)
    assert part(found, "latency") == within(6 * P)


def test_stack_bound_by_tcp_that_is_costly_for_each_byte(tmp_path):
    protocol = {"tcp": {"send_overhead_per_byte": "20 ns/B", "pipeline": "10 MB"}}
    found = explained(scenario(layers(tmp_path), star(4), {"workers": 4}, protocol=protocol))
    assert found.cause == "host protocol stack"
    assert part(found, found.cause) > 0.6 * exposed(found)


def test_straggler_bound(tmp_path):
    """One of four at half speed: all wait for C, which it takes more than the median one."""
    found = explained(scenario(layers(tmp_path), star(4), {"workers": 4, "speed_factors": {2: 0.5}}))
    assert found.cause == "stragglers"
    assert part(found, "stragglers") == within(C)
    assert computing(found) == within(C)
    assert list(found.parts.loc[found.parts["part"] == "stragglers", "about"]) == ["worker 2"]


def test_a_worker_that_is_slow_by_chance_is_waited_for(tmp_path):
    """The iteration is the largest factor of all times C: 1 is computing, the rest is waiting for it."""
    training = {"workers": 4, "jitter": {"distribution": "exponential", "scale": 1.0}}
    data = scenario(layers(tmp_path), star(4), training, run={"iterations": 1, "warmup": 0})
    slowest_s = float(simnet.run(data).iterations["compute_time_s"].max())
    found = explained(data)
    assert part(found, "stragglers") == within(max(slowest_s - C, 0.0))
    assert found.iteration_time_s == within(slowest_s + 6 * (X / 4 + P))


def test_a_host_that_is_slow_is_waited_for(tmp_path):
    faults = [{"host_slow": {"host": "host1", "at": "0 s", "factor": 0.5}}]
    found = explained(scenario(layers(tmp_path), star(4), {"workers": 4}, faults=faults))
    assert part(found, "stragglers") == within(C)


def test_oversubscribed_core(tmp_path):
    """All neighbours are below another leaf, and four share one uplink: 2 (n - 1)/n S/(B/4), all of it the uplinks'."""
    fabric = {"leaves": 2, "spines": 1, "hosts_per_leaf": 4, "bandwidth": "10 Gbps", "latency": "2 us"}
    placement = [f"host{4 * (rank % 2) + rank // 2}" for rank in range(8)]
    topology = {"leaf_spine": {**fabric, "oversubscription": 4}}
    found = explained(scenario(layers(tmp_path), topology, {"workers": 8, "placement": placement}))
    assert found.cause == "serialisation: leaf to spine"
    assert part(found, found.cause) == within(14 / 8 * 4 * X)
    assert part(found, "latency") == within(14 * 4 * LATENCY)
    assert part(found, "serialisation: host link (NIC)") == within(0.0, abs=1e-9)


def test_contention_is_what_another_job_takes(tmp_path):
    """Both send over the same uplink at once; alone each would take half of the time."""
    file = layers(tmp_path)
    fabric = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "bandwidth": "10 Gbps", "latency": "2 us"}
    placements = [["host0", "host2"], ["host1", "host3"]]
    jobs = [
        {
            "name": f"job{number}",
            "workload": {"file": file, "batch_size": 24},
            "training": {"overlap": False, "bucket_size": "1 GB", "workers": 2, "placement": placement},
        }
        for number, placement in enumerate(placements)
    ]
    data = {
        "topology": {"leaf_spine": {**fabric, "oversubscription": 2}},
        "protocol": ideal(),
        "jobs": jobs,
        "run": {"iterations": 2, "warmup": 1},
    }
    found = explained(data, job="job1")
    assert found.job == "job1"
    assert part(found, "contention") == within(X, rel=1e-6)
    assert part(found, "serialisation: host link (NIC)") + part(found, "serialisation: leaf to spine") == within(X)
    assert "job job0" in found.parts.set_index("part")["about"]["contention"]


def test_what_is_lost_is_a_part(tmp_path):
    file = layers(tmp_path, [{"parameters": 2_400_000}])
    data = scenario(file, star(2, loss_probability=0.02), {"workers": 2}, protocol={"tcp": {}})
    lossless = explained(scenario(file, star(2), {"workers": 2}, protocol={"tcp": {}}))
    found = explained(data)
    assert part(found, "loss recovery") > 0.3 * exposed(found)
    assert part(found, "loss recovery") + exposed(lossless) == pytest.approx(exposed(found), rel=0.3)
    assert part(lossless, "loss recovery") == 0.0


def test_windows_that_begin_small_after_each_pause_are_a_part(tmp_path):
    """Where a connection that was idle for a timeout begins with its first window; computing takes longer than that."""
    file = layers(tmp_path, [{"parameters": 2_400_000, "forward_s": 0.3, "backward_s": 0.3}])
    topology = star(2, latency="500 us")
    found = explained(scenario(file, topology, {"workers": 2}, protocol={"tcp": {"slow_start_after_idle": True}}))
    open_ones = {"tcp": {"slow_start_after_idle": False, "window": "1 GB"}}
    kept = explained(scenario(file, topology, {"workers": 2}, protocol=open_ones))
    assert part(found, "slow start, windows and pacing") > 1e-3
    assert part(kept, "slow start, windows and pacing") == within(0.0, abs=1e-6)


def test_a_link_that_is_down_is_a_part(tmp_path):
    """The first exchange is from C on; its link is down for 10 ms of it."""
    file = layers(tmp_path, [{"parameters": 24_000_000}])
    fault = {"link_down": {"between": ["host0", "switch"], "at": "40 ms", "for": "10 ms"}}
    data = scenario(file, star(2), {"workers": 2}, faults=[fault], run={"iterations": 1, "warmup": 0})
    found = explained(data)
    assert part(found, "fault") == within(10e-3, rel=1e-6)
    assert part(found, "serialisation: host link (NIC)") == within(100 * X)
    assert "link_down" in found.parts.set_index("part")["about"]["fault"]
    assert part(found, "contention") == within(0.0, abs=1e-9)


def test_compressing_is_a_part_of_its_own(tmp_path):
    compression = {"quantize": {"bits": 8, "compress_rate": "1 GB/s", "decompress_rate": "2 GB/s"}}
    data = scenario(layers(tmp_path), star(4), {"workers": 4, "compression": compression})
    compression_s = float(simnet.run(data).summary["compression_time_s"].iloc[0])
    found = explained(data)
    assert compression_s > 0.0
    assert part(found, "compression") == within(compression_s)
    assert computing(found) == within(C + compression_s)


def test_agreeing_on_what_is_ready_is_a_part_of_its_own(tmp_path):
    """Of one bucket negotiation is all exposed."""
    training = {"workers": 4, "scheduling": {"negotiation": "300 us"}}
    found = explained(scenario(layers(tmp_path), star(4), training))
    assert part(found, "negotiation") == within(300e-6)


@pytest.mark.parametrize(
    ("scheduling", "waits_s"),
    [
        ({"negotiation": "300 us"}, 3 * 300e-6),
        ({"fusion": {"cycle": {"time": "1 ms"}}}, 2 * (1e-3 - X - 2 * P)),
    ],
    ids=["negotiation", "cycle"],
)
def test_what_waits_for_credit_waits_for_the_exchange_before_it(tmp_path, scheduling, waits_s):
    """Three layers go one after the other, for X + 2 P = 0.776 ms between two workers. Each is negotiated; or goes when
    a cycle of 1 ms ends, the first as soon as it is ready, after 90."""
    training = {"workers": 2, "bucket_size": "1 B", "scheduling": {"credit": "1 B", **scheduling}}
    found = explained(scenario(layers(tmp_path, [{}] * 3), star(2), training, run={"iterations": 1, "warmup": 0}))
    assert part(found, "negotiation") == within(waits_s)
    assert part(found, "serialisation: host link (NIC)") == within(3 * X)
    assert part(found, "latency") == within(3 * 2 * P)
    assert found.iteration_time_s == within(3 * C + 3 * (X + 2 * P) + waits_s)


def test_input_and_checkpoints_are_those_of_the_summary(tmp_path):
    data = scenario(
        layers(tmp_path),
        {"star": {"hosts": 5, "bandwidth": "10 Gbps", "latency": "2 us"}},
        {"workers": 4, "checkpoint": {"every": 2, "size": "100 MB", "rate": "1 GB/s"}},
        dataset={"bytes_per_sample": "5 MB", "storage": "host4"},
        run={"iterations": 8, "warmup": 4},
    )
    summary = simnet.run(data).summary.iloc[0]
    found = explained(data)
    assert found.iterations in [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert part(found, "checkpoint") == pytest.approx(summary["checkpoint_time_s"], rel=0.05)
    assert part(found, "input") == pytest.approx(summary["input_time_s"], rel=0.2)


def test_a_pipeline_has_a_bubble(tmp_path):
    """p stages of m micro-batches without network: a worker computes C/p, and stands still for (p - 1)/m of that."""
    rows = [{"parameters": 10, "forward_s": 0.01, "backward_s": 0.02, "activation_bytes": 1e-3}] * 4
    pipeline = {"parallelism": {"pipeline": 4, "data": 1}, "pipeline": {"micro_batches": 8, "order": "gpipe"}}
    found = explained(scenario(layers(tmp_path, rows), star(4), {"workers": 4, **pipeline}))
    assert part(found, "computing in steps") == within(0.03)
    assert part(found, "pipeline bubble") == within(0.03 * 3 / 8)
    assert found.cause == "pipeline bubble"


def test_a_slow_stage_of_a_pipeline_is_a_straggler(tmp_path):
    rows = [{"parameters": 10, "forward_s": 0.01, "backward_s": 0.02, "activation_bytes": 1e-3}] * 4
    pipeline = {"parallelism": {"pipeline": 4, "data": 1}, "pipeline": {"micro_batches": 8, "order": "gpipe"}}
    data = scenario(layers(tmp_path, rows), star(4), {"workers": 4, **pipeline, "speed_factors": {1: 0.5}})
    found = explained(data)
    assert part(found, "computing in steps") == within(0.03)
    assert part(found, "stragglers") == within(
        found.iteration_time_s - 0.03 * 11 / 8 - part(found, "latency"), rel=1e-3
    )
    assert found.cause == "stragglers"


def test_servers_that_add_up_slowly_are_named(tmp_path):
    """One server adds up what two workers push: S / rate for each, one after the other or together."""
    servers = {"parameter_server": {"servers": 1, "aggregation_rate": "100 MB/s"}}
    found = explained(scenario(layers(tmp_path), star(3), {"workers": 2, "architecture": servers}))
    assert part(found, "computing of servers") >= S / 100e6


def test_local_sgd_is_explained_by_rounds(tmp_path):
    """An exchange in each third iteration: one iteration in the mean has a third of it."""
    data = scenario(layers(tmp_path), star(4), {"workers": 4, "sync": {"local_sgd": {"period": 3}}})
    found = explained(data | {"run": {"iterations": 6, "warmup": 3}})
    assert len(found.iterations) == 3
    assert found.iteration_time_s == within(C + 6 * (X / 4 + P) / 3)
    assert part(found, "latency") == within(6 * P / 3)


def test_the_path_begins_with_the_worker_that_was_last(tmp_path):
    found = explained(scenario(layers(tmp_path), star(4), {"workers": 4, "speed_factors": {2: 0.5}}))
    path = found.path
    assert isinstance(path, pd.DataFrame)
    assert list(path["worker"]) == [2, -1]
    assert list(path["what"]) == ["compute", "all_reduce"]
    assert list(path["start_s"]) == [within(0.0), within(2 * C)]


def test_packets_are_explained_likewise(tmp_path):
    """What the flow level takes of a ring, and the last packet on a hop more."""
    data = scenario(layers(tmp_path), star(2), {"workers": 2}, fidelity="packet", protocol="roce")
    found = explained(data)
    assert found.cause == "serialisation: host link (NIC)"
    assert part(found, found.cause) == pytest.approx(X, rel=0.1)
    assert part(found, "latency") == pytest.approx(2 * P, rel=0.5)


def test_a_server_that_is_away_is_recovered_from(tmp_path):
    """What workers under asp push to it waits until it is back; under bsp all begin the iteration anew."""
    servers = {"parameter_server": {"servers": 1}}
    training = {"workers": 2, "architecture": servers, "sync": "asp", "checkpoint": {"every": 1, "size": "1 kB"}}
    fault = {"server_crash": {"server": 0, "at": "20 ms", "for": "200 ms"}}
    data = scenario(layers(tmp_path), star(3), training, faults=[fault], run={"iterations": 1, "warmup": 0})
    found = explained(data)
    assert part(found, "recovery") > 0.15
    assert found.cause == "recovery"
    assert list(found.parts.loc[found.parts["part"] == "recovery", "about"]) == ["server 0"]
    in_step = explained(data, overrides={"training.sync": "bsp"})
    assert any(note.startswith("between iterations, recovery") for note in in_step.notes)


def test_one_worker_computes(tmp_path):
    found = simnet.explain(scenario(layers(tmp_path), star(2), {"workers": 1}))
    assert found.cause == ""
    assert found.verdict == "bound by: computing, all of the iteration."
    assert computing(found) == within(found.iteration_time_s)
    assert found.sensitivity["change"].iloc[0] == "computing x2"
    assert not any(change.startswith(("all-reduce", "protocol")) for change in found.sensitivity["change"])
