"""Load a scenario: read, change, validate, build, and report everything that is wrong at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from simnet.errors import InputError, KeyPath, Problem
from simnet.fabric.faults import NetworkFault
from simnet.fabric.packet.settings import PacketSettings
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.scenario.build import (
    NamedProtocol,
    build_background,
    build_packet,
    build_protocol,
    build_run,
    build_topology,
)
from simnet.scenario.combinations import combination_problems
from simnet.scenario.crashes import JobCrash, build_crashes, with_crashes
from simnet.scenario.document import Document, python_document
from simnet.scenario.faults import build_faults
from simnet.scenario.jobs import PlacedJob, build_dataset, fit_to_workload, place_job
from simnet.scenario.locate import find_file
from simnet.scenario.models import ScenarioSpec
from simnet.scenario.overrides import Override, apply_overrides, overrides_from_mapping
from simnet.scenario.protocol_models import protocol_data
from simnet.scenario.room import Room, replicas
from simnet.scenario.sections import NotKnownError, problems_of, right_part
from simnet.scenario.settings import Fault, Scenario
from simnet.scenario.training import build_training, idle_notes
from simnet.scenario.workloads import build_workload
from simnet.scenario.yaml_document import read_yaml
from simnet.topology import Topology
from simnet.training.settings import BackgroundSettings, JobSettings, RunSettings

__all__ = ["SCENARIO_SUFFIXES", "load_document", "load_scenario", "name_of", "parse_scenario", "scenario_data"]

SCENARIO_SUFFIXES = (".yaml", ".yml")

_Built = TypeVar("_Built")


def load_scenario(
    scenario: str | Path | Mapping[str, Any],
    overrides: Mapping[str, object] | Iterable[Override] = (),
) -> Scenario:
    """Return a scenario with everything that it names.

    Parameters
    ----------
    scenario : str, Path or mapping
        A file, the name of a scenario that ships, or the scenario itself as plain data.
    overrides : mapping or iterable of Override
        Values to put in before validation, by path: ``{"training.workers": 32}``.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        Everything that is wrong with the scenario and with the files that it names.
    """
    changes = overrides_from_mapping(overrides) if isinstance(overrides, Mapping) else overrides
    return load_document(*_open(scenario), changes)


def load_document(document: Document, folder: Path, name: str, overrides: Iterable[Override] = ()) -> Scenario:
    """Return a scenario that has been read already.

    Parameters
    ----------
    document : Document
    folder : Path
        What its paths are relative to.
    name : str
        Its name where it gives none.
    overrides : iterable of Override
        Values to put in before validation.

    Raises
    ------
    InputError
        Everything that is wrong with the scenario and with the files that it names.
    """
    document = apply_overrides(document, overrides)
    return _build(document, _validate(document, name), folder)


def parse_scenario(document: Document, name: str = "scenario") -> ScenarioSpec:
    """Return the validated specification in a document, without opening the files that it names.

    Parameters
    ----------
    document : Document
    name : str
        Name of the scenario where it gives none.

    Returns
    -------
    ScenarioSpec

    Raises
    ------
    InputError
        Everything that is wrong.
    """
    parts = _validate(document, name)
    if parts.spec is None:
        raise InputError(parts.problems)
    return parts.spec


def scenario_data(spec: ScenarioSpec) -> dict[str, Any]:
    """Return a specification as plain data, with every default and in a fixed order; parsing it gives it back.

    Parameters
    ----------
    spec : ScenarioSpec

    Returns
    -------
    dict
        As a file has it; quantities are text with units.
    """
    return spec.model_dump(exclude_none=True)


@dataclass(frozen=True)
class _Parts:
    """A scenario that may be wrong in places: all of it, what is right of it, and what is wrong with it."""

    spec: ScenarioSpec | None
    right: ScenarioSpec | None
    problems: list[Problem]


def _open(scenario: str | Path | Mapping[str, Any]) -> tuple[Document, Path, str]:
    """Return the document, the folder that its paths are relative to, and the name that it has by default."""
    if isinstance(scenario, Mapping):
        return python_document(scenario, ""), Path(), "scenario"
    if not isinstance(scenario, (str, Path)):
        hint = "a file name, the name of a scenario that ships, or a mapping is wanted"
        raise InputError(Problem(f"the scenario is a {type(scenario).__name__}", hint))
    path = find_file(str(scenario), None, "scenarios", SCENARIO_SUFFIXES)
    return read_yaml(path), path.parent, name_of(path, "scenario")


def name_of(path: Path, otherwise: str) -> str:
    """Return the name that a file gives to what it holds, which can also be that of a folder."""
    return re.sub(r"[^\w.+-]", "_", path.stem).lstrip(".+-")[:100] or otherwise


def _validate(document: Document, name: str) -> _Parts:
    data = document.data
    if isinstance(data, dict) and data.get("name") is None:
        data = {"name": name} | {key: value for key, value in data.items() if key != "name"}
    problems = [*document.problems, *combination_problems(document)]
    spec = None
    try:
        spec = ScenarioSpec.model_validate(data)
    except ValidationError as error:
        problems += problems_of(document, ScenarioSpec, error)
    if spec is not None and not problems:
        return _Parts(spec, spec, [])
    try:
        right: Any = right_part(ScenarioSpec, data, {problem.path for problem in problems})
    except NotKnownError:
        right = None
    return _Parts(None, right, _in_order(problems))


def _build(document: Document, parts: _Parts, folder: Path) -> Scenario:
    """Build what can be built, so that problems of one part do not hide those of another."""
    problems = list(parts.problems)
    right = parts.right
    if right is None:
        raise InputError(problems)

    def attempt(path: KeyPath, build: Callable[[], _Built]) -> _Built | None:
        try:
            return build()
        except InputError as error:
            problems.extend(document.at(path, problem) for problem in error.problems)
        except NotKnownError:
            pass
        return None

    topology = attempt(("topology",), lambda: build_topology(right.topology, folder))
    kinds = topology.compiled.link_kind if topology is not None else ()
    named = attempt(("protocol",), lambda: build_protocol(right.protocol, kinds, folder))
    run = attempt((), lambda: build_run(right.run))
    taken: frozenset[int] = frozenset()
    jobs: list[PlacedJob | None] = []
    for path, name, part in _jobs_of(right):
        job = _build_job(attempt, path, name, part, topology, taken, folder, run)
        if job is not None:
            taken |= frozenset(job.nodes.tolist())
        jobs.append(job)
    background = attempt(("background",), lambda: _background(right, topology))
    faults = attempt(("faults",), lambda: _faults(right, topology))
    crashes = attempt(("faults",), lambda: _crashes(right, topology, jobs))
    packet = attempt((), lambda: _packet(right, named.protocol if named else None, topology))
    spec, placed = parts.spec, [job for job in jobs if job is not None]
    if problems or spec is None or topology is None or named is None or run is None or len(placed) < len(jobs):
        raise InputError(_in_order(problems))
    return Scenario(
        name=spec.name,
        fidelity=spec.fidelity,
        topology=topology,
        protocol_name=named.name,
        protocol=named.protocol,
        jobs=tuple(
            with_crashes(job.settings, [one.crash for one in (crashes or {}).values() if one.job == number])
            for number, job in enumerate(placed)
        ),
        nodes=tuple(job.nodes for job in placed),
        background=background,
        faults=_in_their_order(faults or {}, crashes or {}),
        packet=packet,
        reduce_s_per_byte=1.0 / spec.reduction_rate,
        run=run,
        engine=EngineSettings(**dict(spec.engine)),
        baseline_samples_per_s=spec.baseline.samples_per_s if spec.baseline is not None else None,
        resolve=partial(_resolved, spec, named, [job.settings for job in placed], folder),
        notes=tuple(dict.fromkeys(note for job in placed for note in job.notes)),
    )


def _background(right: Any, topology: Topology | None) -> BackgroundSettings | None:
    return build_background(right.background, topology) if right.background is not None else None


def _faults(right: Any, topology: Topology | None) -> dict[int, NetworkFault]:
    return build_faults(right.faults, topology) if right.faults is not None and topology is not None else {}


def _crashes(right: Any, topology: Topology | None, jobs: Sequence[PlacedJob | None]) -> dict[int, JobCrash]:
    """Return the faults of jobs; where a job is wrong, that is told first."""
    placed = [job for job in jobs if job is not None]
    if right.faults is None or topology is None or not placed or len(placed) < len(jobs):
        return {}
    return build_crashes(right.faults, topology, placed)


def _in_their_order(faults: Mapping[int, NetworkFault], crashes: Mapping[int, JobCrash]) -> tuple[Fault, ...]:
    found: dict[int, Fault] = {**faults, **{number: one.crash for number, one in crashes.items()}}
    return tuple(found[number] for number in sorted(found))


def _packet(right: Any, protocol: FlowProtocol | None, topology: Topology | None) -> PacketSettings | None:
    """Return the settings of the packet level; None at flow level."""
    if right.fidelity != "packet":
        return None
    longest_s = float(topology.compiled.link_latency.max(initial=0.0)) if topology is not None else 0.0
    return build_packet(right.packet, protocol, longest_s)


_Attempt = Callable[[KeyPath, Callable[[], Any]], Any]


def _jobs_of(right: Any) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield where each job stands, what it is called, and its sections."""
    try:
        several = right.jobs
    except NotKnownError:
        return
    if several is None:
        yield (), "train", right
        return
    for number, job in enumerate(several):
        yield ("jobs", number), job.__dict__.get("name", f"job {number}"), job


