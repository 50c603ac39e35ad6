"""From the crashes of a scenario to settings of its jobs: which process dies, and who takes its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from simnet.errors import InputError, Problem, attempt, nearest, under
from simnet.scenario.fault_models import FaultSpec
from simnet.scenario.fields import hint_at
from simnet.scenario.jobs import PlacedJob
from simnet.topology import Topology
from simnet.training.communication.architectures import arrange
from simnet.training.recovery.settings import Crash, ServerCrash, WorkerCrash
from simnet.training.settings import JobSettings

__all__ = ["JobCrash", "build_crashes", "with_crashes"]


@dataclass(frozen=True)
class JobCrash:
    """A crash, and the number of the job that it happens to."""

    job: int
    crash: Crash


def with_crashes(job: JobSettings, crashes: Sequence[Crash]) -> JobSettings:
    """Return a job some of whose processes crash; servers with replicas have them in the whole run."""
    if not crashes:
        return job
    replicas = {one.server: one.replica for one in crashes if isinstance(one, ServerCrash) and one.replica >= 0}
    architecture = job.training.architecture
    if replicas:
        options = {**architecture.options, "replicas": replicas}
        architecture = replace(architecture, options=MappingProxyType(options))
    return replace(job, training=replace(job.training, architecture=architecture), crashes=tuple(crashes))


def build_crashes(specs: Sequence[FaultSpec], topology: Topology, jobs: Sequence[PlacedJob]) -> dict[int, JobCrash]:
    """Return the crashes that a scenario names, each with its place in the list.

    Raises
    ------
    InputError
        Processes, jobs and hosts that are not there; paths are below the list.
    """
    problems: list[Problem] = []
    found: dict[int, JobCrash] = {}
    for number, spec in enumerate(specs):
        if spec.name not in ("worker_crash", "server_crash"):
            continue
        before = [one.crash for one in found.values()]
        made = attempt(problems, partial(_build_at, number, spec, topology, jobs, before))
        if made is not None:
            found[number] = made
    if problems:
        raise InputError(problems)
    return found


def _build_at(
    number: int, spec: FaultSpec, topology: Topology, jobs: Sequence[PlacedJob], before: Sequence[Crash]
) -> JobCrash:
    with under(number, spec.name):
        return _build(spec, topology, jobs, before)


def _build(spec: FaultSpec, topology: Topology, jobs: Sequence[PlacedJob], before: Sequence[Crash]) -> JobCrash:
    options = spec.options
    number = _job(options.job, jobs)
    job = jobs[number].settings
    where = f" of job {job.name}" if len(jobs) > 1 else ""
    if job.dataset is not None and job.dataset.split != "sampled":
        message = f"{spec.name} stands beside a data set that is {job.dataset.split}"
        raise InputError(Problem(message, "split: sampled is possible, where each reads by itself"))
    lasts_s = getattr(options, "for")
    back_s = math.inf if lasts_s is None else options.at + lasts_s
    if spec.name == "worker_crash":
        if options.worker >= job.training.workers:
            message = f"there is no worker {options.worker}{where}"
            raise InputError(Problem(message, f"those from 0 to {job.training.workers - 1} are there", ("worker",)))
        what = f"worker {options.worker}{where}"
        return JobCrash(number, WorkerCrash(spec.name, what, options.worker, options.at, back_s, options.detect_after))
    servers = _servers(job, where)
    if options.server >= servers:
        message = f"there is no server {options.server}{where}"
        raise InputError(Problem(message, f"those from 0 to {servers - 1} are there", ("server",)))
    if options.failover is None and options.replica is not None:
        raise InputError(Problem("replica stands beside no failover", "say how long it takes", ("replica",)))
    what = f"server {options.server}{where}"
    crash = ServerCrash(spec.name, what, options.server, options.at, back_s, options.detect_after, options.failover)
    if options.failover is not None:
        if any(isinstance(one, ServerCrash) and one.what == what and one.failover_s is not None for one in before):
            message = f"{what} has a replica already"
            raise InputError(Problem(message, "one failover of each server is possible", ("failover",)))
        crash = replace(crash, replica=_replica(options, topology, jobs, job, number, before))
    return JobCrash(number, crash)


def _job(name: str | None, jobs: Sequence[PlacedJob]) -> int:
    names = [job.settings.name for job in jobs]
    if name is None and len(jobs) == 1:
        return 0
    if name is None:
        raise InputError(Problem("there are several jobs", f"say which: job: {names[0]}", ("job",)))
    if name not in names:
        raise InputError(Problem(f"there is no job {name!r}", nearest(name, names), ("job",)))
    return names.index(name)


def _servers(job: JobSettings, where: str) -> int:
    architecture = job.training.architecture
    if not architecture.servers:
        message = f"server_crash stands beside architecture {architecture.name}{where}"
        raise InputError(Problem(message, "architecture: parameter_server is wanted", ("server",)))
    return architecture.servers


def _replica(
    options: Any,
    topology: Topology,
    jobs: Sequence[PlacedJob],
    job: JobSettings,
    number: int,
    before: Sequence[Crash],
) -> int:
    """Return the node of a replica: as named, or the first host that nobody is on."""
    compiled, nodes = topology.compiled, jobs[number].nodes
    hosts = [node for node, kind in enumerate(compiled.node_kind) if kind == "host"]
    busy = {int(host) for one in jobs for host in compiled.host_of_node[one.nodes]}
    servers = arrange(job.training.architecture, topology, nodes, frozenset(busy)).nodes[len(nodes) :].tolist()
    if options.replica is None:
        taken = busy | set(servers) | {one.replica for one in before if isinstance(one, ServerCrash)}
        free = [host for host in hosts if host not in taken]
        if not free:
            message = f"there is no host left for the replica of server {options.server}"
            raise InputError(Problem(message, "name one: replica: " + compiled.node_names[hosts[0]], ("failover",)))
        return free[0]
    names = [compiled.node_names[host] for host in hosts]
    if options.replica not in names:
        message = f"there is no host {options.replica!r}"
        raise InputError(Problem(message, hint_at(options.replica, names), ("replica",)))
    node = compiled.node_index[options.replica]
    if node == servers[options.server]:
        message = f"server {options.server} itself is on {options.replica}"
        raise InputError(Problem(message, "another host is wanted", ("replica",)))
    return node
