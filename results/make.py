"""Write the tables and pictures that README and docs show: ``make results``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import compression
import pandas as pd
import protocols
import recovery
import scheduling
import stragglers
from writing import write

import simnet
from simnet.experiment.collective import run_collective
from simnet.experiment.plot import bars, breakdown, curves, save_figure
from simnet.scenario import load_collective
from simnet.traffic import volume_table

HERE = Path(__file__).parent

MAIN_JOB = ("inception_v3_100gpu", "inception_v3_100gpu_ipoib", "inception_v3_100gpu_tcp_10g")
PROTOCOLS = ["rdma", "dpdk", "tcp", "ipoib"]
SHORT: dict[str, object] = {"run.iterations": 3}  # without jitter all iterations are alike
ARCHITECTURES: list[object] = [
    *("ring", "butterfly", "double_tree", "hierarchical", "torus", "mesh", "in_network", "tree", "star"),
]
SERVERS: dict[str, object] = {
    "1 parameter server": "parameter_server",
    "4 parameter servers": {"parameter_server": {"servers": 4}},
    "16 servers beside the workers": {"parameter_server": {"servers": 16, "placement": "colocated"}},
}
SERVER_CLUSTER: dict[str, object] = {
    "topology": {"star": {"hosts": 80, "bandwidth": "100 Gbps", "latency": "1 us"}},
    "protocol": "rdma",
    "workload": {"model": "vgg16", "gpu": "v100", "batch_size": 16},
    "training.overlap": False,
    "training.bucket_size": "25 MiB",
    **SHORT,
}
BERT_LARGE = {"model": "bert_large", "gpu": "v100", "batch_size": 8, "sequence_length": 64}


def main_job() -> None:
    """Write what ``make demo`` runs, and the same job with all protocols on equal links."""
    demo = pd.concat([simnet.run(name).summary for name in MAIN_JOB], ignore_index=True)
    demo["network"] = ["100 Gbit/s InfiniBand"] * 2 + ["10 Gbit/s Ethernet"]
    folder = HERE / "inception_v3_100gpu"
    write(demo, folder / "summary.csv")
    save_figure(bars(demo, by=["protocol", "network"], title="Inception-V3 on 100 V100"), folder / "efficiency.svg")
    equal = simnet.sweep("inception_v3_100gpu", {"protocol": PROTOCOLS}, SHORT)
    write(equal, folder / "equal_links.csv")
    title = "Inception-V3 on 100 V100, all at 100 Gbit/s"
    save_figure(bars(equal, "communication_time_s", title=title), folder / "equal_links.svg")


def scaling() -> None:
    """Write how training speeds up with workers, for a model that computes much and one that sends much."""
    workers = {"training.workers": [1, 2, 4, 8, 16, 32]}
    jobs: list[tuple[str, str, dict[str, object]]] = [
        ("resnet50", "ResNet-50, batch 64", {}),
        ("bert_large", "BERT-large, batch 8, 64 tokens", {"workload": BERT_LARGE}),
    ]
    for name, title, workload in jobs:
        fast = simnet.sweep("resnet50_16gpu", {"protocol": PROTOCOLS, **workers}, SHORT | workload)
        slow = simnet.sweep(
            "resnet50_16gpu", {"protocol": ["tcp"], **workers}, SHORT | workload | {"topology": "v100_8x4_10g"}
        )
        both = pd.concat([fast.assign(bandwidth="100 Gbit/s"), slow.assign(bandwidth="10 Gbit/s")], ignore_index=True)
        both["network"] = both["protocol"] + ", " + both["bandwidth"]
        folder = HERE / "scaling" / name
        write(both, folder / "summary.csv")
        save_figure(curves(both, by="network", title=f"{title}, on hosts with 4 V100"), folder / "efficiency.svg")
        largest = both[both["workers"] == 32].reset_index(drop=True)
        save_figure(breakdown(largest, ["network"], title=f"{title}, on 32 V100"), folder / "breakdown.svg")


def architectures() -> None:
    """Write what the ways of exchanging gradients cost."""
    ways = [*ARCHITECTURES, *SERVERS.values()]
    frame = simnet.sweep("resnet50_16gpu", {"training.architecture": ways}, SHORT)
    frame["exchange"] = [*ARCHITECTURES, *SERVERS]
    folder = HERE / "architectures"
    write(frame, folder / "summary.csv")
    save_figure(breakdown(frame, ["exchange"], title="ResNet-50 on 16 V100 over RDMA"), folder / "breakdown.svg")


def volumes() -> None:
    """Write what each way of exchanging gradients sends: counted, and by closed formula."""
    rows = volume_table([4, 7, 16, 64], elements=6720, element_bytes=4.0)
    write(pd.DataFrame(rows), HERE / "architectures" / "volumes.csv")


def crossover() -> None:
    """Write from which size on a ring is faster than algorithms of fewer steps, played and by closed formula.

    On N = 24 hosts of a star, x = S/B and path latency p: ring 2 (N - 1)(x/N + p); halving-doubling, with 2^q <= N,
    2 q p + 2 x (2^q - 1)/2^q + 2 (x + p); binomial tree 2 ceil(log2 N)(x + p).
    """
    hosts, bandwidth, path_s = 24, 12.5e9, 2e-6
    cluster = {"star": {"hosts": hosts, "bandwidth": "100 Gbps", "latency": "1 us"}}
    q, levels = int(math.log2(hosts)), math.ceil(math.log2(hosts))
    formulas: dict[str, Callable[[float], float]] = {
        "ring": lambda x: 2 * (hosts - 1) * (x / hosts + path_s),
        "halving_doubling": lambda x: 2 * q * path_s + 2 * x * (2**q - 1) / 2**q + 2 * (x + path_s),
        "tree": lambda x: 2 * levels * (x + path_s),
    }
    frames = []
    for algorithm, formula in formulas.items():
        settings = load_collective(
            "all_reduce",
            topology=cluster,
            protocol={"ideal": {"divisible": True}},
            algorithm=algorithm,
            sizes="8KiB:8MiB:x2",
        )
        frame = run_collective(settings)
        frame["algorithm"] = algorithm
        frame["formula_us"] = [formula(size / bandwidth) * 1e6 for size in frame["size_bytes"]]
        frames.append(frame)
    table = pd.concat(frames, ignore_index=True)
    folder = HERE / "architectures"
    write(table, folder / "crossover.csv")
    title = "All-reduce on 24 hosts, 100 Gbit/s, 2 us"
    figure = curves(table, "size_bytes", "time_us", "algorithm", title=title, log_y=True)
    save_figure(figure, folder / "crossover.svg")


def servers() -> None:
    """Write how parameter servers saturate with the number of workers, and what relieves them."""
    workers = [1, 2, 4, 8, 16, 32]
    ways: dict[str, object] = {
        "1 server": {"servers": 1},
        "1 server, 5 GB/s of adding": {"servers": 1, "aggregation_rate": "5 GB/s"},
        "tree of servers, fan-in 4": {"servers": 1, "fan_in": 4},
        "4 servers": {"servers": 4},
        "as many servers as workers": {"placement": "colocated"},
    }
    frames = []
    for name, options in ways.items():
        for count in workers:
            own = {"servers": count} if name.startswith("as many") else {}
            changes = {"training.workers": count, "training.architecture": {"parameter_server": {**options, **own}}}
            frame = simnet.run("parameter_server_dedicated", {**SERVER_CLUSTER, **changes}).summary
            frames.append(frame.assign(servers=name))
    ring = [simnet.run("resnet50_16gpu", {**SERVER_CLUSTER, "training.workers": count}).summary for count in workers]
    compared = [frame.assign(servers="ring, for comparison") for frame in ring]
    table = pd.concat([*frames, *compared], ignore_index=True)
    folder = HERE / "architectures"
    write(table, folder / "servers.csv")
    title = "VGG-16 on V100 hosts, 100 Gbit/s, no overlap"
    save_figure(curves(table, y="iteration_time_s", by="servers", title=title), folder / "servers.svg")


def main() -> None:
    """Write everything."""
    began = time.perf_counter()
    main_job()
    scaling()
    architectures()
    volumes()
    crossover()
    servers()
    protocols.main()
    compression.main()
    scheduling.main()
    stragglers.main()
    recovery.main()
    print(f"wrote {HERE} in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
