"""Both heaps against sorted lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.fabric.kernels.heap import discard, drop_first, insert, set_finish
from simnet.fabric.kernels.records import EDGE, ENTRY, OPERATION

KEYS = st.sampled_from([0.0, 1.0, 1.0, 2.0, float("inf")]) | st.floats(0, 10)


@given(st.lists(st.none() | KEYS, max_size=60))
@settings(deadline=None)
def test_entries_come_out_by_key_and_then_in_the_order_they_went_in(steps):
    """A key goes in, None takes the first out: that of the least (key, number)."""
    heap, size = np.zeros(max(len(steps), 1), ENTRY), 0
    expected: list[tuple[float, int]] = []
    for number, key in enumerate(steps):
        if key is not None:
            size = insert(heap, size, key, number, 7 * number)
            expected.append((key, number))
        elif expected:
            expected.sort()
            key, number = expected.pop(0)
            assert (heap[0]["key"], heap[0]["tie"], heap[0]["what"]) == (key, number, 7 * number)
            size = drop_first(heap, size)
        assert size == len(expected)


FLOWS = 8
CHANGES = st.tuples(st.integers(0, FLOWS - 1), st.none() | KEYS)


@given(st.lists(CHANGES, max_size=60))
@settings(deadline=None)
def test_the_flow_that_drains_first_is_always_on_top(changes):
    """A time sets when a flow drains, sooner or later than before or for the first time; None takes it out."""
    flows, order, size = np.zeros(FLOWS, OPERATION), np.zeros(FLOWS, EDGE), 0
    flows["heap_position"] = -1
    finish: dict[int, float] = {}
    for flow, time in changes:
        if time is None:
            size = discard(flows, order, size, flow)
            finish.pop(flow, None)
        else:
            size = set_finish(flows, order, size, flow, time)
            finish[flow] = time
        assert size == len(finish)
        assert sorted(order["row"][:size].tolist()) == sorted(finish)
        for flow_in, place in enumerate(flows["heap_position"].tolist()):
            assert (place >= 0) == (flow_in in finish)
            assert place < 0 or order["row"][place] == flow_in
        if finish:
            first = min(finish, key=lambda flow: (finish[flow], flow))
            assert order["row"][0] == first
            assert flows["finish"][first] == finish[first]
