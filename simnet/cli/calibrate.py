"""``simnet calibrate``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simnet.experiment.telling import tell

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["calibrate"]


def calibrate(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="Output of nccl-tests, an OSU micro-benchmark, perftest or iperf3."),
    ],
    base: Annotated[
        str | None,
        typer.Option(metavar="PROTOCOL", help="What has all other values; rdma for perftest, tcp for others."),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Of the protocol; the log's by default.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Protocol file to write; NAME.yaml by default.")
    ] = None,
    ranks: Annotated[int | None, typer.Option(metavar="N", help="Of a collective, where the log does not say.")] = None,
    collective: Annotated[
        str | None, typer.Option(metavar="COLLECTIVE", help="Which it is, where the log does not say.")
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="BANDWIDTH", help="Of the links, as '100 Gbps': prints the efficiency.")
    ] = None,
    path_latency: Annotated[
        str, typer.Option(metavar="DURATION", help="Of links and switches, one way: what the topology has of it.")
    ] = "0 us",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list of objects.")] = False,
) -> None:
    """Fit latency, rate and efficiency to your own measurement, and write a protocol file for scenarios."""
    from simnet.calibration import calibrate as calibrate_log
    from simnet.cli.frames import form_problems, frame_in_form, print_or_write
    from simnet.errors import InputError, attempt

    problems = form_problems(as_csv=as_csv, as_json=as_json)
    found = attempt(
        problems,
        lambda: calibrate_log(
            log, base=base, name=name, ranks=ranks, collective=collective, link=link, path_latency=path_latency
        ),
    )
    if problems or found is None:
        raise InputError(problems)
    target = out or Path(f"{found.name}.yaml")
    import pandas as pd

    from simnet.experiment.tables import ordered

    frame = ordered("calibration", pd.DataFrame(found.quantities))
    is_text = not (as_csv or as_json)
    if is_text:
        ranks_of = f", {found.log.ranks} ranks" if found.log.collective else ""
        print(f"# {found.log.benchmark} ({found.log.tool}){ranks_of}; base {found.base}")
    print(frame_in_form(_with_units(frame) if is_text else frame, as_csv=as_csv, as_json=as_json))
    for note in found.notes:
        tell(f"note: {note}")
    print_or_write(found.text.rstrip("\n"), target)
    tell(f"wrote {target}")


def _with_units(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: values and errors as text with units, in the place of those in names."""
    from simnet.units import format_bandwidth, format_duration, format_duration_per_byte, format_size

    forms = {
        "s": format_duration,
        "s/byte": format_duration_per_byte,
        "bytes/s": format_bandwidth,
        "bytes": format_size,
    }
    shown = frame.drop(columns="unit")
    units = frame["unit"]
    for column in ("value", "standard_error"):
        shown[column] = [
            forms[unit](value) if unit in forms and math.isfinite(value) else value
            for value, unit in zip(frame[column], units, strict=True)
        ]
    endings = [f"_{unit.replace('/', '_per_')}" for unit in units]
    shown["quantity"] = [name.removesuffix(end) for name, end in zip(frame["quantity"], endings, strict=True)]
    return shown
