"""The schedule: who sends what to whom, as a timed marked graph.

An *operation* is a send, or a calculation of one rank, or what it takes of the memory of its host. It fires `repeat`
times, one firing at a time. A *dependency* ``before -> after, offset m`` lets firing ``k`` of `after` start only when
firing ``min(k - m, repeat_before - 1)`` of `before` is over; where ``k - m < 0`` it does not wait. So a ring all-reduce
on N ranks is N sends and N dependencies, although 2 N (N - 1) messages travel.

The data moved is one buffer, cut by a `Partition` into chunks of whole elements. Firing ``k`` of a send carries
`chunk_width` adjacent chunks from ``chunk_offset + (chunk_first + k * chunk_step) mod chunk_modulus`` on.

What a send does to data. It reads the chunks at the source from its start until it has drained, and nothing may change
them meanwhile, as with any send that does not wait. What it brought is added to the chunks of the target, or replaces
them, when it is delivered; or, where it names a calculation of the target in `merged_by`, when that one is over. The
latter is a receive buffer: the two sides of an exchange need one, because a message may arrive before the own one has
left. `simnet.traffic.check` proves of a schedule that this does what it is for, whatever the timing.

Theory: F. Baccelli et al., *Synchronization and Linearity* (1992), chapter 2 (timed event graphs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simnet.traffic.lattice import firings_below

__all__ = [
    "Dependencies",
    "Integers",
    "Kind",
    "Operations",
    "Partition",
    "Schedule",
    "Turns",
    "Until",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Kind(IntEnum):
    """What an operation is.

    Attributes
    ----------
    SEND
        From rank to rank.
    CALC
        A calculation of one rank.
    MEMORY
        What is read and written in the memory of a rank's host.
    """

    SEND = 0
    CALC = 1
    MEMORY = 2


class Until(IntEnum):
    """Which moment of a firing a dependency waits for; what is no send has only one, its end.

    Attributes
    ----------
    DRAINED
        The last byte has left; the end of what is no send.
    DELIVERED
        The receiver has it; the end of what is no send.
    """

    DRAINED = 0
    DELIVERED = 1


class Turns(IntEnum):
    """Which messages go one after the other as they become ready, behind those of an owner's other schedules.

    Attributes
    ----------
    NONE
        None: each has a connection of its own.
    NODES
        Those from one node to another: all that goes from one to the other shares one connection.
    HOSTS
        Those from all nodes of one host to those of another, which one process sends; inside of a host as `NODES`.
    """

    NONE = 0
    NODES = 1
    HOSTS = 2


@dataclass(frozen=True)
class Partition:
    """A buffer of equal elements, cut into chunks whose sizes differ by at most one element.

    Parameters
    ----------
    elements : int
        Number of elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    chunks : int
        Number of chunks; the first ``elements mod chunks`` of them hold one element more.
    divisible : bool
        Cut into exactly equal parts instead, as closed forms assume; chunks may then hold fractions of an element.

    Raises
    ------
    ValueError
        Negative elements, or no chunk, or elements without size; numbers that are none, or not finite.
    """

    elements: int
    element_bytes: float
    chunks: int = 1
    divisible: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.elements < math.inf and 0 < self.element_bytes < math.inf and self.chunks >= 1):
            raise ValueError(f"a partition needs elements >= 0, element_bytes > 0 and chunks >= 1: {self}")

    @property
    def total_bytes(self) -> float:
        """Size of the whole buffer [bytes]."""
        return self.elements * self.element_bytes

    @property
    def longer_chunks(self) -> int:
        """How many chunks, from the first, hold one element more than the others."""
        return 0 if self.divisible else self.elements % self.chunks

    @property
    def chunk_bytes(self) -> float:
        """Size of the chunks that are not longer [bytes]."""
        if self.divisible:
            return self.total_bytes / self.chunks
        return self.elements // self.chunks * self.element_bytes

    def range_bytes(self, first: ArrayLike, width: ArrayLike) -> Floats:
        """Return the size of adjacent chunks [bytes]; arrays broadcast.

        Parameters
        ----------
        first, width : array_like of int
            The first of them, and how many.
        """
        first, width = np.asarray(first), np.asarray(width)
        longer = np.clip(self.longer_chunks - first, 0, width)
        return np.asarray(width * self.chunk_bytes + longer * self.element_bytes, dtype=np.float64)


# Records of arrays are compared by identity: `==` of two arrays is an array, not an answer.
@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of a schedule, one array element each.

    Attributes
    ----------
    kind : `Kind`
    source, target : rank that sends and rank that receives; for all else both are the rank that does it
    stream : calculations of one rank on one stream exclude each other; -1 excludes nothing
    repeat : how often it fires
    seconds : length of a calculation [s]
    fixed_bytes : size of each firing of a send that carries no chunks (``chunk_width`` 0), and what each firing of a
        `Kind.MEMORY` reads and writes [bytes]
    chunk_offset, chunk_first, chunk_step, chunk_modulus, chunk_width : which chunks a firing carries
    reduce_firings : the first so many firings are added to what the target holds; the others replace it
    merged_by : the calculation of the target whose end does that: firing k of the send waits in a buffer of its own for
        the end of firing ``min(k, repeat - 1)`` of the calculation; -1 where delivery does it
    """

    kind: NDArray[np.int8]
    source: Integers
    target: Integers
    stream: Integers
    repeat: Integers
    seconds: Floats
    fixed_bytes: Floats
    chunk_offset: Integers
    chunk_first: Integers
    chunk_step: Integers
    chunk_modulus: Integers
    chunk_width: Integers
    reduce_firings: Integers
    merged_by: Integers

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, eq=False)
class Dependencies:
    """The dependencies of a schedule, one array element each.

    Attributes
    ----------
    before, after : operation indices
    offset : firing k of `after` waits for firing k - offset of `before`
    until : `Until`
    delay_s : further time until the dependency counts as met, for example the return of a credit [s]
    """

    before: Integers
    after: Integers
    offset: Integers
    until: NDArray[np.int8]
    delay_s: Floats

    def __len__(self) -> int:
        return len(self.before)


