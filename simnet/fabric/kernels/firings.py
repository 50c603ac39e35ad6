"""The loop of a max-plus recurrence over all firings of a schedule; compiled.

`simnet.fabric.recurrence` says when it applies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.periods import skip_periods, take_snapshot
from simnet.fabric.kernels.recurrence_tables import Times
from simnet.fabric.kernels.rotation import gather_runs, turn
from simnet.fabric.kernels.spans import cover
from simnet.fabric.kernels.tables import Table

__all__ = ["fire"]


@kernel
def fire(
    lines: Table,
    durations: Table,
    dependencies: Table,
    order: NDArray[np.int64],
    gate_s: NDArray[np.float64],
    shares: NDArray[np.int64],
    times: Times,
    snapshot: Times,
    frontier: NDArray[np.float64],
    runs: Table,
    fresh_runs: Table,
    firings: int,
    size_period: int,
) -> int:
    """Fire all operations `firings` times; return how many sends were worked out, -1 if a span became too irregular.

    `size_period` is 0 where periods are not to be skipped; `runs` is empty where the schedule is no uniform ring.
    """
    simulated = 0
    snapshot_at = -1
    gathered_at = 0
    firing = 0
    while firing < firings:
        # Look for runs of chunks at once, and sixteen times a turn of the ring.
        if len(runs) > 0 and firing > gathered_at and (gathered_at == 0 or 16 * (firing - gathered_at) > len(lines)):
            gathered_at = firing
            count = gather_runs(lines, times.drained, times.delivered, times.spans, runs, firing)
            if count > 0:
                firing, sends = turn(
                    lines,
                    durations,
                    times.drained,
                    times.delivered,
                    times.spans,
                    runs,
                    fresh_runs,
                    count,
                    firing,
                    firings,
                )
                simulated += sends
                snapshot_at = -1
                continue
        for row in order:
            if not _fire_once(lines, durations, dependencies, gate_s, shares, times, row, firing):
                return -1
        simulated += len(lines)
        firing += 1
        if size_period == 0 or firing >= firings:
            continue
        if snapshot_at >= 0 and (firing - snapshot_at) % size_period == 0:
            firing, found = skip_periods(
                lines, durations, shares, times, snapshot, frontier, snapshot_at, firing, firings
            )
            if found:
                snapshot_at = -1
        if snapshot_at < 0 or firing >= 2 * snapshot_at:
            snapshot_at = firing
            take_snapshot(times, snapshot)
    return simulated


@inlined
def _fire_once(
    lines: Table,
    durations: Table,
    dependencies: Table,
    gate_s: NDArray[np.float64],
    shares: NDArray[np.int64],
    times: Times,
    row: int,
    firing: int,
) -> bool:
    """Work out one firing of one operation; return False where a span became too irregular."""
    slots = len(times.drained)
    now = firing % slots
    earlier = (firing - 1) % slots
    line = lines[row]
    if firing > 0:
        start = times.drained[earlier, row]
        setup = line.each_setup
    else:
        start = gate_s[line.source]
        setup = line.first_setup
    for edge in range(line.first_in, line.last_in):
        dependency = dependencies[edge]
        needed = firing - dependency.offset
        if needed >= 0:
            if dependency.until_delivered:
                start = max(start, times.delivered[needed % slots, dependency.before] + dependency.delay)
            else:
                start = max(start, times.drained[needed % slots, dependency.before] + dependency.delay)
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
    taken = max(end + duration.way, line.arrived)
    line.arrived = taken
    work = duration.receive
    if firing < line.reduce_firings:
        work += duration.reduce
    if work > 0.0:
        taken = max(taken, line.free_at) + work
        line.free_at = taken
    if firing > 0:
        taken = max(taken, times.delivered[earlier, row])
    times.drained[now, row] = end
    times.delivered[now, row] = taken
    if not cover(times.spans, times.pauses, line.source, start, taken):
        return False
    if not cover(times.spans, times.pauses, line.target, start, taken):
        return False
    for share in range(line.first_share, line.last_share):
        if duration.flow > 0.0 and not cover(times.spans, times.pauses, shares[share], begin, end):
            return False
    return True
