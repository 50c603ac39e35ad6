"""Write what stragglers cost by the way of synchronising: tables and pictures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from writing import write

import simnet
from simnet.experiment.plot import curves, save_figure

FOLDER = Path(__file__).parent / "stragglers"

WORKERS = 16
BOUNDS = [0, 1, 2, 4, 8, 16, 32]
WINDOWS = [10, 20, 50, 100, 200, 500]

# Gradients travel in next to no time, in one bucket, so that nothing is left but computing and waiting.
BASE: dict[str, object] = {
    "topology": {"star": {"hosts": WORKERS + 1, "bandwidth": "1000 Tbps", "latency": "0 s"}},
    "protocol": "ideal",
    "training.workers": WORKERS,
    "training.architecture": {"parameter_server": {"servers": 1}},
    "training.bucket_size": "1 GB",
    "run.warmup": 0,
}
ALL_ALIKE = list(range(WORKERS))
PATTERNS: dict[str, dict[str, object]] = {
    "one at half speed": {"training.speed_factors": {"0": 0.5}},
    "exponential times": {"training.jitter": {"distribution": "exponential", "scale": 1.0}},
    "lognormal, sigma 0.3": {"training.jitter": {"distribution": "lognormal", "sigma": 0.3}},
    "each 1 in 20 times 5 times as long": {
        "training.stragglers": [
            {"workers": ALL_ALIKE, "pattern": {"occasional": {"factor": 5.0, "probability": 0.05}}},
        ]
    },
}


def main() -> None:
    """Write both."""
    constant()
    random()


def constant() -> None:
    """Write what one constant straggler costs in a window, and what it does by formula.

    In units of what all workers at full speed do in n passes, N of them: bsp 1/2; asp 1 - 1/(2N); ssp the lesser of asp
    and 1/2 + (N - 1)s/(N n).
    """
    asp = 1.0 - 0.5 / WORKERS
    rows = []
    for passes in WINDOWS:
        for name, sync in {"asp": "asp", **{f"ssp {s}": {"ssp": {"staleness": s}} for s in (0, 3, 9)}}.items():
            bound = passes if name == "asp" else int(name.split()[1])
            formula = min(asp, 0.5 + (WORKERS - 1) * bound / (WORKERS * passes))
            rows.append({"passes": passes, "sync": name, "formula": formula} | _throughput(sync, passes))
    table = pd.DataFrame(rows)
    write(table, FOLDER / "constant.csv")
    figure = curves(table, "passes", "throughput", "sync", title="One of 16 workers at half speed, no communication")
    figure.axes[0].set_xlabel("passes of a fast worker in the window")
    figure.axes[0].set_ylabel("updates / updates of 16 fast workers")
    save_figure(figure, FOLDER / "constant.svg")


def _throughput(sync: object, passes: int) -> dict[str, object]:
    """Return the updates of a window, in units of those of workers at full speed."""
    pass_s = 0.252864480442513  # what ResNet-50 at batch 64 takes; the window closes just behind the last
    changes = {
        **BASE,
        **PATTERNS["one at half speed"],
        "training.sync": sync,
        "run.duration": f"{passes * pass_s * (1 + 1e-4):.12g} s",
    }
    result = simnet.run("resnet50_16gpu", changes)
    done = int(result.workers["iterations"].sum())
    return {"updates": done, "throughput": done / (WORKERS * passes)}


def random() -> None:
    """Write how much a bound on staleness saves where stragglers come by chance, over the bound."""
    rows = []
    for pattern, changes in PATTERNS.items():
        for bound in [*BOUNDS, None]:
            sync: object = "asp" if bound is None else {"ssp": {"staleness": bound}}
            summary = simnet.run(
                "resnet50_16gpu", {**BASE, **changes, "training.sync": sync, "run.iterations": 300, "run.warmup": 20}
            ).summary.iloc[0]
            rows.append(
                {
                    "stragglers": pattern,
                    "staleness": "asp" if bound is None else str(bound),
                    "updates_per_s": summary["updates_per_s"],
                    "efficiency": summary["scaling_efficiency"],
                    "mean_staleness_updates": summary["staleness_updates"],
                }
            )
    table = pd.DataFrame(rows)
    write(table, FOLDER / "random.csv")
    figure = curves(
        table, "staleness", "efficiency", "stragglers", title="16 workers, no communication, 300 iterations"
    )
    figure.axes[0].set_xlabel("iterations that a worker may be ahead")
    figure.axes[0].set_ylabel("throughput / 16 x fastest alone")
    save_figure(figure, FOLDER / "random.svg")


if __name__ == "__main__":
    main()