@dataclass(frozen=True, eq=False)
class Schedule:
    """A timed marked graph over ``ranks`` ranks that moves the chunks of one buffer.

    Parameters
    ----------
    name : str
        What it is, for messages and tables.
    ranks : int
        Ranks are 0 .. ranks - 1.
    partition : Partition
        The buffer and its chunks.
    operations : Operations
    dependencies : Dependencies
    joint : bool
        Whether no rank can be complete before all have joined, as in an all-reduce.
    turns : `Turns`
        Which of its messages go one after the other.

    References
    ----------
    A timed event graph: F. Baccelli et al., *Synchronization and Linearity*, 1992, chapter 2.
    """

    name: str
    ranks: int
    partition: Partition
    operations: Operations
    dependencies: Dependencies
    joint: bool = False
    turns: Turns = Turns.NONE

    def chunk(self, operation: int, firing: int) -> int:
        """Return the first chunk that a firing of a send carries.

        Parameters
        ----------
        operation, firing : int
            Counted from 0.
        """
        ops = self.operations
        turned = (int(ops.chunk_first[operation]) + firing * int(ops.chunk_step[operation])) % int(
            ops.chunk_modulus[operation]
        )
        return int(ops.chunk_offset[operation]) + turned

    def firing_bytes(self, operation: int, firing: int) -> float:
        """Return the size of one firing of a send [bytes].

        Parameters
        ----------
        operation, firing : int
            Counted from 0.
        """
        width = int(self.operations.chunk_width[operation])
        if width == 0:
            return float(self.operations.fixed_bytes[operation])
        return float(self.partition.range_bytes(self.chunk(operation, firing), width))

    def operation_bytes(self) -> Floats:
        """Return the bytes that each operation sends in all its firings, shape (operations,) [bytes]."""
        return np.where(self.operations.kind == Kind.SEND, self.flow_bytes(), 0.0)

    def flow_bytes(self) -> Floats:
        """Return the bytes that each operation sends, or takes of memory, in all its firings, shape (operations,)."""
        ops = self.operations
        width, repeat = ops.chunk_width, ops.repeat
        total = np.where(width == 0, ops.fixed_bytes, width * self.partition.chunk_bytes) * repeat
        longer = self.partition.longer_chunks
        if longer:
            total = total + self.partition.element_bytes * _longer_chunks_carried(ops, longer)
        return np.asarray(total, dtype=np.float64)

    def bytes_sent(self) -> Floats:
        """Return what each rank sends, shape (ranks,) [bytes]."""
        sent = np.bincount(self.operations.source, weights=self.operation_bytes(), minlength=self.ranks)
        return np.asarray(sent, dtype=np.float64)

    def messages(self) -> int:
        """Return the number of messages, which is the number of firings of all sends."""
        return self._messages

    @cached_property
    def _messages(self) -> int:
        # Asked for each time that it is played.
        ops = self.operations
        return int(ops.repeat[ops.kind == Kind.SEND].sum())

    @cached_property
    def all_bytes(self) -> float:
        """What all operations send together, or take of memory, in all their firings [bytes]."""
        return float(self.flow_bytes().sum())


def _longer_chunks_carried(ops: Operations, longer: int) -> Integers:
    """Count, for each operation, the chunks with one element more among those that all its firings carry."""
    offset, first, step, modulus = ops.chunk_offset, ops.chunk_first, ops.chunk_step, ops.chunk_modulus
    counts = np.zeros(len(ops), dtype=np.int64)
    one_place = (ops.chunk_width > 0) & ((step % modulus == 0) | (ops.repeat == 1))
    chunk = offset + first % modulus
    counts[one_place] = (np.clip(longer - chunk, 0, ops.chunk_width) * ops.repeat)[one_place]
    moving, width = (ops.chunk_width > 0) & ~one_place, np.maximum(ops.chunk_width, 1)
    in_blocks = moving & (first % width == 0) & (step % width == 0) & (modulus % width == 0)
    # Of blocks of as many chunks as a firing carries, some consist of longer ones, and one may begin with some.
    some = np.flatnonzero(in_blocks)
    w = width[some]
    whole, begun = np.divmod(np.clip(longer - offset[some], 0, modulus[some]), w)
    turns = (ops.repeat[some], first[some] // w, step[some] // w, modulus[some] // w)
    below = firings_below(*turns, whole)
    counts[some] = below * w + begun * (firings_below(*turns, np.minimum(whole + 1, turns[-1])) - below)
    # The i-th chunk that a firing carries is a longer one while its place is below `longer - offset - i`.
    moving = np.flatnonzero(moving & ~in_blocks)
    for place in range(int(ops.chunk_width[moving].max(initial=0))):
        some = moving[ops.chunk_width[moving] > place]
        threshold = np.clip(longer - offset[some] - place, 0, modulus[some])
        counts[some] += firings_below(ops.repeat[some], first[some], step[some], modulus[some], threshold)
    return counts
