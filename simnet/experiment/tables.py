"""From what a simulation recorded to tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simnet.experiment.columns import COLUMNS, DTYPES
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
    "Measurement",
    "collectives_table",
    "connections_table",
    "faults_table",
    "iteration_time",
    "iterations_table",
    "links_table",
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


def ordered(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with exactly the documented columns of a table, in their order and with their types."""
    return pd.DataFrame({column.name: frame[column.name].astype(DTYPES[column.dtype]) for column in COLUMNS[table]})


def iterations_table(rows: Sequence[IterationRow], course: Course) -> pd.DataFrame:
    """Return one row an iteration and worker of a job; the warm-up has numbers below 0."""
    frame = pd.DataFrame(rows, columns=list(IterationRow._fields))
    frame["iteration"] -= course.first[frame["rank"].to_numpy(dtype=np.int64)]
    frame["iteration_time_s"] = iteration_time(frame)
    return ordered("iterations", frame.sort_values(["iteration", "rank"], ignore_index=True))


def iteration_time(times: Any) -> Any:
    """Return what an iteration takes, of a frame or mapping with its parts [s]."""
    return (
        times["compute_time_s"]
        + times["exposed_communication_time_s"]
        + times["waiting_time_s"]
        + times["input_time_s"]
        + times["checkpoint_time_s"]
    )


def workers_table(job: Job, fabric: Fabric, iterations: pd.DataFrame) -> pd.DataFrame:
    """Return one row a worker, with means over the measured iterations."""
    compiled = fabric.network.compiled
    measured = iterations[iterations["iteration"] >= 0]
    means = measured.groupby("rank", sort=True)[[*PARTS, "staleness_updates"]].mean()
    # Of several workers that go on by themselves one may not have done any.
    frame = means.reindex(pd.RangeIndex(len(job.nodes), name="rank")).reset_index()
    frame["iterations"] = job.course.count
    frame["iteration_time_s"] = iteration_time(frame)
    hosts = compiled.host_of_node[job.nodes]
    places = np.array([job.settings.training.grid.place_of(rank) for rank in frame["rank"]]).reshape(-1, 3)
    frame["stage"], frame["replica"], frame["part"] = places.T
    frame["job"] = job.settings.name
    frame["node"] = [compiled.node_names[node] for node in job.nodes]
    frame["host"] = [compiled.node_names[host] if host >= 0 else "" for host in hosts]
    count = np.where(job.course.count > 0, job.course.count, np.nan)
    frame["bytes_sent"] = job.sent.payload_bytes / count
    frame["wire_bytes"] = job.sent.wire_bytes / count
    return ordered("workers", frame)


def collectives_table(rows: Sequence[CollectiveRow], course: Course, fabric: Fabric) -> pd.DataFrame:
    """Return one row an exchange, of the warm-up and of measured iterations."""
    workers = np.array([max(row.worker, 0) for row in rows], dtype=np.int64)
    first = course.first[workers]
    counts = [row.iteration < last for row, last in zip(rows, (first + course.count[workers]).tolist(), strict=True)]
    rows, first = [row for row, is_one in zip(rows, counts, strict=True) if is_one], first[counts]
    frame = pd.DataFrame(rows, columns=list(CollectiveRow._fields)).drop(columns="placement")
    placements = {id(row.placement): row.placement for row in rows}
    bounds = {key: fabric.bound(placement).total_s for key, placement in placements.items()}
    steps = {key: steps_of(placement.schedule) for key, placement in placements.items()}
    frame["iteration"] -= first
    frame["bound_time_s"] = [bounds[id(row.placement)] for row in rows]
    frame["steps"] = [steps[id(row.placement)] for row in rows]
    frame["algbw_GBps"] = frame["size_bytes"] / frame["duration_s"] / GIGA
    return ordered("collectives", frame)


def steps_of(schedule: Schedule) -> int:
    """Return the steps of a schedule; -1 of one that is so large that counting takes long."""
    return count(schedule).steps if int(schedule.operations.repeat.sum()) <= _MOST_COUNTED else -1


def staleness_table(iterations: pd.DataFrame) -> pd.DataFrame:
    """Return how many measured iterations of a job were how stale."""
    measured = iterations[iterations["iteration"] >= 0]
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


def links_table(job: str, fabric: Fabric, measurement: Measurement, sent: Sequence[Sent]) -> pd.DataFrame:
    """Return one row a resource: links, what hosts have, and cores of servers."""
    network = fabric.network
    compiled = network.compiled
    links = len(compiled.link_name)
    others = network.resource_names[links:]
    frame = pd.DataFrame(
        {
            "resource": network.resource_names,
            "kind": [*compiled.link_kind, *(name.rpartition(": ")[2] for name in others)],
            "bandwidth_bytes_per_s": network.capacity,
            "latency_s": np.concatenate([compiled.link_latency, np.zeros(len(others))]),
            "wire_bytes": measurement.carried_bytes,
            "busy_time_s": measurement.busy_s,
        }
    )
    possible = frame["bandwidth_bytes_per_s"] * measurement.duration_s
    frame["utilisation"] = np.where(possible > 0, frame["wire_bytes"] / possible.where(possible > 0, 1.0), 0.0)
    cores = _cores(fabric, measurement, sent)
    frame = pd.concat([frame, cores], ignore_index=True) if len(cores) else frame
    frame["job"] = job
    return ordered("links", frame)


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


def _cores(fabric: Fabric, measurement: Measurement, sent: Sequence[Sent]) -> pd.DataFrame:
    """Return a row for each core of a server that has worked; it carries no bytes."""
    busy: dict[tuple[int, int], float] = {}
    for of_job in sent:
        for core, seconds in of_job.core_s.items():
            busy[core] = busy.get(core, 0.0) + seconds
    names = fabric.network.compiled.node_names
    rows = [
        {
            "resource": f"{names[node]}: core {core}",
            "kind": "core",
            "bandwidth_bytes_per_s": 0.0,
            "latency_s": 0.0,
            "wire_bytes": 0.0,
            "busy_time_s": busy[node, core],
            # What is counted when an exchange ends may have been done before the first measured iteration.
            "utilisation": min(busy[node, core] / measurement.duration_s, 1.0) if measurement.duration_s > 0 else 0.0,
        }
        for node, core in sorted(busy)
    ]
    return pd.DataFrame(rows)


def spans_table(rows: Sequence[SpanRow], jobs: Sequence[Job]) -> pd.DataFrame:
    """Return one row for each thing that a worker did, in order of time; the warm-up has numbers below 0."""
    frame = pd.DataFrame(rows, columns=list(SpanRow._fields))
    for job in jobs:
        own = frame["job"] == job.settings.name
        frame.loc[own, "iteration"] -= job.course.first[frame.loc[own, "rank"].to_numpy(dtype=np.int64)]
    frame["duration_s"] = frame["end_s"] - frame["start_s"]
    return ordered("spans", frame.sort_values(["start_s", "job", "rank"], kind="stable", ignore_index=True))
