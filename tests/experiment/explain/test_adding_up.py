"""The parts of an iteration, and the stretches of its critical path, add up to it: in all that ships, and at random."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simnet
from simnet import Explanation
from simnet.shipped import shipped_folder

SCENARIOS = sorted(file.stem for file in shipped_folder("scenarios").glob("*.yaml"))

SLOW = {
    *("asynchronous", "compression_quantize_10g", "fault_server_crash", "fusion_horovod", "gossip_pairs", "grid_3d"),
    *("inception_v3_100gpu_tcp_10g", "parameter_server_packets", "priority_p3", "stale_synchronous"),
}


def check(found: Explanation) -> None:
    """Hold an explanation to what all of them must satisfy."""
    whole_s, count = found.iteration_time_s, len(found.iterations)
    assert math.fsum(found.parts["time_s"]) == pytest.approx(whole_s, rel=1e-9)
    assert math.fsum(found.parts["share"]) == pytest.approx(1.0, rel=1e-9)
    assert found.parts["part"].is_unique
    ends = [(row.start_s, row.start_s + row.duration_s) for row in found.path.itertuples()]
    assert ends[0][0] == 0.0
    assert ends[-1][1] == pytest.approx(whole_s * count, rel=1e-9)
    assert all(end == pytest.approx(start, abs=1e-9 * whole_s * count) for (_, end), (start, _) in pairwise(ends))
    assert (found.path["duration_s"] > 0.0).all()
    assert found.verdict


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SCENARIOS]
)
def test_of_every_scenario_that_ships(name):
    found = simnet.explain(name, sensitivity=False)
    check(found)
    # Nothing on the way is unknown, and what is negative is small beside the whole.
    assert "waiting" not in set(found.parts["part"])
    assert found.parts["time_s"].min() > -0.01 * found.iteration_time_s


TOPOLOGIES = (
    {"star": {"hosts": 8, "bandwidth": "10 Gbps", "latency": "2 us"}},
    {"star": {"hosts": 8, "bandwidth": "10 Gbps", "latency": "2 us", "loss_probability": 1e-4}},
    {"leaf_spine": {"leaves": 2, "spines": 1, "hosts_per_leaf": 4, "bandwidth": "25 Gbps", "latency": "1 us"}},
    {"star": {"hosts": 4, "bandwidth": "100 Gbps", "latency": "1 us", "host": {"gpus": 2}}},
)

SYNCHRONOUS = (
    {},
    {"architecture": "tree"},
    {"architecture": "mesh"},
    {"architecture": "halving_doubling"},
    {"architecture": {"parameter_server": {"servers": 2, "placement": "colocated"}}},
    {"architecture": {"parameter_server": {"servers": 2, "placement": "colocated", "shards": "round_robin"}}},
    {"forward_overlap": True},
    {"forward_overlap": True, "scheduling": {"order": "priority", "partition": "4 MB"}},
    {"scheduling": {"fusion": {"cycle": {"time": "2 ms", "buffer": "64 MB"}}, "negotiation": "100 us"}},
    {"scheduling": {"fusion": {"cycle": {"time": "2 ms"}}, "credit": "8 MB", "streams": 2, "order": "priority"}},
    {"scheduling": {"negotiation": "1 ms", "credit": "1 B"}},
    {"sync": {"local_sgd": {"period": 2}}},
    {"compression": {"quantize": {"bits": 8}}},
    {"zero_stage": 1},
    {"zero_stage": 3},
)

ALONE = (
    {"sync": "asp", "architecture": {"parameter_server": {"servers": 2, "placement": "colocated"}}},
    {"sync": {"ssp": {"staleness": 1}}, "architecture": {"parameter_server": {"placement": "colocated"}}},
    {"sync": "asp", "architecture": "gossip"},
)


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a scenario that can be run."""
    training = {
        "workers": draw(st.sampled_from([2, 4, 8])),
        "bucket_size": draw(st.sampled_from(["1 MB", "25 MiB", "1 GB"])),
        **draw(st.sampled_from(SYNCHRONOUS + ALONE)),
    }
    if draw(st.booleans()):
        training["jitter"] = {"distribution": "lognormal", "sigma": 0.2}
    if draw(st.booleans()):
        training["speed_factors"] = {1: 0.7}
    if "parallelism" not in training and draw(st.booleans()):
        training |= {"overlap_slowdown": {}, "step_overhead": "3 ms"}
    found = {
        "topology": draw(st.sampled_from(TOPOLOGIES)),
        "protocol": draw(st.sampled_from(["ideal", "tcp", "roce", "dpdk"])),
        "workload": {"model": "resnet50", "batch_size": 32, "samples_per_s": draw(st.sampled_from([100, 1000]))},
        "training": training,
        "run": {"iterations": 4, "warmup": 1, "seed": draw(st.integers(0, 3))},
    }
    if draw(st.booleans()):
        fault = {"at": "350 ms", "for": "60 ms", "factor": 0.5}
        found["faults"] = [draw(st.sampled_from([{"host_slow": {"host": "host1", **fault}}]))]
    return found


def explained(**training: Any) -> Explanation:
    """Explain two workers whose exchanges are all but the last hidden by the backward pass."""
    data = {
        "topology": {"star": {"hosts": 2, "bandwidth": "25 Gbps", "latency": "1 us"}},
        "protocol": "ideal",
        "workload": {"model": "resnet50", "batch_size": 32, "samples_per_s": 320},
        "training": {"bucket_size": "1 B", **training},
        "run": {"iterations": 1},
    }
    return simnet.explain(data, sensitivity=False)


def test_slowing_down_in_overlap_and_the_overhead_of_a_step_are_told_by_themselves():
    """All computing is on the path: what the iteration is longer by is just these two."""
    plain, slower = explained(), explained(overlap_slowdown={"compute": 1.25}, step_overhead="4 ms")
    check(slower)
    parts = slower.parts.set_index("part").time_s
    assert parts["step overhead"] == pytest.approx(0.004, rel=1e-6)
    longer_s = slower.iteration_time_s - plain.iteration_time_s - 0.004
    assert longer_s > 0.005
    assert parts["slowed down by communication"] == pytest.approx(longer_s, rel=1e-3)


def test_nobody_is_a_straggler_where_layers_take_no_time_that_the_clock_shows():
    """Every tensor by itself over a slow network: forward and the first gradient compute, the rest is exchanged."""
    data = {
        "topology": {"star": {"hosts": 2, "bandwidth": "100 Mbps", "latency": "1 us"}},
        "protocol": "ideal",
        "workload": {"model": "resnet50", "batch_size": 32, "samples_per_s": 320},
        "training": {"bucket_size": "1 B"},
        "run": {"iterations": 1},
    }
    parts = simnet.explain(data, sensitivity=False).parts.set_index("part").time_s
    assert "stragglers" not in parts.index
    assert parts["forward"] == pytest.approx(0.1 * 0.337, rel=0.01)


@settings(max_examples=12, deadline=None)
@given(scenarios())
def test_of_random_scenarios(data):
    check(simnet.explain(data, sensitivity=False))
