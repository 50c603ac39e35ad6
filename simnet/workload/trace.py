"""A recorded trace: when each layer of each worker computed, replayed as recorded.

One iteration of one rank lasts from the start of its first row to the end of its last; gaps between rows belong to it,
time between iterations does not. It is replayed as three spans that follow each other: the forward pass, up to the end
of the last forward row; the backward pass, up to the end of the last backward row, in which a gradient is ready when
the row of its layer ends; and the rest, which follows once the gradients are exchanged. Their sum is the recorded time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from simnet.workload.model import Floats, Integers, Model
from simnet.writing import write_whole

__all__ = ["PHASES", "TRACE_COLUMNS", "RecordedTrace", "TraceRow", "TraceStep", "trace_text", "write_trace"]

PHASES = ("forward", "backward", "optimizer", "other")
"""What a worker does; ``other`` is input, zeroing gradients and anything else that belongs to no layer."""

TRACE_COLUMNS = ("iteration", "rank", "layer", "phase", "start_s", "duration_s")
"""Columns of a trace file; ``parameters`` may follow."""


@dataclass(frozen=True)
class TraceRow:
    """One stretch of computing.

    Parameters
    ----------
    iteration, rank : int
    layer : str
    phase : str
        One of `PHASES`.
    start_s, duration_s : float
        [s]
    parameters : int or None
        Of the layer, where known.
    """

    iteration: int
    rank: int
    layer: str
    phase: str
    start_s: float
    duration_s: float
    parameters: int | None = None

    @property
    def end_s(self) -> float:
        """When it is over [s]."""
        return self.start_s + self.duration_s


@dataclass(frozen=True, eq=False)
class TraceStep:
    """One iteration of one rank.

    Parameters
    ----------
    total_s : float
        The whole iteration [s].
    forward_s, backward_s, optimizer_s : float
        Its three spans; the last is all that follows the backward pass [s].
    tensor_ready_s : ndarray of float, shape (tensors,)
        When each gradient is ready, after the start of the iteration; never decreasing [s].
    """

    total_s: float
    forward_s: float
    backward_s: float
    optimizer_s: float
    tensor_ready_s: Floats


@dataclass(frozen=True, eq=False)
class RecordedTrace:
    """A recording of a training, for each iteration and rank.

    Parameters
    ----------
    model : Model
        Its layers are those of the recording, in the order of the first forward pass; its gradients are in the order in
        which they became ready in iteration 0 of rank 0.
    gpu, precision : str
    batch_size : int
    forward_end_s : ndarray of float, shape (iterations, ranks, layers)
        When the forward pass of each layer was over, after the start of the iteration [s].
    backward_end_s : ndarray of float, shape (iterations, ranks, layers)
        When its backward pass was, likewise; the start of the backward pass for layers without one [s].
    forward_time_s, backward_time_s, optimizer_time_s : ndarray of float, shape (iterations, ranks)
        The three spans of an iteration [s].
    source : str
    """

    model: Model
    gpu: str
    precision: str
    batch_size: int
    forward_end_s: Floats
    backward_end_s: Floats
    forward_time_s: Floats
    backward_time_s: Floats
    optimizer_time_s: Floats
    source: str

    @property
    def iterations(self) -> int:
        """Number of recorded iterations."""
        return int(self.forward_time_s.shape[0])

    @property
    def ranks(self) -> int:
        """Number of recorded ranks."""
        return int(self.forward_time_s.shape[1])

    @property
    def tensor_elements(self) -> Integers:
        """Elements of each gradient in order of readiness, shape (tensors,)."""
        return self.model.tensor_elements

    @cached_property
    def iteration_time_s(self) -> Floats:
        """Recorded time of each iteration, shape (iterations, ranks) [s]."""
        return self.forward_time_s + self.backward_time_s + self.optimizer_time_s

    @cached_property
    def forward_s(self) -> Floats:
        """Time between the ends of consecutive layers in the forward pass, shape (iterations, ranks, layers) [s]."""
        return _differences(self.forward_end_s, np.zeros_like(self.forward_time_s))

    @cached_property
    def backward_s(self) -> Floats:
        """Time between the ends of consecutive layers in the backward pass, shape (iterations, ranks, layers) [s]."""
        return _differences(self.backward_end_s, self.forward_time_s)

    def step(self, iteration: int, rank: int) -> TraceStep:
        """Return one recorded iteration of one rank.

        Parameters
        ----------
        iteration, rank : int
            Counted from 0.
        """
        ends = self.backward_end_s[iteration, rank]
        return TraceStep(
            float(self.iteration_time_s[iteration, rank]),
            float(self.forward_time_s[iteration, rank]),
            float(self.backward_time_s[iteration, rank]),
            float(self.optimizer_time_s[iteration, rank]),
            np.maximum.accumulate(ends[self.model.tensor_layers]),
        )


def write_trace(path: str | Path, rows: Iterable[TraceRow]) -> None:
    """Write a trace that `load_trace` reads; times are written so that they are read back unchanged.

    Parameters
    ----------
    path : str or Path
        CSV file.
    rows : iterable of TraceRow
    """
    with write_whole(Path(path)) as made:
        made.write_text(trace_text(rows), encoding="utf-8", newline="\n")


def trace_text(rows: Iterable[TraceRow]) -> str:
    """Return a trace as `write_trace` writes it."""
    rows = tuple(rows)
    known = any(row.parameters is not None for row in rows)
    lines = [",".join([*TRACE_COLUMNS, *(["parameters"] if known else [])])]
    for row in rows:
        layer = f'"{row.layer.replace(chr(34), chr(34) * 2)}"' if set(row.layer) & set(',"') else row.layer
        cells = [row.iteration, row.rank, layer, row.phase, repr(row.start_s), repr(row.duration_s)]
        if known:
            cells.append("" if row.parameters is None else row.parameters)
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def _differences(ends: Floats, start: Floats) -> Floats:
    """Return the time from the end before to each end, in order of the ends, which may differ from that of layers."""
    order = np.argsort(ends, axis=-1, kind="stable")
    ordered = np.take_along_axis(ends, order, axis=-1)
    result = np.empty_like(ends)
    np.put_along_axis(result, order, np.diff(ordered, axis=-1, prepend=start[..., np.newaxis]), axis=-1)
    return result
