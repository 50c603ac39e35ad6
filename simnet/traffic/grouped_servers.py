"""Parameter servers that workers push to as groups: what a host has is added up there first.

References
----------
.. [1] Y. Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU
   clusters", OSDI 2020 (BytePS), section 4.2: reduce-scatter among the GPUs of a machine, then servers sum up the slice
   of each, then an all-gather.
.. [2] T. Chen et al., "MXNet: a flexible and efficient machine learning library for heterogeneous distributed systems",
   arXiv:1512.01274, section 3.3: a first level sums up inside of a machine, a second one between machines.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from simnet.traffic.composing import Phase, add_phases
from simnet.traffic.parameter_server import parameter_server_push_pull
from simnet.traffic.patterns import begin_schedule
from simnet.traffic.rooted import star_broadcast, star_reduce
from simnet.traffic.scatter_gather import ring_all_gather, ring_reduce_scatter
from simnet.traffic.schedule import Schedule, Turns

__all__ = ["INSIDE_GROUPS", "grouped_push_pull"]

INSIDE_GROUPS = ("ring", "star")
"""How a group adds up among itself."""


def grouped_push_pull(
    workers: int,
    servers: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    group: int = 1,
    inside: Literal["ring", "star"] = "ring",
    **options: Any,
) -> Schedule:
    """One synchronous round in which g workers each, as the GPUs of a host, push and pull together.

    Workers with the same r // g are a group. So a host sends and receives S to and from servers, whatever the number of
    its workers.

    ``ring``: a ring reduce-scatter inside each group; then worker i of each group pushes slice i of the buffer to the
    servers, which sum the W/g of them, and pulls the sum; then a ring all-gather inside [1]_. Steps 2(g - 1) + 2; a
    worker sends 2(g - 1)/g S inside and S/g to servers. Time on a star with links of their own inside of groups
    2(g - 1)(S/(gB) + p) + that of `parameter_server_push_pull` for W/g workers.

    ``star``: all of a group send to its first worker, which pushes the sum, pulls, and sends it to the others [2]_.
    Steps 4; the first sends (g - 1)S inside and S to servers. Time 2((g - 1)S/B + p) + the same.

    Parameters
    ----------
    workers, servers, elements, element_bytes, divisible
        See `parameter_server_push_pull`.
    group : int
        g, a divisor of W; 1: each for itself.
    inside : str
        Out of `INSIDE_GROUPS`.
    **options
        Of `parameter_server_push_pull`.

    Returns
    -------
    Schedule
        Ranks as of `parameter_server_push_pull`; g chunks a shard with ``ring``, one with ``star``.

    Raises
    ------
    ValueError
        Groups are not equal, or what `parameter_server_push_pull` refuses.

    References
    ----------
    .. [1] Y. Jiang et al. (BytePS), OSDI 2020, section 4.2.
    .. [2] T. Chen et al. (MXNet), arXiv:1512.01274, section 3.3.
    """
    if group == 1:
        return parameter_server_push_pull(workers, servers, elements, element_bytes, divisible=divisible, **options)
    if group < 1 or workers % group:
        raise ValueError(f"workers push in groups of equal size: {workers} workers, groups of {group}")
    buffer = (elements, element_bytes)
    groups, slices = workers // group, group if inside == "ring" else 1
    pair = (ring_reduce_scatter, ring_all_gather) if inside == "ring" else (star_reduce, star_broadcast)
    first, third = (half(group, *buffer, divisible=divisible) for half in pair)
    across = parameter_server_push_pull(groups, servers, *buffer, divisible=divisible, **options)
    others, parts = across.ranks - groups, across.partition.chunks
    build = begin_schedule(
        "grouped push and pull", workers + others, *buffer, chunks=slices * parts, divisible=divisible
    )
    member = np.arange(workers).reshape(groups, group)
    outside = np.tile(workers + np.arange(others), (slices, 1))
    add_phases(
        build,
        [
            Phase(first, member, factor=parts),
            Phase(across, np.hstack([member.T[:slices], outside]), chunk=np.arange(slices) * parts),
            Phase(third, member, factor=parts),
        ],
    )
    return build.schedule(turns=Turns.HOSTS)