def _build_job(
    attempt: _Attempt,
    path: KeyPath,
    name: str,
    right: Any,
    topology: Topology | None,
    taken: frozenset[int],
    folder: Path,
    run: RunSettings | None,
) -> PlacedJob | None:
    """Build what can be built of a job.

    Parameters
    ----------
    attempt : callable
        Takes down what is wrong below a path.
    path : tuple of str or int
        Where the job stands in the scenario.
    name : str
    right : JobSpec or ScenarioSpec
        What is right of its sections.
    topology : Topology or None
    taken : frozenset of int
        Nodes with workers of other jobs.
    folder : Path
    run : RunSettings or None
    """
    dtype = attempt((), lambda: right.workload.gradient_dtype) or "fp32"
    training, workers, dataset, room = None, None, None, None
    if topology is not None:
        room = Room(topology, taken)
        training = attempt((*path, "training"), lambda: build_training(right.training, dtype, room))
        workers = attempt((), lambda: replicas(right.training, room))
        dataset = attempt(
            (*path, "dataset"),
            lambda: build_dataset(right.dataset, topology) if right.dataset is not None else None,
        )
    workload = attempt((*path, "workload"), lambda: build_workload(right.workload, workers, folder))
    if workload is None or training is None or room is None or run is None:
        return None
    start_s = attempt((), lambda: right.start if path else 0.0)
    # Of a dataflow graph each device is a worker.
    training = fit_to_workload(training, workload)
    settings = JobSettings(name, workload, training, dataset, start_s or 0.0)
    made: PlacedJob | None = attempt(path, lambda: place_job(settings, room, run, idle_notes(right.training)))
    return made


