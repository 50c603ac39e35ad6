"""Write the tables and pictures that README and docs show: ``make results``."""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd

import simnet
from simnet.experiment.plot import bars, breakdown, curves, save_figure

HERE = Path(__file__).parent

MAIN_JOB = ("inception_v3_100gpu", "inception_v3_100gpu_ipoib", "inception_v3_100gpu_tcp_10g")
PROTOCOLS = ["rdma", "dpdk", "tcp", "ipoib"]
SHORT: dict[str, object] = {"run.iterations": 3}  # without jitter all iterations are alike
ARCHITECTURES = ["ring", "butterfly", "tree", "mesh", "star", "parameter_server"]
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
    several = {"parameter_server": {"servers": 4}}
    frame = simnet.sweep("resnet50_16gpu", {"training.architecture": [*ARCHITECTURES, several]}, SHORT)
    frame["exchange"] = [*ARCHITECTURES[:-1], "1 parameter server", "4 parameter servers"]
    folder = HERE / "architectures"
    write(frame, folder / "summary.csv")
    save_figure(breakdown(frame, ["exchange"], title="ResNet-50 on 16 V100 over RDMA"), folder / "breakdown.svg")


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, without the column that differs from run to run and the digits that differ between machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.drop(columns="wall_time_s").to_csv(path, index=False, lineterminator="\n", float_format="%.9g")


def main() -> None:
    """Write everything."""
    began = time.perf_counter()
    main_job()
    scaling()
    architectures()
    print(f"wrote {HERE} in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
