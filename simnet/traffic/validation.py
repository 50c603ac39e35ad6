"""Refuses schedules that do not make sense on their own, before anything plays them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InputError, Problem
from simnet.traffic.schedule import Integers, Kind, Operations, Schedule, Until

__all__ = ["describe_operation", "validate_schedule"]

_SHOWN = 5
"""So many operations or dependencies are named for one kind of mistake."""


def validate_schedule(schedule: Schedule) -> None:
    """Refuse a schedule that is malformed: everything that is wrong with it, at once.

    Columns of different lengths; ranks, operations and chunks that do not exist; repeats below one; sizes and times
    that are negative or no numbers.
    Whether its firings wait for each other in a circle is another question: `simnet.traffic.deadlock`.

    Parameters
    ----------
    schedule : Schedule

    Raises
    ------
    InputError
        Everything that is wrong, by operation or dependency.
    """
    problems = [*_length_problems(schedule)] or [*_operation_problems(schedule)]
    if not problems:
        problems = [*_dependency_problems(schedule), *_merge_problems(schedule)]
    if problems:
        raise InputError(problems)


def describe_operation(schedule: Schedule, operation: int) -> str:
    """Name an operation as a person would: ``send 0 -> 1 (operation 3)``.

    Parameters
    ----------
    schedule : Schedule
    operation : int
        Counted from 0.

    Returns
    -------
    str
    """
    ops = schedule.operations
    if ops.kind[operation] == Kind.SEND:
        return f"send {ops.source[operation]} -> {ops.target[operation]} (operation {operation})"
    what = "memory" if ops.kind[operation] == Kind.MEMORY else "calculation"
    return f"{what} on rank {ops.source[operation]} (operation {operation})"


def _length_problems(schedule: Schedule) -> Iterator[Problem]:
    for table, rows in (("operations", schedule.operations), ("dependencies", schedule.dependencies)):
        lengths = {field.name: np.shape(getattr(rows, field.name)) for field in fields(rows)}
        first, *others = lengths
        for column in others:
            if lengths[column] != lengths[first]:
                message = f"{table} have {column} of shape {lengths[column]}, and {first} of {lengths[first]}"
                yield Problem(message, "each has one of each", (table, column), schedule.name)


def _operation_problems(schedule: Schedule) -> Iterator[Problem]:
    ops, ranks = schedule.operations, schedule.ranks
    if ranks < 1:
        yield Problem(f"{schedule.name} has {ranks} ranks", "at least one is needed", source=schedule.name)
    send = ops.kind == Kind.SEND
    known = send | (ops.kind == Kind.CALC) | (ops.kind == Kind.MEMORY)
    carries = send & (ops.chunk_width > 0)

    def each(column: str, wrong: NDArray[np.bool_], hint: str) -> Iterator[Problem]:
        return _each(schedule, "operation", "operations", column, wrong, getattr(ops, column), hint)

    yield from each("kind", ~known, "an operation is a send (0), a calculation (1) or what is taken of memory (2)")
    for column, rank in (("source", ops.source), ("target", ops.target)):
        yield from each(column, (rank < 0) | (rank >= ranks), f"ranks are 0 .. {ranks - 1}")
    yield from each("target", ~send & (ops.source != ops.target), "all but a send has one rank, as source and target")
    yield from each("repeat", ops.repeat < 1, "an operation fires at least once")
    yield from each("seconds", ~send & ~_is_amount(ops.seconds), "a time is a finite number, 0 or more")
    yield from each("fixed_bytes", ~_is_amount(ops.fixed_bytes), "a size is a finite number, 0 or more")
    yield from each("chunk_width", send & (ops.chunk_width < 0), "a send carries 0 chunks or more")
    yield from each("chunk_modulus", carries & (ops.chunk_modulus < 1), "it is at least 1")
    if not (carries & (ops.chunk_modulus < 1)).any():
        chunks = schedule.partition.chunks
        wrong = carries & _leaves_buffer(ops, carries, chunks)
        yield from each("chunk_offset", wrong, f"a firing carries chunks out of 0 .. {chunks - 1}")
    wrong = send & ((ops.reduce_firings < 0) | (ops.reduce_firings > ops.repeat))
    yield from each("reduce_firings", wrong, "it is at least 0 and at most the repeat")


def _leaves_buffer(ops: Operations, carries: NDArray[np.bool_], chunks: int) -> NDArray[np.bool_]:
    """Return which sends carry, in any firing, a chunk that does not exist."""
    modulus = np.maximum(ops.chunk_modulus, 1)
    # All the places that the step ever leads to: `first mod gcd`, and every gcd on from there.
    stride = np.gcd(ops.chunk_step, modulus)
    highest = ops.chunk_offset + ops.chunk_first % stride + modulus - stride + ops.chunk_width - 1
    wrong = carries & ((ops.chunk_offset < 0) | (highest >= chunks))
    # The repeat may end before it gets to the highest of them.
    for operation in np.flatnonzero(wrong & (ops.chunk_offset >= 0) & (ops.repeat < modulus // stride)):
        turn = np.arange(ops.repeat[operation])
        place = (ops.chunk_first[operation] + turn * ops.chunk_step[operation]) % modulus[operation]
        wrong[operation] = ops.chunk_offset[operation] + place.max() + ops.chunk_width[operation] > chunks
    return wrong


def _dependency_problems(schedule: Schedule) -> Iterator[Problem]:
    deps, count = schedule.dependencies, len(schedule.operations)

    def each(column: str, wrong: NDArray[np.bool_], hint: str) -> Iterator[Problem]:
        return _each(schedule, "dependency", "dependencies", column, wrong, getattr(deps, column), hint)

    for column, index in (("before", deps.before), ("after", deps.after)):
        yield from each(column, (index < 0) | (index >= count), f"operations are 0 .. {count - 1}")
    known = (deps.until == Until.DRAINED) | (deps.until == Until.DELIVERED)
    yield from each("until", ~known, "a dependency waits until drained (0) or delivered (1)")
    yield from each("delay_s", ~_is_amount(deps.delay_s), "a delay is a finite number, 0 or more")


def _merge_problems(schedule: Schedule) -> Iterator[Problem]:
    ops = schedule.operations
    named = ops.merged_by != -1
    exists = named & (ops.merged_by >= 0) & (ops.merged_by < len(ops))
    by = np.where(exists, ops.merged_by, 0)
    fits = np.zeros(len(ops), dtype=np.bool_)
    fits[exists] = ((ops.kind[by] == Kind.CALC) & (ops.source[by] == ops.target) & (ops.kind == Kind.SEND))[exists]
    hint = "it is a calculation of the rank that the send goes to, or -1"
    yield from _each(schedule, "operation", "operations", "merged_by", named & ~fits, ops.merged_by, hint)


def _is_amount(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.isfinite(values) & (values >= 0)


def _each(
    schedule: Schedule,
    what: str,
    table: str,
    column: str,
    wrong: NDArray[np.bool_],
    values: Integers | NDArray[np.float64] | NDArray[np.int8],
    hint: str,
) -> Iterator[Problem]:
    """Report the rows of a column that are wrong; the first few by name."""
    rows = np.flatnonzero(wrong)
    for row in rows[:_SHOWN].tolist():
        yield Problem(f"{what} {row}: {column} {values[row]}", hint, (table, row, column), schedule.name)
    if len(rows) > _SHOWN:
        yield Problem(f"{column} is wrong in {len(rows) - _SHOWN} more", path=(table,), source=schedule.name)
