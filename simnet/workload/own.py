"""An own workload: one row a layer, from a CSV file or from rows of a YAML file.

``layer`` and ``parameters`` are always there. Times are either measured, ``forward_s`` and ``backward_s`` for one
iteration at the batch size that the scenario names, or follow from ``forward_flops`` (``backward_flops``, twice that
when not given) and ``memory_bytes`` per sample by the roofline of a GPU, scaled to ``samples_per_s`` where that is
given. Where both are there, measured times are used. Each layer with parameters has one gradient, of type ``dtype``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simnet.errors import InputError, Problem, nearest
from simnet.workload.build import setting_problems, split_over_layers
from simnet.workload.csv_table import (
    COUNT_WANTED,
    NUMBER_WANTED,
    parse_count,
    parse_number,
    problem_order,
    read_table,
    shown,
)
from simnet.workload.model import DTYPE_BYTES, PRECISIONS, GradientTensor, Layer, Model, Workload
from simnet.workload.roofline import find_gpu, gpu_problems, layer_times

__all__ = ["OPTIONAL_COLUMNS", "REQUIRED_COLUMNS", "load_workload_csv", "workload_from_rows"]

REQUIRED_COLUMNS = ("layer", "parameters")
OPTIONAL_COLUMNS = (
    *("dtype", "forward_s", "backward_s"),
    *("forward_flops", "backward_flops", "memory_bytes", "activation_bytes"),
)

_MEASURED = ("forward_s", "backward_s")
_COUNTED = ("forward_flops", "memory_bytes")
_NUMBERS = (*_MEASURED, "forward_flops", "backward_flops", "memory_bytes", "activation_bytes")

ProblemAt = Callable[[int, str, str, str], Problem]
"""Makes a problem of row, column, message and hint."""


def load_workload_csv(
    path: str | Path,
    *,
    batch_size: int,
    gpu: str | None = None,
    precision: str = "fp32",
    samples_per_s: float | None = None,
) -> Workload:
    """Read an own workload from a CSV file.

    Parameters
    ----------
    path : str or Path
    batch_size : int
        Samples per worker and iteration, for which measured times hold.
    gpu : str, optional
        Whose roofline is used for layers with FLOPs and bytes.
    precision : str
        One of `PRECISIONS`.
    samples_per_s : float, optional
        Rate of one worker without communication, to which all times are scaled [samples/s].

    Returns
    -------
    Workload
        Called like the file.

    Raises
    ------
    InputError
        With everything that is wrong, by line and column.
    """
    path = Path(path)
    problems: list[Problem] = []
    table = read_table(path, REQUIRED_COLUMNS, OPTIONAL_COLUMNS, problems)
    rows = list(table)
    if not rows and not problems:
        problems.append(Problem("there are no layers below the header", source=str(path)))
    return _workload(path.stem, str(path), rows, table.problem, problems, batch_size, gpu, precision, samples_per_s)


def workload_from_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    batch_size: int,
    gpu: str | None = None,
    precision: str = "fp32",
    samples_per_s: float | None = None,
) -> Workload:
    """Return an own workload from rows of plain data, as a YAML file gives them.

    Parameters
    ----------
    rows : sequence of mapping
        One a layer, with the keys of the columns.
    name : str
    batch_size, gpu, precision, samples_per_s
        As for `load_workload_csv`.

    Returns
    -------
    Workload

    Raises
    ------
    InputError
        With everything that is wrong; paths begin with the number of the row, from 0.
    """
    known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
    problems: list[Problem] = []
    places: list[int] = []
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            problems.append(Problem(f"layer {index} is not a mapping", f"keys: {', '.join(known)}", path=(index,)))
            continue
        places.append(index)
        problems += [
            Problem(f"unknown key {shown(key)}", nearest(str(key), known), path=(index, str(key)))
            for key in row
            if key not in known
        ]
        problems += [Problem(f"{key!r} is missing", path=(index,)) for key in REQUIRED_COLUMNS if row.get(key) is None]
    if not rows:
        problems.append(Problem("there are no layers"))

    def problem_at(index: int, key: str, message: str, hint: str) -> Problem:
        place = places[index]
        return Problem(message, hint, path=(place, key) if key in rows[place] else (place,))

    mappings = [rows[place] for place in places]
    return _workload(
        name, name, mappings, problem_at, problems, batch_size, gpu, precision, samples_per_s, text_holds_numbers=False
    )


def _workload(
    name: str,
    source: str,
    rows: Sequence[Mapping[str, Any]],
    problem_at: ProblemAt,
    problems: list[Problem],
    batch_size: int,
    gpu: str | None,
    precision: str,
    samples_per_s: float | None,
    *,
    text_holds_numbers: bool = True,
) -> Workload:
    numbers: list[dict[str, float]] = []
    parameters: list[int] = []
    for index, row in enumerate(rows):
        values, count = _row(index, row, problem_at, problems, text_holds_numbers)
        numbers.append(values)
        parameters.append(count)
    measured, counted = (all(_is_given(row, key) for row in rows for key in keys) for keys in (_MEASURED, _COUNTED))
    if not problems:
        problems += _whole_problems(rows, numbers, parameters, measured, counted, problem_at)
    problems += setting_problems(batch_size, precision, samples_per_s)
    if counted and not measured:
        problems += _gpu_problems(gpu, precision, samples_per_s)
    if problems:
        raise InputError(sorted(problems, key=problem_order))
    network = _model(name, rows, numbers, parameters)
    given = "" if samples_per_s is None else f"given: {samples_per_s:.6g} samples/s, in the proportions of {source}"
    if measured:
        forward_s, backward_s = (np.array([values[key] for values in numbers]) for key in _MEASURED)
        told = f"measured: {source}"
    elif samples_per_s is not None:
        return split_over_layers(network, gpu, precision, batch_size, batch_size / samples_per_s, given)
    else:
        assert gpu is not None
        forward_s, backward_s = layer_times(network.layers, find_gpu(gpu), precision, batch_size)
        told = f"roofline of {find_gpu(gpu).name} at its peaks, which no GPU reaches: {source}"
    if samples_per_s is not None:
        scale = batch_size / samples_per_s / float(forward_s.sum() + backward_s.sum())
        forward_s, backward_s, told = forward_s * scale, backward_s * scale, given
    return Workload(network, gpu or "", precision, batch_size, forward_s, backward_s, told)


def _model(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    numbers: Sequence[Mapping[str, float]],
    parameters: Sequence[int],
) -> Model:
    """Return the model that rows without mistakes describe."""
    layers = tuple(
        Layer(
            str(row["layer"]),
            count,
            values.get("forward_flops", 0.0),
            values.get("backward_flops", 2.0 * values.get("forward_flops", 0.0)),
            values.get("memory_bytes", 0.0),
            values.get("activation_bytes", 0.0),
        )
        for row, values, count in zip(rows, numbers, parameters, strict=True)
    )
    tensors = tuple(
        GradientTensor(layer.name, layer.parameters, index, dtype=str(rows[index].get("dtype") or "fp32"))
        for index, layer in reversed(tuple(enumerate(layers)))
        if layer.parameters
    )
    return Model(name, layers, tensors)


def _row(
    index: int, row: Mapping[str, Any], problem_at: ProblemAt, problems: list[Problem], text_holds_numbers: bool
) -> tuple[dict[str, float], int]:
    """Return the numbers of one row that are given and right, and its parameters; add what is wrong."""

    def wrong(key: str, wanted: str) -> None:
        if isinstance(row[key], str) and not text_holds_numbers:
            wanted += ", without quotes"
        problems.append(problem_at(index, key, f"{key} {_shown(row[key])}", wanted))

    name = row.get("layer")
    if name is not None and (not isinstance(name, (str, int, float)) or isinstance(name, bool)):
        wrong("layer", "a name is wanted")
    elif name is not None and not str(name).strip():
        problems.append(problem_at(index, "layer", "the layer has no name", ""))
    dtype = row.get("dtype")
    if dtype not in (None, "") and (not isinstance(dtype, str) or dtype not in DTYPE_BYTES):
        message = f"unknown dtype {_shown(dtype)}"
        problems.append(problem_at(index, "dtype", message, nearest(str(dtype), DTYPE_BYTES)))
    values: dict[str, float] = {}
    count = 0
    for key in ("parameters", *_NUMBERS):
        is_count = key == "parameters"
        value = row.get(key)
        # An empty cell of a column that has to be there is wrong; a key that is missing is told already.
        if value is None or (value == "" and not is_count):
            continue
        number = None if isinstance(value, str) and not text_holds_numbers else parse_number(value)
        if is_count:
            number = None if number is None else parse_count(value)
        if number is None:
            wrong(key, COUNT_WANTED if is_count else NUMBER_WANTED)
        elif is_count:
            count = int(number)
        else:
            values[key] = number
    return values, count


def _is_given(row: Mapping[str, Any], key: str) -> bool:
    return row.get(key) not in (None, "")


def _whole_problems(
    rows: Sequence[Mapping[str, Any]],
    numbers: Sequence[Mapping[str, float]],
    parameters: Sequence[int],
    measured: bool,
    counted: bool,
    problem_at: ProblemAt,
) -> list[Problem]:
    """Return what is wrong although each cell is right."""
    problems = []
    hint = f"every layer needs {' and '.join(_MEASURED)}, or {' and '.join(_COUNTED)}"
    if not measured and not counted:
        # Told at the rows that break the kind of which there is more.
        wanted = _MEASURED if any(key in values for values in numbers for key in _MEASURED) else _COUNTED
        for index, values in enumerate(numbers):
            missing = [key for key in wanted if key not in values]
            if missing:
                message = f"layer {rows[index]['layer']!r} has no {' and no '.join(missing)}"
                problems.append(problem_at(index, missing[0], message, hint))
        return problems
    if not any(parameters):
        problems.append(problem_at(0, "parameters", "no layer has parameters", "without gradients nothing is trained"))
    costs = _MEASURED if measured else _COUNTED
    if not any(values[key] for values in numbers for key in costs):
        problems.append(problem_at(0, costs[0], f"{' and '.join(costs)} are 0 in every layer", ""))
    return problems


def _gpu_problems(gpu: str | None, precision: str, samples_per_s: float | None) -> list[Problem]:
    """Return what is wrong with the GPU whose roofline is wanted."""
    if gpu is not None:
        return gpu_problems(gpu, precision) if precision in PRECISIONS else []
    if samples_per_s is not None:
        return []
    hint = "name a GPU for the roofline, or give samples_per_s, the measured rate of one worker"
    return [Problem("gpu is missing: layers have FLOPs and bytes, but no times", hint, path=("gpu",))]


def _shown(value: object) -> str:
    if value in (None, ""):
        return "is empty"
    return f"is {shown(value)}"
