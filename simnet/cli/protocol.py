"""``simnet protocol``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from simnet.protocols import FlowProtocol

__all__ = ["app"]

app = typer.Typer(help="Show protocols.", no_args_is_help=True)


class _Links(StrEnum):
    ETHERNET = "ethernet"
    INFINIBAND = "infiniband"


@app.command("list")
def list_protocols() -> None:
    """Print every protocol, also of packages, and what it does about loss and congestion."""
    from simnet.errors import InputError, attempt
    from simnet.protocols import misnamed_protocols, protocol_names

    rows = [("name", "reliability", "congestion control", "summary")]
    problems = misnamed_protocols()
    for name in protocol_names():
        found = attempt(problems, partial(_resolved, name))
        meant = {protocol.name: protocol for protocol in found or ()}
        if not meant:
            continue
        if name in meant:
            transport, summary = meant[name].transport, meant[name].summary
            rows.append((name, transport.reliability, transport.congestion_control, summary))
        else:
            rows.append((name, "", "", " or ".join(meant)))
    _print_columns(rows)
    if problems:
        raise InputError(problems)


def _resolved(name: str) -> list[FlowProtocol]:
    """Return what a name means, on each kind of links."""
    from simnet.protocols import resolve

    return [resolve(name, link_kinds=[links]) for links in _Links]


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of those that `simnet protocol list` prints.")],
    links: Annotated[_Links, typer.Option(help="The kind of links, which tells what rdma is.")] = _Links.ETHERNET,
) -> None:
    """Print every value of a protocol with its unit and source."""
    from simnet.protocols import FIELDS, resolve, values

    shown = values(name, [links])
    protocol = resolve(name, link_kinds=[links])
    print(f"{protocol.name}: {protocol.summary}")
    _print_columns(
        [
            ("key", "value", "source"),
            *((FIELDS[one.field].key, FIELDS[one.field].written(one.value), one.source) for one in shown),
        ]
    )


def _print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with their columns one below the other, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
