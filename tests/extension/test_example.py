"""The example package: what it adds stands beside what comes with simnet, everywhere."""

from __future__ import annotations

import configparser
import csv
import json
import re
import tomllib
from pathlib import Path

import pytest

LOSSY = {
    "topology": {"star": {"hosts": 2, "loss_probability": 0.001}},
    "protocol": "gentle",
    "fidelity": "packet",
    "workload": {"model": "resnet50", "batch_size": 64, "samples_per_s": 250.0},
    "training": {"workers": 2, "overlap": False},
    "run": {"iterations": 1},
}
COMMANDS = {
    "list": "protocol list",
    "show": "protocol show gentle",
    "schema": "schema",
    "chain": "topology show '{chain: {hosts: 4}}'",
    "hubs": "collective all_reduce --topology '{star: {hosts: 5, latency: 0 s}}' --protocol ideal "
    "--algorithm '{hubs: {hubs: 5}}' --sizes 1GB --json",
    "lossy": "run SCENARIO --output gentle",
    "again": "run gentle/scenario.yaml --output again",
    "cubic": "run SCENARIO --output cubic --set protocol.gentle.congestion_control=cubic",
    "run": "run resnet50_16gpu --set 'training.architecture={hubs: {hubs: 4}}' "
    "--set 'topology={chain: {hosts: 16}}' --set run.iterations=1 --json",
    "wrong": "check resnet50_16gpu --set 'topology={chain: {hosts: 0, hops: 2}}' "
    "--set 'training.architecture={hubs: {hubs: many}}' --set 'protocol={gentle: {hops: 2}}'",
    "misspelt": "check resnet50_16gpu --set 'topology={chian: {hosts: 4}}' --set training.architecture=hub "
    "--set protocol=gentel",
    "misspelt algorithm": "collective all_reduce --topology nvlink_node_8 --protocol ideal --algorithm hub",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("example")


@pytest.fixture(scope="module")
def done(commands, example, folder):
    """What the commands left behind, by their names."""
    (folder / "lossy.json.yaml").write_text(json.dumps(LOSSY), encoding="utf-8")
    lines = [line.replace("SCENARIO", "lossy.json.yaml") for line in COMMANDS.values()]
    return dict(zip(COMMANDS, commands([example], lines, folder).done, strict=True))


def test_what_an_installer_would_note_is_in_step_with_the_package(example):
    project = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    noted = configparser.ConfigParser(delimiters=("=",))
    noted.read(example / "simnet_example-1.0.dist-info" / "entry_points.txt", encoding="utf-8")
    assert {group: dict(noted[group]) for group in noted.sections()} == project["entry-points"]


def test_the_page_shows_the_package(example):
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```(?:toml|python) (\S+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    assert set(shown) == {
        "pyproject.toml",
        *(f"simnet_example/{name}.py" for name in ("protocol", "collective", "topology")),
    }
    for name, text in shown.items():
        assert (example / name).read_text(encoding="utf-8") == text, name


def test_the_protocol_is_listed_and_shown(done):
    assert done["list"].out.splitlines()[-1].split(maxsplit=3) == [
        *("gentle", "sack", "gentle"),
        "TCP that gives way by a tenth",
    ]
    assert done["list"].status == 0
    shown = {line.split()[0]: line for line in done["show"].out.splitlines()}
    assert "1 us" in shown["send_overhead"]
    assert "measured on our hosts" in shown["send_overhead"]
    assert "gentle" in shown["congestion_control"]


def test_the_schema_has_all_of_them(done):
    definitions = json.loads(done["schema"].out)["$defs"]
    assert "gentle" in definitions["ProtocolSpec"]["anyOf"][0]["enum"]
    assert "chain" in definitions["TopologySpec"]["anyOf"][-1]["properties"]
    names, one = definitions["ArchitectureSpec"]["anyOf"]
    assert "hubs" in names["enum"]
    options = one["properties"]["hubs"]["anyOf"][0]["properties"]
    assert options["hubs"]["maximum"] == 64
    assert options["hubs"]["description"] == "Ranks that add up, each a share of the buffer."


def test_the_topology_is_made(done):
    """A chain of 4 hosts has 3 cables, which are 6 links."""
    assert "topology chain: 4 ranks" in done["chain"].out
    assert "links: 6 ethernet" in done["chain"].out


def test_the_collective_takes_what_it_should(done):
    """With as many hubs as ranks, 2 (N - 1) S / (N B): 2 * 4 * 1e9 / (5 * 12.5e9) = 0.128 s, in 2 steps."""
    [row] = json.loads(done["hubs"].out)
    assert row["time_us"] == pytest.approx(128_000, rel=1e-9)
    assert row["steps"] == 2
    assert row["transfers"] == 2 * 4 * 5


def test_the_congestion_control_is_what_packets_are_sent_by(done, folder):
    """Its window falls by a tenth where CUBIC's falls by 3/10, so it is faster; the result can be run again."""
    times = {}
    for name in ("gentle", "cubic", "again"):
        assert done[{"gentle": "lossy"}.get(name, name)].status == 0
        with (folder / name / "summary.csv").open(encoding="utf-8") as file:
            [row] = csv.DictReader(file)
        times[name] = float(row["iteration_time_s"])
    assert times["gentle"] < times["cubic"]
    assert times["again"] == times["gentle"]


def test_a_run_uses_topology_and_architecture(done):
    assert done["run"].status == 0, done["run"].err
    assert json.loads(done["run"].out)["architecture"] == "hubs"


def test_parameters_are_checked_as_those_of_the_built_in_ones(done):
    status, _, errors = done["wrong"]
    assert status == 2
    for said in (
        "hosts is 0, a whole number of at least 1 is wanted",
        "unknown key 'hops' in chain, did you mean 'hosts'? known: hosts, bandwidth, latency",
        "hubs is 'many', a whole number of at least 1 is wanted",
        "unknown key 'hops' in gentle",
    ):
        assert said in errors


def test_misspelt_names_find_them(done):
    assert done["misspelt"].status == done["misspelt algorithm"].status == 2
    for name in ("chain", "hubs", "gentle"):
        assert f"did you mean '{name}'?" in done["misspelt"].err
    assert "did you mean 'hubs'?" in done["misspelt algorithm"].err
