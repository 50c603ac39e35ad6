"""What ships is right, is found by name from anywhere, and is described."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnet.errors import InputError
from simnet.scenario import describe, load_scenario, load_topology, topology_from_text
from simnet.scenario.check import kind_of_file
from simnet.scenario.locate import find_file
from simnet.shipped import shipped_folder

SCENARIOS = sorted(file.stem for file in shipped_folder("scenarios").glob("*.yaml"))
TOPOLOGIES = sorted(shipped_folder("topologies").iterdir())


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_are_found_by_name_from_any_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert load_scenario(name).name == name
    assert describe(name)[0] == f"scenario {name}, fidelity {load_scenario(name).fidelity}"


@pytest.mark.parametrize("file", TOPOLOGIES, ids=lambda file: file.name)
def test_topologies_are_right(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    assert load_topology(file).name == file.stem
    assert describe(file.stem)[0].startswith(f"topology {file.stem}: ")


def test_the_one_of_the_issue():
    scenario = load_scenario("inception_v3_100gpu")
    assert len(scenario.topology.compiled.ranks) == scenario.job.training.workers == 100
    assert scenario.job.workload.model.parameters == 27_161_264
    assert (scenario.protocol.name, scenario.job.training.architecture.name) == ("infiniband", "ring")


def test_the_nearest_file_wins(tmp_path, monkeypatch):
    beside, here = tmp_path / "beside", tmp_path / "here"
    for folder in (beside, here):
        folder.mkdir()
        (folder / "x.yaml").touch()
    monkeypatch.chdir(here)
    assert find_file("x.yaml", beside) == beside / "x.yaml"
    assert find_file("x.yaml", None) == Path("x.yaml")
    assert find_file("fat_tree_k8", beside, "topologies", (".yaml",)).parent == shipped_folder("topologies")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.json", "{}", "topology"),
        ("a.GML", "", "topology"),
        ("a.yaml", "star: {hosts: 3}", "topology"),
        ("a.yml", "protocol: tcp", "scenario"),
        ("a.yaml", "", "scenario"),
        ("a.yaml", "layers: []", "workload"),
        ("a.yaml", "- {layer: a}", "workload"),
        ("a.csv", "layer,parameters\n", "workload"),
        ("a.csv", "iteration,rank,layer,phase,start_s,duration_s\n", "trace"),
    ],
)
def test_a_file_is_told_by_suffix_and_content(tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    assert kind_of_file(tmp_path / name) == kind


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnet50_16", "there is no file 'resnet50_16' here, did you mean 'resnet50_16gpu'?"),
        ("fat_tre_k8", "there is no file 'fat_tre_k8' here, did you mean 'fat_tree_k8'?"),
        ("/nowhere/x.yml", "there is no file '/nowhere/x.yml', known: "),
        (".", "'.' is a directory, a file is wanted"),
    ],
)
def test_what_is_not_there(name, said):
    with pytest.raises(InputError) as caught:
        describe(name)
    assert said in str(caught.value)


def test_what_is_nothing_known(tmp_path):
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match=r"'a.txt' is nothing known by its suffix, known: .yaml, .yml, .json"):
        describe(tmp_path / "a.txt")


def test_a_workload_is_described(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("layer,parameters,forward_s,backward_s\na,1000,0.1,0.2\n")
    assert describe(file) == [
        "workload own: 1 layers, 1 gradients, 1,000 parameters",
        "  300 ms for 1 sample: 100 ms forward, 200 ms backward",
        f"  compute time: measured: {file}",
    ]


@pytest.mark.parametrize(
    ("text", "ranks"), [("fat_tree_k8", 128), ("{star: {hosts: 4}}", 4), ("{file: nvlink_node_8}", 8)]
)
def test_a_topology_is_named_in_one_word_or_inline(text, ranks):
    assert len(topology_from_text(text).compiled.ranks) == ranks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("star", "there is no file 'star' here, a generator needs its options: {star: {option: value}}"),
        ("fat_tre_k8", "there is no file 'fat_tre_k8' here, did you mean 'fat_tree_k8'?"),
        ("{star: {host: 4}}", "SPEC:1:15: host is 4, a mapping is wanted"),
        ("{star: {hosts: 4, bandwidth: 3}}", "SPEC:1:30: bandwidth: 3 has no unit"),
        ("{fat_tree: {k: 3}}", "SPEC:1:16: k is 3, an even number of ports is wanted"),
        ("{star", "SPEC:1:6: a mapping '{' that is not closed"),
        ("", "'' names no file, a file name is wanted"),
    ],
)
def test_a_topology_that_is_none(text, said):
    with pytest.raises(InputError) as caught:
        topology_from_text(text)
    assert any(said in str(problem) for problem in caught.value.problems), str(caught.value)
