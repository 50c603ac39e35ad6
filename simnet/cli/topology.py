"""``simnet topology``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(help="Show and make topologies.", no_args_is_help=True)

_Spec = Annotated[
    str,
    typer.Argument(metavar="FILE|SPEC", help="A file, the name of one that ships, or YAML: '{star: {hosts: 16}}'."),
]


@app.command()
def show(spec: _Spec) -> None:
    """Print what a topology is made of."""
    from simnet.scenario import topology_from_text
    from simnet.topology import summary_lines

    for line in summary_lines(topology_from_text(spec)):
        print(line)


@app.command()
def make(
    spec: _Spec,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Suffix: .json, .graphml or .gml.")],
) -> None:
    """Write a topology to a file."""
    from simnet.errors import InputError, Problem, attempt
    from simnet.scenario import topology_from_text
    from simnet.topology import check_suffix, save_topology

    problems: list[Problem] = []
    topology = attempt(problems, lambda: topology_from_text(spec))
    attempt(problems, lambda: check_suffix(output))
    if problems or topology is None:
        raise InputError(problems)
    save_topology(topology, output)
