"""``simnet check`` and ``simnet schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["check", "schema"]


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Scenarios, topologies or workloads.")],
) -> None:
    """Validate files; print what was understood, or everything that is wrong."""
    from simnet.errors import InputError, Problem
    from simnet.scenario import describe

    problems: list[Problem] = []
    for file in files:
        try:
            for line in describe(file):
                print(line)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def schema() -> None:
    """Print the JSON Schema of a scenario, for completion and checking in editors."""
    from simnet.scenario import scenario_schema

    print(json.dumps(scenario_schema(), indent=2))
