"""One collective over sizes: the counterpart of nccl-tests.

What `size` is the size of, and the two bandwidths, are as nccl-tests defines them: the factors of the bus bandwidth
are `simnet.traffic.BUS_FACTOR`, and the sizes those of the ``GetCollByteCount`` functions in its ``src/*.cu``; of
all_gather, say, the size is that of what each rank ends with. Unlike there, chunks need not be equal: sizes are rounded
down to whole elements, not to multiples of the number of ranks.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import simpy

from simnet.errors import InvariantError
from simnet.experiment.simulation import compile_all
from simnet.experiment.tables import ordered
from simnet.experiment.telling import Show, counting, tell, tell_nobody, watched
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.placement import Placement, place
from simnet.protocols import mismatch
from simnet.scenario import CollectiveSettings
from simnet.traffic import BUS_FACTOR, algorithm_of, check_deadlock
from simnet.units import GIGA, MICROSECOND
from simnet.workload import DTYPE_BYTES

__all__ = ["run_collective"]

_MOST_LEFT_BEHIND = 100_000
"""Operations of plays that are over, at some kilobytes each. A fabric and its plays refer to each other in circles, so
their tables stay until Python looks for garbage, which large arrays do not make it do."""


def run_collective(
    settings: CollectiveSettings, say: Callable[[str], None] | None = None, show: Show = tell_nobody
) -> pd.DataFrame:
    """Play a collective alone on a cluster, once for each size.

    All ranks start at once. Where connections have to be opened first, and stay open, the collective is played once
    before, unmeasured and with 0 bytes.

    Parameters
    ----------
    settings : CollectiveSettings
        See `simnet.scenario.load_collective`.
    say : callable, optional
        Told in a line what takes long, and what is odd; standard error by default.
    show : callable
        Shown how many sizes are over.

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
    >>> f"{frame.time_us[0]:.3f}"  # 2 (4 - 1)(1 MB / 4 / 12.5 GB/s + 2 us)
    '132.000'
    """
    say = say or tell
    compile_all(say, show)
    protocol = settings.protocol
    if protocol.connection == "persistent":
        # Of connections that stay open the windows are open as well, after some time.
        protocol = replace(protocol, transport=replace(protocol.transport, initial_window_packets=math.inf))
    network = Network(settings.topology, protocol, settings.seed)
    warning = mismatch(settings.protocol, settings.topology.compiled.link_kind)
    if warning:
        say(f"warning: {warning}")
    ranks = len(settings.nodes)
    algorithm = algorithm_of(settings.collective, settings.algorithm)
    steps = algorithm.steps(ranks, **settings.options)
    factor = BUS_FACTOR[settings.collective](ranks)
    element_bytes = DTYPE_BYTES[settings.dtype]

    def place_elements(elements: int) -> Placement:
        divisible = settings.protocol.divisible
        schedule = algorithm.make(ranks, elements, element_bytes, divisible=divisible, **settings.options)
        check_deadlock(schedule)
        return place(schedule, settings.nodes, network)

    rows: list[dict[str, float]] = []
    opening: Placement | None = None
    left_behind = 0
    with watched(show, counting("sizes", len(settings.sizes_bytes), lambda: len(rows))):
        for wanted_bytes in settings.sizes_bytes:
            elements = int(wanted_bytes // element_bytes)
            placement = place_elements(elements)
            if opening is None and placement.setup_s.any():
                opening = place_elements(0)
            time_s, bound_s = (settings.launch_s + seconds for seconds in _measure(network, placement, opening))
            left_behind += len(placement.operations)
            if left_behind > _MOST_LEFT_BEHIND:
                gc.collect()
                left_behind = 0
            size_bytes = elements * element_bytes
            bandwidth = size_bytes / time_s / GIGA if time_s > 0 else math.nan
            rows.append(
                {
                    "size_bytes": size_bytes,
                    "time_us": time_s / MICROSECOND,
                    "algbw_GBps": bandwidth,
                    "busbw_GBps": bandwidth * factor,
                    "bound_time_us": bound_s / MICROSECOND,
                    "steps": steps,
                    "transfers": placement.schedule.messages(),
                    "bytes_sent": placement.payload_bytes_sent.sum(),
                    "bytes_sent_by_busiest": placement.payload_bytes_sent.max(),
                }
            )
    return ordered("collective_sizes", pd.DataFrame(rows))


def _measure(network: Network, placement: Placement, opening: Placement | None) -> tuple[float, float]:
    """Return the time that a playing takes, after one that opens connections, and a lower bound on it [s].

    On a fabric of its own: it keeps what it has played, which adds up for many ranks and sizes.
    """
    env = simpy.Environment()
    fabric = FluidFabric(env, network)
    if opening is not None:
        env.run(until=fabric.play(opening, f"{opening.schedule.name}, not measured").complete)
    play = fabric.play(placement, placement.schedule.name)
    env.run(until=play.complete)
    fabric.require_conservation()
    bound_s = fabric.bound(placement).total_s
    if bound_s > play.duration_s * (1 + 1e-9):
        raise InvariantError(f"{play.name} took {play.duration_s} s, less than its lower bound of {bound_s} s")
    return play.duration_s, bound_s
