"""Protocols from files: found as topologies are, checked as scenarios are, complete in what a result keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simnet.errors import InputError
from simnet.protocols import FIELDS, resolve
from simnet.scenario import load_collective, load_scenario, override_from_text
from simnet.scenario.build import load_protocol

from .marked import at_mark

FILE = """\
name: my_cluster
base: tcp
source: measured
latency: 12 us
connection_cap: 9.4 Gbps
"""
REST = "topology: {star: {hosts: 4}}\nworkload: {model: resnet50, gpu: v100, batch_size: 64}\n"
WITH_FILE = replace(
    resolve("tcp", {"latency_s": 12e-6, "connection_cap_bytes_per_s": 9.4e9 / 8}),
    name="my_cluster",
    summary="kernel TCP over Ethernet: interrupts, one copy a side, one core a connection; measured",
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.yaml").write_text(FILE)
    return tmp_path


def load(folder, protocol, *settings):
    path = folder / "s.yaml"
    path.write_text(f"protocol: {protocol}\n{REST}")
    return load_scenario(path, [override_from_text(text) for text in settings])


@pytest.mark.parametrize("protocol", ["mine.yaml", "{file: mine.yaml}", "{file: mine.yaml, changes: {}}"])
def test_beside_the_scenario(folder, protocol):
    scenario = load(folder, protocol)
    assert (scenario.protocol, scenario.protocol_name) == (WITH_FILE, "my_cluster")


def test_in_the_working_directory(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert load(elsewhere, "mine.yaml").protocol == WITH_FILE
    star = {"star": {"hosts": 2}}
    assert load_collective("all_reduce", topology=star, protocol="mine.yaml", sizes="1MiB").protocol == WITH_FILE


def test_without_a_name_it_is_that_of_the_file(folder):
    (folder / "other.yaml").write_text("base: roce\n")
    scenario = load(folder, "other.yaml")
    assert (scenario.protocol_name, scenario.protocol) == ("other", replace(resolve("roce"), name="other"))


def test_what_the_links_are_tells_rdma(folder):
    (folder / "other.yaml").write_text("base: rdma\n")
    protocol = load_protocol(folder / "other.yaml", ["infiniband"]).protocol
    assert protocol == replace(resolve("infiniband"), name="other")


@pytest.mark.parametrize(
    "settings", [(), ("protocol.changes.latency=3 us",), ("protocol.file=mine.yaml", "protocol.changes.latency=3 us")]
)
def test_changes(folder, settings):
    protocol = "{file: mine.yaml, changes: {latency: 3 us}}" if not settings else "mine.yaml"
    assert load(folder, protocol, *settings).protocol == replace(WITH_FILE, latency_s=3e-6)


def test_headers_follow_a_changed_mtu(folder):
    protocol = load(folder, "{file: mine.yaml, changes: {mtu: 9000 B}}").protocol
    assert (protocol.payload_bytes, protocol.header_bytes) == (8948, 90)


def test_a_name_of_ones_own(folder):
    scenario = load(folder, "{tcp: {mtu: 9000 B}, name: jumbo}")
    assert (scenario.protocol_name, scenario.protocol) == (
        "jumbo",
        replace(resolve("tcp", {"mtu_bytes": 9000.0}), name="jumbo"),
    )
    assert load(folder, "{file: mine.yaml, name: theirs}").protocol_name == "theirs"


@pytest.mark.parametrize("protocol", ["mine.yaml", "{file: mine.yaml, changes: {latency: 3 us}, name: theirs}"])
def test_what_a_result_keeps_needs_no_file(folder, protocol):
    """Every value, by the name of the base: the same scenario in any folder, when the file is gone."""
    scenario = load(folder, protocol)
    resolved = scenario.resolved
    (folder / "mine.yaml").unlink()
    assert set(resolved["protocol"]) == {"tcp", "name"}
    assert len(resolved["protocol"]["tcp"]) == len(FIELDS)
    again = load_scenario(resolved)
    assert again.resolved == resolved
    assert again.protocol_name == scenario.protocol_name
    assert replace(again.protocol, summary="") == replace(scenario.protocol, summary="")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base: »tpc\n", "base is 'tpc', did you mean 'tcp'? known: "),
        ("base: tcp\n»latncy: 3 us\n", "unknown key 'latncy', did you mean 'latency'?"),
        ("base: tcp\nlatency: »3\n", "latency: 3 has no unit, write it like"),
        ("»latency: 3 us\n", "'base' is missing, wanted: the protocol that has all other values"),
        ("base: tcp\nmtu: »52 B\n", "an MTU of 52 B leaves no payload, tcp has 90 B of headers"),
        ("»[tcp]\n", "the document is a list, a mapping is wanted"),
        ("base: [tcp»\n", "a list '[' that is not closed"),
    ],
)
def test_mistakes_in_a_file_have_its_lines(folder, text, said):
    text, said = at_mark(text, said)
    path = folder / "mine.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(folder, "mine.yaml")
    assert any(str(problem).startswith(f"{path}:{said.rstrip()}") for problem in caught.value.problems), caught.value


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("»none.yaml", "there is no file 'none.yaml'"),
        ("»tpc", "protocol is 'tpc', did you mean 'tcp'?"),
        ("{file: mine.yaml, changes: {latency: »3}}", "latency: 3 has no unit"),
        ("{file: mine.yaml, changes: {mtu: »52 B}}", "an MTU of 52 B leaves no payload"),
        ("{tcp: {}, »changes: {}}", "protocol has 'changes', it goes with 'file' only"),
        ("{file: mine.yaml, »tcp: {}}", "protocol names both 'file' and 'tcp'"),
        ("»{name: x}", "protocol is empty"),
    ],
)
def test_mistakes_in_a_scenario_are_pointed_at(folder, protocol, said):
    text, said = at_mark(f"protocol: {protocol}\n{REST}", said)
    path = folder / "s.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    assert any(str(problem).startswith(f"{path}:{said}") for problem in caught.value.problems), caught.value
