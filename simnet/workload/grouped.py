"""One model on workers of several kinds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from simnet.workload.dataflow_workload import DataflowWorkload
from simnet.workload.model import Integers, Model, Workload
from simnet.workload.trace import RecordedTrace

__all__ = ["AnyWorkload", "GroupedWorkload", "parts_of"]


@dataclass(frozen=True, eq=False)
class GroupedWorkload:
    """A model that groups of workers with other GPUs, or with other batches, train together.

    Parameters
    ----------
    parts : tuple of Workload
        Of one worker of each group; all of the same model and precision.
    workers : tuple of int
        How many each group has; they are consecutive ranks.
    """

    parts: tuple[Workload, ...]
    workers: tuple[int, ...]

    @property
    def model(self) -> Model:
        """What is trained."""
        return self.parts[0].model

    @property
    def gpu(self) -> str:
        """The GPUs of all groups, each once."""
        return ", ".join(dict.fromkeys(part.gpu for part in self.parts if part.gpu))

    @property
    def precision(self) -> str:
        """Number format of the computation."""
        return self.parts[0].precision

    @property
    def batch_size(self) -> int:
        """Samples of a worker with most of them."""
        return max(part.batch_size for part in self.parts)

    @property
    def tensor_elements(self) -> Integers:
        """Elements of each gradient in order of readiness, shape (tensors,)."""
        return self.model.tensor_elements

    def part_of(self, rank: int) -> int:
        """Return the number of the group that a worker is in.

        Parameters
        ----------
        rank : int
            The worker, counted from 0.
        """
        return bisect_right(list(accumulate(self.workers)), rank)


AnyWorkload = Workload | GroupedWorkload | RecordedTrace | DataflowWorkload
"""Whatever a job can train."""


def parts_of(workload: AnyWorkload) -> Sequence[Workload | RecordedTrace | DataflowWorkload]:
    """Return the workload of one worker of each group, which is the workload itself where all are alike.

    Parameters
    ----------
    workload : Workload, RecordedTrace, DataflowWorkload or GroupedWorkload

    Returns
    -------
    sequence of Workload, RecordedTrace or DataflowWorkload
    """
    return workload.parts if isinstance(workload, GroupedWorkload) else (workload,)
