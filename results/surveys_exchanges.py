"""Findings about who sends what to whom, and how much: 4, 5, 7, 8 and 16."""

from __future__ import annotations

import json

from surveys_tools import Place, markdown, percent, wide_table

from simnet.experiment.plot import curves, panels
from simnet.traffic import volume_table

__all__ = ["architectures", "compression", "lstm", "rules", "volumes"]


def volumes(place: Place) -> None:
    """Write bytes, steps, and bytes of the busiest worker of each all-reduce, counted and by formula."""
    table, tables = place.run_with_tables(
        "all_reduce",
        {
            "training.architecture": "architecture",
            "training.workers": "workers",
            "exposed_communication_time_s": "time_s",
        },
    )
    found = [one["collectives"].iloc[0] for one in tables]
    size = table["size_bytes"] = [float(one["size_bytes"]) for one in found]
    for column in ("steps", "bytes_sent", "bytes_sent_by_busiest"):
        table[column] = [float(one[column]) for one in found]
    table["bytes_over_n"] = table["bytes_sent"] / size
    table["busiest_over_n"] = table["bytes_sent_by_busiest"] / size
    table["time_s"] = [float(one["duration_s"]) for one in found]
    place.table("all_reduce", table)
    formulas = {
        one.architecture.removesuffix(", binomial"): one for one in volume_table([64], elements=64, element_bytes=4.0)
    }
    rows = []
    for name, group in table.groupby("architecture", sort=False):
        of, first, last = formulas[str(name)], group.iloc[0], group.iloc[-1]
        ends = [[first[column], last[column]] for column in ("bytes_over_n", "steps", "busiest_over_n", "time_s")]
        formula = [of.bytes_text.split(";")[0], of.steps_text.split(";")[0]]
        shown = [f"{low:.3g} to {high:.4g}" for low, high in ends]
        rows.append([name, formula[0], shown[0], formula[1], *shown[1:]])
    head = ["", "bytes", "bytes/n, 4 to 64 workers", "steps", "steps, 4 to 64", "sent by the busiest/n", "time [s]"]
    place.parts["table"] = markdown(head, rows)
    figure = curves(table, "workers", "time_s", "architecture", title="All-reduce of 102 MB at 25 Gbit/s", log_y=True)
    figure.axes[0].set_ylabel("time [s], log scale")
    place.picture("time", figure)


_ARCHITECTURES = {
    '{"parameter_server": {"servers": 1, "placement": "dedicated"}}': "1 server",
    '{"parameter_server": {"servers": 1, "placement": "dedicated", "fan_in": 8}}': "tree of servers, 8 to each",
    '{"parameter_server": {"servers": 4, "placement": "dedicated"}}': "4 servers",
    '{"mesh": {"exchange": "full"}}': "mesh, all to all",
    '{"mesh": {"exchange": "scatter"}}': "mesh, a share each",
    "ring": "ring",
}


def architectures(place: Place) -> None:
    """Write iteration time and connections as workers grow."""
    table = place.run(
        "workers",
        {
            "training.architecture": "exchange",
            "training.workers": "workers",
            "iteration_time_s": "iteration_time_s",
            "scaling_efficiency": "efficiency",
            "bottleneck": "bottleneck",
        },
    )
    table["exchange"] = table["exchange"].map(_ARCHITECTURES)
    place.table("workers", table)
    wide = wide_table(table, "exchange", "workers", "efficiency").loc[list(_ARCHITECTURES.values())]
    place.parts["table"] = markdown(
        ["efficiency", *(f"{workers} workers" for workers in wide.columns)],
        [[name, *(f"{value:.3f}" for value in row)] for name, row in zip(wide.index, wide.to_numpy(), strict=True)],
    )
    figure = curves(table, "workers", "iteration_time_s", "exchange", title="ResNet-50 at 25 Gbit/s", log_y=True)
    place.picture("iteration_time", figure)


def compression(place: Place) -> None:
    """Write what compressing gains on each network, and what is left of the bytes."""
    table = place.run(
        "networks",
        {
            "topology.star.bandwidth": "bandwidth",
            "training.compression": "compression",
            "iteration_time_s": "iteration_time_s",
            "compute_time_s": "compute_time_s",
            "compression_time_s": "compression_time_s",
            "exposed_communication_time_s": "exposed_communication_time_s",
            "bytes_sent_per_worker": "bytes_sent_per_worker",
        },
    )
    names = ["none", "half precision", "8 bits", "1 % of the elements", "rank 4"]
    table["compression"] = table["compression"].map(dict(zip(table["compression"].unique(), names, strict=True)))
    plain = table[table["compression"] == "none"].set_index("bandwidth")["iteration_time_s"]
    table["gain"] = plain.loc[table["bandwidth"]].to_numpy() / table["iteration_time_s"]
    place.table("networks", table)
    gains = wide_table(table, "compression", "bandwidth", "gain").loc[names, plain.index]
    once = table.drop_duplicates("compression").set_index("compression")
    place.parts["table"] = markdown(
        ["", "sent by a worker [MB]", "compressing [ms]", *(f"gain at {one}" for one in plain.index)],
        [
            [
                name,
                f"{once.loc[name, 'bytes_sent_per_worker'] / 1e6:.0f}",
                f"{1e3 * once.loc[name, 'compression_time_s']:.0f}",
                *(f"{value:.2f}" for value in gains.loc[name]),
            ]
            for name in names
        ],
    )
    figure = curves(
        table.assign(bandwidth=table["bandwidth"].str.removesuffix(" Gbps").astype(int)),
        *("bandwidth", "gain", "compression"),
        title="BERT-large on 16 V100, ring",
        log_y=True,
    )
    figure.axes[0].set_xlabel("bandwidth of each host [Gbit/s]")
    figure.axes[0].set_ylabel("time without compression / with it, log scale")
    figure.axes[0].axhline(1.0, color="#888888", linewidth=0.8, zorder=0)
    place.picture("gain", figure)


