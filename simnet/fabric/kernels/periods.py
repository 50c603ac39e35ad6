"""Skipping periods of a recurrence: when the same comes again, only later; compiled.

When the times of all operations at firing k minus those at firing k - p have become the same constant, they stay so,
and whole periods of p firings can be skipped. p is found by comparing with a snapshot that is taken anew at firings 1,
2, 4, 8 ... (R. P. Brent, "An improved Monte Carlo factorization algorithm", BIT 20, 1980).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.compiled import inlined
from simnet.fabric.kernels.recurrence_tables import Times
from simnet.fabric.kernels.spans import copy_span, same_span, shift_span
from simnet.fabric.kernels.tables import Table

__all__ = ["skip_periods", "take_snapshot"]

_SAME_SHIFT = 1e-14  # of the time: what rounding may make of equal shifts


@inlined
def take_snapshot(times: Times, snapshot: Times) -> None:
    """Copy what is remembered of the latest firings."""
    for slot in range(times.drained.shape[0]):
        for row in range(times.drained.shape[1]):
            snapshot.drained[slot, row] = times.drained[slot, row]
            snapshot.delivered[slot, row] = times.delivered[slot, row]
    for row in range(len(times.spans)):
        copy_span(times.spans, times.pauses, snapshot.spans, snapshot.pauses, row)


@inlined
def skip_periods(
    lines: Table,
    durations: Table,
    shares: NDArray[np.int64],
    times: Times,
    snapshot: Times,
    frontier: NDArray[np.float64],
    snapshot_at: int,
    firing: int,
    firings: int,
) -> tuple[int, bool]:
    """Skip as many periods as possible, if the firings since the snapshot are one.

    Returns
    -------
    tuple of int and bool
        Firings begun in all, and whether they are one.
    """
    slots = len(times.drained)
    period = firing - snapshot_at
    shift = times.drained[(firing - 1) % slots, 0] - snapshot.drained[(snapshot_at - 1) % slots, 0]
    if not _times_have_shifted(times, snapshot, firing, snapshot_at, shift):
        return firing, False
    if not _spans_have_shifted(lines, shares, times, snapshot, frontier, (firing - 1) % slots, shift):
        return firing, False
    periods = (_last_of_kind(lines, durations, snapshot_at, firing, firings) - firing) // period
    if periods > 0:
        _jump(lines, times, snapshot, periods, shift, period)
        firing += periods * period
    return firing, True


@inlined
def _times_have_shifted(times: Times, snapshot: Times, firing: int, old_firing: int, shift: float) -> bool:
    """Tell whether all remembered times are those of the snapshot plus the same shift."""
    slots = len(times.drained)
    for back in range(1, max(slots, 2)):
        if firing - back < 0 or old_firing - back < 0:
            return False
        new, old = (firing - back) % slots, (old_firing - back) % slots
        slack = _SAME_SHIFT * abs(times.drained[new, 0])
        for row in range(times.drained.shape[1]):
            if abs(times.drained[new, row] - snapshot.drained[old, row] - shift) > slack:
                return False
            if abs(times.delivered[new, row] - snapshot.delivered[old, row] - shift) > slack:
                return False
    return True


@inlined
def _spans_have_shifted(
    lines: Table,
    shares: NDArray[np.int64],
    times: Times,
    snapshot: Times,
    frontier: NDArray[np.float64],
    now: int,
    shift: float,
) -> bool:
    """Tell whether what later firings can still change of the spans has shifted as well."""
    for row in range(len(frontier)):
        frontier[row] = np.inf
    for row in range(len(lines)):
        # What starts later starts after this firing has drained.
        earliest = times.drained[now, row]
        line = lines[row]
        frontier[line.source] = min(frontier[line.source], earliest)
        frontier[line.target] = min(frontier[line.target], earliest)
        for share in range(line.first_share, line.last_share):
            frontier[shares[share]] = min(frontier[shares[share]], earliest)
    slack = _SAME_SHIFT * abs(times.drained[now, 0])
    for row in range(len(times.spans)):
        if not same_span(times.spans, times.pauses, snapshot.spans, snapshot.pauses, row, frontier[row], shift, slack):
            return False
    return True


@inlined
def _last_of_kind(lines: Table, durations: Table, old_firing: int, firing: int, firings: int) -> int:
    """Return up to which firing those since the snapshot repeat: before the last, and before reducing ends."""
    limit = firings - 1
    for row in range(len(lines)):
        reducing = lines[row].reduce_firings
        if durations[row, 0].reduce > 0.0 and reducing > old_firing:
            limit = min(limit, reducing if reducing >= firing else firing)
    return limit


@inlined
def _jump(lines: Table, times: Times, snapshot: Times, periods: int, shift: float, period: int) -> None:
    """Move all times on by whole periods."""
    drained, delivered = times.drained, times.delivered
    slots = len(drained)
    by = periods * shift
    moved = (periods * period) % slots
    for row in range(len(lines)):
        lines[row].arrived += by
        lines[row].free_at += by
        # The firing that was last is another's slot now: turn the remembered firings with it.
        for _ in range(moved):
            last_drained, last_delivered = drained[slots - 1, row], delivered[slots - 1, row]
            for slot in range(slots - 1, 0, -1):
                drained[slot, row] = drained[slot - 1, row]
                delivered[slot, row] = delivered[slot - 1, row]
            drained[0, row] = last_drained
            delivered[0, row] = last_delivered
        for slot in range(slots):
            drained[slot, row] += by
            delivered[slot, row] += by
    for row in range(len(times.spans)):
        shift_span(times.spans, times.pauses, row, by, periods * (times.spans[row].busy - snapshot.spans[row].busy))
