"""From the parts of a validated scenario to the objects they name; those of its jobs are in `simnet.scenario.jobs`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from simnet.errors import InputError, Problem, under
from simnet.fabric.packet.settings import PacketSettings
from simnet.protocols import FIELDS, FlowProtocol, resolve
from simnet.scenario.document import Document
from simnet.scenario.locate import find_file
from simnet.scenario.models import BackgroundSpec, PacketSpec, RunSpec
from simnet.scenario.protocol_models import ProtocolFile, ProtocolSpec, protocol_overrides
from simnet.scenario.sections import NotKnownError, problems_of
from simnet.scenario.topology_models import GeneratorSpec, TopologySpec, generate
from simnet.scenario.yaml_document import parse_yaml, read_yaml
from simnet.topology import TOPOLOGY_SUFFIXES, Topology, generator_names, load_topology_file
from simnet.training.settings import BackgroundSettings, RunSettings
from simnet.units import format_duration

__all__ = [
    "TOPOLOGY_FILES",
    "NamedProtocol",
    "build_background",
    "build_packet",
    "build_protocol",
    "build_run",
    "build_topology",
    "load_protocol",
    "load_topology",
    "topology_from_text",
]

LONGEST_LINK_S = 3600.0
"""Longest latency of a link at packet level, of whose clock of 9.2 million seconds it leaves enough for a run [s]."""

TOPOLOGY_FILES = (".yaml", ".yml", *TOPOLOGY_SUFFIXES)
"""Suffixes of topology files."""

_STAND_INS = {"bandwidth": "1 Gbps", "latency": "1 us", "kind": "other", "node_kind": "host"}


def build_topology(spec: TopologySpec, folder: Path | None = None) -> Topology:
    """Return the topology that a scenario names.

    Parameters
    ----------
    spec : TopologySpec
    folder : Path, optional
        Folder of the scenario, where files are looked for first.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        Problems of the specification have paths below it; those of a file have the file's lines.
    """
    generator = spec.generator
    if generator:
        return _generated(generator, spec, generator)
    assert spec.file is not None
    with under("file"):
        path = _topology_file(spec.file, folder)
    return load_topology(path, spec)


def _topology_file(name: str, folder: Path | None) -> Path:
    try:
        return find_file(name, folder, "topologies", TOPOLOGY_FILES)
    except InputError as error:
        if name not in generator_names():
            raise
        hint = f"a generator needs its options: {{{name}: {{option: value}}}}"
        raise InputError(replace(problem, hint=hint) for problem in error.problems) from None


def load_topology(path: Path, spec: TopologySpec | None = None) -> Topology:
    """Return the topology in a file.

    Parameters
    ----------
    path : Path
        JSON, GraphML or GML, or YAML with a generator.
    spec : TopologySpec, optional
        May hold defaults for its links.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        Everything that is wrong with the file; or `spec` has defaults, and the file a generator.
    NotKnownError
        The defaults of `spec` are wrong, which is told already.
    """
    if path.suffix.lower() in (".yaml", ".yml"):
        if spec is not None and spec.defaults is not None:
            message = f"{path.name} holds a generator, whose links lack nothing"
            raise InputError(Problem(message, "leave the defaults out", ("defaults",)))
        return _from_yaml(read_yaml(path), path.stem)
    if spec is None or spec.defaults is None:
        return load_topology_file(path)
    try:
        defaults = spec.defaults.known().model_dump(exclude_none=True)
    except NotKnownError:
        # With others in the place of those that are wrong, the file tells what is wrong with itself.
        load_topology_file(path, _STAND_INS)
        raise
    return load_topology_file(path, defaults)


def topology_from_text(text: str, option: str = "SPEC") -> Topology:
    """Return the topology that a person names: a file, something that ships, or a generator as inline YAML.

    Parameters
    ----------
    text : str
        As ``fat_tree_k8``, ``cluster.json`` or ``{star: {hosts: 4}}``.
    option : str
        What it was given to, for messages.

    Returns
    -------
    Topology

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
    with document.placing():
        return build_topology(spec)


def _from_yaml(document: Document, name: str) -> Topology:
    try:
        spec = GeneratorSpec.model_validate(document.data)
    except ValidationError as error:
        raise InputError([*document.problems, *problems_of(document, GeneratorSpec, error)]) from None
    document.checked()
    with document.placing():
        return _generated(spec.name, spec, name)


def _generated(generator: str, spec: TopologySpec | GeneratorSpec, name: str) -> Topology:
    with under(generator):
        return generate(generator, getattr(spec, generator), name)


@dataclass(frozen=True)
class NamedProtocol:
    """A protocol, and how it came about.

    Parameters
    ----------
    protocol : FlowProtocol
    name : str
        What tables call it.
    base : str
        The name out of `simnet.protocols.protocol_names` that it was made from.
    """

    protocol: FlowProtocol
    name: str
    base: str


