"""``simnet plot`` and ``simnet report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simnet.cli.progress import shown
from simnet.experiment.plot_kinds import PLOT_KINDS
from simnet.experiment.telling import tell

__all__ = ["plot", "report"]

_SUFFIXES = (".svg", ".png", ".pdf")
_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")]
_KINDS = "\n\n".join(f"{name}: {meaning}." for name, meaning in PLOT_KINDS.items())


def plot(
    folder: _Folder,
    kind: Annotated[str, typer.Option(metavar="KIND", help=_KINDS)] = "curves",
    x: Annotated[str | None, typer.Option("--x", metavar="COLUMN", help="What lies.")] = None,
    y: Annotated[str | None, typer.Option("--y", metavar="COLUMN", help="The number that is shown.")] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="COLUMN", help="What differs between curves.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help=".svg, .png or .pdf; KIND.svg by default.")
    ] = None,
) -> None:
    """Draw a picture of a sweep."""
    from simnet.errors import InputError, Problem
    from simnet.experiment.plot import save_figure
    from simnet.experiment.plot.of_sweep import plot as draw

    target = output or Path(f"{kind}.svg")
    if output is not None and target.suffix.lower() not in _SUFFIXES:
        hint = f"a file that ends with {', '.join(_SUFFIXES)} is wanted"
        raise InputError(Problem(f"--output is {str(target)!r}", hint))
    figure = draw(folder, kind, x=x, y=y, by=by)
    save_figure(figure, target)
    tell(f"wrote {target}")


def report(
    folder: _Folder,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="DIR/report.html by default.")
    ] = None,
    point: Annotated[
        int | None,
        typer.Option(metavar="N", help="Look closely at this point; else the least efficient with most workers."),
    ] = None,
    without_point: Annotated[
        bool, typer.Option("--no-point", help="Look at none, which saves running it again.")
    ] = False,
) -> None:
    """Write the tables and pictures of a sweep as one page of HTML."""
    from simnet.errors import InputError, Problem
    from simnet.experiment.report import report as write

    if point is not None and without_point:
        raise InputError(Problem("--point and --no-point exclude each other", "one of them is wanted"))
    with shown() as show:
        written = write(folder, output, point=point, with_point=not without_point, show=show)
    tell(f"wrote {written}")