_RULE_COLUMNS = {"throughput_samples_per_s": "throughput", "scaling_efficiency": "efficiency"}


def rules(place: Place) -> None:
    """Write what each of the three rules gains."""
    batch = place.run(
        "batch",
        {
            "workload.batch_size": "batch",
            "training.accumulation": "passes",
            "samples_per_iteration": "samples_per_exchange",
            **_RULE_COLUMNS,
        },
    )
    place.table("batch", batch)
    place.parts["rule 1"] = markdown(
        ["samples between exchanges", "efficiency", "throughput [samples/s]"],
        [[one.samples_per_exchange, f"{one.efficiency:.3f}", f"{one.throughput:.0f}"] for one in batch.itertuples()],
    )
    fewer = place.run(
        "bytes",
        {"training.compression": "format", "bytes_sent_per_worker": "bytes_sent_per_worker", **_RULE_COLUMNS},
    )
    fewer["format"] = ["fp32", "fp16", "8 bits", "4 bits", "1 bit"]
    place.table("bytes", fewer)
    place.parts["rule 2"] = markdown(
        ["number format", "sent by a worker [MB]", "efficiency", "throughput [samples/s]"],
        [
            [one.format, f"{one.bytes_sent_per_worker / 1e6:.0f}", f"{one.efficiency:.3f}", f"{one.throughput:.0f}"]
            for one in fewer.itertuples()
        ],
    )
    fitting = place.run("fitting", {"topology": "network", "training.architecture": "exchange", **_RULE_COLUMNS})
    networks = ["a star", "racks, 4:1 oversubscribed", "4 hosts of 8 GPUs", "8 x 4 torus of hosts"]
    exchanges = ["ring", "hierarchical", "torus", "halving-doubling", "8 servers"]
    fitting["network"] = fitting["network"].map(dict(zip(fitting["network"].unique(), networks, strict=True)))
    fitting["exchange"] = fitting["exchange"].map(dict(zip(fitting["exchange"].unique(), exchanges, strict=True)))
    place.table("fitting", fitting)
    wide = wide_table(fitting, "network", "exchange", "efficiency").loc[networks, exchanges]
    place.parts["rule 3"] = markdown(
        ["efficiency", *exchanges],
        [[name, *(f"{value:.3f}" for value in wide.loc[name])] for name in networks],
    )


def lstm(place: Place) -> None:
    """Write how a recurrent model scales beside others, and what helps it."""
    table = place.run(
        "networks",
        {
            "workload": "model",
            "topology.star.bandwidth": "bandwidth",
            "training.workers": "workers",
            "compute_time_s": "compute_time_s",
            "iteration_time_s": "iteration_time_s",
            "scaling_efficiency": "efficiency",
        },
    )
    names = {"two_layers.csv": "two-layer LSTM", "resnet50": "ResNet-50", "bert_large": "BERT-large"}
    table["model"] = [names[one.get("file", one.get("model"))] for one in map(json.loads, table["model"])]
    place.table("networks", table)
    rows = []
    for (model, bandwidth), group in table.groupby(["model", "bandwidth"], sort=False):
        compute = f"{1e3 * group['compute_time_s'].iloc[0]:.0f}"
        rows.append([model, bandwidth, compute, *(f"{one:.3f}" for one in group["efficiency"])])
    workers = sorted(table["workers"].unique())
    head = ["model", "network", "computes [ms]", *(f"{one} workers" for one in workers)]
    place.parts["table"] = markdown(head, rows)
    figure = panels(
        table.assign(network=table["bandwidth"].map({"10 Gbps": "TCP, 10 Gbit/s", "100 Gbps": "RDMA, 100 Gbit/s"})),
        *("workers", "efficiency", "model", "network"),
        title="Data-parallel training on V100, in a ring",
    )
    place.picture("efficiency", figure)
    ways = place.run("ways", {"throughput_samples_per_s": "throughput", "scaling_efficiency": "efficiency"})
    ways.insert(
        0, "way", ["ring", "4 servers", "8 bits", "1 % of the elements", "average each 8", "8 passes an exchange"]
    )
    place.table("ways", ways)
    place.parts["ways"] = markdown(
        ["16 workers, 10 Gbit/s", "efficiency"], [[one.way, percent(one.efficiency, 1)] for one in ways.itertuples()]
    )
