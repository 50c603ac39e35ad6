"""Same seed, same bytes: in this process and in others, whatever they hash by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import simnet
from simnet.scenario import write_yaml

SCENARIO = {
    "name": "reproducible",
    "topology": {
        "leaf_spine": {"leaves": 3, "hosts_per_leaf": 2, "spines": 2, "uplinks": 2, "host": {"gpus": 2, "nics": 2}}
    },
    "protocol": "tcp",
    "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
    "training": {
        "workers": 12,
        "architecture": "mesh",
        "jitter": {"distribution": "lognormal", "sigma": 0.2},
        "speed_factors": {"3": 0.7},
    },
    "run": {"iterations": 2, "seed": 5},
}
PARQUET = ("iterations.parquet", "workers.parquet", "collectives.parquet", "links.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the scenario and the result of running it here."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "reproducible.yaml").write_text(write_yaml(SCENARIO))
    simnet.run(folder / "reproducible.yaml").save(folder / "result")
    return folder


def _same(one: Path, other: Path) -> None:
    for name in PARQUET:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert (one / "scenario.yaml").read_bytes() == (other / "scenario.yaml").read_bytes()
    rows = [(folder / "summary.csv").read_text().splitlines() for folder in (one, other)]
    assert rows[0][0].endswith(",wall_time_s")
    assert [line.rpartition(",")[0] for line in rows[0]] == [line.rpartition(",")[0] for line in rows[1]]


def test_again_in_this_process(folder, tmp_path):
    simnet.run(folder / "reproducible.yaml").save(tmp_path / "again")
    _same(folder / "result", tmp_path / "again")


@pytest.mark.parametrize("hash_seed", ["0", "random"])
def test_in_another_process(folder, tmp_path, hash_seed):
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(simnet.__file__).parents[1])}
    subprocess.run(
        [sys.executable, "-m", "simnet.cli.main", "run", folder / "reproducible.yaml", "-q", "-o", tmp_path / "other"],
        env=environment,
        check=True,
        timeout=300,
    )
    _same(folder / "result", tmp_path / "other")


def test_another_seed_gives_other_times(folder):
    here = simnet.load_result(folder / "result")
    other = simnet.run(folder / "reproducible.yaml", {"run.seed": 6})
    assert (here.iterations["compute_time_s"] != other.iterations["compute_time_s"]).all()


def test_without_randomness_the_seed_does_not_matter():
    """On a star there is one path for each pair, so nothing is left to the seed."""
    changes = {"topology": {"star": {"hosts": 12}}, "training.jitter": None, "training.speed_factors": {}}
    one, other = (simnet.run(SCENARIO, changes | {"run.seed": seed}).summary for seed in (1, 2))
    pd.testing.assert_frame_equal(one.drop(columns="wall_time_s"), other.drop(columns="wall_time_s"))


def test_the_resolved_scenario_gives_the_same_result(folder, tmp_path):
    simnet.run(folder / "result" / "scenario.yaml").save(tmp_path / "resolved")
    _same(folder / "result", tmp_path / "resolved")
