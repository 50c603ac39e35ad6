"""Play the same scenarios at flow level and packet by packet, and write how far apart they are.

``python results/fidelity/compare.py`` writes ``fidelity.csv`` beside it and says which cases are not within their band.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import simpy

from simnet.engine.random_streams import random_stream
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric, compile_packet_kernels
from simnet.fabric.warm_up import compile_kernels
from simnet.protocols import resolve
from simnet.topology import Topology, star
from simnet.traffic import Partition, ScheduleBuilder

HERE = Path(__file__).parent
GIGABIT = 1e9 / 8
PROTOCOLS = (
    *("ideal", "tcp", "tcp-reno", "dctcp", "dpdk", "ipoib", "ipoib-connected", "infiniband", "roce", "roce-lossy"),
    *("irn", "best-effort"),
)
LOSSLESS = ("ideal", "ipoib", "ipoib-connected", "infiniband", "roce")
SIZES = (1e4, 1e5, 1e6, 1e7, 1e8)
PRECISE, MOST_SEEDS = 0.05, 20_000
"""Seeds are added until the standard error of both means is no larger than that, relative, or there are so many."""
LOSSES = (1e-5, 1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Case:
    """Senders that each send a message to the same host, at once.

    Parameters
    ----------
    kind : str
        What is compared.
    protocol : str
    band : float
        Largest difference, relative.
    senders : int
    size_bytes : float
        Of each message.
    gigabit_per_s : float
        Of the links.
    latency_s : float
        Of each of the two links of a path.
    loss : float
        Probability that a packet is lost on each link.
    buffer_bytes : float or None
        Of each port of the switch.
    seeds : int
        Completion times are means over so many, and over as many more as it takes, see `PRECISE`. As a timeout that few
        runs have decides about a mean, there have to be enough for some of them.
    overrides : tuple
        Values of the protocol that differ.
    spread_s : float
        Senders begin at random within so long.
    """

    kind: str
    protocol: str
    band: float
    senders: int = 1
    size_bytes: float = 1e6
    gigabit_per_s: float = 100.0
    latency_s: float = 1e-6
    loss: float = 0.0
    buffer_bytes: float | None = None
    seeds: int = 1
    overrides: tuple[tuple[str, Any], ...] = ()
    spread_s: float = 0.0


def cases() -> Iterator[Case]:
    """Yield what is compared."""
    for name in PROTOCOLS:
        for size in SIZES:
            yield Case("alone", name, 0.05, size_bytes=size)
    for name in LOSSLESS:
        for senders in (2, 4, 8, 16):
            yield Case("sharing", name, 0.10, senders=senders, size_bytes=4e6)
    for kibibytes, counts in ((64, (8, 16, 32, 64)), (256, (8, 16, 32, 64)), (1024, (8, 16, 32))):
        for senders in counts:
            for name, probes in (("tcp-reno", False), ("tcp-reno", True), ("tcp", True)):
                yield Case(
                    *("incast", name, 0.20, senders, 64 * 1024.0, 10.0, 12.5e-6),
                    buffer_bytes=kibibytes * 1024.0,
                    seeds=200,
                    overrides=(("tail_loss_probe", probes),),
                    # Else their packets would take turns, and none lose all of its window.
                    spread_s=20e-6,
                )
    for loss in LOSSES:
        for name in ("tcp", "tcp-reno"):
            yield Case(
                *("loss", name, 0.20, 1, min(1e8, max(300 / loss, 3e4) * 1448), 10.0, 25e-6, loss / 2),
                seeds=4,
            )
        for name in ("roce-lossy", "irn"):
            size = min(1e8, 300 / loss * 4096)
            yield Case("loss", name, 0.20, 1, size, 100.0, 1e-6, loss / 2, seeds=6)


def topology_of(case: Case) -> Topology:
    """Return its cluster: a star."""
    return star(
        hosts=case.senders + 1,
        bandwidth_bytes_per_s=case.gigabit_per_s * GIGABIT,
        latency_s=case.latency_s,
        loss_probability=case.loss or None,
        buffer_bytes=case.buffer_bytes,
    )


def outcome(case: Case, *, packets: bool, seed: int) -> tuple[float, int]:
    """Return how long it takes until all has arrived [s], and how many senders waited for their timeout."""
    # What hosts need to open a connection would hide all else.
    protocol = replace(resolve(case.protocol, dict(case.overrides)), connection_setup_s=0.0)
    network = Network(topology_of(case), protocol, seed)
    build = ScheduleBuilder("sends", case.senders + 1, Partition(1, 1.0))
    starts = random_stream(seed, "starts").uniform(0.0, case.spread_s, case.senders)
    for sender in range(case.senders):
        send = build.send(sender, case.senders, width=0, fixed_bytes=case.size_bytes)
        if case.spread_s > 0.0:
            build.depend(build.calc(sender, float(starts[sender])), send)
    env = simpy.Environment()
    fabric = PacketFabric(env, network, seed=seed) if packets else FluidFabric(env, network)
    nodes = network.compiled.rank_nodes[: case.senders + 1]
    play = fabric.play(fabric.place(build.schedule(), nodes), "case")
    env.run(until=play.complete)
    fabric.require_conservation()
    counted = fabric.connection_counts()["timeouts"].sum() if isinstance(fabric, PacketFabric) else fabric.timeouts
    return float(play.duration_s), int(counted)


def _standard_error(times: Any) -> float:
    return float(np.std(times, ddof=1) / math.sqrt(len(times))) if len(times) > 1 else 0.0


def _is_precise(times: Any) -> bool:
    return len(times) > 0 and _standard_error(times) <= PRECISE * float(np.mean(times))


def compare(case: Case) -> dict[str, object]:
    """Return a row of the table."""
    rows: dict[bool, list[tuple[float, int]]] = {False: [], True: []}
    while len(rows[True]) < MOST_SEEDS and not all(_is_precise([time for time, _ in known]) for known in rows.values()):
        first = len(rows[True])
        for packets, known in rows.items():
            known.extend(outcome(case, packets=packets, seed=seed) for seed in range(first, first + case.seeds))
        # Fabrics are large, and few enough that Python would keep thousands of them.
        gc.collect()
    outcomes = {packets: np.array(known) for packets, known in rows.items()}
    count = len(outcomes[True])
    times = {packets: outcomes[packets][:, 0] for packets in outcomes}
    flow_timeouts, packet_timeouts = (float(outcomes[packets][:, 1].mean()) for packets in (False, True))
    flow, packet = float(times[False].mean()), float(times[True].mean())
    errors = {packets: _standard_error(times[packets]) for packets in (False, True)}
    error = math.hypot(errors[False], errors[True])
    apart = (flow - packet) / error if error > 0.0 else math.nan
    flow_p99, packet_p99 = (float(np.quantile(times[packets], 0.99)) for packets in (False, True))
    return {
        "kind": case.kind,
        "protocol": case.protocol,
        "senders": case.senders,
        "size_bytes": round(case.size_bytes),
        "link_gigabit_per_s": case.gigabit_per_s,
        "loss_probability": 2 * case.loss,
        "buffer_bytes": case.buffer_bytes,
        "probes_tail": dict(case.overrides).get("tail_loss_probe", True),
        "seeds": count,
        "is_precise": all(_is_precise(times[packets]) for packets in times),
        "flow_time_s": flow,
        "packet_time_s": packet,
        "flow_standard_error_s": errors[False],
        "packet_standard_error_s": errors[True],
        "flow_p99_s": flow_p99,
        "packet_p99_s": packet_p99,
        "flow_timeouts": flow_timeouts,
        "packet_timeouts": packet_timeouts,
        "difference": flow / packet - 1.0,
        # Below about 2 it is chance.
        "difference_in_standard_errors": apart,
        # Of means over seeds; a rare timeout that is a hundred times as long as all else moves these, not medians.
        "difference_of_medians": float(np.median(times[False]) / np.median(times[True])) - 1.0,
        "difference_of_p99": flow_p99 / packet_p99 - 1.0,
        "band": case.band,
        "is_within": abs(flow / packet - 1.0) <= case.band,
    }


def table(chosen: Sequence[Case]) -> pd.DataFrame:
    """Return all comparisons, made on all cores."""
    compile_kernels(print)
    compile_packet_kernels(print)
    rows = []
    with ProcessPoolExecutor() as pool:
        for row in pool.map(compare, chosen):
            print(*(row[column] for column in ("kind", "protocol", "senders", "seeds", "difference")), flush=True)
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table."""
    frame = table(list(cases()))
    frame.to_csv(HERE / "fidelity.csv", index=False, float_format="%.6g", lineterminator="\n")
    outside = frame[~frame["is_within"]]
    print(f"{len(frame)} cases, {len(outside)} outside of their band")
    if len(outside):
        print(outside.to_string(index=False))


if __name__ == "__main__":
    main()
