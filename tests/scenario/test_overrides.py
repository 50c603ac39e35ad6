"""Values that are put in before validation, from the command line as text and from Python as values."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.scenario import load_scenario, override_from_text, parse_yaml
from simnet.scenario.overrides import Override, apply_overrides, overrides_from_mapping

SCENARIO = """\
topology: {star: {hosts: 16, bandwidth: 100 Gbps, latency: 1 us}}
protocol: tcp
workload: {model: resnet50, gpu: v100, batch_size: 64}
training: {speed_factors: [1, 2, 3]}
"""


def changed(*texts):
    """Return the data of the scenario above with ``PATH=VALUE`` put in."""
    return apply_overrides(parse_yaml(SCENARIO, "s.yaml"), [override_from_text(text) for text in texts]).data


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("training.workers=32", ("training", "workers"), 32),
        ("run.seed=010", ("run", "seed"), 10),
        ("training.bucket_size=25 MiB", ("training", "bucket_size"), "25 MiB"),
        ("protocol={rdma: {mtu: 4096 B}}", ("protocol", "rdma", "mtu"), "4096 B"),
        ("training.speed_factors.1=0.5", ("training", "speed_factors"), [1, 0.5, 3]),
        # through the short form of a choice
        ("protocol.tcp.mtu=9000 B", ("protocol",), {"tcp": {"mtu": "9000 B"}}),
        # below what is not there yet
        ("training.architecture.mesh.exchange=full", ("training", "architecture", "mesh"), {"exchange": "full"}),
        # empty, the same as null: the default
        ("workload.batch_size=", ("workload", "batch_size"), None),
        ("name=a=b", ("name",), "a=b"),
    ],
)
def test_the_value_is_yaml_and_the_path_leads_to_it(text, path, value):
    data = changed(text)
    for key in path:
        data = data[key]
    assert data == value


def test_later_ones_go_on_top_of_earlier_ones():
    assert changed("protocol=rdma", "protocol.rdma.mtu=4096 B", "run.seed=1", "run.seed=2")["run"] == {"seed": 2}
    assert changed("protocol=rdma", "protocol.rdma.mtu=4096 B")["protocol"] == {"rdma": {"mtu": "4096 B"}}


def test_the_scenario_itself_is_left_alone():
    document = parse_yaml(SCENARIO, "s.yaml")
    apply_overrides(document, [override_from_text("workload.batch_size=32")])
    assert document.data["workload"]["batch_size"] == 64


def test_a_named_topology_can_be_given_defaults():
    document = parse_yaml("topology: x.gml", "s.yaml")
    [override] = overrides_from_mapping({"topology.defaults.latency": "1 us"})
    assert apply_overrides(document, [override]).data == {
        "topology": {"file": "x.gml", "defaults": {"latency": "1 us"}}
    }


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ["training.workers=abc"],
            "--set:1:18: workers is 'abc', a whole number of at least 1 is wanted\n"
            "    training.workers=abc\n"
            "                     ^",
        ),
        (
            ["training.worker=8"],
            "--set:1:10: unknown key 'worker' in training, did you mean 'workers'?\n"
            "    training.worker=8\n"
            "             ^",
        ),
        (["protocol.rdma.mtu=9000 B"], "--set:1:15: protocol names both 'tcp' and 'rdma', one of them is wanted"),
        (["protocol={rdma: {mtu: 9000}}"], "--set:1:23: mtu: 9000 has no unit"),
        (["training.workers={a"], "--set:1:20: a mapping '{' that is not closed"),
        (["training.workers=[1"], "--set:1:20: a list '[' that is not closed"),
        (["a=["], "--set:1:4: a value is missing here, is a bracket left open?"),
        (["a=@"], "--set:1:3: not YAML while scanning for the next token"),
        (["run={seed: 1, seed: 2}"], "--set:1:15: the key 'seed' is given twice"),
        (["training.workers=99"], "--set:1:18: 99 workers do not fit on the 16 ranks"),
        (["workload.batch_size.x=1"], "--set:1:21: workload.batch_size is 64, so there is no 'x' to set below it"),
        (
            ["training.speed_factors.9=1"],
            "--set:1:24: training.speed_factors has no position '9', positions from 0 to 2",
        ),
        (["topology=star"], "--set:1:10: there is no file 'star' beside the scenario"),
        (["workload.global_batch_size=64"], "--set:1:10: workload has both 'batch_size' and 'global_batch_size'"),
        # what is left wrong in the file is told with the file
        (["run.seed=1"], "s.yaml:4:27: speed_factors has 3 elements for 16 workers"),
    ],
)
def test_mistakes_are_told_at_the_option(tmp_path, monkeypatch, texts, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    with pytest.raises(InputError) as caught:
        load_scenario("s.yaml", [override_from_text(text) for text in texts])
    assert any(str(problem).startswith(said) for problem in caught.value.problems), str(caught.value)


def test_every_path_that_leads_nowhere_is_told():
    with pytest.raises(InputError) as caught:
        changed("workload.batch_size.x=1", "protocol.tcp.mtu.y=2", "training.speed_factors.a=3")
    # The second makes a mapping of what was not there, so only validation can refuse it.
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("text", ["", "b", "=3", "a..b=3", ".=3", " =3"])
def test_what_is_no_path_and_value(text):
    with pytest.raises(InputError, match="--set: "):
        override_from_text(text)


def test_python_values():
    scenario = {
        "topology": {"star": {"hosts": 16}},
        "protocol": "tcp",
        "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
    }
    loaded = load_scenario(scenario, {"training.workers": 4, "training.speed_factors": {1: 0.5}, "run": {"seed": 3}})
    assert (loaded.job.training.workers, loaded.job.training.speed_factors, loaded.run.seed) == (4, (1, 0.5, 1, 1), 3)
    with pytest.raises(InputError) as caught:
        load_scenario(scenario, {"training.workers": "x", "run.sed": 3})
    assert str(caught.value) == (
        "overrides: training.workers: workers is 'x', a whole number of at least 1 is wanted\n"
        "overrides: run.sed: unknown key 'sed' in run, did you mean 'seed'? known: iterations, warmup, "
        "duration, seed, record"
    )
    for path in ("", "a..b", 3, None):
        with pytest.raises(InputError, match="is not the path of a key"):
            load_scenario(scenario, {path: 1})


def test_an_option_of_its_own_is_named_as_such(tmp_path):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    text = "{star: {hosts: 4, bandwidth: 100}}"
    override = Override(("topology",), parse_yaml(text, "--topology"))
    with pytest.raises(InputError, match="--topology:1:30: bandwidth: 100 has no unit"):
        load_scenario(tmp_path / "s.yaml", [override])
