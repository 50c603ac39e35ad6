"""Sweep files: which points they have, and what is said of mistakes, at their place."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.scenario.sweep.load import load_sweep_file
from simnet.scenario.sweep.models import SampleSpec
from simnet.scenario.sweep.sampling import draw_points
from tests.scenario.marked import at_mark


def points_of(**keys: object) -> list[dict[str, object]]:
    return [dict(point.values) for point in load_sweep_file({"scenario": "resnet50_16gpu", **keys}).points]


def test_a_grid_is_a_product_whose_last_key_varies_fastest():
    found = points_of(grid={"protocol": ["tcp", "rdma"], "training.workers": [1, 2, 4]})
    assert [tuple(point.values()) for point in found] == list(itertools.product(["tcp", "rdma"], [1, 2, 4]))


def test_values_that_go_together():
    found = points_of(zip={"workload.batch_size": [16, 64], "training.workers": [8, 2]})
    assert found == [
        {"workload.batch_size": 16, "training.workers": 8},
        {"workload.batch_size": 64, "training.workers": 2},
    ]


def test_all_blocks_are_multiplied():
    """2 of the grid, 2 that go together, 2 of a list, 3 seeds: 24 points, the seed fastest."""
    found = points_of(
        grid={"protocol": ["tcp", "rdma"]},
        zip={"workload.batch_size": [16, 64], "training.workers": [8, 2]},
        list=[{"training.architecture": "ring"}, {"training.overlap": False}],
        repeat=3,
    )
    assert len(found) == 24
    assert [point["run.seed"] for point in found[:4]] == [0, 1, 2, 0]
    assert found[0] == {
        "protocol": "tcp",
        "workload.batch_size": 16,
        "training.workers": 8,
        "training.architecture": "ring",
        "run.seed": 0,
    }
    assert "training.architecture" not in found[3]


def test_conditions_drop_points():
    found = points_of(
        grid={"protocol": ["tcp", "rdma"], "training.workers": [1, 2, 4, 8]},
        where=["training.workers >= 2", "protocol == 'rdma' or training.workers < 8"],
    )
    expected = [("tcp", 2), ("tcp", 4), ("rdma", 2), ("rdma", 4), ("rdma", 8)]
    assert [tuple(point.values()) for point in found] == expected


def test_without_keys_there_is_one_point():
    assert points_of() == [{}]


@given(st.integers(1, 40), st.integers(0, 1000))
def test_each_part_of_each_range_has_one_point(points, seed):
    """Latin hypercube: floor(points x share) is a permutation of 0 .. points - 1, for every range."""
    drawn = draw_points(
        SampleSpec(
            points=points, seed=seed, linear={"a": [2.0, 4.0]}, log={"b": ["1 us", "100 us"]}, among={"c": ["x"]}
        )
    )
    shares = [(point["a"] - 2.0) / 2.0 for point in drawn]
    assert sorted(math.floor(points * share) for share in shares) == list(range(points))
    decades = [math.log10(float(point["b"].removesuffix(" us"))) / 2 for point in drawn]
    # To the six digits that are written.
    assert sorted(math.floor(points * share + 1e-4) for share in decades) == pytest.approx(list(range(points)), abs=1)
    assert {point["c"] for point in drawn} == {"x"}


def test_whole_numbers_between_whole_bounds():
    """Of 300 points between 1 and 3 each has a hundred."""
    drawn = [point["a"] for point in draw_points(SampleSpec(points=300, linear={"a": [1, 3]}))]
    assert [drawn.count(value) for value in (1, 2, 3)] == [100, 100, 100]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("»grid: {training.workers: [1]}", "'scenario' is missing"),
        ("{scenario: »resnet51_16gpu}", "there is no file 'resnet51_16gpu'"),
        ("{scenario: resnet50_16gpu, »grd: {}}", "unknown key 'grd', did you mean 'grid'?"),
        ("{scenario: resnet50_16gpu, grid: {»training.workers: 4}}", "grid has 4 for training.workers"),
        ("{scenario: resnet50_16gpu, grid: {»training.workers: []}}", "grid has"),
        ("{scenario: resnet50_16gpu, grid: {training.workers: [4, »many]}}", "workers is 'many'"),
        ("{scenario: resnet50_16gpu, grid: {training.wrkers: [»4]}}", "unknown key 'wrkers' in training"),
        ("{scenario: resnet50_16gpu, grid: {protocol: [tcp, »tpc]}}", "protocol is 'tpc'"),
        ("{scenario: resnet50_16gpu, set: {run.iterations: »0}}", "iterations is 0"),
        (
            "{scenario: resnet50_16gpu, zip: {training.workers: [1, 2], »protocol: [tcp]}}",
            "zip has 1 values for protocol, 2 are wanted",
        ),
        ("{scenario: resnet50_16gpu, list: »[]}", "list is"),
        ("{scenario: resnet50_16gpu, repeat: »0}", "repeat is 0"),
        ("{scenario: resnet50_16gpu, repeat: »[1, 1]}", "repeat is"),
        ("{scenario: resnet50_16gpu, keep: »[lnks]}", "keep names 'lnks', did you mean 'links'?"),
        (
            "{scenario: resnet50_16gpu, grid: {training.workers: [1]}, where: »training.workers > 5}",
            "no point is left",
        ),
        (
            "{scenario: resnet50_16gpu, grid: {training.workers: [1]}, where: [»workers > 5]}",
            "'workers > 5': no point has 'workers'",
        ),
        (
            "{scenario: resnet50_16gpu, grid: {training.workers: [1]}, baseline: »{training.workers: 2}}",
            "no point has the values of the baseline, values that a point has are wanted",
        ),
        (
            "{scenario: resnet50_16gpu, set: {»training.workers: 2}, grid: {training.workers: [1]}}",
            "training.workers has no effect: it varies, one of them is wanted",
        ),
        (
            "{scenario: resnet50_16gpu, grid: {protocol.tcp.mtu: [»9000 B], protocol: [tcp, rdma]}}",
            "protocol.tcp.mtu has no effect: protocol varies, and replaces it, one of them is wanted",
        ),
        (
            "{scenario: resnet50_16gpu, grid: {training.workers: [1]}, baseline: {»protocol: tcp}}",
            "protocol is not varied, one of training.workers is wanted",
        ),
        (
            "{scenario: resnet50_16gpu, sample: {points: 3, linear: {training.workers: »[8, 2]}}}",
            "8 is not below 2",
        ),
        (
            "{scenario: resnet50_16gpu, grid: {training.workers: [1]}, list: [{»training.workers: 2}]}",
            "training.workers is varied twice",
        ),
    ],
)
def test_mistakes_are_told_at_their_place(tmp_path, text, said):
    text, expected = at_mark(text, said)
    file = tmp_path / "s.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_sweep_file(file)
    [told] = [str(problem).removeprefix(f"{file}:").split("\n")[0] for problem in caught.value.problems]
    assert told.startswith(expected)


def test_every_wrong_value_is_told_at_once(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("{scenario: resnet50_16gpu, grid: {protocol: [tpc, tcp], training.workers: [x, 0, 4]}}")
    with pytest.raises(InputError) as caught:
        load_sweep_file(file)
    assert len(caught.value.problems) == 3


def test_a_scenario_may_stand_in_the_sweep_itself():
    scenario = {
        "topology": {"star": {"hosts": 4}},
        "protocol": "ideal",
        "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
    }
    sweep = load_sweep_file({"scenario": scenario, "grid": {"training.workers": [1, 2]}})
    assert [dict(point.values) for point in sweep.points] == [{"training.workers": 1}, {"training.workers": 2}]
