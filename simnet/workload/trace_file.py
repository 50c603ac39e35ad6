"""Reading recorded traces: rows of ``iteration, rank, layer, phase, start_s, duration_s`` and perhaps ``parameters``.

Starts count from an origin of each rank, before its first row. Iterations follow each other, ranks count from 0, and
every rank has every iteration with the same layers. A worker computes one row at a time, forward, then backward, then
optimizer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from simnet.errors import InputError, Problem, nearest
from simnet.workload.build import setting_problems
from simnet.workload.csv_table import (
    COUNT_WANTED,
    LARGEST,
    Table,
    parse_count,
    parse_number,
    problem_order,
    read_table,
    shown,
    table_from_text,
)
from simnet.workload.model import GradientTensor, Layer, Model
from simnet.workload.tables import load_model, model_problems
from simnet.workload.trace import PHASES, TRACE_COLUMNS, RecordedTrace, TraceRow, trace_text

__all__ = ["load_trace", "trace_problems"]

_TOLERANCE_S = 1e-9
_SHOWN = 3  # names in one message


def load_trace(
    path: str | Path,
    *,
    batch_size: int,
    model: str | None = None,
    sequence_length: int | None = None,
    gpu: str | None = None,
    precision: str = "fp32",
) -> RecordedTrace:
    """Read a recorded trace.

    Parameters
    ----------
    path : str or Path
        CSV file; `TraceRow` says what its columns are.
    batch_size : int
        Samples per worker and iteration in the recording.
    model : str, optional
        Shipped model whose gradients belong to it; each has to lie in a layer of the recording of the same name, or in
        one that is the beginning of its name (``layer1`` for ``layer1.0.conv1``). Without it, the column
        ``parameters`` is wanted.
    sequence_length : int, optional
    gpu, precision : str, optional
        For the result tables.

    Returns
    -------
    RecordedTrace

    Raises
    ------
    InputError
        With everything that is wrong, by line and column.
    """
    problems = setting_problems(batch_size, precision, None)
    if model is not None:
        problems += model_problems(model, sequence_length)
    of_file: list[Problem] = []
    try:
        recording = _recording(read_table(Path(path), TRACE_COLUMNS, ("parameters",), of_file), of_file)
    except InputError as error:
        of_file = list(error.problems)
    problems += of_file
    if problems:
        raise InputError(sorted(problems, key=problem_order))
    network = None if model is None else load_model(model, sequence_length)
    return recording.trace(network, gpu or "", precision, batch_size)


def trace_problems(rows: Iterable[TraceRow], source: str) -> list[Problem]:
    """Return what would keep rows, once they are written, from being replayed.

    Parameters
    ----------
    rows : iterable of TraceRow
    source : str
        What messages call them.
    """
    problems: list[Problem] = []
    _recording(table_from_text(trace_text(rows), source, TRACE_COLUMNS, ("parameters",), problems), problems)
    return problems


def _recording(table: Table, problems: list[Problem]) -> _Recording:
    """Return what a table holds; add what is wrong, with the recording as a whole only where every row is right."""
    rows = _rows(table, problems)
    if not rows and not problems:
        problems.append(Problem("there are no rows below the header", source=table.path))
    recording = _Recording(table, [] if problems else rows)
    if not problems:
        problems += recording.problems()
    return recording


def _rows(table: Table, problems: list[Problem]) -> list[TraceRow]:
    """Read the cells; add what is wrong."""
    rows = []
    for index, row in enumerate(table):
        before = len(problems)
        counts = {name: parse_count(row[name]) for name in ("iteration", "rank")}
        times = {name: parse_number(row[name]) for name in ("start_s", "duration_s")}
        for name, value in counts.items():
            if value is None:
                problems.append(table.problem(index, name, f"{name} is {shown(row[name])}", COUNT_WANTED))
        for name, time in times.items():
            if time is None:
                message, hint = f"{name} is {shown(row[name])}", f"seconds from 0 to {LARGEST:g} are wanted"
                problems.append(table.problem(index, name, message, hint))
        if row["phase"] not in PHASES:
            message = f"unknown phase {shown(row['phase'])}"
            problems.append(table.problem(index, "phase", message, nearest(row["phase"], PHASES)))
        elif not row["layer"] and row["phase"] in ("forward", "backward"):
            problems.append(table.problem(index, "layer", f"a {row['phase']} row without a layer"))
        parameters = None
        if row.get("parameters"):
            parameters = parse_count(row["parameters"])
            if parameters is None:
                message = f"parameters is {shown(row['parameters'])}"
                problems.append(table.problem(index, "parameters", message, COUNT_WANTED))
        if len(problems) == before:
            iteration, rank = (value or 0 for value in counts.values())
            start_s, duration_s = (time or 0.0 for time in times.values())
            rows.append(TraceRow(iteration, rank, row["layer"], row["phase"], start_s, duration_s, parameters))
    return rows


class _Recording:
    """The rows of a trace, by iteration and rank, in order of their start."""

    def __init__(self, table: Table, rows: Sequence[TraceRow]) -> None:
        self.table = table
        self.rows = rows
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, row in enumerate(rows):
            groups[row.iteration, row.rank].append(index)
        for indices in groups.values():
            indices.sort(key=lambda index: (rows[index].start_s, rows[index].end_s))
        self.groups: Mapping[tuple[int, int], list[int]] = groups
        self.first_iteration = min((iteration for iteration, _ in groups), default=0)
        self.iterations = 1 + max((iteration for iteration, _ in groups), default=0) - self.first_iteration
        self.ranks = 1 + max((rank for _, rank in groups), default=0)

    def problems(self) -> list[Problem]:
        """Return everything that keeps the recording from being replayed."""
        found = self._missing_groups()
        for key in sorted(self.groups):
            found += self._order_problems(key)
        return found or [*self._layer_problems(), *self._parameter_problems()]

    def _missing_groups(self) -> list[Problem]:
        count = self.iterations * self.ranks - len(self.groups)
        if not count:
            return []
        missing = (
            f"({iteration}, {rank})"
            for iteration in range(self.first_iteration, self.first_iteration + self.iterations)
            for rank in range(self.ranks)
            if (iteration, rank) not in self.groups
        )
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        message = f"no rows for (iteration, rank) {', '.join(islice(missing, _SHOWN))}{more}"
        hint = "iterations follow each other, ranks count from 0, and every rank has every iteration"
        return [Problem(message, hint, source=self.table.path)]

    def _order_problems(self, key: tuple[int, int]) -> list[Problem]:
        """Return overlaps, phases in the wrong order and layers that compute twice in one iteration of one rank."""
        found = []
        indices = self.groups[key]
        for before, index in pairwise(indices):
            earlier, row = self.rows[before], self.rows[index]
            # Starts that are large numbers do not resolve a nanosecond.
            tolerance = max(_TOLERANCE_S, 4.0 * float(np.spacing(row.start_s)))
            if row.start_s < earlier.end_s - tolerance:
                message = (
                    f"{row.phase} of {row.layer!r} starts {earlier.end_s - row.start_s:.3g} s before "
                    f"{earlier.phase} of {earlier.layer!r} is over (line {self.table.lines[before].number})"
                )
                found.append(self.table.problem(index, "start_s", message, "a worker computes one row at a time"))
        latest = 0
        seen: dict[tuple[str, str], int] = {}
        for index in indices:
            row = self.rows[index]
            if row.phase == "other":
                continue
            if PHASES.index(row.phase) < latest:
                message = f"{row.phase} of {row.layer!r} comes after {PHASES[latest]} has begun"
                hint = "an iteration is forward, then backward, then optimizer"
                found.append(self.table.problem(index, "phase", message, hint))
            latest = max(latest, PHASES.index(row.phase))
            if row.phase != "optimizer" and (row.phase, row.layer) in seen:
                message = f"{row.phase} of {row.layer!r} stands twice in iteration {key[0]} of rank {key[1]}"
                hint = f"first on line {self.table.lines[seen[row.phase, row.layer]].number}; give each its own name"
                found.append(self.table.problem(index, "layer", message, hint))
            seen.setdefault((row.phase, row.layer), index)
        for phase in ("forward", "backward"):
            if not any(name == phase for name, _ in seen):
                message = f"iteration {key[0]} of rank {key[1]} has no {phase} rows"
                found.append(self.table.problem(indices[0], "phase", message))
        return found

    def _layer_problems(self) -> list[Problem]:
        """Return iterations whose layers are not those of the first."""
        found = []
        first = min(self.groups)
        expected = self._passes(first)
        for key in sorted(self.groups):
            passes = self._passes(key)
            for said, names in (("no", expected - passes), ("a", passes - expected)):
                if names:
                    listed = ", ".join(f"{phase} of {layer!r}" for phase, layer in sorted(names)[:_SHOWN])
                    message = f"iteration {key[0]} of rank {key[1]} has {said} {listed}"
                    hint = f"iteration {first[0]} of rank {first[1]} has {'it' if said == 'no' else 'none'}"
                    found.append(self.table.problem(self.groups[key][0], "iteration", message, hint))
        return found

    def _passes(self, key: tuple[int, int]) -> set[tuple[str, str]]:
        rows = (self.rows[index] for index in self.groups[key])
        return {(row.phase, row.layer) for row in rows if row.phase in ("forward", "backward")}

    def _parameter_problems(self) -> list[Problem]:
        found = []
        known: dict[str, tuple[int, int]] = {}
        for index, row in enumerate(self.rows):
            if row.parameters is None:
                continue
            count, line = known.setdefault(row.layer, (row.parameters, self.table.lines[index].number))
            if count != row.parameters:
                message = f"{row.layer!r} has {row.parameters} parameters here and {count} on line {line}"
                found.append(self.table.problem(index, "parameters", message))
        return found

    def trace(self, network: Model | None, gpu: str, precision: str, batch_size: int) -> RecordedTrace:
        """Return the recording as arrays."""
        first = [self.rows[index] for index in self.groups[min(self.groups)]]
        names = list(dict.fromkeys(row.layer for row in first if row.phase == "forward"))
        names += [row.layer for row in reversed(first) if row.phase == "backward" and row.layer not in names]
        place = {name: index for index, name in enumerate(names)}
        shape = (self.iterations, self.ranks)
        forward_end, backward_end = np.zeros((*shape, len(names))), np.zeros((*shape, len(names)))
        spans = np.zeros((3, *shape))
        for (iteration, rank), indices in self.groups.items():
            at = (iteration - self.first_iteration, rank)
            rows = [self.rows[index] for index in indices]
            # Rows may overlap by less than the tolerance: an end never lies before the end of the row before.
            ends = np.maximum.accumulate([row.end_s - rows[0].start_s for row in rows])
            last = {row.phase: end for row, end in zip(rows, ends, strict=True)}
            backward_end[at] = last["forward"]
            for row, end in zip(rows, ends, strict=True):
                if row.phase in ("forward", "backward"):
                    (forward_end if row.phase == "forward" else backward_end)[at][place[row.layer]] = end
            spans[:, at[0], at[1]] = np.diff([0.0, last["forward"], last["backward"], ends[-1]])
        parameters = {row.layer: row.parameters for row in self.rows if row.parameters}
        layers = tuple(Layer(name, parameters.get(name, 0)) for name in names)
        backward = {row.layer: row.end_s for row in first if row.phase == "backward"}
        tensors = (
            self._own_tensors(layers, backward) if network is None else self._model_tensors(network, place, backward)
        )
        name = Path(self.table.path).stem if network is None else network.name
        model = Model(name, layers, tensors, None if network is None else network.sequence_length)
        source = f"recorded: {self.table.path}"
        return RecordedTrace(
            model, gpu, precision, batch_size, forward_end, backward_end, spans[0], spans[1], spans[2], source
        )

    def _own_tensors(self, layers: Sequence[Layer], backward: Mapping[str, float]) -> tuple[GradientTensor, ...]:
        owners = [index for index, layer in enumerate(layers) if layer.parameters]
        if not owners:
            hint = "add a column 'parameters', or name the model that was recorded"
            raise InputError(
                Problem("the trace does not say how large its gradients are", hint, ("model",), self.table.path)
            )
        without = [layers[index].name for index in owners if layers[index].name not in backward]
        if without:
            raise InputError(
                Problem(f"layers with parameters, but no backward: {_listed(without)}", source=self.table.path)
            )
        owners.sort(key=lambda index: (backward[layers[index].name], -index))
        return tuple(GradientTensor(layers[index].name, layers[index].parameters, index) for index in owners)

    def _model_tensors(
        self, network: Model, place: Mapping[str, int], backward: Mapping[str, float]
    ) -> tuple[GradientTensor, ...]:
        found: list[GradientTensor] = []
        lost: dict[str, None] = {}
        for tensor in network.tensors:
            layer = network.layers[tensor.layer].name
            parts = layer.split(".")
            candidates = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
            owner = next((name for name in candidates if name in backward), None)
            if owner is None:
                lost[layer] = None
            else:
                found.append(GradientTensor(tensor.name, tensor.elements, place[owner], tensor.shape, tensor.dtype))
        if lost:
            hint = "layers are called as in the model, or as a part of it that holds them"
            message = f"no backward row for layers of {network.name}: {_listed(list(lost))}"
            raise InputError(Problem(message, hint, source=self.table.path))
        names = list(place)
        found.sort(key=lambda tensor: backward[names[tensor.layer]])
        return tuple(found)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
