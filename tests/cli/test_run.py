"""``simnet run``: what it prints and writes, and where."""

from __future__ import annotations

import json

import pytest

import simnet
from simnet.experiment.columns import COLUMNS

STAR = "{star: {hosts: 4, bandwidth: 25 Gbps, latency: 1 us}}"
SUMMARY = [column.name for column in COLUMNS["summary"]]

MINE = """\
topology: {star: {hosts: 2}}
protocol: ideal
workload: {model: resnet50, batch_size: 64, samples_per_s: 250}
run: {iterations: 1}
"""


@pytest.fixture
def mine(here):
    """Write a scenario of one's own."""
    (here / "mine.yaml").write_text(MINE)
    return "mine.yaml"


@pytest.mark.parametrize(
    "name", ["resnet50_16gpu", "inception_v3_100gpu", "own_workload", "dataflow_alexnet", "edge_to_cloud", "two_jobs"]
)
def test_what_ships_runs_by_name_in_any_folder(command, here, name):
    status, out, err = command("run", name)
    assert status == 0
    result = simnet.load_result(here / "results" / "runs" / name)
    # A column for each job, and what is odd on standard error.
    assert out.splitlines()[2].split() == ["scenario", *[name] * len(result.summary)]
    assert err == "".join(
        [*(f"warning: {name}: {warning}\n" for warning in result.warnings), f"wrote results/runs/{name}\n"]
    )
    assert (result.summary.scenario == name).all()


def test_it_prints_every_column_with_its_unit(command, mine):
    lines = [line.split() for line in command("run", mine).out.splitlines()]
    assert lines[0] == ["summary"]
    assert lines[1] == ["column", "value", "unit"]
    assert [line[0] for line in lines[2:]] == SUMMARY
    [time] = [line for line in lines if line[0] == "compute_time_s"]
    assert time == ["compute_time_s", "0.256", "s"]


def test_json_is_one_object_on_standard_output_and_nothing_else(command, mine):
    status, out, err = command("run", mine, "--json")
    assert status == 0
    assert out.count("\n") == 1
    row = json.loads(out)
    assert list(row) == SUMMARY
    assert row["compute_time_s"] == pytest.approx(64 / 250, rel=1e-12)
    assert err == "wrote results/runs/mine\n"


def test_json_of_several_scenarios_is_one_object_with_jobs(command, mine):
    status, out, err = command("run", mine, "own_workload", mine, "--json")
    assert status == 0
    assert out.count("\n") == 1
    jobs = json.loads(out)
    assert list(jobs) == ["jobs"]
    assert [row["scenario"] for row in jobs["jobs"]] == ["mine", "own_workload", "mine"]
    assert err.splitlines() == [f"wrote results/runs/{name}" for name in ("mine", "own_workload", "mine_2")]


def test_several_scenarios_stand_side_by_side(command, mine):
    lines = [line.split() for line in command("run", mine, "own_workload").out.splitlines()]
    assert lines[1] == ["column", "1", "2", "unit"]
    assert lines[2] == ["scenario", "mine", "own_workload"]


def test_many_scenarios_are_not_cut(command, mine):
    """Where the output is no screen, a line is as long as it has to be."""
    lines = command("run", *[mine] * 12).out.splitlines()
    assert len(lines) == 2 + len(SUMMARY)
    assert lines[2].split() == ["scenario", *["mine"] * 12]


def test_what_is_written_is_what_is_printed(command, mine, here):
    row = json.loads(command("run", mine, "--json", "-o", "out").out)
    assert simnet.load_result(here / "out").summary.iloc[0].to_dict() == row
    assert not (here / "results").exists()


def test_output_of_several_goes_below_the_folder(command, mine, here):
    assert command("run", mine, "own_workload", "-o", "out").status == 0
    assert sorted(folder.name for folder in (here / "out").iterdir()) == ["mine", "own_workload"]


def test_the_same_again_replaces_the_result(command, mine, here):
    for _ in range(2):
        assert command("run", mine).status == 0
    assert [folder.name for folder in (here / "results" / "runs").iterdir()] == ["mine"]


