"""Findings about transports: 1, 9, 14 and 15."""

from __future__ import annotations

import json

import pandas as pd
from surveys_tools import Place, markdown, percent, wide_table

from simnet.experiment.plot import curves, panels

__all__ = ["inception_v3", "lossy", "lossy_far", "rdma_at_scale"]

_TRANSPORTS = ["tcp", "ipoib", "dpdk", "rdma"]
_SAID = {"ipoib": 0.53, "rdma": 0.96}
"""What the survey says of Inception-V3 on 100 GPUs."""
_NEAR = 0.03


def inception_v3(place: Place) -> None:
    """Write efficiency and gain over TCP for each assumption, and which of them are near what the survey says."""
    columns = {
        "topology.star.bandwidth": "link",
        "protocol": "protocol",
        "scaling_efficiency": "efficiency",
        "throughput_samples_per_s": "throughput",
    }
    batch = {"workload.batch_size": "batch"}
    varied = {"training.architecture": "exchange", "topology.star.host.gpus": "gpus_per_host", **batch}
    grid = place.run("grid", {**columns, **varied}).assign(overlap="yes")
    grid["exchange"] = ["ring" if one == "ring" else "1 server" for one in grid["exchange"]]
    servers = place.run("servers", {**columns, **batch}).assign(exchange="25 servers", gpus_per_host=4, overlap="yes")
    late = place.run("overlap", columns).assign(exchange="ring", gpus_per_host=4, batch=32, overlap="no")
    table = pd.concat([grid, servers, late], ignore_index=True)
    keys = ["exchange", "link", "gpus_per_host", "batch", "overlap"]
    tcp = table[table["protocol"] == "tcp"].set_index(keys)["throughput"]
    table["gain_over_tcp"] = (
        table["throughput"].to_numpy() / tcp.loc[pd.MultiIndex.from_frame(table[keys])].to_numpy() - 1
    )
    place.table("grid", table[[*keys, "protocol", "efficiency", "gain_over_tcp"]])
    wide = wide_table(table, keys, "protocol", ["efficiency", "gain_over_tcp"])
    rows = [
        [*key, *(f"{row['efficiency', name]:.3f}" for name in _TRANSPORTS)]
        + [f"{100 * row['gain_over_tcp', name]:+.0f} %" for name in ("ipoib", "rdma")]
        for key, row in wide.loc[list(dict.fromkeys(map(tuple, table[keys].to_numpy())))].iterrows()
    ]
    head = ["exchange", "link", "GPUs of a host", "batch", "overlap", *_TRANSPORTS]
    place.parts["grid"] = markdown([*head, "IPoIB over TCP", "RDMA over TCP"], rows)
    lines = []
    for reading in ("efficiency", "gain_over_tcp"):
        near = {name: (wide[reading, name] - said).abs() <= _NEAR for name, said in _SAID.items()}
        both = near["ipoib"] & near["rdma"]
        lowest, highest = ((extreme(wide[reading, "ipoib"]), extreme(wide[reading, "rdma"])) for extreme in (min, max))
        lines.append(
            [
                "scaling efficiency" if reading == "efficiency" else "gain over TCP",
                f"{percent(lowest[0])} to {percent(highest[0])}",
                f"{percent(lowest[1])} to {percent(highest[1])}",
                *(f"{count.sum()} of {len(wide)}" for count in (near["ipoib"], near["rdma"], both)),
            ]
        )
    head = ["reading", "IPoIB, range", "RDMA, range", "IPoIB within 3 points of 53 %", "RDMA of 96 %", "both at once"]
    place.parts["readings"] = markdown(head, lines)
    near = table[(table["efficiency"] - table["protocol"].map(_SAID)).abs() <= _NEAR]
    place.parts["settings"] = markdown(
        ["transport", "efficiency within 3 points in", "exchange", "link", "GPUs of a host", "batch", "overlap"],
        [
            [protocol, f"{len(group)} settings", *(", ".join(map(str, group[key].unique())) for key in keys)]
            for protocol, group in near.groupby("protocol")
        ],
    )
    place.parts["both"] = _both(wide, keys)
    stack = place.run(
        "stack",
        {"training.architecture": "exchange", "protocol": "protocol", "scaling_efficiency": "efficiency"},
    )
    stack["exchange"] = ["ring" if one == "ring" else "25 servers" for one in stack["exchange"]]
    stack["stack"] = [json.loads(one)["ipoib"]["host_send_capacity"] for one in stack.pop("protocol")]
    place.table("stack", stack)
    slow = wide_table(stack, "exchange", "stack", "efficiency")
    place.parts["stack"] = markdown(
        ["efficiency, a stack of", *slow.columns],
        [[name, *(f"{value:.3f}" for value in slow.loc[name])] for name in slow.index],
    )
    older = place.run(
        "older",
        {
            "training.overlap": "overlap",
            "workload.batch_size": "batch",
            "protocol": "protocol",
            "scaling_efficiency": "efficiency",
        },
    )
    older["protocol"] = ["rdma" if one == "rdma" else "ipoib" for one in older["protocol"]]
    place.table("older", older)
    both = wide_table(older, ["overlap", "batch"], "protocol", "efficiency")
    place.parts["older"] = markdown(
        ["overlap", "batch", "IPoIB", "RDMA"],
        [
            ["yes" if overlap else "no", batch, *(f"{row[name]:.3f}" for name in _SAID)]
            for (overlap, batch), row in both.iterrows()
        ],
    )
    cases = {
        "ring, 1 GPU a host": ("ring", 1, "yes"),
        "ring, 4, no overlap": ("ring", 4, "no"),
        "25 servers, 4": ("25 servers", 4, "yes"),
    }
    batches = table[table["batch"] == 32].assign(link=table["link"].str.removesuffix(" Gbps").astype(int))
    shown = [
        batches[(batches[["exchange", "gpus_per_host", "overlap"]] == list(case)).all(axis="columns")].assign(case=name)
        for name, case in cases.items()
    ]
    figure = panels(
        pd.concat(shown, ignore_index=True),
        *("link", "efficiency", "protocol", "case"),
        title="Inception-V3 on 100 V100, batch 32; lines: 53 % and 96 %",
    )
    for axes in figure.axes:
        axes.set_xlabel("link of a host [Gbit/s]")
        for said in _SAID.values():
            axes.axhline(said, color="#888888", linewidth=0.8, zorder=0)
    place.picture("efficiency", figure)


