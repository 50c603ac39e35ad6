"""From what a simulation recorded to tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simnet.experiment.columns import COLUMNS
from simnet.fabric.interface import Fabric
from simnet.fabric.packet.fabric import PacketFabric
from simnet.scenario import Fault
from simnet.traffic import Schedule, count
from simnet.training.course import Course
from simnet.training.job import Job
from simnet.training.records import CollectiveRow, IterationRow, Sent, SpanRow
from simnet.units import GIGA

__all__ = [
    "PARTS",
    "Columns",
    "Measurement",
    "collectives_table",
    "columns_of",
    "connections_table",
    "faults_table",
    "iteration_columns",
    "iteration_time",
    "link_columns",
    "ordered",
    "queues_table",
    "spans_table",
    "staleness_table",
    "workers_table",
]

PARTS = (
    "compute_time_s",
    "exposed_communication_time_s",
    "waiting_time_s",
    "input_time_s",
    "checkpoint_time_s",
    "communication_time_s",
)
"""Times of an iteration; all but the last make up the whole."""

Columns = Mapping[str, Any]
"""A table as arrays by the names of its columns: pandas takes a millisecond where numpy takes ten microseconds."""

_MOST_COUNTED = 200_000  # firings


@dataclass(frozen=True)
class Measurement:
    """Counters of the resources over the measured iterations.

    Parameters
    ----------
    carried_bytes, busy_s : ndarray, shape (resources,)
        [bytes], [s]
    duration_s : float
        [s]
    """

    carried_bytes: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    duration_s: float


def ordered(table: str, columns: pd.DataFrame | Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame with exactly the documented columns of a table, in their order and with their types."""
    # Arrays rather than series: a series takes a tenth of a millisecond to change its type.
    return pd.DataFrame(
        {column.name: _ARRAYS[column.dtype](columns[column.name]) for column in COLUMNS[table]}, copy=False
    )


_ARRAYS: Mapping[str, Callable[[Any], Any]] = {
    "str": lambda values: pd.array(values, dtype="str"),
    "int": partial(np.asarray, dtype=np.int64),
    "float": partial(np.asarray, dtype=np.float64),
}


