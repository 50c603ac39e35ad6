"""One point of a sweep: what it is known by, and running it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

import simnet
from simnet.errors import InputError, SimnetError
from simnet.experiment.findings import findings_of
from simnet.experiment.run import tables_of
from simnet.experiment.simulation import simulate
from simnet.scenario.document import Document
from simnet.scenario.load import load_document
from simnet.scenario.locate import find_file
from simnet.scenario.overrides import Override, apply_overrides
from simnet.scenario.sweep.load import Sweep
from simnet.shipped import shipped_folder

__all__ = ["Outcome", "Task", "key_of", "keys_of", "model_version", "run_tasks"]


@dataclass(frozen=True, eq=False)
class Task:
    """A point that is to be run.

    Attributes
    ----------
    key : what it is known by
    scenario : the scenario as it is given
    name : its name where it gives none
    folder : what its paths are relative to
    overrides : what differs at this point
    keep : tables to keep
    """

    key: str
    scenario: Document
    name: str
    folder: Path
    overrides: tuple[Override, ...]
    keep: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a point.

    Attributes
    ----------
    key : of its task
    rows : the summary, one mapping a job; empty where it failed
    error : why it failed; empty where it did not
    wall_s : how long it took [s]
    warnings : what is odd about it
    tables : those that are kept, by name
    """

    key: str
    rows: tuple[Mapping[str, Any], ...] = ()
    error: str = ""
    wall_s: float = 0.0
    warnings: tuple[str, ...] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@cache
def model_version() -> str:
    """Return a hash of the simulator and of what ships with it: other numbers come only of another one."""
    digest = hashlib.sha256(simnet.__version__.encode())
    package = Path(simnet.__file__).parent
    folders = [package, *(shipped_folder(kind) for kind in ("topologies", "workloads"))]
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix in {".py", ".csv", ".json", ".yaml", ".gml", ".graphml"}:
                digest.update(f"{file.relative_to(folder).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def key_of(scenario: Document, folder: Path, overrides: Sequence[Override]) -> str:
    """Return what a point is known by: a hash of its scenario with its seed, of the files it names, and of the model.

    Parameters
    ----------
    scenario : Document
        As it is given; defaults belong to the model.
    folder : Path
        What its paths are relative to.
    overrides : sequence of Override
    """
    data = apply_overrides(scenario, overrides).data
    files = {name: _digest(name, folder, kind) for kind, name in _named_files(data)}
    whole = {"scenario": data, "files": files, "model": model_version()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:40]


@lru_cache(maxsize=4)
def keys_of(sweep: Sweep) -> tuple[str, ...]:
    """Return what the points of a sweep are known by, in their order; files that they name are read once."""
    return tuple(key_of(sweep.scenario, sweep.folder, point.overrides) for point in sweep.points)


def run_tasks(tasks: Sequence[Task]) -> list[Outcome]:
    """Run points one after the other; those that fail say why."""
    return [_run(task) for task in tasks]


def _run(task: Task) -> Outcome:
    began = time.perf_counter()
    try:
        simulation = simulate(load_document(task.scenario, task.folder, task.name, task.overrides))
        findings = findings_of(simulation)
    except SimnetError as error:
        said = "\n".join(map(str, error.problems)) if isinstance(error, InputError) else str(error)
        return Outcome(task.key, error=said, wall_s=time.perf_counter() - began)
    tables = tables_of(simulation, findings)
    kept = {name: tables[name]() for name in task.keep if name in tables}
    rows = tuple(one.summary for one in findings.jobs)
    return Outcome(task.key, rows, "", time.perf_counter() - began, findings.warnings, kept)


def _named_files(data: Any) -> Iterator[tuple[str, str]]:
    """Yield the files that a scenario names, each with the kind of what may ship under that name."""
    topology = data.get("topology") if isinstance(data, dict) else None
    topology = topology.get("file") if isinstance(topology, dict) else topology
    if isinstance(topology, str):
        yield "topologies", topology
    jobs = data.get("jobs") if isinstance(data, dict) else None
    for job in [data, *(jobs if isinstance(jobs, list) else [])]:
        workload = job.get("workload") if isinstance(job, dict) else None
        if isinstance(workload, dict):
            named = (workload.get(key) for key in ("file", "trace", "graph"))
            yield from (("workloads", name) for name in named if isinstance(name, str))


def _digest(name: str, folder: Path, kind: str) -> str:
    """Return a hash of a file; of one that is not there, nothing, as running will tell."""
    try:
        return hashlib.sha256(find_file(name, folder, kind, _SUFFIXES).read_bytes()).hexdigest()
    except (InputError, OSError):
        return ""


_SUFFIXES = (".yaml", ".yml", ".json", ".gml", ".graphml", ".csv")