def _both(wide: pd.DataFrame, keys: list[str]) -> str:
    """Return the settings that come nearest to both figures at once, as scaling efficiency."""
    off = sum((wide["efficiency", name] - said).abs() for name, said in _SAID.items())
    nearest = wide.assign(off=off).nsmallest(5, "off")
    return markdown(
        [*keys, "IPoIB", "RDMA"],
        [[*key, *(f"{row['efficiency', name]:.3f}" for name in _SAID)] for key, row in nearest.iterrows()],
    )


def lossy(place: Place) -> None:
    """Write efficiency by loss and workers, and what is lost."""
    table = place.run(
        "workers",
        {
            "protocol": "protocol",
            "topology.star.loss_probability": "link_loss",
            "training.workers": "workers",
            "scaling_efficiency": "efficiency",
            "lost_bytes": "lost_bytes",
            "bytes_sent_per_worker": "bytes_sent_per_worker",
        },
    )
    table["lost_share"] = table["lost_bytes"] / (table["workers"] * table["bytes_sent_per_worker"])
    head, rows = _by_loss(table, ["protocol"])
    # Partial sums travel K - 1 hops and sums as many; a lost packet takes what all ranks before have added with it.
    path_loss = 1 - (1 - table["link_loss"]) ** 2
    table["elements_hit"] = 1 - (1 - path_loss) ** (2 * (table["workers"] - 1))
    place.table("workers", table)
    without = table[table["protocol"] == "best-effort"]
    for workers, group in without.groupby("workers"):
        rows.append(["`best-effort`, payload lost", workers, *(percent(share, 3) for share in group["lost_share"])])
    for workers, group in without.groupby("workers"):
        rows.append(["elements hit on the way", workers, *(percent(share, 2) for share in group["elements_hit"])])
    place.parts["table"] = markdown(head, rows)
    figure = panels(
        table.assign(loss=table["link_loss"].map(_loss), ring=table["workers"].astype(str) + " workers"),
        *("loss", "efficiency", "protocol", "ring"),
        title="ResNet-50 in a ring at 100 Gbit/s, by loss of a link",
    )
    place.picture("efficiency", figure)


def lossy_far(place: Place) -> None:
    """Write the same over long round trips."""
    table = place.run(
        "networks",
        {
            "topology.star.bandwidth": "network",
            "protocol": "protocol",
            "topology.star.loss_probability": "link_loss",
            "training.workers": "workers",
            "scaling_efficiency": "efficiency",
        },
    )
    table["network"] = table["network"].map({"10 Gbps": "wide area, 10 ms", "1 Gbps": "edge, 5 ms"})
    table["protocol"] = [next(iter(json.loads(one))) if one.startswith("{") else one for one in table["protocol"]]
    table = table.sort_values(["network", "protocol"], ascending=[False, True], kind="stable", ignore_index=True)
    place.table("networks", table)
    head, rows = _by_loss(table, ["network", "protocol"])
    place.parts["table"] = markdown(head, rows)
    most = table[table["workers"] == table["workers"].max()]
    figure = panels(
        most.assign(loss=most["link_loss"].map(_loss)),
        *("loss", "efficiency", "protocol", "network"),
        title="ResNet-50 on 16 workers in a ring",
    )
    place.picture("efficiency", figure)