def build_protocol(spec: ProtocolSpec, link_kinds: Iterable[str] = (), folder: Path | None = None) -> NamedProtocol:
    """Return the protocol that a scenario names, with what it overrides.

    Parameters
    ----------
    spec : ProtocolSpec
    link_kinds : iterable of str
        Kinds of links between hosts: ``rdma`` means what they are.
    folder : Path, optional
        Folder of the scenario, where files are looked for first.

    Returns
    -------
    NamedProtocol

    Raises
    ------
    InputError
        Problems of the specification have paths below it; those of a file have the file's lines.
    """
    kinds = tuple(link_kinds)
    if spec.protocol:
        with under(spec.protocol), _by_key():
            overrides, whole = protocol_overrides(spec.options)
            named = NamedProtocol(resolve(spec.protocol, overrides, kinds), spec.protocol, spec.protocol)
    else:
        assert spec.file is not None
        with under("file"):
            path = find_file(spec.file, folder)
        changes, whole = protocol_overrides(spec.changes)
        named = load_protocol(path, kinds, changes)
    if not whole:
        raise NotKnownError(named.base)
    if spec.name is None:
        return named
    return NamedProtocol(replace(named.protocol, name=spec.name), spec.name, named.base)


def load_protocol(
    path: Path, link_kinds: Iterable[str] = (), changes: Mapping[str, Any] = MappingProxyType({})
) -> NamedProtocol:
    """Return the protocol in a file.

    Parameters
    ----------
    path : Path
    link_kinds : iterable of str
    changes : mapping
        What differs from the file, by the names of the fields, in SI units.

    Raises
    ------
    InputError
        Everything that is wrong with the file. Problems with changes have paths below ``changes``.
    """
    document = read_yaml(path)
    try:
        spec = ProtocolFile.model_validate(document.data)
    except ValidationError as error:
        raise InputError([*document.problems, *problems_of(document, ProtocolFile, error)]) from None
    document.checked()
    given, _ = protocol_overrides(spec)
    changed = {FIELDS[name].key for name in changes}
    try:
        with _by_key():
            protocol = resolve(spec.base, given | dict(changes), tuple(link_kinds))
    except InputError as error:
        raise InputError(
            problem.under("changes") if problem.path[0] in changed else document.at((), problem)
            for problem in error.problems
        ) from None
    name = spec.name or path.stem
    summary = "; ".join(part for part in (protocol.summary, spec.source) if part)
    return NamedProtocol(replace(protocol, name=name, summary=summary), name, spec.base)


@contextmanager
def _by_key() -> Iterator[None]:
    """Name the fields of a protocol in problems as scenarios do; `simnet.protocols` names them with their units."""
    try:
        yield
    except InputError as error:
        keys = {field.name: field.key for field in FIELDS.values()}
        raise InputError(
            replace(problem, path=tuple(keys.get(str(part), part) for part in problem.path))
            for problem in error.problems
        ) from None


def build_run(spec: RunSpec) -> RunSettings:
    """Return the run settings."""
    return RunSettings(spec.iterations, spec.warmup, spec.duration, spec.seed, spec.record == "messages")


def build_background(spec: BackgroundSpec, topology: Topology | None) -> BackgroundSettings:
    """Return the settings of background traffic.

    Raises
    ------
    InputError
        Nobody is there to send to, or an option has no effect.
    """
    problems = []
    if spec.sizes != "pareto" and spec.shape != BackgroundSpec.model_fields["shape"].default:
        message = f"shape has no effect on sizes that are {spec.sizes}"
        problems.append(Problem(message, "it goes with sizes: pareto", ("shape",)))
    if topology is not None and topology.compiled.node_kind.count("host") < 2:
        problems.append(Problem(f"topology {topology.name} has no two hosts", "background traffic is between hosts"))
    if problems:
        raise InputError(problems)
    return BackgroundSettings(spec.load, spec.sizes, spec.mean_size, spec.pairs, spec.shape)


def build_packet(spec: PacketSpec, protocol: FlowProtocol | None, longest_s: float = 0.0) -> PacketSettings:
    """Return the settings of the packet level.

    Parameters
    ----------
    spec : PacketSpec
    protocol : FlowProtocol or None
    longest_s : float
        Latency of the longest link [s].

    Raises
    ------
    InputError
        A switch that would never resume, or that has no room for a packet; links too long for a clock that counts
        picoseconds.
    """
    problems = []
    if longest_s > LONGEST_LINK_S:
        message = f"a link with a latency of {format_duration(longest_s)} is too long for packets"
        hint = f"time is counted in picoseconds: at most {format_duration(LONGEST_LINK_S)}, or fidelity: flow"
        problems.append(Problem(message, hint, ("fidelity",)))
    if spec.resume_at > spec.pause_at:
        hint = "a switch resumes with less than what it paused at"
        problems.append(Problem("resume_at is above pause_at", hint, ("packet", "resume_at")))
    if protocol is not None and math.isfinite(protocol.payload_bytes):
        packet_bytes = protocol.payload_bytes + protocol.header_bytes
        for key, room in (("buffer", spec.buffer), ("shared_buffer", spec.shared_buffer), ("credit", spec.credit)):
            if room is not None and room < packet_bytes:
                message = f"a {key} of {room:g} B has no room for a packet"
                hint = f"one of {protocol.name} has {packet_bytes:g} B"
                problems.append(Problem(message, hint, ("packet", key)))
    if problems:
        raise InputError(problems)
    return PacketSettings(
        buffer_bytes=spec.buffer,
        shared_buffer_bytes=spec.shared_buffer or 0.0,
        threshold_shift=spec.threshold_shift,
        pause_at_bytes=spec.pause_at,
        resume_at_bytes=spec.resume_at,
        headroom_bytes=spec.headroom or 0.0,
        credit_bytes=spec.credit,
        input_round_robin=spec.input_round_robin,
    )
