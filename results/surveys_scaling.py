"""Findings about how training speeds up: 2, 3, 10 and 12."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
from surveys_tools import Place, markdown, wide_table

import simnet
from simnet.experiment.plot import curves, panels
from simnet.training.laws.convergence import ROUNDS, communication_rounds, iterations_to_target
from simnet.training.laws.speedup import amdahl, communication_bound, fit_amdahl, fit_gustafson, gustafson
from simnet.workload import model_entry

__all__ = ["large_batch", "laws", "ratio", "rounds"]

_IMAGES = 1_281_167
"""Of the training set of ImageNet, ILSVRC 2012."""
_EPOCHS = 90


def large_batch(place: Place) -> None:
    """Write time to train, predicted where a rate of one processor is known, and bytes by iteration and by epoch."""
    facts = pd.read_csv(place.folder / "facts.csv")
    found = place.run(
        "runs",
        {
            "training.overlap": "overlap",
            "name": "run",
            "throughput_samples_per_s": "throughput",
            "scaling_efficiency": "simulated_efficiency",
            "workload.batch_size": "batch_per_worker",
            "compute_time_s": "compute_time_s",
        },
    )
    late = found[~found["overlap"]].set_index("run")["simulated_efficiency"].rename("efficiency_without_overlap")
    found = found[found["overlap"]].drop(columns="overlap")
    table = facts.merge(found.join(late, on="run"), on="run", how="left", validate="one_to_one")
    table["rate_of_one"] = table["batch_per_worker"] / table["compute_time_s"]
    table["predicted_minutes"] = _EPOCHS * _IMAGES / table["throughput"] / 60
    table["predicted_over_measured"] = table["predicted_minutes"] / table["minutes"]
    gradients = 4 * model_entry("resnet50").parameters
    batch = pd.to_numeric(table["batch"], errors="coerce")
    table["gigabytes_per_iteration"] = 2 * (table["processors"] - 1) * gradients / 1e9
    table["iterations_per_epoch"] = np.ceil(_IMAGES / batch)
    table["terabytes_per_epoch"] = table["gigabytes_per_iteration"] * table["iterations_per_epoch"] / 1e3
    place.table("runs", table.drop(columns=["batch_per_worker", "compute_time_s", "throughput"]))
    place.parts["predicted"] = markdown(
        [
            *("run", "processors", "batch", "rate of one [images/s]", "simulated efficiency", "without overlap"),
            *("published", "predicted [min]", "measured [min]", "predicted / measured"),
        ],
        [
            [
                *(one.run, f"{one.processors:.0f} {one.processor}", one.batch, f"{one.rate_of_one:.0f}"),
                *(f"{one.simulated_efficiency:.3f}", f"{one.efficiency_without_overlap:.3f}"),
                "" if pd.isna(one.efficiency) else f"{one.efficiency:g}",
                *(f"{one.predicted_minutes:.0f}", f"{one.minutes:g}"),
                f"{one.predicted_over_measured:.2f}",
            ]
            for one in table.dropna(subset="throughput").itertuples()
        ],
    )
    place.parts["not predicted"] = markdown(
        ["run", "processors", "batch", "measured [min]"],
        [
            [
                one.run,
                f"{one.processors:.0f} {one.processor}" if one.processors > 0 else f"{one.processor} pod",
                *(one.batch, f"{one.minutes:g}"),
            ]
            for one in table[table["throughput"].isna()].itertuples()
        ],
    )
    known = table.dropna(subset="terabytes_per_epoch").sort_values("processors", kind="stable")
    place.parts["bytes"] = markdown(
        ["run", "K", "batch", "all workers, an iteration [GB]", "iterations of an epoch", "an epoch [TB]"],
        [
            [
                *(one.run, f"{one.processors:.0f}", one.batch, f"{one.gigabytes_per_iteration:.1f}"),
                *(f"{one.iterations_per_epoch:.0f}", f"{one.terabytes_per_epoch:.1f}"),
            ]
            for one in known.itertuples()
        ],
    )


def rounds(place: Place) -> None:
    """Write how often algorithms communicate, and what that comes to on a slow network."""
    table = place.run(
        "period",
        {
            "training.workers": "workers",
            "training.sync": "sync",
            "iteration_time_s": "iteration_time_s",
            "compute_time_s": "compute_time_s",
            "scaling_efficiency": "efficiency",
        },
    )
    table.insert(1, "period", [1 if one == "bsp" else json.loads(one)["local_sgd"]["period"] for one in table["sync"]])
    every = table[table["period"] == 1].set_index("workers")["iteration_time_s"].loc[table["workers"]].to_numpy()
    compute = table["compute_time_s"]
    table["formula_efficiency"] = compute / (compute + (every - compute) / table["period"])
    place.table("period", table.drop(columns="sync"))
    samples, batch = 100 * 1_280_000, 32
    rows = []
    for workers, group in table.groupby("workers"):
        iterations = iterations_to_target(samples, workers * batch)
        exposed_over_compute = float((1 / group["efficiency"].iloc[0]) - 1)
        for one in ROUNDS:
            wanted = 1.0 if one.rounds is None else one.rounds(float(workers), float(iterations))
            period = max(1, math.floor(iterations / wanted))
            rows.append(
                {
                    "algorithm": f"{one.algorithm} ({one.paper.split(',')[0]})",
                    "workers": workers,
                    "iterations": iterations,
                    "rounds": communication_rounds(iterations, period),
                    "period": period,
                    "speedup": workers / (1 + exposed_over_compute / period),
                    "linear": "not in general" if one.rounds is None else "yes",
                }
            )
    found = pd.DataFrame(rows)
    place.table("algorithms", found)
    most = found[found["workers"] == found["workers"].max()]
    place.parts["algorithms"] = markdown(
        ["algorithm", "iterations", "rounds", "iterations a round", "speed-up in time", "linear speed-up is proven"],
        [
            [one.algorithm, one.iterations, one.rounds, one.period, f"{one.speedup:.1f}", one.linear]
            for one in most.itertuples()
        ],
    )
    place.parts["iterations"] = markdown(
        ["batch", "iterations of 100 epochs of 1.28 million images"],
        [[size, iterations_to_target(samples, size)] for size in (1024, 8192, 512)],
    )
    figure = curves(
        table,
        *("period", "efficiency", "workers"),
        title="VGG-16 over 10 Gbit/s TCP, P100",
    )
    figure.axes[0].set_xlabel("iterations from one average to the next")
    place.picture("period", figure)


def ratio(place: Place) -> None:
    """Write strong and weak scaling at 1:1, and where speed-up is super-linear."""
    strong = place.run(
        "strong",
        {"training.workers": "workers", "iteration_time_s": "iteration_time_s", "compute_time_s": "compute_time_s"},
    )
    # T(1) = C + M, with C what one worker computes and M what is exchanged: both are 1 s.
    compute_s = strong["compute_time_s"] * strong["workers"]
    exchange_s = strong["iteration_time_s"] - strong["compute_time_s"]
    strong["speedup"] = (compute_s + exchange_s) / strong["iteration_time_s"]
    strong["formula"] = [communication_bound(1.0, workers, "strong") for workers in strong["workers"]]
    place.table("strong", strong)
    place.parts["strong"] = markdown(
        ["workers", *strong["workers"]],
        [
            ["speed-up, simulated", *(f"{one:.3f}" for one in strong["speedup"])],
            ["(C + M)/(C/P + M)", *(f"{one:.3f}" for one in strong["formula"])],
        ],
    )
    weak = place.run(
        "weak",
        {
            "training.workers": "workers",
            "training.overlap": "overlap",
            "training.forward_overlap": "forward_overlap",
            "scaling_efficiency": "efficiency",
        },
    )
    names = ["none", "backward pass", "both passes"]
    weak["hidden_behind"] = [names[int(one.overlap) + int(one.forward_overlap)] for one in weak.itertuples()]
    place.table("weak", weak[["workers", "hidden_behind", "efficiency"]])
    wide = wide_table(weak, "hidden_behind", "workers", "efficiency").loc[names]
    place.parts["weak"] = markdown(
        ["efficiency, hidden behind", *(f"{workers} workers" for workers in wide.columns)],
        [[name, *(f"{value:.3f}" for value in wide.loc[name])] for name in names],
    )
    caches = place.run(
        "caches",
        {
            "workload.memory_hierarchy.uses": "uses",
            "training.workers": "workers",
            "compute_time_s": "compute_time_s",
            "iteration_time_s": "iteration_time_s",
        },
    )
    one = caches[caches["workers"] == 1].set_index("uses")["iteration_time_s"].loc[caches["uses"]].to_numpy()
    caches["speedup"] = one / caches["iteration_time_s"]
    caches["efficiency"] = caches["speedup"] / caches["workers"]
    place.table("caches", caches)
    wide = wide_table(caches, "uses", "workers", "speedup").sort_index(ascending=False)
    place.parts["caches"] = markdown(
        ["speed-up, each datum is used", *(f"{workers} workers" for workers in wide.columns)],
        [[f"{uses} times", *(f"{value:.2f}" for value in wide.loc[uses])] for uses in wide.index],
    )
    figure = curves(
        caches.assign(uses=caches["uses"].astype(str)),
        "workers",
        "efficiency",
        "uses",
        title="Caches that a share of the data fits into",
    )
    figure.axes[0].axhline(1.0, color="#888888", linewidth=0.8, zorder=0)
    figure.axes[0].set_ylabel("speed-up / workers")
    place.picture("caches", figure)


_FITTED = 8
_WORKERS = [1, 2, 4, 8, 16, 32, 64]


def laws(place: Place) -> None:
    """Write what laws that are fitted to few workers say of many, as skew and overhead grow."""
    frames = []
    for scaling, law, fit in (("strong", amdahl, fit_amdahl), ("weak", gustafson, fit_gustafson)):
        for name, sigma, latency in (
            ("serial work alone", 0.0, None),
            ("latency of 5 us", 0.0, "5 us"),
            ("latency of 200 us", 0.0, "200 us"),
            ("skew of 10 %", 0.1, "5 us"),
            ("skew of 30 %", 0.3, "5 us"),
        ):
            network = (
                {"protocol": "ideal", "topology.star.bandwidth": "1e6 Gbps", "topology.star.latency": "0 s"}
                if latency is None
                else {"topology.star.latency": latency}
            )
            found = simnet.scaling(
                place.folder / "job.yaml", _WORKERS, scaling, {**network, "training.jitter.sigma": sigma}
            )
            workers, speedup = found["workers"].to_numpy(float), found["speedup"].to_numpy(float)
            few = workers <= _FITTED
            serial = fit(workers[few], speedup[few])
            # What f the law would need at each number of workers by itself: Karp's and Flatt's, and Gustafson's.
            amdahl_needs = found["karp_flatt_serial_fraction"]
            gustafson_needs = (workers - speedup) / np.maximum(workers - 1, 1)
            frames.append(
                found[["workers", "speedup"]].assign(
                    scaling=scaling,
                    overhead=name,
                    fitted_serial_fraction=serial,
                    predicted_speedup=law(workers, serial),
                    needed_serial_fraction=amdahl_needs if law is amdahl else gustafson_needs,
                )
            )
    table = pd.concat(frames, ignore_index=True)
    place.table("laws", table)
    second, most = (table[table["workers"] == workers] for workers in (2, _WORKERS[-1]))
    place.parts["table"] = markdown(
        [
            *("law", "overhead", f"f, fitted up to {_FITTED}", f"it says of {_WORKERS[-1]}", "simulated"),
            *("off by", "f that 2 workers need", f"{_WORKERS[-1]}"),
        ],
        [
            [
                "Amdahl, strong" if one.scaling == "strong" else "Gustafson, weak",
                *(one.overhead, f"{one.fitted_serial_fraction:.4f}", f"{one.predicted_speedup:.1f}"),
                *(f"{one.speedup:.1f}", f"{100 * (one.predicted_speedup / one.speedup - 1):+.0f} %"),
                *(f"{before:.4f}", f"{one.needed_serial_fraction:.4f}"),
            ]
            for one, before in zip(most.itertuples(), second["needed_serial_fraction"], strict=True)
        ],
    )
    figure = panels(
        table[table["workers"] > 1].assign(
            scaling=table["scaling"].map({"strong": "Amdahl, strong", "weak": "Gustafson, weak"})
        ),
        *("workers", "needed_serial_fraction", "overhead", "scaling"),
        title="Serial fraction that each law would need",
        log_y=True,
    )
    place.picture("serial_fraction", figure)
