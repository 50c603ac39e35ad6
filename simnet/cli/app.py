"""The command ``simnet`` and its parts.

What a command needs is imported inside of it, so that ``simnet --help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from simnet import __version__
from simnet.cli import (
    calibrate,
    check,
    collective,
    explain,
    plot,
    protocol,
    run,
    scaling,
    sweep,
    topology,
    validate,
    workload,
)

__all__ = ["app"]

app = typer.Typer(
    name="simnet",
    help="Simulate the networks that machine-learning training runs on.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("merge")(sweep.merge)
app.command("table")(sweep.table)
app.command("plot")(plot.plot)
app.command("report")(plot.report)
app.command("scaling")(scaling.scaling)
app.command("explain")(explain.explain)
app.command("compare")(explain.compare)
app.command("check")(check.check)
app.command("schema")(check.schema)
app.command("collective")(collective.collective)
app.command("calibrate")(calibrate.calibrate)
app.command("validate")(validate.validate)
app.add_typer(protocol.app, name="protocol")
app.add_typer(topology.app, name="topology")
app.add_typer(workload.app, name="workload")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"simnet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Simulate the networks that machine-learning training runs on."""
