"""Computing and communicating at once: each slows the other down, as both want the memory and the cores of a GPU.

References
----------
.. [1] S. Rashidi et al., "Enabling compute-communication overlap in distributed deep learning training platforms", ISCA
   2021: which share of memory bandwidth and of cores collectives take from kernels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simnet.engine.waits import Waits
from simnet.fabric.interface import Fabric
from simnet.training.settings import OverlapSlowdown

__all__ = ["SharedGpu"]

_NEGLIGIBLE = 1e-9
"""Part of a stretch of computing that is not waited for any more."""


class SharedGpu:
    """The GPU of a worker, which computes and communicates.

    Parameters
    ----------
    fabric : Fabric
    node : int
        Of the GPU. Where a worker is a host, its links are cables, and carry what they always do.
    overlap_slowdown : OverlapSlowdown
    """

    def __init__(self, fabric: Fabric, node: int, overlap_slowdown: OverlapSlowdown) -> None:
        arrays = fabric.network.compiled
        own = (arrays.link_source == node) | (arrays.link_target == node)
        inside = arrays.host_of_node[arrays.link_source] == arrays.host_of_node[arrays.link_target]
        is_gpu = arrays.node_kind[node] == "gpu" and overlap_slowdown.communication > 1.0
        self._links: list[int] = np.flatnonzero(own & inside).tolist() if is_gpu else []
        self._fabric, self._slowdown, self._given = fabric, overlap_slowdown, 1.0

    def compute(self, work_s: float, busy_s: Callable[[], float]) -> Waits:
        """Compute for as long as it takes beside exchanges.

        While something is exchanged, computing goes on at 1/slowdown of its speed. What is waited for is what would be
        left at full speed, which is never too long; what exchanges have taken of it is waited for again, and so on:
        what is left falls by the factor 1 - 1/slowdown at least.

        Parameters
        ----------
        work_s : float
            What it takes with nothing beside it [s].
        busy_s : callable
            Returns for how long something has been exchanged since the beginning [s].
        """
        env = self._fabric.env
        self._give_links(1.0 / self._slowdown.communication)
        left_s = work_s
        while left_s > _NEGLIGIBLE * work_s:
            before_s = busy_s()
            yield env.timeout(left_s)
            left_s = (busy_s() - before_s) * (1.0 - 1.0 / self._slowdown.compute)

    def rest(self) -> None:
        """Leave all of the memory to links, as there is nothing to compute for a while."""
        self._give_links(1.0)

    def _give_links(self, factor: float) -> None:
        """Leave links a part of what they can do; what they have already does not change."""
        if factor == self._given:
            return
        self._given = factor
        for link in self._links:
            self._fabric.conditions.set_capacity(link, factor * float(self._fabric.network.capacity[link]))
