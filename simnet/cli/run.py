"""``simnet run``."""

from __future__ import annotations

import itertools
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simnet.cli.interruption import NOTHING
from simnet.cli.progress import shown
from simnet.experiment.telling import tell, tell_nobody

if TYPE_CHECKING:
    import pandas as pd

    from simnet.errors import Problem
    from simnet.experiment.result import Result
    from simnet.scenario import Override

__all__ = ["run"]

_WIDEST = 10_000  # characters of a line that is not for a screen


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
    timeline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a timeline for Perfetto: .json or .json.gz; of one scenario."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run scenarios: print the summary and write the tables."""
    from simnet.errors import InputError, attempt
    from simnet.experiment.result import check_folder
    from simnet.experiment.run import run as run_one
    from simnet.scenario import load_scenario

    say = tell_nobody if quiet else tell
    problems: list[Problem] = []
    changes = _changes(settings or [], topology, protocol, problems)
    # Everything is read and checked before anything runs, so that a mistake in the last scenario is found first.
    attempts = [attempt(problems, partial(load_scenario, scenario, changes)) for scenario in scenarios]
    loaded = [scenario for scenario in attempts if scenario is not None]
    # A folder that is given for one scenario is known whatever its name.
    folders = _folders([scenario.name if scenario is not None else "" for scenario in attempts], output)
    for scenario, folder in zip(attempts, folders, strict=True):
        if scenario is not None or folder == output:
            attempt(problems, partial(check_folder, folder))
    if timeline is not None:
        problems += _timeline_problems(timeline, len(scenarios))
    if problems:
        raise InputError(dict.fromkeys(problems))
    results: list[Result] = []
    for scenario, folder in zip(loaded, folders, strict=True):
        kept = f"{', '.join(map(str, folders[: len(results)]))} kept" if results else NOTHING
        with shown(kept, quiet=quiet) as show:
            result = run_one(scenario, say=say, timeline=timeline is not None, show=show)
        for warning in result.warnings:
            say(f"warning: {scenario.name}: {warning}")
        result.save(folder)
        say(f"wrote {folder}")
        if timeline is not None:
            from simnet.experiment.timeline import write_timeline

            write_timeline(result, timeline)
            say(f"wrote {timeline}; ui.perfetto.dev opens it")
        results.append(result)
    if as_json:
        print(_as_json(results))
    elif not quiet:
        _show(results)


def _timeline_problems(timeline: Path, scenarios: int) -> list[Problem]:
    from simnet.errors import Problem

    found = []
    if scenarios > 1:
        found.append(Problem("--timeline is of one scenario", f"{scenarios} are given"))
    if not timeline.name.endswith((".json", ".json.gz")):
        found.append(Problem(f"--timeline is {str(timeline)!r}", "a file that ends with .json or .json.gz is wanted"))
    return found


def _changes(
    settings: list[str], topology: str | None, protocol: str | None, problems: list[Problem]
) -> list[Override]:
    from simnet.errors import attempt
    from simnet.scenario import override_from_text

    short = [(key, value) for key, value in (("topology", topology), ("protocol", protocol)) if value is not None]
    texts = [*((f"{key}={value}", f"--{key}") for key, value in short), *((text, "--set") for text in settings)]
    changes = (attempt(problems, partial(override_from_text, *text)) for text in texts)
    return [change for change in changes if change is not None]


def _folders(names: list[str], output: Path | None) -> list[Path]:
    """Return a folder for each scenario; where two have the same name, the later ones get a number."""
    if output is not None and len(names) == 1:
        return [output]
    root = output or Path("results/runs")
    folders: list[Path] = []
    for name in names:
        numbered = (root / (name if number == 1 else f"{name}_{number}") for number in itertools.count(1))
        folders.append(next(folder for folder in numbered if folder not in folders))
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
    from rich.text import Text

    from simnet.experiment.columns import COLUMNS

    summary = pd.concat([result.summary for result in results], ignore_index=True)
    table = Table(title="summary", title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("column")
    for name in _headings(summary):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("unit")
    for column in COLUMNS["summary"]:
        # As plain text: a name may hold what rich takes for markup.
        cells = [Text(_shown(value)) for value in summary[column.name]]
        table.add_row(column.name, *cells, column.unit)
    Console(width=None if sys.stdout.isatty() else _WIDEST).print(table)


def _headings(summary: pd.DataFrame) -> list[str]:
    if len(summary) == 1:
        return ["value"]
    return [str(number) for number in range(1, len(summary) + 1)]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
