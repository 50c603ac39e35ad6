"""What an iteration would take if one thing were another: the scenario run again, with one change at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from simnet.errors import InputError, SimnetError, SimulationError
from simnet.experiment.explain.classes import MEMORY, classes_of_links, faster
from simnet.experiment.explain.ideal import without_stack
from simnet.experiment.findings import mean_iteration_time_s
from simnet.experiment.simulation import simulate
from simnet.experiment.tables import ordered
from simnet.experiment.telling import Show, counting, tell_nobody, watched
from simnet.fabric.faults import HostSlow
from simnet.protocols import PROTOCOLS, mismatch, resolve
from simnet.scenario import Scenario, load_scenario
from simnet.traffic import ALL_REDUCE
from simnet.training.communication.architectures import most_messages_at_once
from simnet.training.communication.settings import Architecture
from simnet.training.settings import JobSettings, RunSettings, TrainingSettings
from simnet.workload import RecordedTrace

__all__ = ["as_busy", "sensitivity_table"]

_ITERATIONS = 3

_EVERYTHING = "all links x2"

_MUCH = 0.02

_MOST_MESSAGES = 5_000
"""Of collectives in which each talks to each, those with more messages at once are not tried."""

_NOT_TRIED = ("ideal", "best-effort", "rdma", "ipoib-datagram")
"""Protocols that are none, other names of others, or ones that lose what they are to carry."""

_Change = tuple[str, Callable[[], Scenario]]


def sensitivity_table(scenario: Scenario, job: str, show: Show = tell_nobody) -> pd.DataFrame:
    """Return what the iterations of a job take with one thing changed at a time, the largest gain first.

    Each is compared with the scenario as it is, with the same seed and as many iterations: few, where these are alike.
    A change that does not fit the scenario is left out; one that fails says why.

    Parameters
    ----------
    scenario : Scenario
    job : str
        Name of the job.
    show : callable
        Shown how many changes are over.
    """
    place = next(place for place, one in enumerate(scenario.jobs) if one.name == job)
    short = replace(scenario, run=_short(scenario, place))
    changes = list(_changes(short, place))
    rows: list[dict[str, Any]] = []
    tried: list[str] = []
    with watched(show, counting("changes", 1 + len(changes), lambda: len(tried))):
        usual_s = _iteration_time_s(short, job)
        for what, change in changes:
            tried.append(what)
            time_s, failed = math.nan, ""
            try:
                time_s = _iteration_time_s(change(), job)
            except InputError:
                continue
            except SimnetError as error:
                failed = str(error)
            effect = time_s / usual_s - 1.0 if usual_s > 0.0 else math.nan
            rows.append({"change": what, "iteration_time_s": time_s, "effect": effect, "failed": failed})
    rows.sort(key=lambda row: (math.isnan(row["effect"]), round(row["effect"], 9)))
    columns = ["change", "iteration_time_s", "effect", "failed"]
    return ordered("sensitivity", pd.DataFrame(rows, columns=columns))


def as_busy(cause: str, table: pd.DataFrame) -> str:
    """Return a note where a class of links takes most of the time, but another one is as busy.

    Parameters
    ----------
    cause : str
        The part that takes most.
    table : DataFrame
        Of `sensitivity_table`.
    """
    name = cause.removeprefix("serialisation: ")
    effects = table.set_index("change")["effect"]
    alone, together = effects.get(f"{name} x2", math.nan), effects.get(_EVERYTHING, math.nan)
    if not (together < -_MUCH and alone > 0.5 * together):
        return ""
    return f"other links are about as busy as {name}: making it alone faster helps little, see {_EVERYTHING}"


def _iteration_time_s(scenario: Scenario, job: str) -> float:
    return mean_iteration_time_s(simulate(scenario), job)


def _short(scenario: Scenario, place: int) -> RunSettings:
    """Return how long is simulated: no longer than it takes to see what an iteration takes."""
    run, job = scenario.run, scenario.jobs[place]
    training = job.training
    happens = scenario.faults or training.checkpoint or job.dataset or scenario.background or len(scenario.jobs) > 1
    if happens or _varies(training) or run.duration_s is not None or training.sync.name == "one_shot":
        return run
    period = training.sync.period
    return replace(run, iterations=min(run.iterations, period * math.ceil(_ITERATIONS / period)))


def _varies(training: TrainingSettings) -> bool:
    return training.jitter is not None or bool(training.stragglers)


def _changes(scenario: Scenario, place: int) -> Iterator[_Change]:
    """Yield all changes that may fit, each with what makes the changed scenario."""
    topology, protocol, job = scenario.topology, scenario.protocol, scenario.jobs[place]
    classes = sorted(set(classes_of_links(topology.compiled)))
    if len(classes) > 1:
        yield _EVERYTHING, partial(replace, scenario, topology=faster(topology, tuple(classes), 2.0))
    if np.isfinite(topology.compiled.node_memory_bandwidth).any():
        classes.append(MEMORY)
    for name in classes:
        yield f"{name} x2", partial(replace, scenario, topology=faster(topology, (name,), 2.0))
    if (topology.compiled.link_latency > 0.0).any() or protocol.latency_s > 0.0:
        sooner = replace(protocol, latency_s=0.5 * protocol.latency_s)
        slower = faster(topology, (), 1.0, latency=0.5)
        yield "latency /2", partial(replace, scenario, topology=slower, protocol=sooner)
    if without_stack(protocol) != protocol:
        yield "host protocol stack free", partial(replace, scenario, protocol=without_stack(protocol))
    yield "computing x2", partial(_with_job, scenario, place, _twice_as_fast(job))
    yield from _nothing_wrong(scenario, place)
    if job.training.workers > 1:
        yield from _other_ways(scenario, place)


def _nothing_wrong(scenario: Scenario, place: int) -> Iterator[_Change]:
    """Yield the scenario without what disturbs it."""
    job, compiled = scenario.jobs[place], scenario.topology.compiled
    if (compiled.link_loss_probability > 0.0).any():
        yield "no losses", partial(replace, scenario, topology=faster(scenario.topology, (), 1.0, lossless=True))
    slow = tuple(fault for fault in scenario.faults if isinstance(fault, HostSlow))
    speeds = job.training.speed_factors
    usual = float(np.median(speeds)) if speeds else 1.0
    if _varies(job.training) or slow or any(speed < usual for speed in speeds):
        nobody_slower = tuple(max(speed, usual) for speed in speeds)
        even = replace(job, training=replace(job.training, jitter=None, stragglers=(), speed_factors=nobody_slower))
        kept = tuple(fault for fault in scenario.faults if fault not in slow)
        yield "no stragglers", lambda: replace(_with_job(scenario, place, even), faults=kept)
    if len(scenario.faults) > len(slow):
        jobs = tuple(replace(one, crashes=()) for one in scenario.jobs)
        yield "no faults", partial(replace, scenario, faults=slow, jobs=jobs)
    if scenario.background is not None:
        yield "no background traffic", partial(replace, scenario, background=None)
    if len(scenario.jobs) > 1:
        yield "no other jobs", partial(replace, scenario, jobs=(job,), nodes=(scenario.nodes[place],))


def _other_ways(scenario: Scenario, place: int) -> Iterator[_Change]:
    """Yield the scenario with more servers, smaller gradients, other collectives and other protocols."""
    training = scenario.jobs[place].training
    section = "training" if "training" in scenario.resolved else f"jobs.{place}.training"
    if training.architecture.name == "parameter_server":
        options = training.architecture.options
        changes: dict[str, object] = {"servers": 2 * int(options.get("servers", 1))}
        if options.get("placement", "free_hosts") == "free_hosts":
            # Servers that had to share hosts with workers would be another change besides.
            changes["placement"] = "dedicated"
        server = f"{section}.architecture.parameter_server"
        yield "servers x2", partial(_loaded, scenario, {f"{server}.{key}": value for key, value in changes.items()})
    if training.compression is None:
        yield "compression: fp16", partial(_loaded, scenario, {f"{section}.compression": "fp16"})
    for name in ALL_REDUCE:
        if name != training.architecture.name:
            yield f"all-reduce: {name}", partial(_with_all_reduce, scenario, section, name, training.workers)
    for name in PROTOCOLS:
        if name in _NOT_TRIED or name == scenario.protocol.name:
            continue
        # A package may be in the way of a name.
        with suppress(InputError):
            if mismatch(resolve(name), scenario.topology.compiled.link_kind) is None:
                yield f"protocol: {name}", partial(_loaded, scenario, {"protocol": name})


def _with_all_reduce(scenario: Scenario, section: str, name: str, workers: int) -> Scenario:
    messages = most_messages_at_once(Architecture(name), workers)
    if messages > _MOST_MESSAGES:
        raise SimulationError(f"not tried: {messages:,} messages at once")
    return _loaded(scenario, {f"{section}.architecture": name})


def _loaded(scenario: Scenario, changes: Mapping[str, object]) -> Scenario:
    """Load a scenario anew with other values, so that what does not fit together is refused."""
    return replace(load_scenario(scenario.resolved, dict(changes)), run=scenario.run)


def _with_job(scenario: Scenario, place: int, job: JobSettings) -> Scenario:
    return replace(scenario, jobs=(*scenario.jobs[:place], job, *scenario.jobs[place + 1 :]))


def _twice_as_fast(job: JobSettings) -> JobSettings:
    """Return a job whose workers compute in half the time."""
    workload, training = job.workload, job.training
    if isinstance(workload, RecordedTrace):
        names = ("forward_end_s", "backward_end_s", "forward_time_s", "backward_time_s", "optimizer_time_s")
        return replace(job, workload=replace(workload, **{name: 0.5 * getattr(workload, name) for name in names}))
    speeds = training.speed_factors or (1.0,) * training.workers
    return replace(job, training=replace(training, speed_factors=tuple(2.0 * speed for speed in speeds)))