def _resolved(spec: ScenarioSpec, named: NamedProtocol, jobs: Sequence[JobSettings], folder: Path) -> dict[str, Any]:
    """Return the scenario as plain data that gives the same scenario in any folder."""
    data = scenario_data(spec)
    data["protocol"] = protocol_data(named.protocol, named.base, named.name)
    data["topology"] = _with_whole_path(data["topology"], folder)
    for sections, job in zip(data.get("jobs", [data]), jobs, strict=True):
        sections["training"] = {"workers": job.training.workers} | sections["training"]
        for key in ("file", "trace", "graph"):
            if key in sections["workload"]:
                sections["workload"][key] = _whole_path(sections["workload"][key], folder)
    if "jobs" in data:
        del data["training"]
    return data


def _with_whole_path(topology: Any, folder: Path) -> Any:
    if isinstance(topology, str):
        return _whole_path(topology, folder)
    if "file" in topology:
        return topology | {"file": _whole_path(topology["file"], folder)}
    return topology


def _whole_path(name: str, folder: Path) -> str:
    """Return where a file lies; the name of something that ships stays a name."""
    for place in (folder, Path()):
        if (place / name).is_file():
            return str((place / name).resolve())
    return name


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort problems by where they stand; those of other sources keep their order behind them."""
    unique = dict.fromkeys(problems)
    sources = list(dict.fromkeys(problem.source for problem in unique))
    return sorted(unique, key=lambda p: (sources.index(p.source), p.line == 0, p.line, p.column))
