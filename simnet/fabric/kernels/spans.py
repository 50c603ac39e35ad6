"""For how long something was under way: the length of a union of intervals that come roughly in order; compiled."""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import inlined
from simnet.fabric.kernels.tables import Table

__all__ = ["GAPS", "PAUSE", "SPAN", "copy_span", "cover", "same_span", "shift_span"]

GAPS = 16
"""Pauses that are remembered, as an interval that comes late may fill them."""

SPAN = np.dtype(
    (
        np.record,
        [
            ("busy", np.float64),  # length of the union
            ("end", np.float64),  # of the last interval
            ("pause_end", np.float64),  # of the latest pause
            ("forgotten", np.float64),  # end of the latest pause that is not remembered any more
            ("gaps", np.int64),  # pauses remembered
        ],
    )
)

PAUSE = np.dtype((np.record, [("start", np.float64), ("end", np.float64)]))
"""A pause; those of a span are a row of a table with `GAPS` columns, the latest first."""


@inlined
def cover(spans: Table, pauses: Table, row: int, start: float, end: float) -> bool:
    """Add an interval to a union; return False where it falls into a pause that was forgotten."""
    span = spans[row]
    if start <= span.end:
        if end > span.end:
            span.busy += end - span.end
            span.end = end
        if start >= span.pause_end:
            return True
        return _fill(spans, pauses, row, start, end)
    # The first pause lasts from the beginning of time.
    if span.gaps == GAPS:
        span.forgotten = pauses[row, GAPS - 1].end
        span.gaps -= 1
    _insert(pauses, row, 0, span.gaps, span.end, start)
    span.gaps += 1
    span.pause_end = start
    span.busy += end - start
    span.end = end
    return True


@inlined
def _insert(pauses: Table, row: int, at: int, count: int, start: float, end: float) -> None:
    for gap in range(count, at, -1):
        pauses[row, gap].start = pauses[row, gap - 1].start
        pauses[row, gap].end = pauses[row, gap - 1].end
    pauses[row, at].start = start
    pauses[row, at].end = end


@inlined
def _fill(spans: Table, pauses: Table, row: int, start: float, end: float) -> bool:
    """Take an interval out of the pauses."""
    span = spans[row]
    if start < span.forgotten:
        return False
    gap = 0
    while gap < span.gaps:
        pause = pauses[row, gap]
        low, high = max(start, pause.start), min(end, pause.end)
        if low >= high:
            gap += 1
            continue
        span.busy += high - low
        if low > pause.start and high < pause.end:
            # It splits in two, and there may be no room for both.
            if span.gaps == GAPS:
                return False
            _insert(pauses, row, gap + 1, span.gaps, pause.start, low)
            pause.start = high
            span.gaps += 1
            gap += 2
        elif low > pause.start:
            pause.end = low
            gap += 1
        elif high < pause.end:
            pause.start = high
            gap += 1
        else:
            for later in range(gap, span.gaps - 1):
                pauses[row, later].start = pauses[row, later + 1].start
                pauses[row, later].end = pauses[row, later + 1].end
            span.gaps -= 1
    span.pause_end = pauses[row, 0].end if span.gaps > 0 else -np.inf
    return True


@inlined
def same_span(
    spans: Table,
    pauses: Table,
    old_spans: Table,
    old_pauses: Table,
    row: int,
    frontier: float,
    shift: float,
    slack: float,
) -> bool:
    """Tell whether a span is an older one moved by `shift`, as far as intervals from `frontier` on can change it."""
    span, old = spans[row], old_spans[row]
    if span.end == -np.inf and old.end == -np.inf:
        return True
    if abs(span.end - old.end - shift) > slack:
        return False
    gap = 0
    while gap < span.gaps and pauses[row, gap].end > frontier:
        if gap >= old.gaps or abs(pauses[row, gap].end - old_pauses[row, gap].end - shift) > slack:
            return False
        if abs(pauses[row, gap].start - old_pauses[row, gap].start - shift) > slack:
            return False
        gap += 1
    return not (gap < old.gaps and old_pauses[row, gap].end > frontier - shift + slack)


@inlined
def copy_span(spans: Table, pauses: Table, to_spans: Table, to_pauses: Table, row: int) -> None:
    """Copy a span."""
    to_spans[row] = spans[row]
    for gap in range(spans[row].gaps):
        to_pauses[row, gap] = pauses[row, gap]


@inlined
def shift_span(spans: Table, pauses: Table, row: int, by: float, busy: float) -> None:
    """Move a span, which has `busy` more behind it."""
    span = spans[row]
    span.busy += busy
    span.end += by
    span.pause_end += by
    span.forgotten += by
    for gap in range(span.gaps):
        pauses[row, gap].start += by
        pauses[row, gap].end += by