def _by_loss(table: pd.DataFrame, keys: list[str]) -> tuple[list[str], list[list[object]]]:
    """Return efficiency, a row for some keys and the workers, a column for each loss."""
    losses = sorted(table["link_loss"].unique())
    rows: list[list[object]] = []
    for key, group in table.groupby([*keys, "workers"], sort=False):
        by_loss = group.set_index("link_loss")["efficiency"]
        names = key if isinstance(key, tuple) else (key,)
        rows.append([*names, *(f"{by_loss[loss]:.3f}" for loss in losses)])
    return [*keys, "workers", *map(_loss, losses)], rows


def _loss(share: float) -> str:
    return f"{100 * share:g} %"


def rdma_at_scale(place: Place) -> None:
    """Write what pauses do to those who send elsewhere, and where they come to a standstill."""
    found, tables = place.run_with_tables(
        "victims",
        {
            "protocol": "protocol",
            "topology.leaf_spine.leaves": "racks",
            "job": "job",
            "iteration_time_s": "iteration_time_s",
        },
    )
    points = found["job"].eq("ring").cumsum() - 1  # a ring, alone or with those that push, is the first job of each
    rows = []
    for number, jobs in found.groupby(points, sort=False):
        queues, ring = tables[number]["queues"], jobs.iloc[0]
        paused = queues[queues["paused_time_s"] > 0]
        rows.append(
            {
                "protocol": _transport(ring["protocol"]),
                "hosts": 4 * int(ring["racks"]),
                "beside": "pushing" if len(jobs) > 1 else "alone",
                "ring_iteration_time_s": ring["iteration_time_s"],
                "ports": len(queues),
                "paused_ports": len(paused),
                "paused_switches": int(paused["resource"].str.match(r"(leaf|spine)").sum()),
                "paused_time_s": paused["paused_time_s"].sum(),
                "dropped": int(queues["dropped"].sum()),
            }
        )
    table = pd.DataFrame(rows)
    alone = table[table["beside"] == "alone"].set_index(["protocol", "hosts"])["ring_iteration_time_s"]
    keys = pd.MultiIndex.from_frame(table[["protocol", "hosts"]])
    table["slowdown"] = table["ring_iteration_time_s"] / alone.loc[keys].to_numpy()
    place.table("victims", table)
    shown = table[table["beside"] == "pushing"]
    place.parts["victims"] = markdown(
        ["protocol", "hosts", "ports paused", "of them of switches", "of", "paused [ms]", "dropped", "ring slower by"],
        [
            [
                *(one.protocol, one.hosts, one.paused_ports, one.paused_switches, one.ports),
                *(f"{1e3 * one.paused_time_s:.1f}", one.dropped, f"{one.slowdown:.2f}"),
            ]
            for one in shown.itertuples()
        ],
    )
    figure = curves(shown, "hosts", "slowdown", "protocol", title="A ring beside others that push to one server")
    figure.axes[0].set_ylabel("iteration time / that of the ring alone")
    place.picture("victims", figure)
    circle = place.run(
        "deadlock",
        {
            "protocol": "protocol",
            "topology": "switches",
            "status": "status",
            "error": "error",
            "iteration_time_s": "iteration_time_s",
        },
    )
    circle["protocol"] = circle["protocol"].map(_transport)
    circle["switches"] = circle["switches"].str.extract(r"(\d+)").astype(int)
    circle["outcome"] = [
        "deadlock" if "in a circle" in str(one.error) else f"{1e3 * one.iteration_time_s:.2f} ms"
        for one in circle.itertuples()
    ]
    place.table("deadlock", circle[["protocol", "switches", "status", "outcome"]])
    wide = wide_table(circle, "protocol", "switches", "outcome").loc[circle["protocol"].unique()]
    place.parts["deadlock"] = markdown(
        ["protocol", *(f"{number} switches" for number in wide.columns)],
        [[name, *row] for name, row in zip(wide.index, wide.to_numpy(), strict=True)],
    )


def _transport(text: str) -> str:
    """Return the name of a protocol, and what controls congestion where that is given."""
    if not text.startswith("{"):
        return text
    name, changes = next(iter(json.loads(text).items()))
    early = ", early marks" if "mark_from" in changes else ""
    return f"{name}, {changes['congestion_control'].replace('_', ' ')}{early}"
