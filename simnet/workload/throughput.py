"""Measured training rates of one GPU, and the time of an iteration that follows from them.

``workloads/throughput.csv`` keeps every rate that was found, each with its source. Several may hold for the same case,
and rates of different frameworks do not lie on one curve. So a *curve* is picked: rows are taken in order of
`preference` (the rank of their source, see ``workloads/README.md``) and then of the file, and a row joins unless its
batch is there already or the time of an iteration would no longer grow with the batch. Between batches of the curve the
time of an iteration is interpolated linearly; outside there is none.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache

from simnet.errors import InputError, Problem
from simnet.shipped import shipped_folder
from simnet.workload.csv_table import read_table
from simnet.workload.roofline import matches_gpu
from simnet.workload.tables import model_entry

__all__ = ["Measured", "Throughput", "iteration_time", "list_throughput", "throughput_curve"]

_COLUMNS = (
    *("model", "gpu", "precision", "sequence_length", "batch_size"),
    *("samples_per_s", "preference", "source", "url", "note"),
)


@dataclass(frozen=True)
class Throughput:
    """One measured rate of training on one GPU.

    Parameters
    ----------
    model, gpu, precision : str
    sequence_length : int or None
        [tokens]
    batch_size : int
        Samples.
    samples_per_s : float
        [samples/s]
    preference : int
        Rank of the source; the lowest goes first.
    source, url, note : str
    """

    model: str
    gpu: str
    precision: str
    sequence_length: int | None
    batch_size: int
    samples_per_s: float
    preference: int
    source: str
    url: str
    note: str

    @property
    def iteration_time_s(self) -> float:
        """Time of an iteration [s]."""
        return self.batch_size / self.samples_per_s


@dataclass(frozen=True)
class Measured:
    """The time of an iteration from measured rates.

    Parameters
    ----------
    iteration_time_s : float
        [s]
    source : str
    """

    iteration_time_s: float
    source: str


@cache
def _rows() -> tuple[Throughput, ...]:
    return tuple(
        Throughput(
            row["model"],
            row["gpu"],
            row["precision"],
            int(row["sequence_length"]) if row["sequence_length"] else None,
            int(row["batch_size"]),
            float(row["samples_per_s"]),
            int(row["preference"]),
            row["source"],
            row["url"],
            row["note"],
        )
        for row in read_table(shipped_folder("workloads") / "throughput.csv", _COLUMNS)
    )


def list_throughput(
    model: str | None = None,
    gpu: str | None = None,
    precision: str | None = None,
    sequence_length: int | None = None,
) -> tuple[Throughput, ...]:
    """Return the measured rates, in the order of the file.

    Parameters
    ----------
    model : str, optional
        Only those that are used for this model.
    gpu : str, optional
        Only those of this GPU; ``v100`` stands for all its variants, ``v100_sxm2`` for some.
    precision : str, optional
        Only those in this one of `PRECISIONS`.
    sequence_length : int, optional
        Only those of so many tokens per sample.

    Returns
    -------
    tuple of Throughput
        Each with its rate [samples/s] and the source of it.

    Raises
    ------
    InputError
        There is no such model.
    """
    measured_as = None if model is None else model_entry(model).measured_as
    return tuple(
        row
        for row in _rows()
        if measured_as in (None, row.model)
        and (gpu is None or matches_gpu(gpu, row.gpu))
        and precision in (None, row.precision)
        and sequence_length in (None, row.sequence_length)
    )


def throughput_curve(
    model: str, gpu: str, precision: str, sequence_length: int | None = None
) -> tuple[Throughput, ...]:
    """Return the rates between which times are interpolated, by batch size; one a batch, times growing with it.

    Parameters
    ----------
    model, gpu, precision : str
        As of `list_throughput`.
    sequence_length : int, optional
        Tokens per sample; None for models without sequences.

    Returns
    -------
    tuple of Throughput

    Raises
    ------
    InputError
        There is no such model.
    """
    rows = [row for row in list_throughput(model, gpu, precision) if row.sequence_length == sequence_length]
    curve: list[Throughput] = []
    for row in sorted(rows, key=lambda row: row.preference):
        place = bisect_left(curve, row.batch_size, key=lambda kept: kept.batch_size)
        before, after = curve[:place], curve[place:]
        if after and (after[0].batch_size == row.batch_size or after[0].iteration_time_s <= row.iteration_time_s):
            continue
        if before and before[-1].iteration_time_s >= row.iteration_time_s:
            continue
        curve.insert(place, row)
    return tuple(curve)


def iteration_time(
    model: str, gpu: str, precision: str, batch_size: int, sequence_length: int | None = None
) -> Measured:
    """Return the time of an iteration on one GPU, as measured or between two measured batches.

    Raises
    ------
    InputError
        If nothing was measured around that batch; it lists what was.
    """
    curve = throughput_curve(model, gpu, precision, sequence_length)
    place = bisect_left(curve, batch_size, key=lambda row: row.batch_size)
    if place < len(curve) and curve[place].batch_size == batch_size:
        row = curve[place]
        return Measured(row.iteration_time_s, _told(model, row))
    if not 0 < place < len(curve):
        raise InputError(_nothing_measured(model, gpu, precision, batch_size, sequence_length, curve))
    low, high = curve[place - 1], curve[place]
    share = (batch_size - low.batch_size) / (high.batch_size - low.batch_size)
    time_s = low.iteration_time_s + share * (high.iteration_time_s - low.iteration_time_s)
    return Measured(time_s, f"between {_told(model, low)} and {_told(model, high)}")


def _told(model: str, row: Throughput) -> str:
    other = "" if row.model == model else f" of {row.model}"
    return f"{row.samples_per_s:.6g} samples/s{other} at batch {row.batch_size} on {row.gpu} ({row.source}, {row.url})"


def _nothing_measured(
    model: str,
    gpu: str,
    precision: str,
    batch_size: int,
    sequence_length: int | None,
    curve: tuple[Throughput, ...],
) -> Problem:
    case = f"{model} on {gpu} in {precision}" + (f" with {sequence_length} tokens" if sequence_length else "")
    instead = "or give samples_per_s, the rate of one worker without communication"
    if curve:
        batches = ", ".join(str(row.batch_size) for row in curve)
        message = f"no rate of {case} was measured around batch {batch_size}"
        return Problem(message, f"measured: {batches}; {instead}", path=("batch_size",))
    rows = list_throughput(model)
    if not rows:
        return Problem(f"no rate of {model} was measured", instead.removeprefix("or "), path=("gpu",))
    cases: dict[str, list[int]] = {}
    for row in rows:
        tokens = f" with {row.sequence_length} tokens" if row.sequence_length else ""
        batches_of = cases.setdefault(f"{row.gpu.split('_')[0]} {row.precision}{tokens}", [])
        if row.batch_size not in batches_of:
            batches_of.append(row.batch_size)
    listed = "; ".join(f"{name}: {', '.join(map(str, sorted(batches)))}" for name, batches in cases.items())
    path = ("gpu",)
    if any(matches_gpu(gpu, row.gpu) for row in rows):
        path = ("precision",)
        if any(matches_gpu(gpu, row.gpu) and row.precision == precision for row in rows):
            path = ("sequence_length",)
    return Problem(f"no rate of {case} was measured", f"measured batches: {listed}; {instead}", path=path)
