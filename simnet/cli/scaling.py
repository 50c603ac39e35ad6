"""``simnet scaling``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from simnet.cli.progress import shown
from simnet.experiment.telling import tell

if TYPE_CHECKING:
    from simnet.experiment.scaling import Scaling

__all__ = ["scaling"]


def scaling(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A file, or the name of one that ships.")],
    workers: Annotated[str, typer.Option(metavar="LIST", help="Numbers of workers: '1,2,4,8'.")],
    kind: Annotated[
        str,
        typer.Option(
            "--scaling",
            metavar="KIND",
            help="strong: all share the samples of the scenario; weak: each has as many as there.",
        ),
    ] = "strong",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario; the value is YAML."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw speed-up and the laws: .svg, .png or .pdf.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list of objects.")] = False,
) -> None:
    """Run a scenario on more and more workers: speed-up, efficiency, and the laws of Amdahl and Gustafson."""
    from simnet.cli.frames import form_problems, frame_in_form
    from simnet.errors import InputError, attempt
    from simnet.experiment.plot import save_figure
    from simnet.experiment.scaling import scaling as run_scaling
    from simnet.experiment.scaling import scaling_curves
    from simnet.scenario import override_from_text

    problems = form_problems(as_csv=as_csv, as_json=as_json)
    counts = attempt(problems, lambda: _counts(workers))
    changes = [attempt(problems, partial(override_from_text, text)) for text in settings or []]
    if problems or counts is None:
        raise InputError(problems)
    values = {".".join(change.path): change.document.data for change in changes if change is not None}
    with shown() as show:
        frame = run_scaling(scenario, counts, cast("Scaling", kind), values, tell, show)
    if plot is not None:
        save_figure(scaling_curves(frame), plot)
    print(frame_in_form(frame, as_csv=as_csv, as_json=as_json))


def _counts(text: str) -> list[int]:
    from simnet.errors import InputError, Problem

    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(Problem(f"--workers is {text!r}", "numbers are wanted, like 1,2,4,8")) from None
