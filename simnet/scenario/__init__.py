"""Scenarios: from YAML text, with the place of every mistake, to objects that can be run."""

from __future__ import annotations

from simnet.scenario.build import (
    build_protocol,
    build_topology,
    load_topology,
    topology_from_text,
)
from simnet.scenario.check import describe
from simnet.scenario.collective import CollectiveSettings, load_collective
from simnet.scenario.document import Document, python_document
from simnet.scenario.load import load_scenario, parse_scenario, scenario_data
from simnet.scenario.models import ScenarioSpec
from simnet.scenario.overrides import Override, override_from_text
from simnet.scenario.schema import scenario_keys, scenario_schema
from simnet.scenario.settings import Fault, Scenario
from simnet.scenario.topology_models import GeneratorSpec, TopologySpec
from simnet.scenario.workloads import build_workload, load_workload
from simnet.scenario.yaml_document import parse_yaml, read_yaml, write_yaml

__all__ = [
    "CollectiveSettings",
    "Document",
    "Fault",
    "GeneratorSpec",
    "Override",
    "Scenario",
    "ScenarioSpec",
    "TopologySpec",
    "build_protocol",
    "build_topology",
    "build_workload",
    "describe",
    "load_collective",
    "load_scenario",
    "load_topology",
    "load_workload",
    "override_from_text",
    "parse_scenario",
    "parse_yaml",
    "python_document",
    "read_yaml",
    "scenario_data",
    "scenario_keys",
    "scenario_schema",
    "topology_from_text",
    "write_yaml",
]
