"""Set beside each other what others have measured of senders that meet at one receiver, and what both levels have.

``python results/fidelity/measured.py`` writes ``measured.csv`` beside it. None of the sources states a band.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import QueueCounts
from simnet.fabric.packet.ports import PICOSECOND
from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.fabric.packet.wire import Wire
from simnet.protocols import resolve
from simnet.topology import star
from simnet.traffic import Partition, ScheduleBuilder

HERE = Path(__file__).parent
GIGABIT, GIGABYTE = 1e9 / 8, 1e9
ENDLESS = 1e11
"""A message that is not over while it is looked at [bytes]."""

SIMLLM = "https://github.com/openfabric-systems/simllm/blob/master"
ADAPTERS = (
    "openfabric-systems/simllm, paper/mlx5: ConnectX-5 at 100 Gbit/s, no pauses, no marks; 2026, not peer reviewed",
    f"{SIMLLM}/paper/mlx5/data/incast.csv",
)
MERLIN = (
    "openfabric-systems/simllm, Merlin (PSI): NCCL over TCP, 200 Gbit/s, A100; 2026, not peer reviewed",
    f"{SIMLLM}/examples/merlin_fabric_flow_capture_v1/RESULTS.md",
)

EGRESS_BUFFER = 5.2e6
"""What the switch of ADAPTERS has for a port, as they infer it [bytes]."""

STANDING_FOR_MARKS_S = (EGRESS_BUFFER - 100e3) / (100 * GIGABIT)
"""Adapters report congestion to each other by a rule that is not published, though their switch marks nothing. Marks
of the last 100 kB of the buffer stand for that, as queueing delay [s]."""

ADAPTIVE_TIMEOUT_S = 4.096e-6 * 2**11
"""The first wait of adaptive retransmission, which these adapters have by default: see `simnet protocol show`. It was
measured of another adapter than those of ADAPTERS, and for another purpose [s]."""

CORE = 4.991e9
"""What one flow of MERLIN has, a core's worth; several have no more than two cores' [bytes/s]."""


@dataclass(frozen=True)
class Setup:
    """Senders and receivers on a star, of which each pair sends without end.

    Parameters
    ----------
    what, model : str
        What was measured, and how simnet has it.
    pairs : tuple of (int, int)
        Who sends to whom.
    measured : dict
        Values by metric.
    source : tuple of str
        And its address.
    protocol : str
    overrides : dict
    gigabit_per_s : float
    buffer_bytes : float
    until_s : float
        For how long; the first third does not count.
    """

    what: str
    model: str
    pairs: tuple[tuple[int, int], ...]
    measured: dict[str, float]
    source: tuple[str, str]
    protocol: str
    overrides: dict[str, Any]
    gigabit_per_s: float = 100.0
    buffer_bytes: float = EGRESS_BUFFER
    until_s: float = 0.03


def setups() -> Iterator[Setup]:
    """Yield what was measured."""
    write, two = "RDMA write of 1 MiB", ((0, 2), (1, 2))
    alone = {"goodput_gigabit_per_s": 97.435, "wire_gigabit_per_s": 99.1322, "lost_percent": 0.0}
    yield Setup(f"{write}, 1 to 1", "", ((0, 1),), alone, ADAPTERS, "roce-lossy", {})
    fan_out = {"goodput_gigabit_per_s": 97.825}
    yield Setup(f"{write}, 1 to 2", "", ((0, 1), (0, 2)), fan_out, ADAPTERS, "roce-lossy", {})
    incast = {"goodput_gigabit_per_s": 73.8907, "wire_gigabit_per_s": 99.5207, "lost_percent": 1.6502}
    what = f"{write}, 2 to 1"
    yield Setup(what, "no congestion control", two, incast, ADAPTERS, "roce-lossy", {})
    for name, model in (("dcqcn", "DCQCN of its paper"), ("dcqcn_vendor", "DCQCN of a vendor")):
        overrides = {
            "congestion_control": name,
            "mark_from_s": STANDING_FOR_MARKS_S,
            "mark_all_s": STANDING_FOR_MARKS_S,
        }
        model += ", marks of the last 100 kB"
        yield Setup(what, model, two, incast, ADAPTERS, "roce-lossy", overrides, until_s=3.0)
        overrides = overrides | {"adaptive_timeout_s": ADAPTIVE_TIMEOUT_S}
        model += ", adaptive retransmission"
        yield Setup(what, model, two, incast, ADAPTERS, "roce-lossy", overrides, until_s=3.0)
    cores = {
        "mtu_bytes": 9000.0,
        "connection_cap_bytes_per_s": CORE,
        "host_receive_capacity_bytes_per_s": 2 * CORE,
    }
    for senders, gigabytes in ((1, 4.991), (2, 8.548), (3, 10.115), (4, 8.354), (4, 11.095)):
        yield Setup(
            f"NCCL over TCP, {senders} to 1",
            "a core 4.99 GB/s, two of them at the receiver",
            tuple((sender, senders) for sender in range(senders)),
            {"goodput_gigabit_per_s": gigabytes * GIGABYTE / GIGABIT},
            MERLIN,
            *("tcp", cores, 200.0, 2e6, 0.3),
        )


def network_of(setup: Setup) -> Network:
    """Return its hosts around a switch."""
    topology = star(
        hosts=1 + max(max(pair) for pair in setup.pairs),
        bandwidth_bytes_per_s=setup.gigabit_per_s * GIGABIT,
        latency_s=0.5e-6,
        buffer_bytes=setup.buffer_bytes,
    )
    # What hosts need to open a connection, once, is no part of what was measured.
    return Network(topology, replace(resolve(setup.protocol, setup.overrides), connection_setup_s=0.0))


def play_flows(setup: Setup) -> dict[str, float]:
    """Return what the flow level has, by metric."""
    network = network_of(setup)
    protocol, hosts = network.protocol, len(network.compiled.rank_nodes)
    build = ScheduleBuilder("sends", hosts, Partition(1, 1.0))
    size = setup.until_s * setup.gigabit_per_s * GIGABIT
    for source, target in setup.pairs:
        build.send(source, target, width=0, fixed_bytes=size)
    env = simpy.Environment()
    fabric = FluidFabric(env, network)
    one = fabric.play(fabric.place(build.schedule(), network.compiled.rank_nodes), "sends")
    env.run(until=one.complete)
    goodput = len(setup.pairs) * size / one.duration_s / GIGABIT
    wire = goodput * (protocol.payload_bytes + protocol.header_bytes) / protocol.payload_bytes
    return {"goodput_gigabit_per_s": goodput, "wire_gigabit_per_s": wire, "lost_percent": 0.0}


def play_packets(setup: Setup) -> dict[str, float]:
    """Return what the packet level has, by metric, after the first third of the time."""
    network = network_of(setup)
    protocol, nodes = network.protocol, network.compiled.rank_nodes
    wire = Wire(network, DEFAULT_PACKETS, seed=0)
    for number, (source, target) in enumerate(setup.pairs):
        wire.start(number, int(nodes[source]), int(nodes[target]), ENDLESS, protocol.connection_cap_bytes_per_s)
    counted = []
    for until_s in (setup.until_s / 3, setup.until_s):
        while wire.run(round(until_s / PICOSECOND)):
            pass
        rows = wire.tables.connections[: len(wire.connections)]
        counted.append([rows["sent"].sum(), rows["expected"].sum(), QueueCounts(wire).dropped.sum()])
    sent, expected, dropped = (after - before for before, after in zip(*counted, strict=True))
    gigabits = setup.until_s * 2 / 3 * GIGABIT
    return {
        "goodput_gigabit_per_s": expected * protocol.payload_bytes / gigabits,
        "wire_gigabit_per_s": (sent - dropped) * (protocol.payload_bytes + protocol.header_bytes) / gigabits,
        "lost_percent": 100.0 * dropped / sent,
    }


def table() -> pd.DataFrame:
    """Return a row for each value that was measured, and each fidelity."""
    rows = []
    for setup in setups():
        for packets in (False, True):
            found = play_packets(setup) if packets else play_flows(setup)
            for metric, measured in setup.measured.items():
                rows.append(
                    {
                        "what": setup.what,
                        "model": setup.model,
                        "fidelity": "packet" if packets else "flow",
                        "metric": metric,
                        "measured": measured,
                        "simnet": found[metric],
                        "ratio": found[metric] / measured if measured else None,
                        "source": setup.source[0],
                        "url": setup.source[1],
                    }
                )
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table."""
    frame = table()
    frame.to_csv(HERE / "measured.csv", index=False, float_format="%.6g", lineterminator="\n")
    print(frame.drop(columns=["source", "url"]).to_string(index=False))


if __name__ == "__main__":
    main()
