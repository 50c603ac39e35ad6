"""``simnet workload``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simnet.experiment.telling import tell

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
    from simnet.workload import from_profile as read_profile
    from simnet.workload import write_trace

    rows = read_profile(file, rank=rank)
    target = output or Path(file.name.removesuffix(".gz").removesuffix(".json") + ".csv")
    write_trace(target, rows)
    tell(f"wrote {target}")
