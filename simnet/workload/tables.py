"""The models that come with simnet: their layers and gradients, read from ``workloads/``.

Each model has two tables: its layers in forward order, and its gradients in the order in which they become ready. Where
costs depend on the sequence length s, a column holds what does not (``forward_flops``), what grows with it
(``forward_flops_per_token``) and what grows with its square (``forward_flops_per_token_squared``):
value = a + b s + c s^2. Cells without a number are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simnet.errors import InputError, Problem, nearest
from simnet.shipped import shipped_folder
from simnet.workload.csv_table import read_table
from simnet.workload.model import GradientTensor, Layer, Model

__all__ = ["ModelEntry", "list_models", "load_model", "model_entry", "model_problems"]

_QUANTITIES = ("forward_flops", "backward_flops", "memory_bytes", "activation_bytes")
_POWERS = ("", "_per_token", "_per_token_squared")


@dataclass(frozen=True)
class ModelEntry:
    """What the list of models says of one.

    Parameters
    ----------
    name : str
    title : str
    parameters, tensors, layers : int
        Their numbers, against which its tables are tested.
    minimum_sequence_length, default_sequence_length, maximum_sequence_length : int or None
        [tokens]; None where samples have no length.
    measured_as : str
        The model whose measured rates are used for it: itself, or one so alike that nobody measures both.
    forward_ms, backward_ms : float or None
        Measured times of one pass each, of which the ratio is used [ms]; None where there is no measurement.
    split_source : str
        Where those are from.
    source : str
        Where the tables are from.
    """

    name: str
    title: str
    parameters: int
    tensors: int
    layers: int
    minimum_sequence_length: int | None
    default_sequence_length: int | None
    maximum_sequence_length: int | None
    measured_as: str
    forward_ms: float | None
    backward_ms: float | None
    split_source: str
    source: str


@cache
def _entries() -> dict[str, ModelEntry]:
    table = read_table(
        _folder() / "models.csv",
        ["model", *(name for name in ModelEntry.__dataclass_fields__ if name != "name")],
    )
    entries = {}
    for row in table:
        entries[row["model"]] = ModelEntry(
            row["model"],
            row["title"],
            int(row["parameters"]),
            int(row["tensors"]),
            int(row["layers"]),
            _optional_int(row["minimum_sequence_length"]),
            _optional_int(row["default_sequence_length"]),
            _optional_int(row["maximum_sequence_length"]),
            row["measured_as"] or row["model"],
            float(row["forward_ms"]) if row["forward_ms"] else None,
            float(row["backward_ms"]) if row["backward_ms"] else None,
            row["split_source"],
            row["source"],
        )
    return entries


def list_models() -> tuple[str, ...]:
    """Return the names of the shipped models, sorted.

    Returns
    -------
    tuple of str
    """
    return tuple(sorted(_entries()))


def model_entry(name: str) -> ModelEntry:
    """Return what the list says of a shipped model.

    Parameters
    ----------
    name : str
        One of `list_models`.

    Returns
    -------
    ModelEntry

    Raises
    ------
    InputError
        If there is no such model.
    """
    entry = _entries().get(name)
    if entry is None:
        raise InputError(model_problems(name, None))
    return entry


def model_problems(name: str, sequence_length: int | None) -> list[Problem]:
    """Return what is wrong with the name of a shipped model and a sequence length for it; nothing if they fit."""
    entry = _entries().get(name)
    if entry is None:
        return [Problem(f"unknown model {name!r}", nearest(name, _entries()), path=("model",))]
    if sequence_length is None:
        return []
    least, most = entry.minimum_sequence_length, entry.maximum_sequence_length
    path = ("sequence_length",)
    if least is None or most is None:
        return [Problem(f"samples of {name} have no sequence length", "leave it out", path=path)]
    if not least <= sequence_length <= most:
        wanted = f"its table holds for {most} tokens" if least == most else f"it takes {least} to {most} tokens"
        return [Problem(f"sequence length {sequence_length} does not fit {name}", wanted, path=path)]
    return []


@cache
def load_model(name: str, sequence_length: int | None = None) -> Model:
    """Read a shipped model.

    Parameters
    ----------
    name : str
        One of `list_models`.
    sequence_length : int, optional
        Tokens per sample; the model's default when not given.

    Raises
    ------
    InputError
        If there is no such model, or the sequence length does not fit it.
    """
    problems = model_problems(name, sequence_length)
    if problems:
        raise InputError(problems)
    if sequence_length is None:
        sequence_length = model_entry(name).default_sequence_length
    folder = _folder() / "models"
    return Model(
        name,
        _layers(folder / f"{name}.layers.csv", sequence_length or 0),
        _tensors(folder / f"{name}.gradients.csv"),
        sequence_length,
    )


def _layers(path: Path, sequence_length: int) -> tuple[Layer, ...]:
    plain = ("op_class", "in_place", "kernel", "stride", "parameters", "parameter_memory_bytes")
    table = read_table(path, ["layer"], [*plain, *(q + power for q in _QUANTITIES for power in _POWERS)])
    # Columns are taken apart once, not cell by cell, because every run begins with this.
    columns = dict(zip(table.header.cells, zip(*(line.cells for line in table.lines), strict=True), strict=True))
    rows = len(table.lines)
    none = ("",) * rows

    def total(quantity: str) -> list[float]:
        values = [0.0] * rows
        for exponent, power in enumerate(_POWERS):
            cells = columns.get(quantity + power)
            if cells is not None:
                factor = float(sequence_length**exponent)
                values = [
                    known + float(cell) * factor if cell else known for known, cell in zip(values, cells, strict=True)
                ]
        return values

    costs = zip(*(total(quantity) for quantity in _QUANTITIES), strict=True)
    names = (columns.get(name, none) for name in ("layer", *plain))
    return tuple(
        Layer(
            name,
            int(parameters or 0),
            forward_flops,
            backward_flops,
            memory_bytes,
            activation_bytes,
            float(fixed_bytes or 0),
            op_class,
            kernel,
            int(stride or 1),
            in_place == "1",
        )
        for (name, op_class, in_place, kernel, stride, parameters, fixed_bytes, cost) in zip(*names, costs, strict=True)
        for (forward_flops, backward_flops, memory_bytes, activation_bytes) in [cost]
    )


def _tensors(path: Path) -> tuple[GradientTensor, ...]:
    table = read_table(path, ["tensor", "elements", "shape", "layer"])
    return tuple(
        GradientTensor(name, int(elements), int(layer), tuple(int(size) for size in shape.split("x")))
        for name, elements, shape, layer in (line.cells for line in table.lines)
    )


def _folder() -> Path:
    return shipped_folder("workloads")


def _optional_int(text: str) -> int | None:
    return int(text) if text else None
