"""Playing a schedule that shares nothing as a max-plus recurrence: no queue, no solver, a compiled loop over firings.

Where no two operations under way can share a resource, rates are constants, and the time of firing k of an operation is
the maximum over its dependencies' earlier firings and its own, plus its duration (F. Baccelli et al., *Synchronization
and Linearity*, 1992, chapter 2). When the times of all operations at firing k minus those at firing k - p have become
the same constant for all, they stay so (the same, chapter 3: cyclicity), and whole periods can be skipped. p is found by
comparing with a snapshot that is taken anew at firings 1, 2, 4, 8 ... (R. P. Brent, "An improved Monte Carlo
factorization algorithm", BIT 20, 1980).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.compiled import inlined, kernel
from simnet.fabric.placement import Placement
from simnet.fabric.spans import GAPS, PAUSE, SPAN, copy_span, cover, same_span, shift_span
from simnet.fabric.tables import Table

__all__ = ["Outcome", "Recurrence", "evaluate", "recurrence_of"]

_LARGEST_OFFSET = 16  # firings that are remembered
_SAME_SHIFT = 1e-14  # of the time: what rounding may make of equal shifts


_LINE = np.dtype(
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

_DURATION = np.dtype(
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


@dataclass(frozen=True, eq=False)
class Recurrence:
    """A placement that shares nothing, ready to be evaluated.

    Attributes
    ----------
    placement : Placement
    s_per_byte : time that a byte of each operation's flow takes, shape (operations,) [s/byte]
    order : operations in an order that respects dependencies within a firing, shape (operations,)
    slots : firings that are remembered
    size_period : firings after which the sizes of all operations repeat
    lines : what the loop over firings needs of each operation
    durations : of a firing with so many longer chunks, shape (operations, 1 + most chunks in a firing)
    watched : resources that several operations use, whose caps fit together
    first_watch, watches : positions in `watched` that an operation uses, as compressed rows
    nodes, resources : all that the placement uses, sorted
    """

    placement: Placement
    s_per_byte: NDArray[np.float64]
    order: NDArray[np.int64]
    slots: int
    size_period: int
    lines: Table
    durations: Table
    watched: NDArray[np.int64]
    first_watch: NDArray[np.int64]
    watches: NDArray[np.int64]
    nodes: NDArray[np.int64]
    resources: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a play, in times since its submission.

    Attributes
    ----------
    complete_s : when each rank is complete, shape (ranks,) [s]
    transfer_s : for how long each rank had transfers under way, shape (ranks,) [s]
    transfer_end_s, transfer_gap_s : when its last transfer ended, and its last pause before, shape (ranks,) [s]
    busy_s : for how long each of ``Recurrence.resources`` had a flow, shape (resources,) [s]
    simulated : messages whose times were worked out; the others were skipped
    """

    complete_s: NDArray[np.float64]
    transfer_s: NDArray[np.float64]
    transfer_end_s: NDArray[np.float64]
    transfer_gap_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    simulated: int


def recurrence_of(placement: Placement, capacity: NDArray[np.float64], costs: Table) -> Recurrence | None:
    """Return how to play a placement as a recurrence, or None where operations share something.

    Parameters
    ----------
    placement : Placement
    capacity : ndarray, shape (resources,)
        [bytes/s]
    costs : table
        Of the fabric.
    """
    operations, dependencies, hops = placement.operations, placement.dependencies, placement.hops
    count = len(operations)
    if not count or not operations["is_send"].all() or len(np.unique(placement.nodes)) < len(placement.nodes):
        return None
    firings = operations["firings"]
    offsets = dependencies["offset"]
    if (firings != firings[0]).any() or (len(offsets) and (offsets.min() < 0 or offsets.max() > _LARGEST_OFFSET)):
        return None
    if not np.isinf(operations["deadline"]).all() or _is_shared(operations, costs):
        return None
    fastest = _fastest(placement, capacity)
    if not (fastest > 0.0).all():
        return None
    users = np.bincount(hops["resource"], minlength=len(capacity))
    most = np.bincount(
        hops["resource"], weights=hops["coefficient"] * _own_limit(placement, capacity)[hops["flow"]], minlength=len(users)
    )
    several = users > 1
    if (several & ~(most <= capacity)).any():
        return None
    order = _order_within_firing(placement)
    watched = np.flatnonzero(several)
    watching = several[hops["resource"]]
    return Recurrence(
        placement=placement,
        s_per_byte=1.0 / fastest,
        order=order,
        slots=1 + max(1, int(offsets.max(initial=0))),
        size_period=_size_period(operations),
        lines=_lines(operations),
        durations=_durations(operations, costs, 1.0 / fastest),
        watched=watched,
        first_watch=np.concatenate([[0], np.cumsum(np.bincount(hops["flow"][watching], minlength=count))]),
        watches=np.searchsorted(watched, hops["resource"][watching]),
        nodes=np.sort(placement.nodes),
        resources=np.flatnonzero(users),
    )