def test_a_folder_with_something_else_is_refused_before_the_run(command, mine, here, monkeypatch):
    (here / "out").mkdir()
    (here / "out" / "notes.txt").write_text("mine")
    monkeypatch.setattr("simnet.experiment.run.run", lambda *_, **__: pytest.fail("was run"))
    status, out, err = command("run", mine, "-o", "out")
    assert (status, out) == (2, "")
    assert err.startswith("out: the folder holds files that are no result, an empty or new folder")
    assert [file.name for file in (here / "out").iterdir()] == ["notes.txt"]


def test_set_changes_keys(command, mine):
    out = command("run", mine, "--set", "protocol=tcp", "--set", "training.workers=1", "--set", "name=other", "--json")
    row = json.loads(out.out)
    assert (row["scenario"], row["protocol"], row["workers"]) == ("other", "tcp", 1)


def test_topology_and_protocol_are_yaml_too(command, mine):
    out = command("run", mine, "--topology", STAR, "--protocol", "{tcp: {mtu: 9000 B}}", "--json")
    row = json.loads(out.out)
    assert (row["workers"], row["protocol"]) == (4, "tcp")
    assert row["bottleneck"].endswith("->switch")


def test_the_later_change_wins(command, mine):
    out = command("run", mine, "--protocol", "tcp", "--set", "protocol=ipoib", "--set", "protocol=dpdk", "--json")
    assert json.loads(out.out)["protocol"] == "dpdk"


def test_a_strange_pair_of_protocol_and_links_is_said(command, mine):
    status, out, err = command("run", mine, "--set", "protocol=ipoib", "--json")
    assert status == 0
    assert json.loads(out)["protocol"] == "ipoib"
    assert err.startswith("warning: mine: ipoib is made for infiniband links and runs here on ethernet: ")


def test_quiet_prints_nothing(command, mine):
    assert command("run", mine, "-q") == (0, "", "")
    status, out, err = command("run", mine, "-q", "--json")
    assert (status, err) == (0, "")
    assert list(json.loads(out)) == SUMMARY


def test_names_are_shown_as_they_are(command, here):
    """Brackets and colons mean nothing to the table."""
    (here / "layers.csv").write_text("layer,parameters,forward_s,backward_s\na,1000,0.1,0.2\n")
    nodes = [{"id": name, "kind": "host"} for name in ("[red]a", ":x:b")]
    edge = {"source": "[red]a", "target": ":x:b", "bandwidth": "1 Gbps", "latency": "1 us", "kind": "ethernet"}
    topology = {"directed": False, "multigraph": True, "graph": {}, "nodes": nodes, "edges": [edge]}
    (here / "odd.json").write_text(json.dumps(topology))
    (here / "odd.yaml").write_text("topology: odd.json\nprotocol: ideal\nworkload: {file: layers.csv, batch_size: 1}\n")
    [line] = [line for line in command("run", "odd.yaml").out.splitlines() if line.startswith("bottleneck")]
    assert line.split() == ["bottleneck", "[red]a->:x:b"]


def empty() -> None:
    """Compile nothing; a function of a module, as another process is to call it."""


def test_compiling_is_said_in_one_line(mine, here, environment, monkeypatch):
    """The first run on a machine says why it takes longer, on standard error."""
    said = []
    monkeypatch.setattr("simnet.fabric.warm_up.play_by_events", lambda: None)
    monkeypatch.setattr("simnet.fabric.warm_up.foresee_and_disturb", empty)
    monkeypatch.setenv("SIMNET_CACHE_DIR", str(here / "cache"))
    from simnet.fabric.kernels.compiled import cache_folder
    from simnet.fabric.warm_up import compile_kernels

    cache_folder.cache_clear()
    try:
        assert compile_kernels(said.append) > 0
        assert compile_kernels(said.append) == 0
    finally:
        cache_folder.cache_clear()
    assert said == ["compiling the simulation kernels (once; kept for later runs) ..."]
