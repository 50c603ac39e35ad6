"""``simnet workload``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(help="Make workloads.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Make workloads."""


@app.command("from-profile")
def from_profile(
    file: Annotated[Path, typer.Argument(help="A trace of PyTorch's profiler: Chrome JSON, also gzipped.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV to write; FILE.csv by default.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank that was recorded, where the trace does not say.")
    ] = None,
) -> None:
    """Make a trace, to be replayed as recorded, from a profile."""
    from simnet.errors import InputError, Problem
    from simnet.workload import from_profile as read_profile
    from simnet.workload import write_trace

    rows = read_profile(file, rank=rank)
    target = output or Path(file.name.removesuffix(".gz").removesuffix(".json") + ".csv")
    try:
        write_trace(target, rows)
    except OSError as error:
        message = f"cannot write the trace: {error.strerror or error}"
        raise InputError(Problem(message, "choose another with -o", source=str(target))) from None
    print(f"wrote {target}", file=sys.stderr)
