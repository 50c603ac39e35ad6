"""Findings about workers that are not alike, that fail, or that share a host: 6, 11, 13 and 17."""

from __future__ import annotations

import json

import pandas as pd
from surveys_tools import Place, markdown, wide_table

from simnet.experiment.plot import bars, curves

__all__ = ["failures", "heterogeneous", "memory", "synchronisation"]


def synchronisation(place: Place) -> None:
    """Write throughput and staleness with a slow worker, and with workers that are slow by chance."""
    columns = {
        "training.sync": "sync",
        "throughput_samples_per_s": "throughput",
        "straggler_cost": "straggler_cost",
        "staleness_updates": "staleness_updates",
        "ahead_max_iterations": "ahead_max_iterations",
    }
    slow = place.run("straggler", {"training.speed_factors": "factors", **columns})
    slow["times_as_slow"] = [round(1 / next(iter(json.loads(one).values()), 1.0)) for one in slow["factors"]]
    slow["sync"] = slow["sync"].map(_sync)
    usual = slow[(slow["times_as_slow"] == 1) & (slow["sync"] == "bsp")]["throughput"].item()
    slow["of_usual"] = slow["throughput"] / usual
    place.table("straggler", slow.drop(columns="factors"))
    wide = wide_table(slow, "sync", "times_as_slow", "of_usual").loc[slow["sync"].unique()]
    place.parts["straggler"] = markdown(
        ["throughput, of BSP with all alike", *(f"one {factor} times as slow" for factor in wide.columns)],
        [[name, *(f"{value:.2f}" for value in wide.loc[name])] for name in wide.index],
    )
    chance = place.run("chance", columns)
    chance["sync"] = chance["sync"].map(_sync)
    chance["of_bsp"] = chance["throughput"] / chance["throughput"].iloc[0]
    place.table("chance", chance)
    place.parts["chance"] = markdown(
        ["", "throughput, of BSP", "updates of others missed, mean", "iterations ahead, most"],
        [
            [one.sync, f"{one.of_bsp:.2f}", f"{one.staleness_updates:.1f}", f"{one.ahead_max_iterations:.0f}"]
            for one in chance.itertuples()
        ],
    )
    figure = curves(slow, "times_as_slow", "of_usual", "sync", title="One of 16 workers is slow, 40 iterations each")
    figure.axes[0].set_xlabel("times as slow")
    figure.axes[0].set_ylabel("throughput, of BSP with all alike")
    place.picture("straggler", figure)


def _sync(text: str) -> str:
    """Return a name of a way to synchronise."""
    if not text.startswith("{"):
        return text
    name, options = next(iter(json.loads(text).items()))
    return f"{name} {next(iter(options.values()))}"


_EXCHANGES = {
    "ring": "ring",
    "mesh": "mesh",
    "gossip": "gossip in a ring",
    "tree": "tree",
    "butterfly": "butterfly",
    "star": "star",
    '{"gossip": {"graph": "ring"}}': "gossip in a ring",
    '{"gossip": {"partners": "one"}}': "gossip with one of two",
    '{"hierarchical": {"group": 2}}': "within sites, then across",
    '{"parameter_server": {"servers": 2}}': "2 servers",
    '{"parameter_server": {"servers": 1, "placement": "dedicated"}}': "server in the cloud",
}


def heterogeneous(place: Place) -> None:
    """Write what architecture and synchronisation come to together on mixed networks, and between edge and cloud."""
    columns = {
        "training.architecture": "exchange",
        "training.sync": "sync",
        "throughput_samples_per_s": "throughput",
        "iteration_time_s": "iteration_time_s",
        "staleness_updates": "staleness_updates",
        "bottleneck": "bottleneck",
    }
    for name, title in (
        ("mixed", "Half of 16 with older GPUs, half with slow links"),
        ("edge", "8 sites of two workers"),
    ):
        table = place.run(name, columns)
        table["exchange"] = table["exchange"].map(_EXCHANGES)
        table["sync"] = table["sync"].map(_sync)
        place.table(name, table)
        place.parts[name] = markdown(
            ["exchange", "synchronisation", "throughput [samples/s]", "updates of others missed, mean", "busiest link"],
            [
                [one.exchange, one.sync, f"{one.throughput:.1f}", f"{one.staleness_updates:.1f}", one.bottleneck]
                for one in table.itertuples()
            ],
        )
        figure = bars(table, "throughput", ["exchange", "sync"], title=title)
        figure.axes[0].set_xlabel("throughput [samples/s]")
        place.picture(name, figure)


