"""``simnet check`` and ``simnet schema``."""

from __future__ import annotations

import json
from functools import partial
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
    from simnet.errors import InputError, Problem, attempt
    from simnet.scenario import describe, override_from_text

    problems: list[Problem] = []
    overrides = [attempt(problems, partial(override_from_text, text)) for text in settings or []]
    changes = [override for override in overrides if override is not None]
    for file in files:
        for line in attempt(problems, partial(describe, file, changes)) or []:
            print(line)
    if problems:
        # What is wrong with --set would be said of every file.
        raise InputError(dict.fromkeys(problems))


def schema() -> None:
    """Print the JSON Schema of a scenario, for completion and checking in editors."""
    from simnet.scenario import scenario_schema

    print(json.dumps(scenario_schema(), indent=2))