def evaluate(
    recurrence: Recurrence,
    costs: Table,
    gate_s: NDArray[np.float64],
    first_setup_s: NDArray[np.float64],
    *,
    skip_periods: bool = True,
) -> Outcome | None:
    """Work out the times of all firings.

    Parameters
    ----------
    recurrence : Recurrence
    costs : table
    gate_s : ndarray, shape (ranks,)
        When each rank joins, after the submission [s].
    first_setup_s : ndarray, shape (operations,)
        Set-up of connections before the first firing of each operation [s].
    skip_periods : bool

    Returns
    -------
    Outcome or None
        None where a node's transfers were interrupted so irregularly that the event kernel has to count them.
    """
    placement = recurrence.placement
    operations = placement.operations
    count, ranks = len(operations), placement.schedule.ranks
    shape = (recurrence.slots, count)
    drained, delivered = np.zeros(shape), np.zeros(shape)
    spans = np.zeros(ranks + len(recurrence.watched), SPAN)
    spans["end"] = spans["pause_end"] = spans["forgotten"] = -math.inf
    firings = int(operations["firings"][0])
    simulated = _fire(
        recurrence.lines.copy(),
        recurrence.durations,
        placement.dependencies,
        np.ascontiguousarray(operations["each_setup"]),
        recurrence.order,
        gate_s,
        first_setup_s,
        recurrence.first_watch,
        recurrence.watches,
        drained,
        delivered,
        np.zeros(count),
        np.zeros(count),
        spans,
        np.zeros((len(spans), GAPS), PAUSE),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros_like(spans),
        np.zeros((len(spans), GAPS), PAUSE),
        np.zeros(len(spans)),
        firings,
        recurrence.size_period if skip_periods else 0,
    )
    if simulated < 0:
        return None
    complete = gate_s.copy()
    last = (firings - 1) % recurrence.slots
    np.maximum.at(complete, operations["source"], drained[last])
    np.maximum.at(complete, operations["target"], delivered[last])
    busy = np.zeros(len(recurrence.resources))
    own = placement.schedule.operation_bytes() * recurrence.s_per_byte
    hops = placement.hops
    busy[np.searchsorted(recurrence.resources, hops["resource"])] = own[hops["flow"]]
    busy[np.searchsorted(recurrence.resources, recurrence.watched)] = spans["busy"][ranks:]
    return Outcome(
        complete,
        np.array(spans["busy"][:ranks]),
        np.array(spans["end"][:ranks]),
        np.array(spans["pause_end"][:ranks]),
        busy,
        simulated * count,
    )


def _is_shared(operations: Table, costs: Table) -> bool:
    """Tell whether two operations wait for the same sender or receiver, whose order depends on who comes first."""
    cost = costs[operations["cost"]]
    sends = (cost["send"] > 0) | (cost["send_per_byte"] * cost["pipeline_bytes"] > 0)
    receives = (cost["receive"] > 0) | (cost["receive_per_byte"] * cost["pipeline_bytes"] > 0)
    receives |= (cost["reduce_per_byte"] > 0) & (operations["reduce_firings"] > 0)
    for server, works in (("server", sends), ("receive_server", receives)):
        used = operations[server][works]
        if len(np.unique(used)) < len(used):
            return True
    return False