def columns_of(rows: Sequence[NamedTuple], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return rows as columns, one array each."""
    return {name: np.array([getattr(row, name) for row in rows]) for name in names}


def iteration_columns(rows: Sequence[IterationRow], course: Course) -> dict[str, NDArray[Any]]:
    """Return one row an iteration and worker of a job; the warm-up has numbers below 0."""
    columns = columns_of(rows, IterationRow._fields)
    if len(rows):
        columns["iteration"] -= course.first[columns["rank"]]
    columns["iteration_time_s"] = iteration_time(columns)
    order = np.lexsort((columns["rank"], columns["iteration"]))
    for name, values in columns.items():
        columns[name] = values[order]  # one after the other: of many both take much memory
    return columns


def iteration_time(times: Any) -> Any:
    """Return what an iteration takes, of a frame or mapping with its parts [s]."""
    return (
        times["compute_time_s"]
        + times["exposed_communication_time_s"]
        + times["waiting_time_s"]
        + times["input_time_s"]
        + times["checkpoint_time_s"]
    )


def workers_table(job: Job, fabric: Fabric, iterations: Columns) -> pd.DataFrame:
    """Return one row a worker, with means over the measured iterations."""
    compiled, workers = fabric.network.compiled, len(job.nodes)
    measured = iterations["iteration"] >= 0
    rank = iterations["rank"][measured]
    # Of several workers that go on by themselves one may not have done any.
    count = np.where(job.course.count > 0, job.course.count, np.nan)
    seen = np.bincount(rank, minlength=workers)
    done = np.where(seen > 0, seen, np.nan)
    columns: dict[str, Any] = {
        name: np.bincount(rank, weights=iterations[name][measured], minlength=workers) / done
        for name in (*PARTS, "staleness_updates")
    }
    columns["job"] = [job.settings.name] * workers
    columns["rank"] = np.arange(workers)
    columns["iterations"] = job.course.count
    columns["iteration_time_s"] = iteration_time(columns)
    places = np.array([job.settings.training.grid.place_of(rank) for rank in range(workers)]).reshape(-1, 3)
    columns["stage"], columns["replica"], columns["part"] = places.T
    columns["node"] = [compiled.node_names[node] for node in job.nodes]
    hosts = compiled.host_of_node[job.nodes].tolist()
    columns["host"] = [compiled.node_names[host] if host >= 0 else "" for host in hosts]
    columns["bytes_sent"] = job.sent.payload_bytes / count
    columns["wire_bytes"] = job.sent.wire_bytes / count
    return ordered("workers", columns)


def collectives_table(rows: Sequence[CollectiveRow], course: Course, fabric: Fabric) -> pd.DataFrame:
    """Return one row an exchange, of the warm-up and of measured iterations."""
    workers = np.array([max(row.worker, 0) for row in rows], dtype=np.int64)
    first = course.first[workers]
    counts = [row.iteration < last for row, last in zip(rows, (first + course.count[workers]).tolist(), strict=True)]
    rows, first = [row for row, is_one in zip(rows, counts, strict=True) if is_one], first[counts]
    columns = columns_of(rows, [name for name in CollectiveRow._fields if name != "placement"])
    placements = {id(row.placement): row.placement for row in rows}
    bounds = {key: fabric.bound(placement).total_s for key, placement in placements.items()}
    steps = {key: steps_of(placement.schedule) for key, placement in placements.items()}
    columns["iteration"] = columns["iteration"] - first
    columns["bound_time_s"] = np.array([bounds[id(row.placement)] for row in rows])
    columns["steps"] = np.array([steps[id(row.placement)] for row in rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        columns["algbw_GBps"] = columns["size_bytes"] / columns["duration_s"] / GIGA
    return ordered("collectives", columns)


def steps_of(schedule: Schedule) -> int:
    """Return the steps of a schedule; -1 of one that is so large that counting takes long."""
    return count(schedule).steps if int(schedule.operations.repeat.sum()) <= _MOST_COUNTED else -1


def staleness_table(iterations: Columns) -> pd.DataFrame:
    """Return how many measured iterations of a job were how stale."""
    frame = ordered("iterations", iterations)
    measured = frame[frame["iteration"] >= 0]
    kinds = {"updates": "staleness_updates", "iterations": "ahead_iterations"}
    counts = [
        measured.rename(columns={column: "staleness"})
        .groupby(["job", "staleness"])
        .size()
        .reset_index(name="count")
        .assign(of=kind)
        for kind, column in kinds.items()
    ]
    return ordered("staleness", pd.concat(counts, ignore_index=True))


def link_columns(job: str, fabric: Fabric, measurement: Measurement, sent: Sequence[Sent]) -> Columns:
    """Return one row a resource: links, what hosts have, and cores of servers."""
    network = fabric.network
    compiled = network.compiled
    others = network.resource_names[len(compiled.link_name) :]
    cores = _cores(fabric, measurement, sent)
    none = np.zeros(len(cores))
    possible = network.capacity * measurement.duration_s
    used = np.where(possible > 0, measurement.carried_bytes / np.where(possible > 0, possible, 1.0), 0.0)
    return {
        "job": [job] * (len(network.capacity) + len(cores)),
        "resource": [*network.resource_names, *(core.name for core in cores)],
        "kind": [*compiled.link_kind, *(name.rpartition(": ")[2] for name in others), *("core" for _ in cores)],
        "bandwidth_bytes_per_s": np.concatenate([network.capacity, none]),
        "latency_s": np.concatenate([compiled.link_latency, np.zeros(len(others)), none]),
        "wire_bytes": np.concatenate([measurement.carried_bytes, none]),
        "busy_time_s": np.concatenate([measurement.busy_s, [core.busy_s for core in cores]]),
        "utilisation": np.concatenate([used, [core.utilisation for core in cores]]),
    }


def queues_table(fabric: PacketFabric) -> pd.DataFrame:
    """Return one row a port of the packet level."""
    counts, names = fabric.queue_counts(), fabric.network.resource_names
    frame = pd.DataFrame(
        {
            "resource": [names[link] for link in counts.links.tolist()],
            "packets": counts.packets,
            "mean_queue_bytes": counts.mean_bytes,
            "p99_queue_bytes": counts.p99_bytes,
            "highest_queue_bytes": counts.highest_bytes,
            "dropped": counts.dropped,
            "marked": counts.marked,
            "lost": counts.lost,
            "paused_time_s": counts.paused_s,
        }
    )
    return ordered("queues", frame)


def connections_table(fabric: PacketFabric) -> pd.DataFrame:
    """Return one row a connection of the packet level."""
    return ordered("connections", pd.DataFrame(fabric.connection_counts()))


def faults_table(faults: Sequence[Fault]) -> pd.DataFrame:
    """Return one row a fault, in the order of the scenario."""
    names = [column.name for column in COLUMNS["faults"]]
    return ordered("faults", pd.DataFrame([{name: getattr(fault, name) for name in names} for fault in faults]))


class _Core(NamedTuple):
    """A core of a server that has worked; it carries no bytes."""

    name: str
    busy_s: float
    utilisation: float


def _cores(fabric: Fabric, measurement: Measurement, sent: Sequence[Sent]) -> list[_Core]:
    """Return the cores of servers that have worked."""
    busy: dict[tuple[int, int], float] = {}
    for of_job in sent:
        for core, seconds in of_job.core_s.items():
            busy[core] = busy.get(core, 0.0) + seconds
    names = fabric.network.compiled.node_names
    duration_s = measurement.duration_s
    return [
        # What is counted when an exchange ends may have been done before the first measured iteration.
        _Core(f"{names[node]}: core {core}", seconds, min(seconds / duration_s, 1.0) if duration_s > 0 else 0.0)
        for (node, core), seconds in sorted(busy.items())
    ]


def spans_table(rows: Sequence[SpanRow], jobs: Sequence[Job]) -> pd.DataFrame:
    """Return one row for each thing that a worker did, in order of time; the warm-up has numbers below 0."""
    frame = pd.DataFrame(rows, columns=list(SpanRow._fields))
    for job in jobs:
        own = frame["job"] == job.settings.name
        frame.loc[own, "iteration"] -= job.course.first[frame.loc[own, "rank"].to_numpy(dtype=np.int64)]
    frame["duration_s"] = frame["end_s"] - frame["start_s"]
    return ordered("spans", frame.sort_values(["start_s", "job", "rank"], kind="stable", ignore_index=True))
