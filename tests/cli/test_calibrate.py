"""``simnet calibrate``: a table, a protocol file that a scenario can name, refusals with status 2."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import pytest

import simnet
from simnet.scenario import load_scenario

LOG = """# OSU MPI Latency Test v5.8
# Size          Latency (us)
8                       2.001
1024                    2.256
1048576               264.144
"""
"""2 us + S / (4 GB/s)."""


@pytest.fixture
def log(here):
    (here / "two_hosts.log").write_text(LOG)
    return here


def test_table_and_file(command, log):
    done = command("calibrate", "two_hosts.log")
    assert done.status == 0
    assert "# osu_latency (OSU micro-benchmarks 5.8); base tcp" in done.out
    assert "wrote two_hosts.yaml" in done.err
    scenario = load_scenario(
        {
            "topology": {"star": {"hosts": 2}},
            "protocol": "two_hosts.yaml",
            "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
        }
    )
    protocol = scenario.protocol
    one_way = protocol.send_overhead_s + protocol.receive_overhead_s + protocol.latency_s
    assert one_way == pytest.approx(2e-6, rel=1e-3)
    assert protocol.connection_cap_bytes_per_s == pytest.approx(4e9, rel=1e-3)


def test_forms_of_the_table(command, log):
    frame = pd.DataFrame(simnet.calibrate("two_hosts.log", link="100 Gbps").quantities)
    as_csv = command("calibrate", "two_hosts.log", "--link", "100 Gbps", "--csv").out
    assert [row["quantity"] for row in csv.DictReader(io.StringIO(as_csv))] == frame["quantity"].tolist()
    as_json = json.loads(command("calibrate", "two_hosts.log", "--link", "100 Gbps", "--json").out)
    assert [row["value"] for row in as_json] == frame["value"].tolist()


def test_name_base_and_file(command, log):
    done = command("calibrate", "two_hosts.log", "--base", "roce", "--name", "ours", "-o", "deep/x.yaml")
    assert "wrote deep/x.yaml" in done.err
    assert (log / "deep" / "x.yaml").read_text().startswith("name: ours\nbase: roce\nsource: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.log"], "none.log: there is no such file"),
        (["two_hosts.log", "--base", "tpc"], "--base: there is no protocol 'tpc', did you mean 'tcp'?"),
        (["two_hosts.log", "--csv", "--json"], "--csv and --json exclude each other"),
        (["two_hosts.log", "--link", "100"], "--link: '100' has no unit"),
    ],
)
def test_refused(command, log, arguments, said):
    done = command("calibrate", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert sorted(path.name for path in log.iterdir()) == ["two_hosts.log"]


def test_sweep_over_protocols(log):
    """A protocol file is a value of a sweep like any other, and its values can be varied."""
    (log / "two_hosts.yaml").write_text(simnet.calibrate("two_hosts.log").text)
    scenario = {
        "topology": {"star": {"hosts": 2}},
        "protocol": "two_hosts.yaml",
        "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
        "run": {"iterations": 1},
    }
    by_name = simnet.sweep(scenario, {"protocol": ["tcp", "two_hosts.yaml"]})
    assert by_name["protocol"].tolist() == ["tcp", "two_hosts.yaml"]
    varied = simnet.sweep(scenario, {"protocol.changes.connection_cap": ["1 Gbps", "32 Gbps"]})
    assert varied["protocol"].tolist() == ["two_hosts"] * 2
    slow_s, fast_s = varied["communication_time_s"]
    assert slow_s > 10 * fast_s
