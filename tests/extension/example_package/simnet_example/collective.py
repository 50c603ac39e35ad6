"""An all-reduce: a few ranks add up a share of the buffer each, and send it back to all."""

from typing import Annotated

import numpy as np

from simnet.scenario.fields import Whole
from simnet.traffic import Partition, ScheduleBuilder


def hubs_all_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    hubs: Annotated[int, Whole(1, 64), "Ranks that add up, each a share of the buffer."] = 2,
):
    """All send to a few hubs, which send the sums back: 2 (N - 1) S / (H B) on a star, for H of N ranks."""
    hubs = min(hubs, ranks)
    build = ScheduleBuilder("hubs all-reduce", ranks, Partition(elements, element_bytes, hubs, divisible))
    for hub in range(hubs if ranks > 1 else 0):
        others = np.delete(np.arange(ranks), hub)
        inward = build.send(others, hub, chunk=hub, reduce=1)
        summed = build.calc(hub)
        outward = build.send(hub, others, chunk=hub)
        build.depend(inward, summed)
        build.depend(summed, outward)
    return build.schedule()
