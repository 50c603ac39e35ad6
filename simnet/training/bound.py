"""A lower bound on the time of an iteration of workers in step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.bounds import Bound
from simnet.training.job import Job

__all__ = ["bound_iteration_s"]


def bound_iteration_s(
    job: Job, bounds: Sequence[Bound], iterations: Sequence[int], begun_s: NDArray[np.float64]
) -> float:
    """Return what the iterations of a job take at least, in the mean over them and over workers.

    Exchanges follow each other on one stream. Each begins when the last worker has its bucket ready: not before the
    slowest has that began first, nor before the quickest has that began last. Workers begin the next iteration when
    their part of the last exchange is over, the last of them when all of it is.

    Parameters
    ----------
    job : Job
    bounds : sequence of Bound
        Of each exchange, in order.
    iterations : sequence of int
        Which ones, one after the other, warm-up counted.
    begun_s : ndarray, shape (workers,)
        When each worker began the first of them [s].
    """
    overlap = job.settings.training.overlap
    first, last = float(begun_s.min()), float(begun_s.max())
    end = 0.0
    for iteration in iterations:
        slowest, quickest = job.compute.slowest(iteration), job.compute.quickest(iteration)
        early = end
        for bucket, limit in enumerate(bounds):
            slow = slowest.ready_s[bucket] if overlap else slowest.gradients_s
            quick = quickest.ready_s[bucket] if overlap else quickest.gradients_s
            begin = max(end, first + slow, last + quick)
            early, end = begin + limit.first_rank_s, begin + limit.total_s
        first, last = early + quickest.update_s, end + quickest.update_s
    return (first - float(begun_s.mean())) / len(iterations)