_FAULTS = {
    "": "nobody",
    "worker_crash": "a worker, back after 5 s",
    "worker_crash for good": "a worker, for good",
    "server_crash": "a server, back after 5 s",
    "server_crash for good": "a server, for good",
    "server_crash with a replica": "a server with a replica",
}


def failures(place: Place) -> None:
    """Write what the loss of a worker or a server does to each way of exchanging."""
    table = place.run(
        "losses",
        {
            "training.architecture": "exchange",
            "training.sync": "sync",
            "faults": "lost",
            "status": "status",
            "error": "error",
            "throughput_samples_per_s": "throughput",
            "lost_iterations": "lost_iterations",
        },
    )
    table["exchange"] = table["exchange"].map(_EXCHANGES) + ", " + table["sync"]
    table["lost"] = table["lost"].map(_fault)
    usual = table[table["lost"] == "nobody"].set_index("exchange")["throughput"]
    table["of_usual"] = table["throughput"] / usual.loc[table["exchange"]].to_numpy()
    place.table("losses", table[["exchange", "lost", "status", "throughput", "of_usual", "lost_iterations"]])
    table["said"] = [
        "ends" if "does not come back" in str(one.error) else f"{one.of_usual:.2f}" for one in table.itertuples()
    ]
    wide = wide_table(table, "exchange", "lost", "said").fillna("")
    losses = [name for name in _FAULTS.values() if name != "nobody"]
    place.parts["table"] = markdown(
        ["throughput, of that without a loss", *losses], [[name, *wide.loc[name, losses]] for name in usual.index]
    )


def _fault(text: str) -> str:
    """Return who is lost."""
    faults = json.loads(text)
    if not faults:
        return _FAULTS[""]
    kind, options = next(iter(faults[0].items()))
    how = " with a replica" if "failover" in options else "" if "for" in options else " for good"
    return _FAULTS[kind + how]


def memory(place: Place) -> None:
    """Write how cores of one host speed up by its memory, and virtual machines by their share of it."""
    columns = {"topology.star.host.memory_bandwidth": "memory", "throughput_samples_per_s": "throughput"}
    cores = place.run("processors", {"workload.file": "intensity", "training.workers": "cores", **columns})
    cores["processor"] = cores["memory"].map({"25.6 GB/s": "Core i7-920", "42.656 GB/s": "Opteron 6128"})
    cores["intensity"] = cores["intensity"].str.extract(r"(\d+)").astype(int)
    alone = cores[cores["cores"] == 1].set_index(["processor", "intensity"])["throughput"]
    of_one = alone.loc[pd.MultiIndex.from_frame(cores[["processor", "intensity"]])].to_numpy()
    cores["speedup"] = cores["throughput"] / of_one
    # A core needs its operations a second over the operations of a byte.
    demand = of_one * 1e9 / cores["intensity"]
    bandwidth = cores["memory"].str.removesuffix(" GB/s").astype(float) * 1e9
    cores["formula"] = (bandwidth / demand).clip(upper=cores["cores"].astype(float))
    cores["efficiency"] = cores["speedup"] / cores["cores"]
    place.table("processors", cores)
    wide = wide_table(cores, ["processor", "intensity"], "cores", "speedup")
    place.parts["processors"] = markdown(
        ["processor", "operations a byte", *(f"{number} cores" for number in wide.columns)],
        [[*key, *("" if pd.isna(value) else f"{value:.2f}" for value in wide.loc[key])] for key in wide.index],
    )
    few = cores[cores["intensity"] == 1]
    figure = curves(few, "cores", "speedup", "processor", title="One operation a byte from memory", log_x=False)
    place.picture("processors", figure)
    machines = place.run(
        "machines",
        {"training.parallelism.data": "machines", "training.parallelism.shared_memory": "cores", **columns},
    )
    total = machines["machines"] * machines["memory"].str.removesuffix(" GB/s").astype(float)
    machines["on"] = ["one host" if one < 43 else "hosts of their own" for one in total]
    machines["speedup"] = machines["throughput"] / 8.0  # a core alone does 8 samples a second
    place.table("machines", machines)
    place.parts["machines"] = markdown(
        ["virtual machines", "cores of each", "memory of each", "on", "speed-up of 16 cores"],
        [[one.machines, one.cores, one.memory, one.on, f"{one.speedup:.2f}"] for one in machines.itertuples()],
    )
