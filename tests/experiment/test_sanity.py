"""What is said of runs that are to be looked at twice: for each rule a run that it is for, and one that it is not."""

from __future__ import annotations

from typing import Any

import pytest

import simnet
from simnet.experiment import sanity
from simnet.shipped import shipped_folder

from .building import layers, scenario, star

SMALL = [{"parameters": 100, "forward_s": 1e-6, "backward_s": 1e-6}] * 2
LARGE = [{"parameters": 2_400_000}] * 2


def warnings(data: dict[str, Any] | str, **overrides: Any) -> tuple[str, ...]:
    return simnet.run(data, overrides).warnings


def said(found: tuple[str, ...], words: str) -> bool:
    return any(words in warning for warning in found)


def test_small_buckets_are_mostly_latency(tmp_path):
    """Of 16 workers and 800 bytes: 30 x 4 us of latency, 30 x 50 B / 1.25 GB/s on links."""
    small = warnings(scenario(layers(tmp_path, SMALL), star(16), {"workers": 16}))
    assert "a bucket of 800 B over 16 ranks is 99 % latency and overheads" in small
    each = warnings(scenario(layers(tmp_path, SMALL), star(16), {"workers": 16, "bucket_size": "1 B"}))
    assert said(each, "a bucket of 400 B over 16 ranks is 100 % latency and overheads: fuse buckets")
    large = warnings(scenario(layers(tmp_path, LARGE), star(16), {"workers": 16}))
    assert not said(large, "latency and overheads")


def test_a_full_memory_is_named(tmp_path):
    """A copy moves each byte twice: memory of 1 GB/s is full where links do 1.25."""
    file, tcp = layers(tmp_path, [{"parameters": 24_000_000, "forward_s": 1e-6, "backward_s": 1e-6}]), {"tcp": {}}
    memory = {"host": {"memory_bandwidth": "1 GB/s"}}
    slow = warnings(scenario(file, star(2, **memory), {"workers": 2}, protocol=tcp))
    assert said(slow, "memory is busy")
    usual = warnings(scenario(file, star(2), {"workers": 2}, protocol=tcp))
    assert not said(usual, "is busy")


def test_one_bucket_for_all_gradients(tmp_path):
    training = {"workers": 4, "overlap": True, "bucket_size": "1 GB"}
    assert said(warnings(scenario(layers(tmp_path, LARGE), star(4), training)), "are in one bucket of 1 GB")
    cut = {**training, "bucket_size": "1 MB"}
    assert not said(warnings(scenario(layers(tmp_path, LARGE), star(4), cut)), "in one bucket")
    meant = {**training, "overlap": False}
    assert not said(warnings(scenario(layers(tmp_path, LARGE), star(4), meant)), "in one bucket")


def test_streams_without_effect(tmp_path):
    training = {"workers": 4, "overlap": True, "bucket_size": "1 MB", "scheduling": {"streams": 8}}
    assert said(warnings(scenario(layers(tmp_path, LARGE), star(4), training)), "8 streams have no effect beyond 2")
    training["scheduling"] = {"streams": 2}
    assert not said(warnings(scenario(layers(tmp_path, LARGE), star(4), training)), "streams")


def test_links_that_a_core_cannot_fill(tmp_path):
    """TCP does 42 Gbit/s on one core; links of 100 are no better, those of 10 are what limits."""
    file = layers(tmp_path, [{"parameters": 24_000_000, "forward_s": 1e-3, "backward_s": 1e-3}])
    fast = star(4, bandwidth="100 Gbps")
    found = warnings(scenario(file, fast, {"workers": 4}, protocol="tcp"))
    assert said(found, "a connection of tcp carries at most 42 Gbps, and no link is slower than 100 Gbps")
    assert not said(warnings(scenario(file, star(4), {"workers": 4}, protocol="tcp")), "carries at most")


def test_next_to_no_computing(tmp_path):
    little = [{"parameters": 24_000_000, "forward_s": 1e-4, "backward_s": 1e-4}]
    assert said(warnings(scenario(layers(tmp_path, little), star(4), {"workers": 4})), "times as long as computing")
    assert not said(warnings(scenario(layers(tmp_path), star(4), {"workers": 4})), "times as long as computing")


