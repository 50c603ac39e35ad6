"""Building a schedule: sends, calculations and dependencies, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simnet.traffic.schedule import Dependencies, Integers, Kind, Operations, Partition, Schedule, Turns, Until

__all__ = ["ScheduleBuilder"]


class ScheduleBuilder:
    """Collects operations and dependencies; every argument may be an array, and arrays broadcast.

    Parameters
    ----------
    name : str
    ranks : int
    partition : Partition

    Examples
    --------
    >>> build = ScheduleBuilder("ping-pong", 2, Partition(elements=1, element_bytes=4))
    >>> ping = build.send(0, 1)
    >>> pong = build.send(1, 0)
    >>> build.depend(ping, pong)
    >>> build.schedule().messages()
    2
    """

    def __init__(self, name: str, ranks: int, partition: Partition) -> None:
        self.name = name
        self.ranks = ranks
        self.partition = partition
        self._operations: list[tuple[NDArray[Any], ...]] = []
        self._dependencies: list[tuple[NDArray[Any], ...]] = []
        self._count = 0

    def send(
        self,
        source: ArrayLike,
        target: ArrayLike,
        *,
        repeat: ArrayLike = 1,
        chunk: ArrayLike = 0,
        step: ArrayLike = 0,
        modulus: ArrayLike = 0,
        width: ArrayLike = 1,
        offset: ArrayLike = 0,
        reduce: ArrayLike = 0,
        fixed_bytes: ArrayLike = 0.0,
        merged_by: ArrayLike = -1,
    ) -> Integers:
        """Add sends and return their indices.

        Parameters
        ----------
        source, target : array_like of int
            Ranks.
        repeat : array_like of int
            Number of firings.
        chunk, step, modulus, offset, width : array_like of int
            Firing k carries `width` chunks from ``offset + (chunk + k step) mod modulus`` on; modulus 0 means the
            number of chunks of the partition; width 0 means `fixed_bytes` instead of chunks.
        reduce : array_like of int
            The first so many firings are added at the target, the others replace what it holds.
        fixed_bytes : array_like of float
            Size of each firing where `width` is 0 [bytes].
        merged_by : array_like of int
            Index of the calculation of the target that adds or replaces; -1 where delivery does.
        """
        modulus = np.where(np.asarray(modulus) == 0, self.partition.chunks, modulus)
        chunks = (offset, chunk, step, modulus, width)
        return self._add(Kind.SEND, source, target, -1, repeat, 0.0, fixed_bytes, *chunks, reduce, merged_by)

    def calc(
        self, rank: ArrayLike, seconds: ArrayLike = 0.0, *, stream: ArrayLike = -1, repeat: ArrayLike = 1
    ) -> Integers:
        """Add calculations and return their indices; one of 0 s on no stream joins dependencies.

        Parameters
        ----------
        rank : array_like of int
        seconds : array_like of float
            Length of each firing [s].
        stream, repeat : array_like of int
            As of `Operations`.
        """
        return self._add(Kind.CALC, rank, rank, stream, repeat, seconds, 0.0, 0, 0, 0, 1, 0, 0, -1)

    def memory(self, rank: ArrayLike, size_bytes: ArrayLike, *, repeat: ArrayLike = 1) -> Integers:
        """Add reading and writing of a host's memory and return the indices.

        All that takes memory bandwidth of a host at once, copies of its protocol stack included, shares it. Where the
        topology does not say what a host's memory can do it takes no time.

        Parameters
        ----------
        rank : array_like of int
        size_bytes : array_like of float
            What each firing reads and writes, together [bytes].
        repeat : array_like of int
            Number of firings.
        """
        return self._add(Kind.MEMORY, rank, rank, -1, repeat, 0.0, size_bytes, 0, 0, 0, 1, 0, 0, -1)

    def depend(
        self,
        before: ArrayLike,
        after: ArrayLike,
        *,
        offset: ArrayLike = 0,
        until: ArrayLike = Until.DELIVERED,
        delay_s: ArrayLike = 0.0,
    ) -> None:
        """Let firing k of `after` wait for firing ``k - offset`` of `before`.

        Parameters
        ----------
        before, after : array_like of int
            Indices of operations.
        offset : array_like of int
            Of any sign. Firings below it do not wait; none waits for more than the last firing of `before`.
        until : array_like of int
            One of `Until`.
        delay_s : array_like of float
            How much longer it waits [s].
        """
        self._dependencies.append(_aligned((before, after, offset, until, delay_s)))

    def schedule(self, *, joint: bool = False, turns: Turns = Turns.NONE) -> Schedule:
        """Return what was collected.

        Parameters
        ----------
        joint : bool
        turns : `Turns`
            As of `Schedule`.
        """
        types = (np.int8, *[np.int64] * 4, np.float64, np.float64, *[np.int64] * 7)
        operations = Operations(*_columns(self._operations, types))
        dependencies = Dependencies(*_columns(self._dependencies, (np.int64, np.int64, np.int64, np.int8, np.float64)))
        return Schedule(self.name, self.ranks, self.partition, operations, dependencies, joint, turns)

    def _add(self, *columns: ArrayLike) -> Integers:
        arrays = _aligned(columns)
        self._operations.append(arrays)
        first, self._count = self._count, self._count + len(arrays[0])
        return np.arange(first, self._count)


def _aligned(columns: Sequence[ArrayLike]) -> tuple[NDArray[Any], ...]:
    """Return arrays of one length each, as `numpy.broadcast_arrays` would; most are numbers, for which it is slow."""
    arrays = [np.asarray(column) for column in columns]
    whole = np.broadcast(*arrays)
    return tuple(
        array.ravel()
        if array.shape == whole.shape
        else np.full(whole.size, array.reshape(()))
        if array.size == 1
        else np.broadcast_to(array, whole.shape).ravel()
        for array in arrays
    )


def _columns(rows: list[tuple[NDArray[Any], ...]], types: tuple[Any, ...]) -> list[Any]:
    """Join the pieces of each column and give it its type."""
    if not rows:
        return [np.empty(0, dtype=kind) for kind in types]
    return [np.concatenate(pieces).astype(kind) for pieces, kind in zip(zip(*rows, strict=True), types, strict=True)]
