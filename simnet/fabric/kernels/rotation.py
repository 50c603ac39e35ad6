"""A ring whose ranks are alike, in the frame of its chunks; compiled.

In firing k rank r sends the chunk c = r - k (modulo the ranks) that its neighbour r - 1 has just handed it, so that
c stays what it is from firing to firing: with x[c] for the time at which chunk c is sent on, x[c] of firing k is the
maximum of x[c] and x[c + 1] of firing k - 1, plus a duration that depends on the size of chunk c alone. Neighbouring
chunks of equal size and equal times stay equal, so a *run* of them is worked out once: a handful for N ranks that
begin at once, also where chunks differ by an element.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.compiled import inlined
from simnet.fabric.kernels.tables import Table

__all__ = ["RUN", "gather_runs", "turn"]

RUN = np.dtype(
    (
        np.record,
        [
            ("first", np.int64),  # chunk
            ("start", np.float64),
            ("drained", np.float64),
            ("delivered", np.float64),
            ("arrived", np.float64),
            ("free_at", np.float64),
        ],
    )
)
"""Chunks that are alike, up to the first of the next run, and what became of the firing that carried them last."""


@inlined
def gather_runs(
    lines: Table,
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    spans: Table,
    runs: Table,
    firing: int,
) -> int:
    """Collect the runs of alike chunks after some firings; return how many, or 0 where they fill the table.

    0 also where a transfer to come might begin before the latest pause of its node is over.
    """
    rows = len(lines)
    earlier = (firing - 1) % len(drained)
    count = 0
    for chunk in range(rows):
        row = (chunk + firing - 1) % rows
        line = lines[row]
        begun = drained[earlier, row]
        if spans[line.source].pause_end > begun or spans[line.target].pause_end > begun:
            return 0
        if chunk > 0 and chunk != line.longer:
            run = runs[count - 1]
            if (
                run.drained == begun
                and run.delivered == delivered[earlier, row]
                and run.arrived == line.arrived
                and run.free_at == line.free_at
            ):
                continue
        if count == len(runs):
            return 0
        run = runs[count]
        run.first = chunk
        run.drained = begun
        run.delivered = delivered[earlier, row]
        run.arrived = line.arrived
        run.free_at = line.free_at
        count += 1
    return count


@inlined
def turn(
    lines: Table,
    durations: Table,
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    spans: Table,
    runs: Table,
    fresh: Table,
    count: int,
    firing: int,
    firings: int,
) -> tuple[int, int]:
    """Fire on, run by run, until all is over or runs become too many.

    Returns
    -------
    tuple of int
        Firings begun in all, and sends worked out; the tables of the rows are as after these firings.
    """
    rows = len(lines)
    begun = firing
    sends = 0
    while firing < firings:
        new = _next_runs(lines, durations, runs, fresh, count, firing)
        if new < 0:
            break
        runs, fresh = fresh, runs
        count = new
        sends += count
        _note_pauses(lines, spans, runs, count, firing)
        firing += 1
    if firing == begun:
        return firing, sends
    now = (firing - 1) % len(drained)
    for i in range(count):
        run = runs[i]
        after = rows
        if i + 1 < count:
            after = runs[i + 1].first
        for chunk in range(run.first, after):
            row = (chunk + firing - 1) % rows
            drained[now, row] = run.drained
            delivered[now, row] = run.delivered
            lines[row].arrived = run.arrived
            lines[row].free_at = run.free_at
    for row in range(rows):
        line = lines[row]
        end = max(delivered[now, row], delivered[now, (row - 1) % rows])
        span = spans[line.source]
        span.busy += end - span.end
        span.end = end
        line.turned = (line.turned + (firing - begun) * line.step) % line.modulus
    return firing, sends


@inlined
def _next_runs(lines: Table, durations: Table, runs: Table, fresh: Table, count: int, firing: int) -> int:
    """Work out the next firing; return the number of runs after it, or -1 where it must be done row by row."""
    rows = len(lines)
    longer = lines[0].longer
    reduces = firing < lines[0].reduce_firings
    new = 0
    here = 0  # run of the chunk
    ahead = 0  # run of the chunk after it, which its sender has sent before
    chunk = 0
    while chunk < rows:
        if here + 1 < count and chunk >= runs[here + 1].first:
            here += 1
        if chunk == rows - 1:
            ahead = 0
        elif ahead + 1 < count and chunk + 1 >= runs[ahead + 1].first:
            ahead += 1
        received, own = runs[here], runs[ahead]
        start = max(own.drained, received.delivered)
        carried = 1 if chunk < longer else 0
        duration = durations[0, carried]
        end = start + duration.lead + lines[0].each_setup + duration.flow
        came = max(end + duration.way, own.arrived)
        work = duration.receive
        if reduces:
            work += duration.reduce
        taken = came
        busy_until = own.free_at
        if work > 0.0:
            taken = max(came, own.free_at) + work
            busy_until = taken
        taken = max(taken, own.delivered)
        alike = False
        if new > 0 and chunk != longer:
            last = fresh[new - 1]
            alike = (
                last.drained == end and last.delivered == taken and last.arrived == came and last.free_at == busy_until
            )
        if not alike:
            if new == len(fresh):
                return -1
            run = fresh[new]
            run.first = chunk
            run.start = start
            run.drained = end
            run.delivered = taken
            run.arrived = came
            run.free_at = busy_until
            new += 1
        # On to the next chunk that has other neighbours.
        chunk = _next_change(runs, count, here, ahead, chunk, rows)
    return new


@inlined
def _note_pauses(lines: Table, spans: Table, runs: Table, count: int, firing: int) -> None:
    """Take out of the spans the time for which a receiver had sent all it had and waited for the next chunk.

    Within a run nobody waits: a rank goes on sending after its neighbour has begun to send to it.
    """
    rows = len(lines)
    for i in range(count):
        after, following = rows, runs[0]
        if i + 1 < count:
            following = runs[i + 1]
            after = following.first
        pause = runs[i].start - following.delivered
        if pause > 0.0:
            span = spans[lines[(after + firing) % rows].source]
            span.busy -= pause
            span.pause_end = runs[i].start


@inlined
def _next_change(runs: Table, count: int, here: int, ahead: int, chunk: int, rows: int) -> int:
    """Return the first chunk after one whose run, or whose next chunk's run, is another."""
    following = rows
    if chunk < rows - 1:
        # The last chunk of all is followed by the first.
        following = rows - 1
        if ahead + 1 < count:
            following = min(following, runs[ahead + 1].first - 1)
    if here + 1 < count:
        following = min(following, runs[here + 1].first)
    return max(following, chunk + 1)