@pytest.mark.parametrize(
    ("differ", "is_said"),
    [
        ({}, True),
        ({"speed_factors": {"0": 0.9}}, False),
        ({"jitter": {"sigma": 0.01}}, False),
        ({"jitter": {"sigma": 0}}, True),
        ({"sync": "bsp"}, False),
        ({"sync": {"ssp": {"staleness": 1}}}, True),
        ({"sync": {"ssp": {"staleness": 0}}}, False),
        ({"workers": 1}, False),
        ({"architecture": "gossip"}, False),
        ({"architecture": {"parameter_server": {"servers": 4, "placement": "colocated"}}}, False),
    ],
)
def test_workers_that_nothing_sets_apart(tmp_path, differ, is_said):
    """It does not matter where all wait for all, nor where an exchange takes as long alone: with neighbours, or with a
    server beside each worker, no link is busier than those of the worker itself."""
    training = {"workers": 4, "architecture": "parameter_server", "sync": "asp", **differ}
    found = warnings(scenario(layers(tmp_path, LARGE), star(5), training))
    assert said(found, "workers are all alike") == is_said


def test_workers_of_several_groups_are_not_alike():
    training = {"workers": 4, "architecture": "parameter_server", "sync": "asp"}
    alike = {"model": "resnet50", "batch_size": 24, "samples_per_s": 300}
    data = scenario("", star(5), training) | {"workload": alike}
    assert said(warnings(data), "workers are all alike")
    groups = [{"workers": 2}, {"workers": 2, "samples_per_s": 200}]
    assert not said(warnings(data | {"workload": alike | {"groups": groups}}), "workers are all alike")


def test_those_who_stay_in_step_are_as_fast_as_bsp_and_spread_out_with_little_jitter(tmp_path):
    """Four push 19.2 MB each through one server's link of 1.25 GB/s, 61 ms, and compute for longer than that: in step
    links are idle meanwhile; spread out, what one pushes hides behind what the others compute."""
    file = layers(tmp_path, [{"parameters": 2_400_000, "forward_s": 0.02, "backward_s": 0.04}] * 2)

    def time_s(**training):
        data = scenario(file, star(5), {"workers": 4, "architecture": "parameter_server", **training})
        return simnet.run(data, {"run.iterations": 30, "run.warmup": 10}).summary["iteration_time_s"].item()

    in_step_s, apart_s = time_s(sync="asp"), time_s(sync="asp", jitter={"sigma": 0.01})
    assert in_step_s == pytest.approx(time_s(sync="bsp"), rel=0.02)
    assert apart_s < 0.9 * in_step_s


def test_iterations_that_are_not_steady(tmp_path):
    """Batches that were read ahead are there at once, later ones have to be waited for."""
    data = scenario(layers(tmp_path), star(5), {"workers": 4}, dataset={"bytes_per_sample": "5 MB", "storage": "host4"})
    assert said(warnings(data | {"run": {"iterations": 6, "warmup": 0}}), "iterations are not steady")
    assert not said(warnings(data | {"run": {"iterations": 6, "warmup": 8}}), "iterations are not steady")


def test_too_few_iterations_for_a_percentile(tmp_path):
    training = {"workers": 4, "jitter": {"distribution": "exponential", "scale": 1.0}}
    data = scenario(layers(tmp_path), star(4), training)
    assert said(warnings(data | {"run": {"iterations": 5}}), "iteration_time_p95_s is of 5 iterations")
    assert not said(warnings(data | {"run": {"iterations": 20}}), "iteration_time_p95_s")


def test_timeouts_that_decide(tmp_path):
    file = layers(tmp_path, [{"parameters": 24_000, "forward_s": 1e-3, "backward_s": 1e-3}])
    lossy = scenario(file, star(4, loss_probability=0.2), {"workers": 4}, protocol="tcp")
    assert said(warnings(lossy), "timeouts an iteration, of at least 200 ms each")
    assert said(warnings(lossy | {"fidelity": "packet"}), "timeouts an iteration, of at least 200 ms each")
    assert not said(warnings(scenario(file, star(4), {"workers": 4}, protocol="tcp")), "timeouts")


def test_each_rule_is_in_the_table():
    rules = {rule.__name__ for rule in sanity.RULES}
    assert len(rules) == len(sanity.RULES) == 11


@pytest.mark.parametrize("name", sorted(file.stem for file in shipped_folder("scenarios").glob("*.yaml")))
def test_what_ships_is_not_odd_without_a_reason(shipped, name):
    """Of two scenarios it is said that five or seven iterations are few; MapReduce is as slow as it is said to be."""
    known = {
        "background_traffic": "iteration_time_p95_s",
        "gossip_pairs": "iteration_time_p95_s",
        "mapreduce_spark": "times as long as computing",
        "shared_memory": "in one bucket",
    }
    found = shipped(name).warnings
    assert len(found) == (name in known)
    assert all(known[name] in warning for warning in found)
