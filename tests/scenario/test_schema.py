"""The schema, the models and the code below them say the same."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from simnet.protocols import FIELDS, PROTOCOLS, FlowProtocol, Transport
from simnet.scenario import ScenarioSpec, load_scenario, scenario_schema
from simnet.scenario.natural import natural_key
from simnet.scenario.schema import scenario_keys
from simnet.scenario.sections import section_of
from simnet.topology import GENERATORS
from simnet.training.communication.architectures import ARCHITECTURES


def test_it_is_a_schema_of_the_right_draft():
    schema = scenario_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["topology", "protocol"]
    assert json.loads(json.dumps(schema)) == schema


def test_every_reference_leads_somewhere():
    schema = scenario_schema()

    def references(part):
        if isinstance(part, dict):
            yield from ([part["$ref"]] if "$ref" in part else [])
            part = list(part.values())
        if isinstance(part, list):
            for inner in part:
                yield from references(inner)

    found = set(references(schema))
    assert found
    assert {reference.removeprefix("#/$defs/") for reference in found} == set(schema["$defs"])


def test_every_key_says_what_it_is():
    for key in scenario_keys():
        assert key.description, key.path
        assert key.description.endswith((".", "]")), key.path


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("fidelity", "flow"),
        ("workload.precision", "fp32"),
        ("workload.gradient_dtype", "fp32"),
        ("training.architecture", {"ring": {"channels": 1, "pipeline": 1, "order": "neighbours"}}),
        ("training.bucket_size", "25 MiB"),
        ("training.overlap", True),
        ("run.iterations", 10),
        ("run.warmup", 1),
        ("run.seed", 0),
        ("topology.star.bandwidth", "100 Gbps"),
        ("topology.star.host.gpus", 0),
        ("topology.rail_optimised.host.gpus", 8),
    ],
)
def test_defaults_are_those_that_a_scenario_gets(path, default):
    [key] = [key for key in scenario_keys() if key.path == path]
    assert key.default == default
    *sections, last = path.split(".")
    model = section_of(ScenarioSpec, tuple(sections)).__name__
    schema = scenario_schema()
    properties = schema["properties"] if not sections else schema["$defs"][model]["properties"]
    assert properties[last]["default"] == default


def test_defaults_in_the_schema_are_read_back():
    star = scenario_schema()["$defs"]["Star"]["properties"]
    given = {key: about["default"] for key, about in star.items() if about.get("default") is not None}
    base = {"protocol": "tcp", "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64}}
    explicit = load_scenario(base | {"topology": {"star": given | {"hosts": 2}}})
    implicit = load_scenario(base | {"topology": {"star": {"hosts": 2}}})
    assert explicit.resolved == implicit.resolved


def test_protocol_keys_are_the_fields_of_a_protocol():
    keys = {key.path.split(".")[1] for key in scenario_keys() if key.path.startswith("protocol.")}
    assert keys == {*PROTOCOLS, "file", "changes", "name"}
    for name in PROTOCOLS:
        below = [key.path.split(".")[2] for key in scenario_keys() if key.path.startswith(f"protocol.{name}.")]
        assert below == [field.key for field in FIELDS.values()]
    left_out = {field.name for field in (*fields(FlowProtocol), *fields(Transport))} - set(FIELDS)
    assert left_out == {"name", "summary", "link_kinds", "transport"}


def test_generators_are_those_of_topology():
    found = {key.path.split(".")[1] for key in scenario_keys() if key.path.startswith("topology.")}
    assert found == {*GENERATORS, "file", "defaults"}


def test_architectures_are_those_that_jobs_know():
    found = {key.path.split(".")[2] for key in scenario_keys() if key.path.startswith("training.architecture.")}
    assert found == {*ARCHITECTURES}


@pytest.mark.parametrize(
    ("name", "key", "dimension"),
    [
        ("bandwidth_bytes_per_s", "bandwidth", "bandwidth"),
        ("latency_s", "latency", "duration"),
        ("buffer_bytes", "buffer", "size"),
        ("send_overhead_s_per_byte", "send_overhead_per_byte", "duration per byte"),
        ("hosts", "hosts", ""),
        ("hosts_per_leaf", "hosts_per_leaf", ""),
    ],
)
def test_keys_leave_the_unit_to_the_value(name, key, dimension):
    assert natural_key(name) == (key, dimension)
