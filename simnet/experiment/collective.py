"""One collective over sizes: the counterpart of nccl-tests.

What `size` is the size of, and the two bandwidths, are as nccl-tests defines them: NVIDIA/nccl-tests,
``doc/PERFORMANCE.md`` (the factors of the bus bandwidth) and the ``GetCollByteCount`` functions in ``src/*.cu`` (the
sizes); of all_gather, say, the size is that of what each rank ends with. Unlike there, chunks need not be equal: sizes
are rounded down to whole elements, not to multiples of the number of ranks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import pandas as pd
import simpy

from simnet.errors import InvariantError
from simnet.experiment.tables import ordered
from simnet.fabric.bounds import bound
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.placement import Placement, place
from simnet.fabric.warm_up import compile_kernels
from simnet.protocols import mismatch
from simnet.scenario import CollectiveSettings
from simnet.traffic import COLLECTIVES, check_deadlock
from simnet.units import GIGA, MICROSECOND
from simnet.workload import DTYPE_BYTES

__all__ = ["BUS_FACTOR", "run_collective"]


def _shared(ranks: int) -> float:
    """Return the part of the whole that each rank has to send to, or get from, others."""
    return (ranks - 1) / ranks


def _whole(ranks: int) -> float:
    del ranks
    return 1.0


BUS_FACTOR: Mapping[str, Callable[[int], float]] = MappingProxyType(
    {
        "all_reduce": lambda ranks: 2.0 * _shared(ranks),
        "reduce_scatter": _shared,
        "all_gather": _shared,
        "broadcast": _whole,
        "reduce": _whole,
        "all_to_all": _shared,
        "send_recv": _whole,
    }
)
"""Bus bandwidth over algorithm bandwidth, by the number of ranks: what makes it comparable to that of a link."""


def run_collective(settings: CollectiveSettings, say: Callable[[str], None] | None = None) -> pd.DataFrame:
    """Play a collective alone on a cluster, once for each size.

    All ranks start at once. Where connections have to be opened first, and stay open, the collective is played once
    before, unmeasured.

    Parameters
    ----------
    settings : CollectiveSettings
        See `simnet.scenario.load_collective`.
    say : callable, optional
        Told in a line what takes long, and what is odd; standard error by default.

    Returns
    -------
    DataFrame
        One row a size, in the order given; the columns are those of ``collective_sizes`` in
        `simnet.experiment.columns.COLUMNS`.

    Raises
    ------
    SimulationError
        The run came to a stop, or was faster than is possible.

    Examples
    --------
    >>> from simnet.scenario import load_collective
    >>> star = {"star": {"hosts": 4, "bandwidth": "100 Gbps", "latency": "1 us"}}
    >>> frame = run_collective(load_collective("all_reduce", topology=star, protocol="ideal", sizes="1MB"))
    >>> round(frame.time_us[0], 3)  # 2 (4 - 1)(1 MB / 4 / 12.5 GB/s + 2 us)
    132.0
    """
    say = say or partial(print, file=sys.stderr, flush=True)
    compile_kernels(say)
    network = Network(settings.topology, settings.protocol, settings.seed)
    warning = mismatch(settings.protocol, network.network_kinds)
    if warning:
        say(f"warning: {warning}")
    ranks = len(settings.nodes)
    algorithm = COLLECTIVES[settings.collective].algorithms[settings.algorithm]
    steps = algorithm.steps(ranks, **settings.options)
    factor = BUS_FACTOR[settings.collective](ranks)
    element_bytes = DTYPE_BYTES[settings.dtype]
    env = simpy.Environment()
    fabric = FluidFabric(env, network)
    rows = []
    for number, wanted_bytes in enumerate(settings.sizes_bytes):
        elements = int(wanted_bytes // element_bytes)
        size_bytes = elements * element_bytes
        schedule = algorithm.make(
            ranks, elements, element_bytes, divisible=settings.protocol.divisible, **settings.options
        )
        check_deadlock(schedule)
        # Not by the fabric, which keeps what it has placed.
        placement = place(schedule, settings.nodes, network)
        if number == 0 and placement.setup_s.any():
            _play(env, fabric, placement, f"{schedule.name}, not measured")
        time_s = _play(env, fabric, placement, f"{schedule.name} of {size_bytes} B")
        bound_s = bound(placement, network.capacity, fabric.costs).total_s
        if bound_s > time_s * (1 + 1e-9):
            raise InvariantError(f"{schedule.name} took {time_s} s, less than its lower bound of {bound_s} s")
        bandwidth = size_bytes / time_s / GIGA if time_s > 0 else math.nan
        rows.append(
            {
                "size_bytes": size_bytes,
                "time_us": time_s / MICROSECOND,
                "algbw_GBps": bandwidth,
                "busbw_GBps": bandwidth * factor,
                "bound_time_us": bound_s / MICROSECOND,
                "steps": steps,
            }
        )
    fabric.require_conservation()
    return ordered("collective_sizes", pd.DataFrame(rows))


def _play(env: simpy.Environment, fabric: FluidFabric, placement: Placement, name: str) -> float:
    """Play a schedule to its end; return the time that it took [s]."""
    play = fabric.play(placement, name)
    env.run(until=play.complete)
    return play.duration_s
