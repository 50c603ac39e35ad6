"""``simnet run``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

    from simnet.experiment.result import Result
    from simnet.scenario import Override

__all__ = ["run"]


def run(
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Files, or names of those that ship.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario; the value is YAML."),
    ] = None,
    topology: Annotated[str | None, typer.Option(metavar="YAML", help="Short for --set topology=YAML.")] = None,
    protocol: Annotated[str | None, typer.Option(metavar="YAML", help="Short for --set protocol=YAML.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder of the result; results/runs/NAME by default."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run scenarios: print the summary and write the tables."""
    from simnet.experiment.run import run as run_one
    from simnet.scenario import load_scenario

    changes = _changes(settings or [], topology, protocol)
    say = _silent if quiet else _tell
    # All scenarios are read before one is run, so that a mistake in the last is found first.
    loaded = [load_scenario(scenario, changes) for scenario in scenarios]
    folders = _folders([scenario.name for scenario in loaded], output)
    results = []
    for scenario, folder in zip(loaded, folders, strict=True):
        result = run_one(scenario, say=say)
        for warning in result.warnings:
            say(f"warning: {scenario.name}: {warning}")
        result.save(folder)
        say(f"wrote {folder}")
        results.append(result)
    if as_json:
        print(_as_json(results))
    elif not quiet:
        _show(results)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _silent(line: str) -> None:
    del line


def _changes(settings: list[str], topology: str | None, protocol: str | None) -> list[Override]:
    from simnet.scenario import override_from_text

    short = [f"{key}={value}" for key, value in (("topology", topology), ("protocol", protocol)) if value is not None]
    return [override_from_text(text) for text in [*short, *settings]]


def _folders(names: list[str], output: Path | None) -> list[Path]:
    """Return a folder for each scenario; where two have the same name, the later ones get a number."""
    if output is not None and len(names) == 1:
        return [output]
    root = output or Path("results/runs")
    taken: dict[str, int] = {}
    folders = []
    for name in names:
        taken[name] = taken.get(name, 0) + 1
        folders.append(root / (name if taken[name] == 1 else f"{name}_{taken[name]}"))
    return folders


def _as_json(results: list[Result]) -> str:
    if len(results) == 1:
        return results[0].as_json()
    rows = []
    for result in results:
        one = json.loads(result.as_json())
        rows += one.get("jobs", [one])
    return json.dumps({"jobs": rows})


def _show(results: list[Result]) -> None:
    """Print the summaries, one below the other for one job, side by side for several."""
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from simnet.experiment.columns import COLUMNS

    summary = pd.concat([result.summary for result in results], ignore_index=True)
    table = Table(title="summary", title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("column")
    for name in _headings(summary):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("unit")
    for column in COLUMNS["summary"]:
        table.add_row(column.name, *(_shown(value) for value in summary[column.name]), column.unit)
    Console(width=None if sys.stdout.isatty() else 200, soft_wrap=False).print(table)


def _headings(summary: pd.DataFrame) -> list[str]:
    if len(summary) == 1:
        return ["value"]
    return [str(number) for number in range(1, len(summary) + 1)]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
