"""Write what compressing gradients gains over the bandwidth of the network: tables and pictures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from writing import write

import simnet
from simnet.experiment.plot import curves, save_figure

FOLDER = Path(__file__).parent / "compression"

BANDWIDTHS_GBPS = [1, 2, 5, 10, 25, 50, 100, 200, 400, 1200]  # the last: NVLink of a V100, one direction
SCHEMES: dict[str, object] = {
    "fp16": "fp16",
    "8 bits": {"quantize": {"bits": 8}},
    "1 bit": {"quantize": {"bits": 1}},
    "1 % of the elements": {"sparsify": {"ratio": 0.01}},
    "rank 4": {"low_rank": {"rank": 4}},
}
MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "resnet50": ("ResNet-50, batch 64", {"model": "resnet50", "gpu": "v100", "batch_size": 64}),
    "bert_large": (
        "BERT-large, batch 8, 64 tokens",
        {"model": "bert_large", "gpu": "v100", "batch_size": 8, "sequence_length": 64},
    ),
}


def main() -> None:
    """Write both: iteration time without compression over that with it, on 16 hosts with a V100 each, in a ring."""
    for name, (title, workload) in MODELS.items():
        frames = [_gains(gbps, workload) for gbps in BANDWIDTHS_GBPS]
        table = pd.concat(frames, ignore_index=True)
        write(table, FOLDER / f"{name}.csv")
        figure = curves(
            table,
            "bandwidth_Gbps",
            "gain",
            "compression",
            title=f"{title}, ring of 16 V100 over RDMA",
            log_y=name == "bert_large",
        )
        axes = figure.axes[0]
        axes.axhline(1.0, color="#888888", linewidth=0.8, zorder=0)
        axes.set_xlabel("bandwidth of each host [Gbit/s]")
        axes.set_ylabel("time without compression / time with it")
        save_figure(figure, FOLDER / f"{name}.svg")


def _gains(gbps: int, workload: dict[str, object]) -> pd.DataFrame:
    """Return a row for each scheme."""
    changes: dict[str, object] = {
        "topology": {"star": {"hosts": 16, "bandwidth": f"{gbps} Gbps", "latency": "1 us"}},
        "workload": workload,
        "run.iterations": 2,
    }
    columns = ["iteration_time_s", "compute_time_s", "compression_time_s", "exposed_communication_time_s"]
    rows = []
    for name, scheme in {"none": "none", **SCHEMES}.items():
        summary = simnet.run("resnet50_16gpu", {**changes, "training.compression": scheme}).summary
        rows.append(summary[[*columns, "bytes_sent_per_worker"]].assign(compression=name, bandwidth_Gbps=gbps))
    table = pd.concat(rows, ignore_index=True)
    table["gain"] = table["iteration_time_s"].iloc[0] / table["iteration_time_s"]
    return table[table["compression"] != "none"]


if __name__ == "__main__":
    main()
