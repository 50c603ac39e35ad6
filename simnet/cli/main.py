"""The command ``simnet``: its parts, and what an error looks like.

What a command needs is imported inside of it, so that ``simnet --help`` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from simnet import __version__
from simnet.cli import check, collective, run, topology, workload
from simnet.errors import InputError, SimulationError

__all__ = ["app", "main"]

app = typer.Typer(
    name="simnet",
    help="Simulate the networks that machine-learning training runs on.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("check")(check.check)
app.command("schema")(check.schema)
app.command("collective")(collective.collective)
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


def main() -> None:
    """Run the command line.

    Exit status: 2 for bad input; 1 where a run cannot give a number or output cannot be written; 130 when interrupted.
    """
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except InputError as error:
        _complain(str(error), len(error.problems))
        sys.exit(2)
    except SimulationError as error:
        _complain(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(130)
    except OSError as error:
        # Whoever reads a pipe may stop when they have had enough; that needs no words.
        if not isinstance(error, BrokenPipeError):
            _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        # Python would try once more, and complain, when it closes the output.
        with suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _complain(text: str, problems: int = 0) -> None:
    print(text, file=sys.stderr)
    if problems > 1:
        print(f"{problems} problems", file=sys.stderr)


if __name__ == "__main__":
    main()
