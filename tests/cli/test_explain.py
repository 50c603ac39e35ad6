"""``simnet explain`` and ``simnet compare``: what they print, write and refuse."""

from __future__ import annotations

import csv
import io
import json

import pytest

from simnet.experiment.columns import COLUMNS

SCENARIO = """\
topology: {star: {hosts: 4, bandwidth: 10 Gbps, latency: 1 us}}
protocol: ideal
workload: {model: alexnet, samples_per_s: 3200, batch_size: 32}
training: {workers: 4}
run: {iterations: 1}
"""


@pytest.fixture
def explain(command, here):
    """Run the command on a scenario."""
    (here / "s.yaml").write_text(SCENARIO)
    return lambda *arguments: command("explain", "s.yaml", *arguments)


def test_text_tells_parts_verdict_and_sensitivity(explain):
    status, out, err = explain()
    assert status == 0
    assert "serialisation: host link (NIC)" in out
    assert "\nbound by: serialisation: host link (NIC) (host0->switch), " in out
    assert "with one thing changed at a time:" in out
    assert "host link (NIC) x2" in out
    assert err == ""


def test_without_sensitivity_and_with_a_change(explain):
    _, out, _ = explain("--no-sensitivity", "--set", "topology.star.bandwidth=10 Tbps")
    assert "bound by: computing" in out
    assert "one thing changed" not in out


def test_json_and_csv_are_tables(explain):
    _, out, _ = explain("--json")
    data = json.loads(out)
    assert list(data["parts"][0]) == [column.name for column in COLUMNS["explanation"]]
    assert list(data["path"][0]) == [column.name for column in COLUMNS["critical_path"]]
    assert list(data["sensitivity"][0]) == [column.name for column in COLUMNS["sensitivity"]]
    _, out, _ = explain("--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(float(row["time_s"]) for row in rows) == pytest.approx(data["iteration_time_s"], rel=1e-9)


def test_output_goes_into_a_file(explain, here):
    status, out, err = explain("--no-sensitivity", "-o", here / "why.txt")
    assert (status, out) == (0, "")
    assert err == f"wrote {here / 'why.txt'}\n"
    assert "bound by:" in (here / "why.txt").read_text()


def test_mistakes_are_told_together(explain):
    status, _, err = explain("--csv", "--json", "--set", "nothing")
    assert status == 2
    assert "--csv and --json exclude each other" in err
    assert "'nothing' names no key and value" in err
    status, _, err = explain("--job", "trein")
    assert status == 2
    assert "there is no job 'trein', did you mean 'train'?" in err


def test_compare_prints_what_differs(command, here):
    (here / "a.yaml").write_text(SCENARIO)
    (here / "b.yaml").write_text(SCENARIO.replace("10 Gbps", "20 Gbps"))
    status, out, _ = command("compare", "a.yaml", "b.yaml")
    assert status == 0
    assert "topology.star.bandwidth  10 Gbps  20 Gbps" in out
    assert "where the time of an iteration goes" in out
    _, out, _ = command("compare", "a.yaml", "b.yaml", "--no-explain", "--json")
    assert sorted(json.loads(out)) == ["a", "b", "results", "settings"]
    _, out, _ = command("compare", "a.yaml", "b.yaml", "--no-explain", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert rows[0]["column"] == "iteration_time_s"
    status, _, err = command("compare", "a.yaml", here / "none")
    assert status == 2
    assert "there is no file" in err
