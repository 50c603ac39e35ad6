"""``simnet check`` and ``simnet schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["check", "schema"]


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Scenarios, topologies or workloads.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenarios; the value is YAML."),
    ] = None,
) -> None:
    """Validate files; print what was understood, or everything that is wrong."""
    from simnet.errors import InputError, Problem
    from simnet.scenario import describe, override_from_text

    changes = [override_from_text(text) for text in settings or []]
    problems: list[Problem] = []
    for file in files:
        try:
            for line in describe(file, changes):
                print(line)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def schema() -> None:
    """Print the JSON Schema of a scenario, for completion and checking in editors."""
    from simnet.scenario import scenario_schema

    print(json.dumps(scenario_schema(), indent=2))
