"""Scheduling in a scenario: mistakes at their place, every architecture, and what it gains and loses."""

from __future__ import annotations

import pytest

import simnet
from simnet.scenario import describe, load_scenario
from simnet.training.communication.architectures import ARCHITECTURES, EACH_BY_ITSELF

from .marked import at_mark, said_of, with_changed

SHORT: dict[str, object] = {"run.iterations": 2}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{scheduling: {order: »fifo}}", "order is 'fifo', known: first_ready, priority"),
        ("{scheduling: {partition: »0 B}}", "partition is '0 B', a size above 0 is wanted"),
        ("{scheduling: {»partitions: 4 MiB}}", "unknown key 'partitions' in scheduling, did you mean 'partition'?"),
        ("{scheduling: {fusion: »horovod}}", "fusion is 'horovod', known: size, merged, cycle"),
        ("{scheduling: {fusion: {cycle: {time: »0 s}}}}", "time is '0 s', a duration above 0 is wanted"),
        ("{scheduling: {streams: »0}}", "streams is 0, a whole number of at least 1 is wanted"),
        ("{scheduling: {negotiation: »-1 ms}}", "negotiation: '-1 ms' is negative"),
        ("{scheduling: {credit: »0 MB}}", "credit is '0 MB', a size above 0 is wanted"),
        (
            "{workers: 8, architecture: parameter_server, scheduling: {credit: »1 MB}}",
            "credit stands beside architecture parameter_server, it is for an all-reduce",
        ),
        (
            "{workers: 8, architecture: parameter_server, scheduling: {fusion: »cycle}}",
            "fusion cycle stands beside architecture parameter_server, it is for an all-reduce",
        ),
        (
            "{workers: 8, architecture: gossip, scheduling: {negotiation: »1 ms}}",
            "negotiation stands beside architecture gossip, it is for an all-reduce",
        ),
        (
            "{workers: 8, architecture: parameter_server, sync: asp, scheduling: {order: »priority}}",
            "order stands beside sync asp, it goes with bsp and local_sgd",
        ),
        (
            "{compression: fp16, scheduling: {partition: »4 MiB}}",
            "partition stands beside compression fp16, leave one of them out",
        ),
        (
            "{compression: low_rank, scheduling: {fusion: »cycle}}",
            "fusion cycle stands beside compression low_rank, size is possible",
        ),
        (
            "{compression: low_rank, scheduling: {streams: »2}}",
            "streams 2 stands beside compression low_rank, 1 is possible",
        ),
        ("{zero_stage: 1, scheduling: {fusion: »merged}}", "fusion merged stands beside zero_stage 1"),
        (
            "{parallelism: {pipeline: 2}, scheduling: {fusion: »merged}}",
            "fusion merged stands beside a model that is split",
        ),
    ],
)
def test_mistakes_are_told_at_their_place(tmp_path, line, said):
    text, expected = at_mark(with_changed(training=line), said)
    [told] = said_of(tmp_path, text)
    assert told.startswith(expected)


def test_priority_that_changes_nothing_is_noted():
    scenario = load_scenario("resnet50_16gpu", {"training.scheduling.order": "priority"})
    assert any("order priority has no effect" in warning for warning in scenario.warnings)


@pytest.mark.parametrize(
    ("scheduling", "is_idle"),
    [
        ({}, True),
        ({"streams": 2}, False),
        ({"negotiation": "1 us"}, False),
        ({"fusion": "cycle"}, False),
        ({"order": "priority"}, False),
    ],
)
def test_credit_that_changes_nothing_is_noted(scheduling, is_idle):
    """What is ready first goes first, whether it waits for credit or for those before it."""
    scenario = load_scenario("resnet50_16gpu", {"training.scheduling": {"credit": "64 MB", **scheduling}})
    assert any("credit has no effect" in warning for warning in scenario.warnings) == is_idle


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "scheduling",
    [
        {"order": "priority", "partition": "1 MiB"},
        {"fusion": "merged"},
        {"fusion": "cycle", "negotiation": "50 us", "credit": "8 MiB"},
        {"streams": 3},
    ],
    ids=["priority", "merged", "cycle", "streams"],
)
def test_every_architecture_is_scheduled_or_refused_by_name(architecture, scheduling):
    """Whatever goes first, as many bytes travel."""
    base: dict[str, object] = {
        "topology": {"star": {"hosts": 6, "bandwidth": "10 Gbps", "latency": "1 us"}},
        "protocol": "ideal",
        "training.workers": 4,
        "training.architecture": architecture,
        "training.forward_overlap": True,
        **SHORT,
    }
    changes = {**base, "training.scheduling": scheduling}
    if architecture in EACH_BY_ITSELF and "fusion" in scheduling:
        with pytest.raises(simnet.InputError, match=f"stands beside architecture {architecture}"):
            simnet.run("resnet50_16gpu", changes)
        return
    plain = simnet.run("resnet50_16gpu", base).summary.iloc[0]
    summary = simnet.run("resnet50_16gpu", changes).summary.iloc[0]
    assert summary["bytes_sent_per_worker"] == pytest.approx(plain["bytes_sent_per_worker"], rel=1e-12)
    assert summary["bound_iteration_time_s"] <= summary["iteration_time_s"] * (1 + 1e-9)


def iteration_time_s(gbps: float, **scheduling: object) -> float:
    changes = {
        "topology": {"star": {"hosts": 8, "bandwidth": f"{gbps} Gbps", "latency": "5 us"}},
        "training.workers": 8,
        "training.bucket_size": "1 B",
        "training.forward_overlap": True,
        "training.scheduling": {"partition": "4 MiB", **scheduling},
        **SHORT,
    }
    return simnet.run("resnet50_16gpu", changes).summary["iteration_time_s"].item()


def test_priority_gains_most_where_communication_is_about_as_long_as_computing():
    """ResNet-50 on 8 V100 computes for 0.25 s, and exchanges for as long at 6 Gbit/s; at 0.1 Gbit/s for 14 s, of which
    a forward pass can hide little, and at 400 Gbit/s for some ms, which the backward pass hides."""
    gains = [iteration_time_s(gbps) / iteration_time_s(gbps, order="priority") for gbps in (0.1, 6.0, 400.0)]
    assert gains[1] > 1.2
    assert gains[0] == pytest.approx(1.0, abs=0.01)
    assert gains[2] == pytest.approx(1.0, abs=0.001)


def test_what_is_described():
    assert any("priority" in line for line in describe("priority_p3"))
    assert any("cycle" in line for line in describe("fusion_horovod"))
