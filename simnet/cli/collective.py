"""``simnet collective``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simnet.cli.progress import shown
from simnet.experiment.telling import tell

if TYPE_CHECKING:
    from simnet.scenario import CollectiveSettings

__all__ = ["collective"]


def collective(
    name: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTIVE",
            help="all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all or send_recv.",
        ),
    ],
    topology: Annotated[
        str, typer.Option(metavar="YAML", help="A file, the name of one that ships, or '{star: {hosts: 16}}'.")
    ],
    protocol: Annotated[
        str, typer.Option(metavar="YAML", help="A transport, also with changes: '{tcp: {mtu: 9000 B}}'.")
    ],
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="YAML", help="A name, also with options: '{mesh: {exchange: full}}'; the usual by default."
        ),
    ] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="N", help="The first N ranks of the topology; all by default.")
    ] = None,
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="Sizes and ranges: '8B,1MiB', '8B:1GiB:x2', '1MiB:8MiB:+1MiB'.")
    ] = "8B:1GiB:x2",
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Type of an element: fp64, fp32, bf16, fp16 or fp8.")
    ] = "fp32",
    seed: Annotated[str, typer.Option(metavar="N", help="For the choice between equally short paths.")] = "0",
    launch: Annotated[
        str, typer.Option(metavar="TIME", help="From the call until the first message, as for starting kernels.")
    ] = "0 s",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list of objects.")] = False,
) -> None:
    """Time a collective alone on a cluster for each size, as nccl-tests does."""
    from simnet.cli.frames import form_problems, frame_in_form
    from simnet.errors import InputError, attempt
    from simnet.experiment.collective import run_collective
    from simnet.scenario import load_collective

    problems = form_problems(as_csv=as_csv, as_json=as_json)
    settings = attempt(
        problems,
        lambda: load_collective(
            name,
            topology=topology,
            protocol=protocol,
            algorithm=algorithm,
            ranks=ranks,
            sizes=sizes,
            dtype=dtype,
            seed=seed,
            launch=launch,
            source=lambda key: "COLLECTIVE" if key == "collective" else f"--{key}",
        ),
    )
    if problems or settings is None:
        raise InputError(problems)
    with shown() as show:
        frame = run_collective(settings, tell, show)
    if not (as_csv or as_json):
        print(_heading(settings))
    # Times to the nanosecond, bandwidths to the megabyte per second.
    print(frame_in_form(frame, as_csv=as_csv, as_json=as_json, form=".3f"))


def _heading(settings: CollectiveSettings) -> str:
    from simnet.scenario.algorithm_options import unusual
    from simnet.traffic import algorithm_of

    make = algorithm_of(settings.collective, settings.algorithm).make
    options = "".join(f", {option}" for option in unusual(settings.options, make))
    ranks = len(settings.nodes)
    return (
        f"# {settings.collective}, {settings.algorithm}{options}: {ranks} rank{'s' * (ranks > 1)} of "
        f"{settings.topology.name}, {settings.protocol.name}, {settings.dtype}"
    )
