"""What protocols come to in training, and how near the two fidelities are: ``python results/protocols.py``.

``results/make.py`` does it with all the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from writing import write

import simnet
from simnet.experiment.plot import bars, curves, panels, save_figure
from simnet.fabric.packet.fabric import compile_packet_kernels
from simnet.fabric.warm_up import compile_kernels

HERE = Path(__file__).parent / "protocols"

PROTOCOLS = (
    *("ideal", "tcp", "tcp-reno", "dctcp", "dpdk", "ipoib", "ipoib-connected", "infiniband", "roce", "roce-lossy"),
    *("irn", "best-effort"),
)
FIDELITIES = ("flow", "packet")

EXCHANGES = {"ring": "ring", "1 parameter server": "parameter_server"}
INCEPTION: dict[str, Any] = {
    # One more host than workers, for the server.
    "topology": {"star": {"hosts": 17, "bandwidth": "100 Gbps", "latency": "1 us", "buffer": "1 MiB"}},
    "workload": {"model": "inception_v3", "gpu": "v100", "batch_size": 64},
    "training": {"workers": 16},
    "run": {"iterations": 1, "warmup": 1},
}

ENDLESS: dict[str, Any] = {"roce-lossy": {"roce-lossy": {"retries": "unlimited"}}}
"""What breaks down in front of one server so much that adapters would give up."""

LOSSES = (0.0, 1e-4, 1e-3, 5e-3, 1e-2, 2e-2, 5e-2)
LOSSY = ("roce-lossy", "irn", "tcp", "best-effort")
CHECKED = {"data centre": (1e-3, 1e-2), "wide area": (1e-3,), "edge": (1e-3,)}
"""Of these networks and losses, packet by packet as well."""
RARE = {("data centre", "roce-lossy", 1e-3, "packet")}
"""Where it is chance whether an iteration has a timeout, and many are needed for a mean."""
# Bandwidth, latency of a link, and samples that a worker takes to an iteration: the slower the network, the more, so
# that without loss communication takes a small part of the time everywhere. Windows have room for two round trips, and
# timers are longer than one: adapters are made for data centres.
_FAR = {
    "roce-lossy": {},
    "tcp": {"window": "25 MB"},
    "irn": {"window": "25 MB", "minimum_timeout": "32 ms", "initial_timeout": "32 ms", "few_packets_timeout": "20 ms"},
    "best-effort": {"quiet": "20 ms"},
}
_EDGE = {
    "roce-lossy": {},
    "tcp": {},
    "irn": {
        "window": "1.25 MB",
        "minimum_timeout": "16 ms",
        "initial_timeout": "16 ms",
        "few_packets_timeout": "10 ms",
    },
    "best-effort": {"quiet": "10 ms"},
}
NETWORKS: dict[str, tuple[str, str, int, dict[str, dict[str, str]]]] = {
    "data centre": ("100 Gbps", "1 us", 64, {}),
    "wide area": ("10 Gbps", "2.5 ms", 512, _FAR),
    "edge": ("1 Gbps", "1.25 ms", 4096, _EDGE),
}
TITLES = {
    "data centre": "100 Gbit/s, 4 us round trip",
    "wide area": "10 Gbit/s, 10 ms round trip",
    "edge": "1 Gbit/s, 5 ms round trip",
}


def each_protocol() -> pd.DataFrame:
    """Return Inception-V3 on 16 workers over each protocol at both fidelities."""
    cases = [
        (exchange, protocol, fidelity)
        for exchange in EXCHANGES
        for protocol in PROTOCOLS
        for fidelity in reversed(FIDELITIES)
    ]
    frame = _table(_inception, cases)
    order = [
        (exchange, protocol, fidelity) for exchange in EXCHANGES for protocol in PROTOCOLS for fidelity in FIDELITIES
    ]
    return frame.set_index(["exchange", "protocol", "fidelity"]).loc[order].reset_index()


def lossy() -> pd.DataFrame:
    """Return ResNet-50 on 8 workers over links that lose packets at random."""
    cases = [
        (network, protocol, loss, fidelity)
        for network in NETWORKS
        for protocol in LOSSY
        for loss in LOSSES
        for fidelity in FIDELITIES
        if fidelity == "flow" or loss in CHECKED[network]
    ]
    return _table(_lossy, cases)


def _inception(case: tuple[str, str, str]) -> dict[str, object]:
    exchange, protocol, fidelity = case
    changes = {"protocol": ENDLESS.get(protocol, protocol), "fidelity": fidelity}
    training = INCEPTION["training"] | {"architecture": EXCHANGES[exchange]}
    result = simnet.run(INCEPTION | changes | {"training": training})
    row = result.summary.iloc[0]
    found: dict[str, object] = {
        "exchange": exchange,
        "protocol": protocol,
        "fidelity": fidelity,
        "iteration_time_s": row["iteration_time_s"],
        "exposed_communication_time_s": row["exposed_communication_time_s"],
        "communication_time_s": row["communication_time_s"],
        "scaling_efficiency": row["scaling_efficiency"],
        "lost_bytes": row["lost_bytes"],
    }
    if result.connections is not None and result.queues is not None:
        found |= {name: int(result.connections[name].sum()) for name in ("packets", "retransmitted", "timeouts")}
        found |= {name: int(result.queues[name].sum()) for name in ("dropped", "marked")}
        found["highest_queue_bytes"] = int(result.queues["highest_queue_bytes"].max())
        found["paused_time_s"] = float(result.queues["paused_time_s"].sum())
    return found


def _lossy(case: tuple[str, str, float, str]) -> dict[str, object]:
    network, protocol, loss, fidelity = case
    bandwidth, latency, batch, overrides = NETWORKS[network]
    # A path has two links.
    star = {"hosts": 8, "bandwidth": bandwidth, "latency": latency, "loss_probability": 1.0 - (1.0 - loss) ** 0.5}
    changed: Mapping[str, str] = overrides.get(protocol, {})
    scenario = {
        "topology": {"star": star},
        "protocol": {protocol: changed} if changed else protocol,
        "fidelity": fidelity,
        "workload": {"model": "resnet50", "batch_size": batch, "samples_per_s": 250.0},
        "training": {"architecture": "ring"},
        "run": {"iterations": 20 if fidelity == "flow" or case in RARE else 2, "warmup": 1},
    }
    row = simnet.run(scenario).summary.iloc[0]
    return {
        "network": network,
        "protocol": protocol,
        "fidelity": fidelity,
        "loss": f"{100 * loss:g} %",
        "iteration_time_s": row["iteration_time_s"],
        "compute_time_s": row["compute_time_s"],
        "scaling_efficiency": row["scaling_efficiency"],
        "lost_bytes": row["lost_bytes"],
        "lost_share": row["lost_bytes"] / (8 * row["bytes_sent_per_worker"]),
    }


def _table(run: Any, cases: list[Any]) -> pd.DataFrame:
    """Return a row for each case, in their order, made on all cores."""
    with ProcessPoolExecutor() as pool:
        return pd.DataFrame(list(pool.map(run, cases)))


def inception() -> None:
    """Write what Inception-V3 takes over each protocol."""
    frame = each_protocol()
    for name in ("packets", "retransmitted", "timeouts", "dropped", "marked", "highest_queue_bytes"):
        frame[name] = frame[name].astype("Int64")  # there are none at flow level
    write(frame, HERE / "inception_v3_16.csv", digits=6)
    for exchange, name in (("ring", "ring"), ("1 parameter server", "server")):
        shown = frame[frame["exchange"] == exchange].reset_index(drop=True)
        figure = bars(shown, by=["protocol", "fidelity"], title=f"Inception-V3, 16 workers, {exchange}")
        save_figure(figure, HERE / f"inception_v3_16_{name}.svg")


def losses() -> None:
    """Write what loss costs in training."""
    frame = lossy()
    write(frame, HERE / "lossy.csv", digits=6)
    shown = frame.assign(network=frame["network"] + ": " + frame["network"].map(TITLES))
    flow = shown[shown["fidelity"] == "flow"]
    figure = panels(
        flow,
        *("loss", "scaling_efficiency", "protocol", "network"),
        title="ResNet-50 on 8 workers, ring; hollow: packet by packet",
    )
    places = {f"{100 * loss:g} %": number for number, loss in enumerate(LOSSES)}
    for axes, (_, group) in zip(figure.axes, shown.groupby("network", sort=False), strict=True):
        for line in axes.get_lines():
            checked = group[(group["protocol"] == line.get_label()) & (group["fidelity"] == "packet")]
            axes.scatter(
                checked["loss"].map(places),
                checked["scaling_efficiency"],
                s=90,
                facecolors="none",
                edgecolors=line.get_color(),
                marker=line.get_marker(),
            )
    save_figure(figure, HERE / "lossy.svg")
    near = flow[flow["network"] == flow["network"].iloc[0]]
    title = "Payload lost an iteration, all workers together"
    save_figure(curves(near, "loss", "lost_bytes", title=title), HERE / "lost_bytes.svg")


def main() -> None:
    """Write all tables and pictures of this folder."""
    compile_kernels(print)
    compile_packet_kernels(print)
    inception()
    losses()


if __name__ == "__main__":
    main()
