"""What becomes of an iteration when one thing is changed, against closed forms."""

from __future__ import annotations

import pytest

import simnet

from ..building import C, P, X, layers, scenario, star, within


def effects(data, **options):
    """Return the effect of each change that could be run, by its name."""
    table = simnet.explain(data, **options).sensitivity
    assert table is not None
    assert list(table["effect"].dropna()) == sorted(table["effect"].dropna())
    return dict(zip(table["change"], table["effect"], strict=True))


def test_a_ring_without_overlap(tmp_path):
    """T = C + 6 (X/4 + P): each of the three can be halved; other all-reduces take their own."""
    found = effects(scenario(layers(tmp_path), star(4), {"workers": 4}))
    whole = C + 6 * (X / 4 + P)
    assert found["host link (NIC) x2"] == within(-6 * X / 8 / whole)
    assert found["latency /2"] == within(-3 * P / whole)
    assert found["computing x2"] == within(-C / 2 / whole)
    # Two steps of X/4 from each to all others: three at once on a link.
    assert found["all-reduce: mesh"] == within((2 * (3 / 4 * X + P) - 6 * (X / 4 + P)) / whole)
    assert found["all-reduce: butterfly"] == within((2 * (X + P) - 6 * (X / 4 + P)) / whole)
    assert "host protocol stack free" not in found
    assert "no stragglers" not in found
    assert not any("ipoib" in change or "infiniband" in change for change in found)
    assert {"protocol: tcp", "protocol: roce", "protocol: dpdk"} <= set(found)


def test_more_servers_and_smaller_gradients(tmp_path):
    """As the same scenario with that changed; 4 workers and one server: T = C + 2 (4 X + P), with two 2 (2 X + P)."""
    servers = {"parameter_server": {"servers": 1, "placement": "dedicated"}}
    data = scenario(layers(tmp_path), star(6), {"workers": 4, "architecture": servers})
    found = effects(data)
    whole = C + 2 * (4 * X + P)
    assert found["servers x2"] == within(-4 * X / whole)
    halved = simnet.run(data, {"training.compression": "fp16"}).summary["iteration_time_s"].item()
    assert found["compression: fp16"] == within(halved / whole - 1.0)
    # Half of the bytes travel, and compressing takes its time.
    assert -4 * X / whole < found["compression: fp16"] < 0.0
    no_room = scenario(layers(tmp_path), star(5), {"workers": 4, "architecture": servers, "compression": "fp16"})
    assert {"servers x2", "compression: fp16"}.isdisjoint(effects(no_room))


def test_what_disturbs_is_taken_away(tmp_path):
    training = {"workers": 4, "speed_factors": {1: 0.5}}
    found = effects(scenario(layers(tmp_path), star(4), training))
    assert found["no stragglers"] == within(-C / (2 * C + 6 * (X / 4 + P)))
    background = {"load": 0.2, "mean_size": "100 kB"}
    found = effects(scenario(layers(tmp_path), star(4), {"workers": 4}, background=background))
    assert found["no background traffic"] <= 0.0


def test_a_class_of_links_that_limits_nothing_changes_nothing(tmp_path):
    """Four hosts below one leaf: no uplink is used."""
    fabric = {"leaves": 2, "spines": 1, "hosts_per_leaf": 4, "bandwidth": "10 Gbps", "latency": "2 us"}
    found = effects(scenario(layers(tmp_path), {"leaf_spine": fabric}, {"workers": 4}))
    assert found["leaf to spine x2"] == within(0.0)
    assert found["host link (NIC) x2"] < -0.01


def test_two_classes_that_are_as_busy_have_to_go_together(tmp_path):
    """Two leaves, uplinks of the speed of a host's link: one flow of the ring is on each of them."""
    fabric = {"leaves": 2, "spines": 4, "hosts_per_leaf": 4, "bandwidth": "1 Gbps", "latency": "2 us"}
    found = simnet.explain(scenario(layers(tmp_path), {"leaf_spine": fabric}, {"workers": 8}))
    effect = found.sensitivity.set_index("change")["effect"]
    assert effect["leaf to spine x2"] > -0.01
    assert effect["host link (NIC) x2"] > -0.01
    assert effect["all links x2"] < -0.1
    assert any("about as busy" in note and "all links x2" in note for note in found.notes)
    one_leaf = simnet.explain(scenario(layers(tmp_path), {"leaf_spine": fabric}, {"workers": 4}))
    assert not any("about as busy" in note for note in one_leaf.notes)


def test_it_is_the_same_each_time_and_can_be_left_out(tmp_path):
    data = scenario(layers(tmp_path), star(2), {"workers": 2, "jitter": {"distribution": "normal", "sigma": 0.1}})
    one, other = simnet.explain(data), simnet.explain(data)
    assert str(one) == str(other)
    assert one.as_json() == other.as_json()
    assert simnet.explain(data, sensitivity=False).sensitivity is None


def test_what_would_take_long_is_not_tried():
    found = simnet.explain(
        {
            "topology": {"star": {"hosts": 80}},
            "protocol": "ideal",
            "workload": {"model": "alexnet", "batch_size": 32, "samples_per_s": 1000},
            "training": {"workers": 80, "bucket_size": "1 GB"},
            "run": {"iterations": 1},
        }
    ).sensitivity
    assert found is not None
    mesh = found[found["change"] == "all-reduce: mesh"].iloc[0]
    assert mesh["failed"] == "not tried: 12,640 messages at once"


def test_several_jobs_are_asked_one_by_one():
    found = simnet.explain("two_jobs", job="larger_model").sensitivity
    assert found is not None
    alone = found.set_index("change")["effect"]["no other jobs"]
    assert alone == pytest.approx(-0.15, abs=0.1)
