"""Playing a schedule that shares nothing as a max-plus recurrence: no queue, no solver, a compiled loop over firings.

Where no two operations under way can share a resource, rates are constants, and the time of firing k of an operation is
the maximum over its dependencies' earlier firings and its own, plus its duration (F. Baccelli et al.,
*Synchronization and Linearity*, 1992, chapter 2). When the times of all operations at firing k minus those at firing
k - p have become the same constant for all, they stay so (the same, chapter 3: cyclicity), and whole periods can be
skipped. See `simnet.fabric.kernels.periods`. A ring whose chunks differ by an element repeats nothing
within one all-reduce; see `simnet.fabric.kernels.rotation`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.firings import fire
from simnet.fabric.kernels.losses import RELIABLE
from simnet.fabric.kernels.recurrence_tables import DURATION, LINE, Times
from simnet.fabric.kernels.rotation import RUN
from simnet.fabric.kernels.spans import GAPS, PAUSE, SPAN
from simnet.fabric.kernels.tables import Table
from simnet.fabric.placement import Placement

__all__ = ["Outcome", "Recurrence", "evaluate", "recurrence_of"]

_LARGEST_OFFSET = 16  # firings that are remembered
_CHUNKS_PER_RUN = 8  # in the mean, for runs to be worth their trouble


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
    is_uniform_ring : whether it is a ring of ranks that are alike
    shared : resources that several operations use, whose caps fit together
    shares : spans that the flows of an operation are in, from its `first_share` on: those of `shared`, after the ranks'
    resources : all that the placement uses, sorted
    """

    placement: Placement
    s_per_byte: NDArray[np.float64]
    order: NDArray[np.int64]
    slots: int
    size_period: int
    lines: Table
    durations: Table
    is_uniform_ring: bool
    shared: NDArray[np.int64]
    shares: NDArray[np.int64]
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
    if not count or not operations["is_message"].all() or len(np.unique(placement.nodes)) < len(placement.nodes):
        return None
    firings = operations["firings"]
    offsets = dependencies["offset"]
    if (firings != firings[0]).any() or (len(offsets) and (offsets.min() < 0 or offsets.max() > _LARGEST_OFFSET)):
        return None
    if not np.isinf(operations["deadline"]).all() or _is_shared(operations, costs):
        return None
    if (operations["reliability"] != RELIABLE).any():
        return None
    fastest = _fastest(placement, capacity)
    if not (fastest > 0.0).all():
        return None
    users = np.bincount(hops["resource"], minlength=len(capacity))
    wanted = hops["coefficient"] * _own_limit(placement, capacity)[hops["flow"]]
    most = np.bincount(hops["resource"], weights=wanted, minlength=len(users))
    several = users > 1
    if (several & ~(most <= capacity)).any():
        return None
    order = _order_within_firing(placement)
    shared = np.flatnonzero(several)
    sharing = several[hops["resource"]]
    lines, durations = _lines(operations), _durations(operations, costs, 1.0 / fastest)
    lines["last_share"] = np.cumsum(np.bincount(hops["flow"][sharing], minlength=count))
    lines["first_share"][1:] = lines["last_share"][:-1]
    return Recurrence(
        placement=placement,
        s_per_byte=1.0 / fastest,
        order=order,
        slots=1 + max(1, int(offsets.max(initial=0))),
        size_period=_size_period(operations),
        lines=lines,
        durations=durations,
        is_uniform_ring=not len(shared) and _is_uniform_ring(placement, lines, durations),
        shared=shared,
        shares=placement.schedule.ranks + np.searchsorted(shared, hops["resource"][sharing]),
        resources=np.flatnonzero(users),
    )


