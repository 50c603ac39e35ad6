"""When gradients are ready in the backward pass: measured times, and how far the split of a workload is from them.

The measured times of ``workloads/ready_times.csv`` are those of a V100 at batch 32. Nothing of the split is fitted to
them. They are compared as shares of the whole backward pass, gradient by gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from simnet.shipped import shipped_folder
from simnet.workload.csv_table import read_table
from simnet.workload.model import Floats, Workload

__all__ = ["READY_TIMES_BATCH", "READY_TIMES_GPU", "ReadyTimes", "compare_ready_times", "list_ready_times"]

READY_TIMES_GPU, READY_TIMES_BATCH = "v100", 32


@dataclass(frozen=True, eq=False)
class ReadyTimes:
    """When each of some gradients is ready, simulated and measured.

    Parameters
    ----------
    tensors : tuple of str
        Names, in the order in which they become ready.
    size_bytes : ndarray of float
        [bytes]
    simulated, measured : ndarray of float
        Share of the backward pass after which each is ready, from 0 to 1.
    """

    tensors: tuple[str, ...]
    size_bytes: Floats
    simulated: Floats
    measured: Floats

    @property
    def worst(self) -> int:
        """Which gradient is furthest from what was measured."""
        return int(np.abs(self.simulated - self.measured).argmax())

    @property
    def largest_difference(self) -> float:
        """The largest difference of the instants at which a gradient is ready, as a share of the backward pass."""
        return float(np.abs(self.simulated - self.measured)[self.worst])

    @property
    def mean_bytes_difference(self) -> float:
        """Difference of the bytes that are ready, as a share of all, mean over the backward pass.

        That is the area between both curves of bytes over time: each gradient has its part of them between its two
        instants, and the area is theirs together where all are early, or all late.
        """
        instants, difference = self._bytes_difference()
        return float((np.abs(difference[:-1]) * np.diff(instants)).sum())

    @property
    def largest_bytes_difference(self) -> float:
        """The largest difference of the bytes that are ready at one instant, as a share of all."""
        return float(np.abs(self._bytes_difference()[1]).max())

    def _bytes_difference(self) -> tuple[Floats, Floats]:
        """Return all instants of both, and how many more bytes are ready from each on, as a share of all."""
        ready = np.concatenate(([0.0], np.cumsum(self.size_bytes))) / self.size_bytes.sum()
        instants = np.unique(np.concatenate((self.simulated, self.measured)))
        curves = [ready[np.searchsorted(times, instants, side="right")] for times in (self.simulated, self.measured)]
        return instants, curves[0] - curves[1]


@cache
def list_ready_times() -> dict[str, tuple[tuple[int, float], ...]]:
    """Return size [bytes] and ready time [us] of each gradient that was measured, by model, in order."""
    found: dict[str, list[tuple[int, float]]] = {}
    table = read_table(shipped_folder("workloads") / "ready_times.csv", ["model", "gradient_bytes", "ready_us"])
    for row in table:
        found.setdefault(row["model"], []).append((int(row["gradient_bytes"]), float(row["ready_us"])))
    return {model: tuple(rows) for model, rows in found.items()}


def compare_ready_times(workload: Workload) -> ReadyTimes:
    """Return the ready times of a workload beside those that were measured of its model.

    Where another variant was measured (VGG-16 with batch normalisation), only weights are compared, which it has as
    well: found one after the other by their sizes.

    Parameters
    ----------
    workload : Workload
        Of one of the models in `list_ready_times`.
    """
    rows = list_ready_times()[workload.model.name]
    tensors = workload.model.tensors
    sizes = [size for size, _ in rows]
    is_same = len(rows) == len(tensors)
    compared = [n for n, tensor in enumerate(tensors) if is_same or tensor.name.endswith("weight")]
    places: list[int] = []
    for n in compared:
        places.append(sizes.index(4 * tensors[n].elements, places[-1] + 1 if places else 0))
    measured_us = np.array([time for _, time in rows])
    return ReadyTimes(
        tuple(tensors[n].name for n in compared),
        np.array([4.0 * tensors[n].elements for n in compared]),
        workload.tensor_ready_s[compared] / workload.backward_s.sum(),
        measured_us[places] / measured_us[-1],
    )
