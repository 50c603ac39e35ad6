"""Faults in a scenario: what they come to, and mistakes told at their places."""

from __future__ import annotations

import math

import pytest

import simnet
from simnet.errors import InputError, StalledError
from simnet.scenario import load_scenario

from .marked import at_mark, said_of, with_changed

SPINES = "{leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 2, uplinks: 2}}"


def faults_of(text):
    scenario = load_scenario(
        {
            "topology": {"leaf_spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "uplinks": 2}},
            "protocol": "tcp",
            "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
            "faults": text,
        }
    )
    return scenario, scenario.faults


@pytest.mark.parametrize(
    ("options", "links"),
    [
        ({}, ["leaf0->spine1", "leaf0->spine1#1", "spine1->leaf0", "spine1->leaf0#1"]),
        ({"parallel": 1}, ["leaf0->spine1#1", "spine1->leaf0#1"]),
    ],
)
def test_cables(options, links):
    """Both directions, and all of several cables or one of them."""
    scenario, [fault] = faults_of([{"link_down": {"between": ["leaf0", "spine1"], "at": "1 s", **options}}])
    names = scenario.topology.compiled.link_name
    assert sorted(names[link] for link in fault.links) == links
    assert (fault.begin_s, fault.end_s, fault.capacity_factor) == (1.0, math.inf, 0.0)
    assert fault.is_for_good


def test_switches_and_hosts():
    """A spine has two cables to each of two leaves, a host one: 8 and 2 links."""
    _, found = faults_of(
        [
            {"switch_down": {"switch": "spine0", "at": "1 s", "for": "500 ms", "reroute_after": "50 ms"}},
            {"nic_flapping": {"host": "host1", "at": "0 s", "for": "1 s", "up": "90 ms", "down": "10 ms"}},
            {"host_slow": {"host": "host1", "at": "2 s", "factor": 0.5}},
        ]
    )
    assert [len(fault.links) for fault in found[:2]] == [8, 2]
    assert (found[0].end_s, found[0].reroute_after_s) == (1.5, 0.05)
    changes = list(found[1].changes())
    assert len(changes) == 20
    assert [acts for _, acts in changes[:3]] == [True, False, True]
    assert [time_s for time_s, _ in changes[:3]] == pytest.approx([0.0, 0.01, 0.1])
    assert found[2].factor == 0.5


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "{link_down: {between: [leaf0, »spine7], at: 1 s}}",
            "there is no node 'spine7', did you mean 'spine1'? known: host0, host1, ",
        ),
        (
            "{link_down: {between: »[leaf0, leaf1], at: 1 s}}",
            "there is no link between leaf0 and leaf1, leaf0 is connected with host0, host1, spine0, spine1",
        ),
        (
            "{link_down: {between: [leaf0, spine0], at: 1 s, parallel: »2}}",
            "between leaf0 - spine0 there is no cable 2, they are counted from 0; a number of at most 1 is wanted",
        ),
        (
            "{switch_down: {switch: »host0, at: 1 s}}",
            "'host0' is a node of kind host, not switch, known: leaf0, leaf1, spine0, spine1",
        ),
        (
            "{host_slow: {host: »host9, at: 1 s, factor: 0.5}}",
            "there is no node 'host9', did you mean 'host3'? known: host0, host1, host2, host3",
        ),
        (
            "{link_down: {between: »leaf0, at: 1 s}}",
            "between is 'leaf0', a list of two nodes is wanted, like [leaf0, spine0]",
        ),
        (
            "{»link_up: {between: [leaf0, spine0]}}",
            "faults[0] does not know 'link_up', did you mean 'link_down'?",
        ),
        (
            "{link_degraded: {between: [leaf0, spine0], at: 1 s, bandwidth_factor: »0}}",
            "bandwidth_factor is 0, a number above 0 and at most 1 is wanted",
        ),
        (
            "{packet_loss: {between: [leaf0, spine0], at: »1, loss_rate: 0.1}}",
            "at: 1 has no unit",
        ),
    ],
)
def test_mistakes(tmp_path, fault, said):
    """Each is told once, at its place."""
    text, expected = at_mark(with_changed(topology=SPINES, faults=f"[{fault}]"), said)
    [told] = said_of(tmp_path, text)
    assert told.startswith(expected)


def test_a_sender_that_finds_its_link_down_each_time_gives_up():
    """Up for 1 ms in each 10 s: no retransmission of TCP, after 0.2, 0.6, 1.4 ... s, later each 2 min, is in time."""
    fault = {"nic_flapping": {"host": "host1", "at": "0.2 s", "up": "1 ms", "down": "9.999 s"}}
    with pytest.raises(StalledError, match=r"does not get through since .* a link on its way was down"):
        simnet.run("resnet50_16gpu", {"protocol": "tcp", "faults": [fault], "run.iterations": 3})


def test_a_link_cannot_flap_faster_than_it_comes_up():
    fault = {"nic_flapping": {"host": "host1", "at": "0 s", "up": "1 us", "down": "1 us"}}
    with pytest.raises(InputError, match="up and down together are 2 us, at least 1 ms are wanted"):
        load_scenario("resnet50_16gpu", {"faults": [fault]})
