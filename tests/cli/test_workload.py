"""``simnet workload`` and workloads of one's own, from the file to the run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

PROFILES = Path(__file__).parents[1] / "workload" / "data"


@pytest.mark.parametrize("name", ["profile_modules.json", "profile_operators.json.gz"])
def test_a_profile_becomes_a_trace_that_runs(command, here, name):
    """What the profile recorded is what a worker computes: the mean of the iterations of the trace."""
    status, out, err = command("workload", "from-profile", PROFILES / name, "-o", "trace.csv", "--rank", 0)
    assert (status, out, err) == (0, "", "wrote trace.csv\n")
    assert command("check", "trace.csv").status == 0
    with (here / "trace.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lasted = {}
    for row in rows:
        start, end = float(row["start_s"]), float(row["start_s"]) + float(row["duration_s"])
        known = lasted.get(row["iteration"], (start, end))
        lasted[row["iteration"]] = (min(start, known[0]), max(end, known[1]))
    scenario = "topology: {star: {hosts: 2}}\nprotocol: tcp\nworkload: {trace: trace.csv, batch_size: 8}\n"
    (here / "replay.yaml").write_text(f"{scenario}run: {{iterations: {len(lasted)}, warmup: 0}}\n")
    row = json.loads(command("run", "replay.yaml", "--json").out)
    expected = sum(end - start for start, end in lasted.values()) / len(lasted)
    assert row["compute_time_s"] == pytest.approx(expected, rel=1e-9)


def test_the_trace_lies_here_by_default(command, here):
    assert command("workload", "from-profile", PROFILES / "profile_operators.json.gz").status == 0
    assert [file.name for file in here.iterdir()] == ["profile_operators.csv"]


def test_a_trace_that_cannot_be_written(command, here):
    status, out, err = command(
        "workload", "from-profile", PROFILES / "profile_modules.json", "--rank", 0, "-o", "/dev/null/trace.csv"
    )
    assert (status, out) == (2, "")
    assert err == "/dev/null/trace.csv: cannot be written: Not a directory, choose another place with -o\n"


OWN = {
    "csv": "layer,parameters,forward_s,backward_s\nconv,1000000,0.010,0.020\ndense,2000000,0.005,0.010\n",
    "yaml": (
        "layers:\n"
        "  - {layer: conv, parameters: 1000000, forward_s: 0.010, backward_s: 0.020}\n"
        "  - {layer: dense, parameters: 2000000, forward_s: 0.005, backward_s: 0.010}\n"
    ),
}


@pytest.mark.parametrize("suffix", list(OWN))
def test_an_own_workload_is_found_beside_the_scenario(command, here, suffix):
    """Compute time is the sum of the column; 4 bytes a parameter are exchanged."""
    (here / "deep").mkdir()
    (here / "deep" / f"own.{suffix}").write_text(OWN[suffix])
    scenario = f"topology: {{star: {{hosts: 2}}}}\nprotocol: ideal\nworkload: {{file: own.{suffix}, batch_size: 8}}\n"
    (here / "deep" / "own_run.yaml").write_text(scenario)
    row = json.loads(command("run", "deep/own_run.yaml", "--json").out)
    assert row["compute_time_s"] == pytest.approx(0.045, rel=1e-12)
    assert row["model"] == "own"
    # Two workers in a ring: 2(N - 1)/N S = S.
    assert row["bytes_sent_per_worker"] == 12e6


def test_an_own_rate_overrides_the_table(command, here):
    settings = ["--set", "workload.samples_per_s=100", "--set", "training.workers=1", "--json"]
    row = json.loads(command("run", "resnet50_16gpu", *settings).out)
    assert row["throughput_samples_per_s"] == pytest.approx(100, rel=1e-12)
    assert row["compute_time_s"] == pytest.approx(0.64, rel=1e-12)
