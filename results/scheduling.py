"""Write what priorities, pieces and fusion gain over the bandwidth of the network: tables and pictures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from writing import write

import simnet
from simnet.experiment.plot import curves, save_figure

FOLDER = Path(__file__).parent / "scheduling"

BANDWIDTHS_GBPS = [1, 2, 5, 10, 25, 50, 100, 200, 400, 800]
LATENCIES_US = [1, 5, 20, 50, 100]

# Tensors whole, as many under way as the architecture has; in pieces, one after the other; the same with priority.
WAYS: list[dict[str, object]] = [
    {},
    {"training.scheduling": {"partition": "4 MiB", "streams": 1}},
    {"training.scheduling": {"partition": "4 MiB", "streams": 1, "order": "priority"}},
]

# Tensors one by one, first ready first, are what both P3 and ByteScheduler compare with.
BASE: dict[str, object] = {
    "protocol": "rdma",
    "training.workers": 8,
    "training.bucket_size": "1 B",
    "training.forward_overlap": True,
    "run.iterations": 3,
}
ARCHITECTURES: dict[str, object] = {
    "ring": "ring",
    "8 parameter servers": {"parameter_server": {"servers": 8}},
}
MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "resnet50": ("ResNet-50, batch 64", {"model": "resnet50", "gpu": "v100", "batch_size": 64}),
    "vgg16": ("VGG-16, batch 16", {"model": "vgg16", "gpu": "v100", "batch_size": 16}),
}
FUSIONS: dict[str, dict[str, object]] = {
    "every tensor alone": {"training.bucket_size": "1 B"},
    "buckets of 25 MiB": {},
    "cycles of 1 ms": {"training.scheduling.fusion": "cycle"},
    "cycles of 5 ms, 64 MiB": {"training.scheduling.fusion": {"cycle": {"time": "5 ms", "buffer": "64 MiB"}}},
    "merged": {"training.scheduling.fusion": "merged"},
}


def main() -> None:
    """Write all of them."""
    for name, (title, workload) in MODELS.items():
        rows = [_gain(workload, how, gbps) for gbps in BANDWIDTHS_GBPS for how in ARCHITECTURES]
        table = pd.concat(rows, ignore_index=True)
        write(table, FOLDER / f"priority_{name}.csv")
        figure = curves(table, "bandwidth_Gbps", "gain_of_order", "architecture", title=f"{title}, on 8 V100 over RDMA")
        axes = figure.axes[0]
        axes.axhline(1.0, color="#888888", linewidth=0.8, zorder=0)
        axes.set_xlabel("bandwidth of each host [Gbit/s]")
        axes.set_ylabel("time first ready first / time with priority")
        save_figure(figure, FOLDER / f"priority_{name}.svg")
    latencies = [_gain(MODELS["vgg16"][1], "ring", 100, latency_us) for latency_us in LATENCIES_US]
    write(pd.concat(latencies, ignore_index=True), FOLDER / "priority_latency.csv")
    write(pd.concat([_fusion(gbps) for gbps in BANDWIDTHS_GBPS], ignore_index=True), FOLDER / "fusion_resnet50.csv")


def _gain(workload: dict[str, object], architecture: str, gbps: int, latency_us: int = 5) -> pd.DataFrame:
    """Return what the same exchanges take whole, in pieces, and in pieces with priority."""
    changes = BASE | {
        "topology": {"star": {"hosts": 16, "bandwidth": f"{gbps} Gbps", "latency": f"{latency_us} us"}},
        "workload": workload,
        "training.architecture": ARCHITECTURES[architecture],
    }
    whole, pieces, priority = (simnet.run("resnet50_16gpu", changes | way).summary.iloc[0] for way in WAYS)
    times_s = [float(row["iteration_time_s"]) for row in (whole, pieces, priority)]
    return pd.DataFrame(
        {
            "architecture": architecture,
            "bandwidth_Gbps": gbps,
            "latency_us": latency_us,
            "compute_time_s": float(whole["compute_time_s"]),
            "communication_time_s": float(whole["communication_time_s"]),
            "whole_s": times_s[0],
            "pieces_s": times_s[1],
            "priority_s": times_s[2],
            "gain_of_order": times_s[1] / times_s[2],
            "gain": times_s[0] / times_s[2],
        },
        index=[0],
    )


def _fusion(gbps: int) -> pd.DataFrame:
    """Return the iteration time of ResNet-50 on 32 hosts, with latency that many small exchanges feel."""
    changes: dict[str, object] = {
        "topology": {"star": {"hosts": 32, "bandwidth": f"{gbps} Gbps", "latency": "10 us"}},
        "protocol": "tcp",
        "training.workers": 32,
        "run.iterations": 3,
    }
    row: dict[str, object] = {"bandwidth_Gbps": gbps}
    for name, way in FUSIONS.items():
        row[name] = float(simnet.run("resnet50_16gpu", changes | way).summary["iteration_time_s"].iloc[0])
    return pd.DataFrame(row, index=[0])


if __name__ == "__main__":
    main()
