"""Two binary min-heaps, compiled: one of entries, one of flows by the time at which they drain."""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.tables import Table

__all__ = ["discard", "drop_first", "insert", "set_finish"]


@kernel
def insert(heap: Table, size: int, key: float, tie: int, item: int) -> int:
    """Add an entry to a heap of `size` entries ordered by (key, tie), which has room; return its new size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        above = heap[parent]
        if above.key < key or (above.key == key and above.tie <= tie):
            break
        heap[hole].key = above.key
        heap[hole].tie = above.tie
        heap[hole].what = above.what
        hole = parent
    heap[hole].key = key
    heap[hole].tie = tie
    heap[hole].what = item
    return size + 1


@kernel
def drop_first(heap: Table, size: int) -> int:
    """Remove the least entry, which is the first; return the new size."""
    size -= 1
    last = heap[size]
    hole = 0
    child = 1
    while child < size:
        right = child + 1
        if right < size and (
            heap[right].key < heap[child].key
            or (heap[right].key == heap[child].key and heap[right].tie < heap[child].tie)
        ):
            child = right
        below = heap[child]
        if below.key > last.key or (below.key == last.key and below.tie >= last.tie):
            break
        heap[hole].key = below.key
        heap[hole].tie = below.tie
        heap[hole].what = below.what
        hole = child
        child = 2 * hole + 1
    heap[hole].key = last.key
    heap[hole].tie = last.tie
    heap[hole].what = last.what
    return size


@kernel
def set_finish(flows: Table, order: Table, size: int, flow: int, finish: float) -> int:
    """Give a flow the time at which it drains, adding it to the heap where it is not in yet; return the new size.

    The heap is `order`, sorted by (finish, flow); ``heap_position`` is where a flow lies in it, -1 if nowhere.
    """
    hole = flows[flow].heap_position
    if hole < 0:
        flows[flow].finish = finish
        _sift_up(flows, order, size, flow)
        return size + 1
    sooner = finish < flows[flow].finish
    flows[flow].finish = finish
    if sooner:
        _sift_up(flows, order, hole, flow)
    else:
        _sift_down(flows, order, size, hole, flow)
    return size


@kernel
def discard(flows: Table, order: Table, size: int, flow: int) -> int:
    """Take a flow out of the heap, if it is in; return the new size."""
    hole = flows[flow].heap_position
    if hole < 0:
        return size
    flows[flow].heap_position = -1
    size -= 1
    if hole == size:
        return size
    last = order[size].row
    if _earlier(flows, last, flow):
        _sift_up(flows, order, hole, last)
    else:
        _sift_down(flows, order, size, hole, last)
    return size


@inlined
def _earlier(flows: Table, one: int, other: int) -> bool:
    return flows[one].finish < flows[other].finish or (flows[one].finish == flows[other].finish and one < other)


@inlined
def _sift_up(flows: Table, order: Table, hole: int, flow: int) -> None:
    while hole > 0:
        parent = (hole - 1) >> 1
        above = order[parent].row
        if _earlier(flows, above, flow):
            break
        order[hole].row = above
        flows[above].heap_position = hole
        hole = parent
    order[hole].row = flow
    flows[flow].heap_position = hole


@inlined
def _sift_down(flows: Table, order: Table, size: int, hole: int, flow: int) -> None:
    child = 2 * hole + 1
    while child < size:
        right = child + 1
        if right < size and _earlier(flows, order[right].row, order[child].row):
            child = right
        least = order[child].row
        if _earlier(flows, flow, least):
            break
        order[hole].row = least
        flows[least].heap_position = hole
        hole = child
        child = 2 * hole + 1
    order[hole].row = flow
    flows[flow].heap_position = hole
