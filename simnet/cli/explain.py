"""``simnet explain`` and ``simnet compare``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from simnet.cli.progress import shown
from simnet.experiment.telling import tell, tell_nobody

__all__ = ["compare", "explain"]

_AsCsv = Annotated[bool, typer.Option("--csv", help="Print one table as comma-separated values.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]
_Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it into a file instead of printing it.")
]
_Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing beside the output.")]


def explain(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A file, or the name of one that ships.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario; the value is YAML."),
    ] = None,
    job: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which of several jobs; the first by default.")
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity/--no-sensitivity", help="Run it again with one thing changed at a time.")
    ] = True,
    output: _Output = None,
    as_csv: _AsCsv = False,
    as_json: _AsJson = False,
    quiet: _Quiet = False,
) -> None:
    """Tell where the time of an iteration goes, and what would make it shorter."""
    from simnet.cli.frames import form_problems, frame_in_form
    from simnet.errors import InputError, attempt
    from simnet.experiment.explain import explain as explain_one
    from simnet.scenario import load_scenario, override_from_text

    problems = form_problems(as_csv=as_csv, as_json=as_json)
    attempts = [attempt(problems, partial(override_from_text, text)) for text in settings or []]
    changes = [change for change in attempts if change is not None]
    loaded = attempt(problems, lambda: load_scenario(scenario, changes))
    if problems or loaded is None:
        raise InputError(problems)
    with shown(quiet=quiet) as show:
        found = explain_one(
            loaded, say=tell_nobody if quiet else tell, job=job, sensitivity=sensitivity and not as_csv, show=show
        )
    _give(
        frame_in_form(found.parts, as_csv=True, as_json=False)
        if as_csv
        else found.as_json()
        if as_json
        else str(found),
        output,
    )


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A scenario, or the folder of a result.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    explained: Annotated[
        bool | None,
        typer.Option("--explain/--no-explain", help="Show where the time goes; by default where both are scenarios."),
    ] = None,
    output: _Output = None,
    as_csv: _AsCsv = False,
    as_json: _AsJson = False,
    quiet: _Quiet = False,
) -> None:
    """Compare two scenarios, which are run, or results: what differs in them, and in what came of them."""
    from simnet.cli.frames import form_problems, frame_in_form
    from simnet.errors import InputError
    from simnet.experiment.compare import compare as compare_both

    problems = form_problems(as_csv=as_csv, as_json=as_json)
    if problems:
        raise InputError(problems)
    with shown(quiet=quiet) as show:
        found = compare_both(a, b, explain=explained, say=tell_nobody if quiet else tell, show=show)
    _give(
        frame_in_form(found.results, as_csv=True, as_json=False)
        if as_csv
        else found.as_json()
        if as_json
        else str(found),
        output,
    )


def _give(text: str, output: Path | None) -> None:
    from simnet.cli.frames import print_or_write

    print_or_write(text, output)
    if output is not None:
        tell(f"wrote {output}")