def evaluate(
    recurrence: Recurrence,
    gate_s: NDArray[np.float64],
    first_setup_s: NDArray[np.float64],
    *,
    skip_periods: bool = True,
) -> Outcome | None:
    """Work out the times of all firings.

    Parameters
    ----------
    recurrence : Recurrence
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
    lines = recurrence.lines.copy()
    lines["first_setup"] = first_setup_s
    size = (recurrence.slots, count, ranks + len(recurrence.shared))
    times, snapshot = _times(*size), _times(*size)
    firings = int(operations["firings"][0])
    runs = np.zeros(count // _CHUNKS_PER_RUN if skip_periods and recurrence.is_uniform_ring else 0, RUN)
    simulated = fire(
        lines,
        recurrence.durations,
        placement.dependencies,
        recurrence.order,
        gate_s,
        recurrence.shares,
        times,
        snapshot,
        np.zeros(len(times.spans)),
        runs,
        np.zeros_like(runs),
        firings,
        recurrence.size_period if skip_periods else 0,
    )
    if simulated < 0:
        return None
    complete = gate_s.copy()
    last = (firings - 1) % recurrence.slots
    np.maximum.at(complete, operations["source"], times.drained[last])
    np.maximum.at(complete, operations["target"], times.delivered[last])
    busy = np.zeros(len(recurrence.resources))
    own = placement.schedule.operation_bytes() * recurrence.s_per_byte
    hops = placement.hops
    busy[np.searchsorted(recurrence.resources, hops["resource"])] = own[hops["flow"]]
    busy[np.searchsorted(recurrence.resources, recurrence.shared)] = times.spans["busy"][ranks:]
    return Outcome(
        complete,
        np.array(times.spans["busy"][:ranks]),
        np.array(times.spans["end"][:ranks]),
        np.array(times.spans["pause_end"][:ranks]),
        busy,
        simulated,
    )


def _times(slots: int, count: int, spans: int) -> Times:
    """Return that nothing has fired yet."""
    none = np.zeros(spans, SPAN)
    none["end"] = none["pause_end"] = none["forgotten"] = -math.inf
    return Times(np.zeros((slots, count)), np.zeros((slots, count)), none, np.zeros((spans, GAPS), PAUSE))


def _is_shared(operations: Table, costs: Table) -> bool:
    """Tell whether two operations wait for one sender, receiver or turn, whose order depends on who comes first."""
    cost = costs[operations["cost"]]
    sends = (cost["send"] > 0) | (cost["send_per_byte"] * cost["pipeline_bytes"] > 0) | (operations["more_send"] > 0)
    receives = (cost["receive"] > 0) | (cost["receive_per_byte"] * cost["pipeline_bytes"] > 0)
    receives |= operations["more_receive"] > 0
    receives |= (cost["reduce_per_byte"] > 0) & (operations["reduce_firings"] > 0)
    takes_turns = operations["turn"] >= 0
    for shared, waits in (("server", sends), ("receive_server", receives), ("turn", takes_turns)):
        used = operations[shared][waits]
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
    lines = np.zeros(len(operations), LINE)
    for column in ("source", "target", "first_in", "longer", "reduce_firings"):
        lines[column] = operations[column]
    lines["last_in"] = operations["first_in"] + operations["ins"]
    lines["modulus"] = operations["chunk_modulus"]
    lines["step"] = operations["chunk_step"] % operations["chunk_modulus"]
    lines["turned"] = operations["chunk_first"] % operations["chunk_modulus"]
    lines["offset"], lines["width"] = operations["chunk_offset"], operations["chunk_width"]
    lines["each_setup"] = operations["each_setup"]
    return lines


def _is_uniform_ring(placement: Placement, lines: Table, durations: Table) -> bool:
    """Tell whether rank r sends chunk r - k to rank r + 1 in firing k, after rank r - 1 has, all alike."""
    operations, dependencies = placement.operations, placement.dependencies
    rows = np.arange(len(operations))
    if len(rows) < 2 or placement.schedule.ranks != len(rows) or (operations["ins"] != 1).any():
        return False
    mine = dependencies[operations["first_in"]]
    is_ring = (
        (operations["source"] == rows)
        & (operations["target"] == np.roll(rows, -1))
        & (mine["before"] == np.roll(rows, 1))
        & (mine["offset"] == 1)
        & mine["until_delivered"]
        & (mine["delay"] == 0.0)
    )
    turns = (lines["modulus"] == len(rows)) & (lines["step"] == len(rows) - 1) & (lines["turned"] == rows)
    turns &= (lines["offset"] == 0) & (lines["width"] == 1)
    alike = (lines["reduce_firings"] == lines["reduce_firings"][0]) & (lines["longer"] == lines["longer"][0])
    alike &= operations["each_setup"] == operations["each_setup"][0]
    return bool((is_ring & turns & alike & (durations == durations[0]).all(axis=1)).all())


def _durations(operations: Table, costs: Table, s_per_byte: NDArray[np.float64]) -> Table:
    most = int(np.where(operations["longer"] > 0, operations["chunk_width"], 0).max())
    durations = np.zeros((len(operations), most + 1), DURATION)
    cost = costs[operations["cost"]]
    for carried in range(most + 1):
        size = operations["chunk_bytes"] + carried * operations["element_bytes"]
        paying = np.minimum(size, cost["pipeline_bytes"])
        one = durations[:, carried]
        one["lead"] = cost["send"] + cost["send_per_byte"] * paying + operations["more_send"]
        one["flow"] = size * s_per_byte
        one["way"] = operations["latency"] + operations["forward_per_byte"] * np.minimum(size, cost["packet_bytes"])
        one["receive"] = cost["receive"] + cost["receive_per_byte"] * paying + operations["more_receive"]
        one["reduce"] = cost["reduce_per_byte"] * size
    return durations