def _fastest(placement: Placement, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rate of each operation's flow when it is alone on its path, shape (operations,) [bytes/s]."""
    fastest = placement.operations["cap"].copy()
    np.minimum.at(fastest, placement.hops["flow"], capacity[placement.hops["resource"]] / placement.hops["coefficient"])
    return fastest


def _own_limit(placement: Placement, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the most that each flow can reach because of its cap and of resources that nobody else uses."""
    hops = placement.hops
    alone = np.bincount(hops["resource"], minlength=len(capacity))[hops["resource"]] == 1
    limit = placement.operations["cap"].copy()
    np.minimum.at(limit, hops["flow"][alone], capacity[hops["resource"][alone]] / hops["coefficient"][alone])
    return limit


def _order_within_firing(placement: Placement) -> NDArray[np.int64]:
    """Return the operations so that each follows those whose same firing it waits for."""
    dependencies = placement.dependencies
    same = dependencies["offset"] == 0
    count = len(placement.operations)
    if not same.any():
        return np.arange(count)
    depth = np.zeros(count, dtype=np.int64)
    before, after = dependencies["before"][same], dependencies["after"][same]
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, after, depth[before] + 1)
        if np.array_equal(deeper, depth):
            return np.argsort(depth, kind="stable")
        depth = deeper


def _size_period(operations: Table) -> int:
    """Return after how many firings the sizes of all operations are the same again."""
    turning = (operations["longer"] > 0) & (operations["chunk_step"] % operations["chunk_modulus"] != 0)
    if not turning.any():
        return 1
    modulus, step = operations["chunk_modulus"][turning], operations["chunk_step"][turning]
    return math.lcm(*np.unique(modulus // np.gcd(modulus, step)).tolist())


def _lines(operations: Table) -> Table:
    lines = np.zeros(len(operations), _LINE)
    for column in ("source", "target", "first_in", "longer", "reduce_firings"):
        lines[column] = operations[column]
    lines["last_in"] = operations["first_in"] + operations["ins"]
    lines["modulus"] = operations["chunk_modulus"]
    lines["step"] = operations["chunk_step"] % operations["chunk_modulus"]
    lines["turned"] = operations["chunk_first"] % operations["chunk_modulus"]
    lines["offset"], lines["width"] = operations["chunk_offset"], operations["chunk_width"]
    return lines


def _durations(operations: Table, costs: Table, s_per_byte: NDArray[np.float64]) -> Table:
    most = int(np.where(operations["longer"] > 0, operations["chunk_width"], 0).max())
    durations = np.zeros((len(operations), most + 1), _DURATION)
    cost = costs[operations["cost"]]
    for carried in range(most + 1):
        size = operations["chunk_bytes"] + carried * operations["element_bytes"]
        paying = np.minimum(size, cost["pipeline_bytes"])
        one = durations[:, carried]
        one["lead"] = cost["send"] + cost["send_per_byte"] * paying
        one["flow"] = size * s_per_byte
        one["way"] = operations["latency"] + operations["forward_per_byte"] * np.minimum(size, cost["packet_bytes"])
        one["receive"] = cost["receive"] + cost["receive_per_byte"] * paying
        one["reduce"] = cost["reduce_per_byte"] * size
    return durations


@kernel
def _fire(
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
    firings: int,
    size_period: int,
) -> int:
    """Fire all operations `firings` times; return how often each was, or -1 where a span became too irregular.

    `size_period` is 0 where periods are not to be skipped.
    """
    slots = len(drained)
    ranks = len(gate_s)
    simulated = 0
    snapshot_at = -1
    firing = 0
    while firing < firings:
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
        simulated += 1
        firing += 1
        if size_period == 0 or firing >= firings:
            continue
        if snapshot_at >= 0 and (firing - snapshot_at) % size_period == 0:
            shift = drained[now, 0] - old_drained[(snapshot_at - 1) % slots, 0]
            period = firing - snapshot_at
            if _has_shifted(drained, delivered, old_drained, old_delivered, firing, snapshot_at, shift) and (
                _spans_have_shifted(
                    lines, first_watch, watches, drained, spans, pauses, old_spans, old_pauses, frontier, now, ranks, shift
                )
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
