"""A lower bound on the time of an iteration of workers in step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.bounds import Bound
from simnet.fabric.interface import Fabric
from simnet.training.computing.compute import ComputeTimes
from simnet.training.group import Group
from simnet.training.job import Job
from simnet.training.plan import Plan
from simnet.training.records import CollectiveRow

__all__ = ["bound_iteration_s", "carrying_s"]


def bound_iteration_s(job: Job, fabric: Fabric, iterations: Sequence[int], begun_s: NDArray[np.float64]) -> float:
    """Return what the iterations of a job take at least, in the mean over them and over workers; 0 where not known.

    Parameters
    ----------
    job : Job
    fabric : Fabric
        That plays its exchanges.
    iterations : sequence of int
        Which ones, one after the other, warm-up counted.
    begun_s : ndarray, shape (workers,)
        When each worker began the first of them [s].
    """
    reading_s = 0.0
    if job.loader is not None and job.settings.dataset is not None:
        # What was read ahead before the first of them is at most what is asked for beforehand, and one more.
        fresh = max(len(iterations) - job.settings.dataset.prefetch - 1, 0)
        carrying_s = fresh * fabric.cut_together_s(job.loader.readings)
        reading_s = max(carrying_s - float(begun_s.max() - begun_s.min()), 0.0) / len(iterations)
    # Those that gossip wait for their neighbours only, who may be late in their turn.
    sync, waits_for_all = job.settings.training.sync, job.settings.training.architecture.name != "gossip"
    exchanging = [number for number in iterations if sync.exchanges_in(number, iterations[-1])]
    found = [
        _bound_of(group, job.compute, fabric, iterations, exchanging, begun_s[group.members])
        for group in job.groups
        if group.exchanges and waits_for_all
    ]
    # The mean over all workers is not below the mean over groups of as many workers each.
    everybody = sum(len(group.members) for group in job.groups) == job.settings.training.workers
    exchanging_s = float(np.mean(found)) if found and everybody and len(found) == len(job.groups) else 0.0
    return max(exchanging_s, reading_s)


def carrying_s(job: Job, fabric: Fabric, rows: Sequence[CollectiveRow]) -> float:
    """Return for how long the busiest resource or core works on the exchanges of a measured iteration, mean [s].

    Parameters
    ----------
    job : Job
    fabric : Fabric
        That plays its exchanges.
    rows : sequence of CollectiveRow
        Of the job.
    """
    first, end = job.course.first, job.course.first + job.course.count
    measured = [row for row in rows if first[max(row.worker, 0)] <= row.iteration < end[max(row.worker, 0)]]
    placements = {id(row.placement): row.placement for row in measured}
    times = Counter(id(row.placement) for row in measured)
    iterations = float(job.course.count.mean())
    if not placements or not iterations:
        return 0.0
    if len(set(times.values())) == 1:
        # As often each: what one of each takes need be worked out only once.
        return times.popitem()[1] * fabric.cut_together_s(list(placements.values())) / iterations
    return fabric.cut_together_s([row.placement for row in measured]) / iterations


def _bound_of(
    group: Group,
    compute: ComputeTimes | None,
    fabric: Fabric,
    iterations: Sequence[int],
    exchanging: Sequence[int],
    begun_s: NDArray[np.float64],
) -> float:
    communicator = group.communicator
    assert communicator is not None
    placements = [exchange.placement(iterations[0]) for exchange in communicator.at_least()]
    if communicator.joins_late or communicator.streams > 1:
        # No worker ends the last iteration before all have begun it, and so have seen the ones before through.
        # No server answers in the last before all have pushed.
        awaited = len(exchanging) - (2 if group.plan.left_open else 1)
        carrying_s = max(awaited, 0) * fabric.cut_together_s(placements)
        if communicator.joins_late and not group.plan.left_open:
            carrying_s += fabric.cut_together_s(placements, len(group.members))
        return max(carrying_s - float(begun_s.mean() - begun_s.min()), 0.0) / len(iterations)
    limits = [fabric.bound(placement) for placement in placements]
    if compute is not None and _waits_at_the_end(group.plan) and communicator.goes_by_announcement():
        return _in_step(group.plan, compute, limits, iterations, exchanging, begun_s)
    # Exchanges follow each other on one stream, and none of these begins before all workers have. A worker is through
    # with the last when its part of it is over; what an iteration leaves open is the next one's.
    awaited = len(exchanging) - (1 if group.plan.left_open else 0)
    total_s = awaited * sum(limit.total_s for limit in limits)
    longest = max(limits, key=lambda limit: limit.total_s - limit.first_rank_s)
    first, last = float(begun_s.mean()), float(begun_s.max())
    return max(last - first + total_s - longest.total_s + longest.first_rank_s, 0.0) / len(iterations)


def _waits_at_the_end(plan: Plan) -> bool:
    """Tell whether workers compute without a stop until all is ready, and then wait for all of it."""
    everything = tuple(range(len(plan.parts)))
    return plan.stretches[-1].after == everything and not any(
        stretch.after or stretch.after_previous for stretch in plan.stretches[:-1]
    )


def _in_step(
    plan: Plan,
    compute: ComputeTimes,
    limits: Sequence[Bound],
    iterations: Sequence[int],
    exchanging: Sequence[int],
    begun_s: NDArray[np.float64],
) -> float:
    """Follow exchanges on one stream.

    Each begins when the last worker has its part ready: not before the slowest has that began first, nor before the
    quickest has that began last. Workers begin the next iteration when their part of the last exchange is over, the
    last of them when all of it is.
    """
    first, last = float(begun_s.min()), float(begun_s.max())
    end, with_exchange = 0.0, set(exchanging)
    for iteration in iterations:
        slowest, quickest = compute.slowest(iteration), compute.quickest(iteration)
        if iteration not in with_exchange:
            first, last = first + quickest[-1], last + quickest[-1]
            continue
        early = end
        for number, stretch in enumerate(plan.stretches):
            for part in stretch.announces:
                limit = limits[part]
                begin = max(end, first + slowest[number], last + quickest[number])
                early, end = begin + limit.first_rank_s, begin + limit.total_s
        update_s = min(
            timeline[-1] - (timeline[-2] if len(timeline) > 1 else 0.0)
            for timeline in (compute.timeline(iteration, rank) for rank in range(len(begun_s)))
        )
        first, last = early + update_s, end + update_s
    return (first - float(begun_s.mean())) / len(iterations)
