"""``simnet scaling``: what it prints, draws and refuses."""

from __future__ import annotations

import json

import pytest

from simnet.experiment.columns import COLUMNS

SCENARIO = """\
topology: {star: {hosts: 4, bandwidth: 10 Gbps, latency: 1 us}}
protocol: ideal
workload: {model: resnet50, samples_per_s: 320, batch_size: 32}
training: {workers: 2}
run: {iterations: 1}
"""


@pytest.fixture
def scaling(command, here):
    """Run the command on a scenario."""
    (here / "s.yaml").write_text(SCENARIO)
    return lambda *arguments: command("scaling", "s.yaml", *arguments)


def test_json_has_one_object_for_each_number_of_workers(scaling, here):
    status, out, _ = scaling("--workers", "1,2,4", "--json", "--plot", here / "curves.svg")
    rows = json.loads(out)
    assert status == 0
    assert [list(row) for row in rows] == [[column.name for column in COLUMNS["scaling"]]] * 3
    assert [row["workers"] for row in rows] == [1, 2, 4]
    assert [row["samples_per_iteration"] for row in rows] == [64, 64, 64]
    assert rows[0]["speedup"] == 1.0
    assert rows[0]["karp_flatt_serial_fraction"] is None
    assert (here / "curves.svg").stat().st_size > 1000


def test_weak_scaling_with_a_change(scaling):
    _, out, _ = scaling("--workers", "2,4", "--scaling", "weak", "--set", "workload.batch_size=16", "--csv")
    lines = [line.split(",") for line in out.splitlines()]
    assert [line[:3] for line in lines[1:]] == [["2", "weak", "32"], ["4", "weak", "64"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "1,x"], "--workers is '1,x', numbers are wanted"),
        (["--workers", "1,3"], "which 3 workers cannot share evenly"),
        (["--workers", "1", "--scaling", "medium"], "scaling is 'medium', known: strong, weak"),
        (["--workers", "1", "--csv", "--json"], "--csv and --json exclude each other"),
    ],
)
def test_what_it_refuses(scaling, arguments, said):
    status, out, err = scaling(*arguments)
    assert (status, out) == (2, "")
    assert said in err
