"""The loop of a max-plus recurrence over all firings of a schedule; compiled.

`simnet.fabric.recurrence` says when it applies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.rotation import gather_runs, turn
from simnet.fabric.kernels.spans import copy_span, cover, same_span, shift_span
from simnet.fabric.kernels.tables import Table

__all__ = ["DURATION", "LINE", "fire"]

LINE = np.dtype(
    (
        np.record,
        [
            ("source", np.int64),  # ranks
            ("target", np.int64),
            ("first_in", np.int64),  # dependencies
            ("last_in", np.int64),
            ("longer", np.int64),  # chunks, from the first, that hold one element more
            ("turned", np.int64),  # of the chunk that the next firing carries
            ("step", np.int64),
            ("modulus", np.int64),
            ("offset", np.int64),
            ("width", np.int64),
            ("reduce_firings", np.int64),
        ],
    )
)

DURATION = np.dtype(
    (
        np.record,
        [
            ("lead", np.float64),  # from the start until the flow begins
            ("flow", np.float64),  # until it has drained
            ("way", np.float64),  # until it arrives
            ("receive", np.float64),  # until it is taken in
            ("reduce", np.float64),  # and reduced
        ],
    )
)

_SAME_SHIFT = 1e-14  # of the time: what rounding may make of equal shifts


@kernel
def fire(
    lines: Table,
    durations: Table,
    dependencies: Table,
    each_setup_s: NDArray[np.float64],
    order: NDArray[np.int64],
    gate_s: NDArray[np.float64],
    first_setup_s: NDArray[np.float64],
    first_watch: NDArray[np.int64],
    watches: NDArray[np.int64],
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    arrived: NDArray[np.float64],
    free_at: NDArray[np.float64],
    spans: Table,
    pauses: Table,
    old_drained: NDArray[np.float64],
    old_delivered: NDArray[np.float64],
    old_spans: Table,
    old_pauses: Table,
    frontier: NDArray[np.float64],
    runs: Table,
    fresh_runs: Table,
    firings: int,
    size_period: int,
) -> int:
    """Fire all operations `firings` times; return how many firings were worked out, -1 if a span became too irregular.

    `size_period` is 0 where periods are not to be skipped; `runs` is empty where the schedule is no uniform ring.
    """
    slots = len(drained)
    ranks = len(gate_s)
    simulated = 0
    snapshot_at = -1
    gathered_at = 0
    firing = 0
    while firing < firings:
        # Look for runs of chunks at once, and sixteen times a turn of the ring.
        if len(runs) > 0 and firing > gathered_at and (gathered_at == 0 or 16 * (firing - gathered_at) > len(lines)):
            gathered_at = firing
            count = gather_runs(lines, drained, delivered, arrived, free_at, spans, runs, firing)
            if count > 0:
                firing, sends = turn(
                    lines,
                    durations,
                    each_setup_s[0],
                    drained,
                    delivered,
                    arrived,
                    free_at,
                    spans,
                    runs,
                    fresh_runs,
                    count,
                    firing,
                    firings,
                )
                simulated += sends
                snapshot_at = -1
                continue
        now = firing % slots
        earlier = (firing - 1) % slots
        for row in order:
            line = lines[row]
            if firing > 0:
                start = drained[earlier, row]
                setup = each_setup_s[row]
            else:
                start = gate_s[line.source]
                setup = first_setup_s[row]
            for edge in range(line.first_in, line.last_in):
                dependency = dependencies[edge]
                needed = firing - dependency.offset
                if needed >= 0:
                    if dependency.until_delivered:
                        start = max(start, delivered[needed % slots, dependency.before] + dependency.delay)
                    else:
                        start = max(start, drained[needed % slots, dependency.before] + dependency.delay)
            carried = 0
            if line.longer > 0:
                carried = min(max(line.longer - line.offset - line.turned, 0), line.width)
                line.turned += line.step
                if line.turned >= line.modulus:
                    line.turned -= line.modulus
            duration = durations[row, carried]
            begin = start + duration.lead + setup
            end = begin + duration.flow
            # Firings never overtake each other.
            taken = max(end + duration.way, arrived[row])
            arrived[row] = taken
            work = duration.receive
            if firing < line.reduce_firings:
                work += duration.reduce
            if work > 0.0:
                taken = max(taken, free_at[row]) + work
                free_at[row] = taken
            if firing > 0:
                taken = max(taken, delivered[earlier, row])
            drained[now, row] = end
            delivered[now, row] = taken
            if not cover(spans, pauses, line.source, start, taken):
                return -1
            if not cover(spans, pauses, line.target, start, taken):
                return -1
            for watch in range(first_watch[row], first_watch[row + 1]):
                if duration.flow > 0.0 and not cover(spans, pauses, ranks + watches[watch], begin, end):
                    return -1
        simulated += len(lines)
        firing += 1
        if size_period == 0 or firing >= firings:
            continue
        if snapshot_at >= 0 and (firing - snapshot_at) % size_period == 0:
            shift = drained[now, 0] - old_drained[(snapshot_at - 1) % slots, 0]
            period = firing - snapshot_at
            times_have = _has_shifted(drained, delivered, old_drained, old_delivered, firing, snapshot_at, shift)
            if times_have and _spans_have_shifted(
                lines,
                first_watch,
                watches,
                drained,
                spans,
                pauses,
                old_spans,
                old_pauses,
                frontier,
                now,
                ranks,
                shift,
            ):
                ahead = (_last_of_kind(lines, durations, snapshot_at, firing, firings) - firing) // period
                if ahead > 0:
                    _jump(drained, delivered, arrived, free_at, spans, pauses, old_spans, ahead, shift, period)
                    firing += ahead * period
                snapshot_at = -1
        if snapshot_at < 0 or firing >= 2 * snapshot_at:
            snapshot_at = firing
            for slot in range(slots):
                for row in range(len(lines)):
                    old_drained[slot, row] = drained[slot, row]
                    old_delivered[slot, row] = delivered[slot, row]
            for row in range(len(spans)):
                copy_span(spans, pauses, old_spans, old_pauses, row)
    return simulated


@inlined
def _has_shifted(
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    old_drained: NDArray[np.float64],
    old_delivered: NDArray[np.float64],
    firing: int,
    old_firing: int,
    shift: float,
) -> bool:
    """Tell whether all remembered times are those of the snapshot plus the same shift."""
    slots = len(drained)
    for back in range(1, max(slots, 2)):
        if firing - back < 0 or old_firing - back < 0:
            return False
        new, old = (firing - back) % slots, (old_firing - back) % slots
        slack = _SAME_SHIFT * abs(drained[new, 0])
        for row in range(drained.shape[1]):
            if abs(drained[new, row] - old_drained[old, row] - shift) > slack:
                return False
            if abs(delivered[new, row] - old_delivered[old, row] - shift) > slack:
                return False
    return True


@inlined
def _spans_have_shifted(
    lines: Table,
    first_watch: NDArray[np.int64],
    watches: NDArray[np.int64],
    drained: NDArray[np.float64],
    spans: Table,
    pauses: Table,
    old_spans: Table,
    old_pauses: Table,
    frontier: NDArray[np.float64],
    now: int,
    ranks: int,
    shift: float,
) -> bool:
    """Tell whether what later firings can still change of the spans has shifted as well."""
    for row in range(len(frontier)):
        frontier[row] = np.inf
    for row in range(len(lines)):
        # What starts later starts after this firing has drained.
        earliest = drained[now, row]
        source, target = lines[row].source, lines[row].target
        frontier[source] = min(frontier[source], earliest)
        frontier[target] = min(frontier[target], earliest)
        for watch in range(first_watch[row], first_watch[row + 1]):
            frontier[ranks + watches[watch]] = min(frontier[ranks + watches[watch]], earliest)
    for row in range(len(spans)):
        slack = _SAME_SHIFT * abs(drained[now, 0])
        if not same_span(spans, pauses, old_spans, old_pauses, row, frontier[row], shift, slack):
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
def _jump(
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    arrived: NDArray[np.float64],
    free_at: NDArray[np.float64],
    spans: Table,
    pauses: Table,
    old_spans: Table,
    periods: int,
    shift: float,
    period: int,
) -> None:
    """Move all times on by whole periods."""
    slots = len(drained)
    by = periods * shift
    moved = (periods * period) % slots
    for row in range(drained.shape[1]):
        arrived[row] += by
        free_at[row] += by
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
    for row in range(len(spans)):
        shift_span(spans, pauses, row, by, periods * (spans[row].busy - old_spans[row].busy))
