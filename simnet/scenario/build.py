"""From the parts of a validated scenario to the objects they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from simnet.errors import InputError, KeyPath, Problem
from simnet.protocols import FIELDS, FlowProtocol, resolve
from simnet.scenario.document import Document
from simnet.scenario.fields import shown
from simnet.scenario.locate import find_file
from simnet.scenario.models import DISTRIBUTIONS, RunSpec, TrainingSpec, WorkloadSpec
from simnet.scenario.protocol_models import ProtocolSpec, protocol_overrides
from simnet.scenario.sections import label, problems_of, unknown_key
from simnet.scenario.topology_models import GeneratorSpec, TopologySpec, generate
from simnet.scenario.yaml_document import parse_yaml, read_yaml
from simnet.topology import GENERATORS, TOPOLOGY_SUFFIXES, Topology, load_topology_file
from simnet.training.exchange import most_messages_at_once
from simnet.training.settings import Architecture, Jitter, RunSettings, TrainingSettings
from simnet.workload import (
    DTYPE_BYTES,
    RecordedTrace,
    Workload,
    load_trace,
    load_workload_csv,
    table_workload,
    workload_from_rows,
)

__all__ = [
    "TOPOLOGY_FILES",
    "build_protocol",
    "build_run",
    "build_topology",
    "build_training",
    "build_workload",
    "load_topology",
    "load_workload",
    "topology_from_text",
    "worker_count",
]

TOPOLOGY_FILES = (".yaml", ".yml", *TOPOLOGY_SUFFIXES)
"""Suffixes of topology files."""

MOST_PAIRS = 4_000_000
"""Operations of one exchange, some 700 bytes each."""


def build_topology(spec: TopologySpec, folder: Path | None = None) -> Topology:
    """Return the topology that a scenario names.

    Parameters
    ----------
    spec : TopologySpec
    folder : Path, optional
        Folder of the scenario, where files are looked for first.

    Raises
    ------
    InputError
        Problems of the specification have paths below it; those of a file have the file's lines.
    """
    generator = spec.generator
    if generator:
        return _generated(generator, spec, generator)
    assert spec.file is not None
    try:
        path = _topology_file(spec.file, folder)
    except InputError as error:
        raise InputError(problem.under("file") for problem in error.problems) from None
    return load_topology(path, spec)


def _topology_file(name: str, folder: Path | None) -> Path:
    try:
        return find_file(name, folder, "topologies", TOPOLOGY_FILES)
    except InputError as error:
        if name not in GENERATORS:
            raise
        hint = f"a generator needs its options: {{{name}: {{option: value}}}}"
        raise InputError(replace(problem, hint=hint) for problem in error.problems) from None


def load_topology(path: Path, spec: TopologySpec | None = None) -> Topology:
    """Return the topology in a file; `spec` may hold defaults for its links.

    Raises
    ------
    InputError
        Everything that is wrong with the file.
    """
    if path.suffix.lower() in (".yaml", ".yml"):
        if spec is not None and spec.defaults is not None:
            message = f"{path.name} holds a generator, whose links lack nothing"
            raise InputError(Problem(message, "leave the defaults out", ("defaults",)))
        return _from_yaml(read_yaml(path), path.stem)
    defaults = spec.defaults.model_dump(exclude_none=True) if spec is not None and spec.defaults else None
    return load_topology_file(path, defaults)


def topology_from_text(text: str, option: str = "SPEC") -> Topology:
    """Return the topology that a person names: a file, something that ships, or a generator as inline YAML.

    Parameters
    ----------
    text : str
        As ``fat_tree_k8``, ``cluster.json`` or ``{star: {hosts: 4}}``.
    option : str
        What it was given to, for messages.

    Raises
    ------
    InputError
        Everything that is wrong with it.
    """
    if "{" not in text:
        return load_topology(_topology_file(text, None))
    document = parse_yaml(text, option).checked()
    try:
        spec = TopologySpec.model_validate(document.data)
    except ValidationError as error:
        raise InputError(problems_of(document, TopologySpec, error)) from None
    try:
        return build_topology(spec)
    except InputError as error:
        raise InputError(document.at((), problem) for problem in error.problems) from None


def _from_yaml(document: Document, name: str) -> Topology:
    try:
        spec = GeneratorSpec.model_validate(document.data)
    except ValidationError as error:
        raise InputError([*document.problems, *problems_of(document, GeneratorSpec, error)]) from None
    document.checked()
    try:
        return _generated(spec.name, spec, name)
    except InputError as error:
        raise InputError(document.at((), problem) for problem in error.problems) from None


def _generated(generator: str, spec: TopologySpec | GeneratorSpec, name: str) -> Topology:
    try:
        return generate(generator, getattr(spec, generator), name)
    except InputError as error:
        raise InputError(problem.under(generator) for problem in error.problems) from None


def build_protocol(spec: ProtocolSpec, link_kinds: Iterable[str] = ()) -> FlowProtocol:
    """Return the protocol that a scenario names, with what it overrides.

    Parameters
    ----------
    spec : ProtocolSpec
    link_kinds : iterable of str
        Kinds of links between hosts: ``rdma`` means what they are.
    """
    try:
        return resolve(spec.name, protocol_overrides(spec), link_kinds=tuple(link_kinds))
    except InputError as error:
        # Below, fields are named with their units.
        keys = {field.name: field.key for field in FIELDS.values()}
        raise InputError(
            replace(problem, path=tuple(keys.get(str(part), part) for part in problem.path))
            for problem in error.problems
        ) from None


def worker_count(spec: TrainingSpec, topology: Topology) -> int:
    """Return the number of workers: as given, else all ranks; where these are hosts, without those for servers."""
    if spec.workers is not None:
        return spec.workers
    servers = _servers(spec) if "gpu" not in topology.compiled.node_kind else 0
    return max(1, len(topology.compiled.ranks) - servers)


def build_training(spec: TrainingSpec, gradient_dtype: str, topology: Topology) -> TrainingSettings:
    """Return the training settings in SI units.

    Raises
    ------
    InputError
        More workers than ranks, options or speeds of workers that do not exist; all at once.
    """
    problems = []
    ranks, workers = len(topology.compiled.ranks), worker_count(spec, topology)
    architecture = spec.architecture
    if workers > ranks:
        message = f"{workers} workers do not fit on the {ranks} ranks of topology {topology.name}"
        problems.append(Problem(message, f"at most {ranks} workers are possible", ("workers",)))
    pairs = most_messages_at_once(Architecture(architecture.name, dict(architecture.options)), min(workers, ranks))
    if pairs > MOST_PAIRS:
        message = f"{architecture.name} lets {pairs:,} pairs talk at once, which takes too much memory"
        hint = f"at most {MOST_PAIRS:,} are possible: fewer workers or servers"
        problems.append(Problem(message, hint, ("architecture",)))
    hub = getattr(architecture.options, "hub", 0)
    if hub >= workers:
        message = f"hub {hub} is not one of the {workers} workers"
        problems.append(Problem(message, f"a rank from 0 to {workers - 1} is wanted", ("architecture", "star", "hub")))
    speeds = [1.0] * min(workers, ranks)
    if isinstance(spec.speed_factors, tuple):
        if len(spec.speed_factors) not in (0, workers):
            message = f"speed_factors has {len(spec.speed_factors)} elements for {workers} workers"
            hint = "one each is wanted, or a mapping {rank: factor}"
            problems.append(Problem(message, hint, ("speed_factors",)))
        speeds = list(spec.speed_factors) or speeds
    else:
        for rank, speed in spec.speed_factors.items():
            if rank >= workers:
                message = f"speed_factors names rank {rank}, of {workers} workers"
                hint = f"ranks from 0 to {workers - 1} are there"
                problems.append(Problem(message, hint, ("speed_factors", rank)))
            elif rank < len(speeds):
                speeds[rank] = speed
    if problems:
        raise InputError(problems)
    jitter = None
    if spec.jitter is not None:
        spread = getattr(spec.jitter, DISTRIBUTIONS[spec.jitter.distribution])
        jitter = Jitter(spec.jitter.distribution, spread)
    return TrainingSettings(
        workers=workers,
        architecture=Architecture(architecture.name, MappingProxyType(dict(architecture.options))),
        sync=spec.sync,
        bucket_bytes=spec.bucket_size,
        overlap=spec.overlap,
        gradient_element_bytes=float(DTYPE_BYTES[gradient_dtype]),
        jitter=jitter,
        speed_factors=tuple(speeds),
        placement=spec.placement,
    )


def _servers(spec: TrainingSpec) -> int:
    return getattr(spec.architecture.options, "servers", 0)


def build_run(spec: RunSpec) -> RunSettings:
    """Return the run settings."""
    return RunSettings(spec.iterations, spec.warmup, spec.seed, spec.record == "messages")


def build_workload(spec: WorkloadSpec, workers: int, folder: Path | None = None) -> Workload | RecordedTrace:
    """Return the workload of one worker.

    Parameters
    ----------
    spec : WorkloadSpec
    workers : int
        Over which a global batch is shared.
    folder : Path, optional
        Folder of the scenario, where files are looked for first.

    Raises
    ------
    InputError
        A global batch that cannot be shared evenly, a file that is wrong, a case that nobody has measured.
    """
    batch_size = spec.batch_size
    if batch_size is None:
        batch_size, rest = divmod(spec.global_batch_size or 0, workers)
        if rest or not batch_size:
            message = f"global_batch_size is {spec.global_batch_size}, which {workers} workers cannot share evenly"
            hint = f"a multiple of {workers} is wanted"
            raise InputError(Problem(message, hint, ("global_batch_size",)))
    measured: dict[str, Any] = {"gpu": spec.gpu, "precision": spec.precision, "samples_per_s": spec.samples_per_s}
    model: dict[str, Any] = {"model": spec.model, "sequence_length": spec.sequence_length}
    try:
        if spec.trace is not None:
            path = _find(spec.trace, folder, "trace")
            return load_trace(path, batch_size=batch_size, gpu=spec.gpu, precision=spec.precision, **model)
        if spec.file is not None:
            return load_workload(_find(spec.file, folder, "file"), batch_size=batch_size, **measured)
        return table_workload(batch_size=batch_size, **model, **measured)
    except InputError as error:
        # A batch per worker that nobody has measured is reported where the scenario has its size.
        given = "batch_size" if spec.batch_size is not None else "global_batch_size"
        raise InputError(
            replace(problem, path=(given,)) if problem.path == ("batch_size",) else problem
            for problem in error.problems
        ) from None


def load_workload(path: Path, *, batch_size: int, **settings: Any) -> Workload:
    """Return the own workload in a CSV or YAML file.

    Parameters
    ----------
    path : Path
    batch_size : int
        Samples per worker and iteration.
    settings
        ``gpu``, ``precision`` and ``samples_per_s``, as for `simnet.workload.load_workload_csv`.

    Raises
    ------
    InputError
        Everything that is wrong with the file.
    """
    if path.suffix.lower() not in (".yaml", ".yml"):
        return load_workload_csv(path, batch_size=batch_size, **settings)
    document = read_yaml(path).checked()
    data = document.data
    rows: KeyPath = ()
    if isinstance(data, dict):
        unknown = [unknown_key(document, (key,), ["layers"]) for key in data if key != "layers"]
        if unknown:
            raise InputError(unknown)
        data, rows = data.get("layers"), ("layers",)
    if not isinstance(data, list):
        hint = "one mapping a layer: '- {layer: conv1, parameters: 9408, forward_s: 1e-3, backward_s: 2e-3}'"
        raise InputError(document.problem(rows, f"{label(rows)} is {shown(data)}, and no list of layers", hint))
    try:
        return workload_from_rows(data, name=path.stem, batch_size=batch_size, **settings)
    except InputError as error:
        # Problems of a row have its number in front; those of a setting are for the scenario to place.
        raise InputError(
            document.at(rows, problem) if not problem.path or isinstance(problem.path[0], int) else problem
            for problem in error.problems
        ) from None


def _find(name: str, folder: Path | None, key: str) -> Path:
    try:
        return find_file(name, folder)
    except InputError as error:
        raise InputError(problem.under(key) for problem in error.problems) from None
