"""For how long something was under way: the length of a union of intervals that come roughly in order; compiled."""

from __future__ import annotations

import numpy as np

from simnet.fabric.compiled import inlined
from simnet.fabric.tables import Table

__all__ = ["GAPS", "SPAN", "cover", "same_span", "shift_span"]

GAPS = 16
"""Pauses that are remembered, as an interval that comes late may fill them."""

SPAN = np.dtype(
    (
        np.record,
        [
            ("busy", np.float64),  # length of the union
            ("end", np.float64),  # of the last interval
            ("gaps", np.int64),  # pauses remembered, the latest first
            ("forgotten", np.float64),  # end of the latest pause that is not remembered any more
            ("gap_start", np.float64, (GAPS,)),
            ("gap_end", np.float64, (GAPS,)),
        ],
    )
)


@inlined
def cover(spans: Table, row: int, start: float, end: float) -> bool:
    """Add an interval to a union; return False where it falls into a pause that was forgotten."""
    span = spans[row]
    if start > span.end:
        # The first pause lasts from the beginning of time.
        if span.gaps == GAPS:
            span.forgotten = span.gap_end[GAPS - 1]
            span.gaps -= 1
        for gap in range(span.gaps, 0, -1):
            span.gap_start[gap] = span.gap_start[gap - 1]
            span.gap_end[gap] = span.gap_end[gap - 1]
        span.gap_start[0] = span.end
        span.gap_end[0] = start
        span.gaps += 1
        span.busy += end - start
        span.end = end
        return True
    if end > span.end:
        span.busy += end - span.end
        span.end = end
    if start >= span.gap_end[0]:
        return True
    return _fill(spans, row, start, end)


@inlined
def _fill(spans: Table, row: int, start: float, end: float) -> bool:
    """Take an interval out of the pauses."""
    span = spans[row]
    if start < span.forgotten:
        return False
    gap = 0
    while gap < span.gaps:
        low, high = max(start, span.gap_start[gap]), min(end, span.gap_end[gap])
        if low >= high:
            gap += 1
            continue
        span.busy += high - low
        if low > span.gap_start[gap] and high < span.gap_end[gap]:
            # It splits in two, and there may be no room for both.
            if span.gaps == GAPS:
                return False
            for later in range(span.gaps, gap + 1, -1):
                span.gap_start[later] = span.gap_start[later - 1]
                span.gap_end[later] = span.gap_end[later - 1]
            span.gap_start[gap + 1] = span.gap_start[gap]
            span.gap_end[gap + 1] = low
            span.gap_start[gap] = high
            span.gaps += 1
            gap += 2
        elif low > span.gap_start[gap]:
            span.gap_end[gap] = low
            gap += 1
        elif high < span.gap_end[gap]:
            span.gap_start[gap] = high
            gap += 1
        else:
            for later in range(gap, span.gaps - 1):
                span.gap_start[later] = span.gap_start[later + 1]
                span.gap_end[later] = span.gap_end[later + 1]
            span.gaps -= 1
    return True


@inlined
def same_span(spans: Table, old_spans: Table, row: int, frontier: float, shift: float, slack: float) -> bool:
    """Tell whether a span is an older one moved by `shift`, as far as intervals from `frontier` on can change it."""
    span, old = spans[row], old_spans[row]
    if span.end == -np.inf and old.end == -np.inf:
        return True
    if abs(span.end - old.end - shift) > slack:
        return False
    gap = 0
    while gap < span.gaps and span.gap_end[gap] > frontier:
        if gap >= old.gaps or abs(span.gap_end[gap] - old.gap_end[gap] - shift) > slack:
            return False
        if abs(span.gap_start[gap] - old.gap_start[gap] - shift) > slack:
            return False
        gap += 1
    return not (gap < old.gaps and old.gap_end[gap] > frontier - shift + slack)


@inlined
def shift_span(spans: Table, row: int, by: float, busy: float) -> None:
    """Move a span, which has `busy` more behind it."""
    span = spans[row]
    span.busy += busy
    span.end += by
    span.forgotten += by
    for gap in range(span.gaps):
        span.gap_start[gap] += by
        span.gap_end[gap] += by
