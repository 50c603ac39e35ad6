"""Who waits for whom when nothing moves any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from simnet.fabric.kernels.steps import RUNNING, WAITING
from simnet.fabric.kernels.tables import Tables

if TYPE_CHECKING:
    from simnet.fabric.play import Play

__all__ = ["describe_stall"]

_MOST = 8


def describe_stall(tables: Tables, plays: Sequence[Play], resource_names: Sequence[str], base_s: float) -> str:
    """Return, for each play that is not over, which of its sends stand still, on what they wait and since when.

    Parameters
    ----------
    tables : Tables
    plays : sequence of Play
    resource_names : sequence of str
    base_s : float
        SimPy time at which the kernel's clock was 0 [s].
    """
    lines = ["nothing can move any more:"]
    names = {play.rows["plays"]: play.name for play in plays}
    for play in plays:
        lines.append(f"  {play.name} waits since {play.started_at_s:.9g} s")
        first = play.rows["operations"]
        rows = np.arange(first, first + len(play.placement.operations))
        operations = tables.operations[rows]
        stuck = rows[(operations["state"] == RUNNING) & operations["active"] & (operations["rate"] == 0.0)]
        has_no_turn = (operations["turn"] >= 0) & (tables.turns["holder"][operations["turn"]] != rows)
        behind = rows[(operations["state"] == RUNNING) & ~operations["active"] & has_no_turn]
        waiting = rows[operations["state"] == WAITING]
        sent = rows[operations["is_elsewhere"] & (operations["arrived"] < operations["drained"])]
        reasons = [_without_rate(tables, row, resource_names, base_s) for row in stuck.tolist()]
        reasons += [
            f"{_ranks(tables, row)} has left, but its packets do not get through: it began at "
            f"{base_s + tables.operations['began'][row]:.9g} s"
            for row in sent.tolist()[:_MOST]
        ]
        reasons += [_without_turn(tables, row, names, base_s) for row in behind.tolist()[:_MOST]]
        reasons += [_without_token(tables, row, base_s) for row in waiting.tolist()[:_MOST]]
        lines += [f"    {reason}" for reason in reasons[:_MOST]]
        many = len(stuck) + len(sent) + len(behind) + len(waiting)
        if many > _MOST:
            lines.append(f"    ... and {many - _MOST} more")
    return "\n".join(lines)


def _without_rate(tables: Tables, row: int, names: Sequence[str], base_s: float) -> str:
    operation = tables.operations[row]
    hops = tables.hops["resource"][operation.first_hop : operation.first_hop + operation.hops].tolist()
    closed = [names[resource] for resource in hops if tables.resources["capacity"][resource] <= 0.0]
    if operation.is_elsewhere:
        why = "its packets do not get through"
    else:
        why = f"{', '.join(closed)} has no capacity" if closed else "its cap is 0"
    return (
        f"{_ranks(tables, row)} has {operation.remaining:.0f} bytes left since {base_s + operation.since:.9g} s: {why}"
    )


def _without_turn(tables: Tables, row: int, names: Mapping[int, str], base_s: float) -> str:
    operation = tables.operations[row]
    holder = int(tables.turns["holder"][operation.turn])
    return (
        f"{_ranks(tables, row)} waits since {base_s + operation.began:.9g} s behind {_ranks(tables, holder)} of "
        f"{names[int(tables.operations['play'][holder])]}"
    )


def _without_token(tables: Tables, row: int, base_s: float) -> str:
    operation = tables.operations[row]
    since = f"waits since {base_s + operation.waiting_since:.9g} s"
    if not tables.gates["is_open"][operation.source]:
        return f"{_ranks(tables, row)} {since}: rank {tables.gates['rank'][operation.source]} has not joined"
    for dependency in range(operation.first_in, operation.first_in + operation.ins):
        record = tables.dependencies[dependency]
        firing = operation.fired - record.offset
        if record.tokens < min(firing, tables.operations["firings"][record.before] - 1) + 1 and firing >= 0:
            return f"{_ranks(tables, row)} {since} for {_ranks(tables, record.before)}"
    return f"{_ranks(tables, row)} {since}"


def _ranks(tables: Tables, row: int) -> str:
    operation = tables.operations[row]
    source, target = tables.gates["rank"][operation.source], tables.gates["rank"][operation.target]
    if operation.is_message:
        return f"the send of rank {source} to rank {target} (firing {operation.fired} of {operation.firings})"
    if operation.is_flow:
        return f"taking memory of rank {source} (firing {operation.fired} of {operation.firings})"
    return f"a calculation of rank {source} (firing {operation.fired} of {operation.firings})"
