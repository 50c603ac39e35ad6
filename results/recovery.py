"""Write what the loss of a worker or of a server costs each way of exchanging, and how often to write a checkpoint."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from writing import write

import simnet
from simnet.experiment.plot import curves, save_figure

FOLDER = Path(__file__).parent / "recovery"

SERVERS: dict[str, object] = {"architecture": {"parameter_server": {"servers": 2}}}
WAYS: dict[str, dict[str, object]] = {
    "servers, bsp": {**SERVERS, "sync": "bsp"},
    "servers, asp": {**SERVERS, "sync": "asp"},
    "ring": {"architecture": "ring"},
    "mesh": {"architecture": "mesh"},
    "gossip, bsp": {"architecture": "gossip", "sync": "bsp"},
    "gossip, asp": {"architecture": "gossip", "sync": "asp"},
}
AT_S, FOR_S, DETECT_S, FAILOVER_S = 15.0, 10.0, 2.0, 2.0
CRASH = {"at": f"{AT_S} s", "for": f"{FOR_S} s", "detect_after": f"{DETECT_S} s"}
FAULTS: dict[str, object] = {
    "a worker": {"worker_crash": {"worker": 3, **CRASH}},
    "a server": {"server_crash": {"server": 0, **CRASH}},
    "a server with a replica": {"server_crash": {"server": 0, "failover": f"{FAILOVER_S} s", **CRASH}},
}
REPLICA_IN_VAIN: dict[str, object] = {
    "server_crash": {"server": 0, "failover": f"{FAILOVER_S} s", "at": "1 h", "detect_after": f"{DETECT_S} s"}
}
BIN_S = 1.0
CLUSTER: dict[str, object] = {
    "topology": {"star": {"hosts": 12, "bandwidth": "25 Gbps", "latency": "1 us"}},
    "protocol": "tcp",
    "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
    "run": {"iterations": 120, "warmup": 0},
}

WRITE_S, PASS_S, MEAN_S, REPAIR_S = 2.0, 0.5, 100.0, 3.0
SEEDS = range(10)


def main() -> None:
    """Write both."""
    losses()
    intervals()


def losses() -> None:
    """Write throughput over time around each loss, of eight workers, and what it costs in all."""
    rows, series = [], []
    for way, training in WAYS.items():
        plain = _run(training, None)
        for fault, spec in FAULTS.items():
            if fault != "a worker" and not way.startswith("servers"):
                continue
            # A replica costs something, whether it is needed or not.
            usual = _run(training, REPLICA_IN_VAIN) if "replica" in fault else plain
            result = _run(training, spec)
            row, before = result.summary.iloc[0], usual.summary.iloc[0]
            ends_s = _ends_s(result)
            rows.append(
                {
                    "exchange": way,
                    "lost": fault,
                    "throughput_samples_per_s": row.throughput_samples_per_s,
                    "without_samples_per_s": before.throughput_samples_per_s,
                    "longer_s": ends_s.max() - _ends_s(usual).max(),
                    "lost_iterations": row.lost_iterations,
                    "recovery_time_s": row.recovery_time_s * row.iterations,
                }
            )
            name = way if fault == "a worker" else f"{way}: {fault}"
            series.append(_over_time(result).assign(exchange=name, lost=fault))
    write(pd.DataFrame(rows), FOLDER / "losses.csv")
    table = pd.concat(series, ignore_index=True)
    write(table, FOLDER / "over_time.csv")
    for file, title, shown in (
        ("worker.svg", "A worker of eight dies at 15 s and is back at 25 s", table["lost"] == "a worker"),
        ("server.svg", "One of two servers dies at 15 s", table["lost"] != "a worker"),
    ):
        figure = curves(table[shown], "time_s", "samples_per_s", "exchange", title=title, log_x=False)
        figure.axes[0].set_xlabel("time [s]")
        figure.axes[0].set_ylabel("throughput of iterations that count [samples/s]")
        save_figure(figure, FOLDER / file)


def intervals() -> None:
    """Write how long training takes by the time between checkpoints, where crashes come at random.

    For work T, checkpoints of d each t of work, mean time M between crashes and R until work goes on, the mean is
    M exp(R/M) (exp((t + d)/M) - 1) T/t (J. Daly, "A higher order estimate of the optimum checkpoint interval for
    restart dumps", Future Generation Computer Systems 22, 2006); it is least near sqrt(2 d M) (J. Young, "A first
    order approximation to the optimum checkpoint interval", Communications of the ACM 17, 1974).
    """
    iterations, rows = 4000, []
    work_s, restart_s = iterations * PASS_S, REPAIR_S + WRITE_S
    for every in (5, 10, 20, 40, 80, 160, 320):
        between_s = every * PASS_S
        found = [_with_crashes(every, iterations, seed) for seed in SEEDS]
        formula_s = MEAN_S * math.exp(restart_s / MEAN_S) * math.expm1((between_s + WRITE_S) / MEAN_S)
        rows.append(
            {
                "interval_s": between_s,
                "time_over_work": float(np.mean(found)) / work_s,
                "standard_error": float(np.std(found, ddof=1)) / math.sqrt(len(found)) / work_s,
                "formula": formula_s / between_s,
            }
        )
    write(pd.DataFrame(rows), FOLDER / "intervals.csv")
    table = pd.DataFrame(rows)
    both = pd.concat(
        [
            table.assign(of="simulated"),
            table.assign(of="Daly's mean", time_over_work=table["formula"]),
        ],
        ignore_index=True,
    )
    title = "Checkpoints of 2 s, crashes every 100 s in the mean"
    figure = curves(both, "interval_s", "time_over_work", "of", title=title)
    axes = figure.axes[0]
    axes.axvline(math.sqrt(2.0 * WRITE_S * MEAN_S), color="#888888", linewidth=0.8, zorder=0)
    axes.set_xlabel("work between checkpoints [s]; line: Young's")
    axes.set_ylabel("time / work")
    save_figure(figure, FOLDER / "intervals.svg")


def _run(training: dict[str, object], fault: object) -> simnet.Result:
    checkpoint = {"every": 20, "storage": "host11"}
    changes = {"training": {"workers": 8, "checkpoint": checkpoint, "jitter": {"sigma": 0.1}, **training}}
    return simnet.run({**CLUSTER, **changes, **({"faults": [fault]} if fault else {})})


def _ends_s(result: simnet.Result) -> pd.Series[float]:
    rows = result.iterations
    return rows["start_s"] + rows["iteration_time_s"]


def _over_time(result: simnet.Result) -> pd.DataFrame:
    """Return throughput over time, with the samples of each iteration that counts spread over it."""
    rows, ends_s = result.iterations, _ends_s(result).to_numpy()
    edges_s = np.arange(0.0, ends_s.max(), BIN_S)
    begun = (edges_s[:, None] - rows["start_s"].to_numpy()) / rows["iteration_time_s"].to_numpy()
    done = 64.0 * np.clip(begun, 0.0, 1.0).sum(axis=1)
    return pd.DataFrame({"time_s": edges_s[:-1] + BIN_S / 2, "samples_per_s": np.diff(done) / BIN_S})


def _with_crashes(every: int, iterations: int, seed: int) -> float:
    """Return how long a worker takes with crashes at random [s]."""
    stream = np.random.default_rng(seed)
    at_s = np.cumsum(stream.exponential(MEAN_S, 10 * int(iterations * PASS_S / MEAN_S)))
    crashes = [
        {"worker_crash": {"worker": 0, "at": f"{at:.6f} s", "for": f"{REPAIR_S} s", "detect_after": "1 s"}}
        for at in at_s.tolist()
    ]
    result = simnet.run(
        {
            "topology": {"star": {"hosts": 2}},
            "protocol": "ideal",
            "workload": {"model": "resnet50", "batch_size": 64, "samples_per_s": 64 / PASS_S},
            "training": {
                "workers": 1,
                "checkpoint": {"every": every, "size": f"{WRITE_S} GB", "rate": "1 GB/s"},
            },
            "faults": crashes,
            "run": {"iterations": iterations, "warmup": 0},
        }
    )
    return float(_ends_s(result).max())


if __name__ == "__main__":
    main()
