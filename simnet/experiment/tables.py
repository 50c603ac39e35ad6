"""From what a simulation recorded to tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simnet.experiment.columns import COLUMNS
from simnet.fabric.bounds import Bound
from simnet.fabric.interface import Fabric
from simnet.training.job import Job
from simnet.training.records import CollectiveRow, IterationRow
from simnet.training.settings import RunSettings
from simnet.units import GIGA

__all__ = ["Measurement", "collectives_table", "iterations_table", "links_table", "ordered", "workers_table"]


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
    types: dict[str, Any] = {"str": "str", "int": np.int64, "float": np.float64}
    return pd.DataFrame({column.name: frame[column.name].astype(types[column.dtype]) for column in COLUMNS[table]})


def iterations_table(rows: Sequence[IterationRow], run: RunSettings) -> pd.DataFrame:
    """Return one row an iteration and worker; the warm-up has numbers below 0."""
    frame = pd.DataFrame(rows, columns=list(IterationRow._fields)).rename(
        columns={
            "compute_s": "compute_time_s",
            "exposed_communication_s": "exposed_communication_time_s",
            "waiting_s": "waiting_time_s",
            "communication_s": "communication_time_s",
        }
    )
    frame["iteration"] -= run.warmup
    frame["iteration_time_s"] = (
        frame["compute_time_s"] + frame["exposed_communication_time_s"] + frame["waiting_time_s"]
    )
    return ordered("iterations", frame.sort_values(["iteration", "rank"], ignore_index=True))


def workers_table(job: Job, fabric: Fabric, iterations: pd.DataFrame) -> pd.DataFrame:
    """Return one row a worker, with means over the measured iterations."""
    compiled = fabric.network.compiled
    measured = iterations[iterations["iteration"] >= 0]
    means = measured.groupby("rank", sort=True)[
        ["compute_time_s", "exposed_communication_time_s", "waiting_time_s", "communication_time_s"]
    ].mean()
    frame = means.reset_index()
    frame["iteration_time_s"] = (
        frame["compute_time_s"] + frame["exposed_communication_time_s"] + frame["waiting_time_s"]
    )
    nodes = job.nodes[: job.settings.training.workers]
    hosts = compiled.host_of_node[nodes]
    frame["job"] = job.settings.name
    frame["node"] = [compiled.node_names[node] for node in nodes]
    frame["host"] = [compiled.node_names[host] if host >= 0 else "" for host in hosts]
    workers = slice(0, job.settings.training.workers)
    frame["bytes_sent"] = sum((exchange.placement.schedule.bytes_sent()[workers] for exchange in job.exchanges), 0.0)
    frame["wire_bytes"] = sum((exchange.placement.wire_bytes_sent[workers] for exchange in job.exchanges), 0.0)
    return ordered("workers", frame)


def collectives_table(rows: Sequence[CollectiveRow], run: RunSettings, bounds: Sequence[Bound]) -> pd.DataFrame:
    """Return one row an exchange."""
    frame = pd.DataFrame(rows, columns=list(CollectiveRow._fields))
    frame["iteration"] -= run.warmup
    frame["bound_time_s"] = [bounds[bucket].total_s for bucket in frame["bucket"]]
    frame["algbw_GBps"] = frame["size_bytes"] / frame["duration_s"] / GIGA
    return ordered("collectives", frame)


def links_table(job: str, fabric: Fabric, measurement: Measurement) -> pd.DataFrame:
    """Return one row a resource."""
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
    frame["job"] = job
    possible = frame["bandwidth_bytes_per_s"] * measurement.duration_s
    frame["utilisation"] = np.where(possible > 0, frame["wire_bytes"] / possible.where(possible > 0, 1.0), 0.0)
    return ordered("links", frame)
