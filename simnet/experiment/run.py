"""Run a scenario."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from simnet.experiment.findings import Findings, JobFindings, findings_of
from simnet.experiment.result import Result
from simnet.experiment.simulation import Simulation, compile_for, simulate
from simnet.experiment.tables import (
    collectives_table,
    connections_table,
    faults_table,
    ordered,
    queues_table,
    spans_table,
    staleness_table,
    workers_table,
)
from simnet.experiment.telling import Show, tell, tell_nobody
from simnet.fabric.packet.fabric import PacketFabric
from simnet.scenario import Override, Scenario, load_scenario
from simnet.training.records import SpanRow

__all__ = ["result_of", "run", "run_scenario", "tables_of"]


def run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    overrides: Mapping[str, object] | Iterable[Override] = (),
    say: Callable[[str], None] | None = None,
    *,
    timeline: bool = False,
    show: Show = tell_nobody,
) -> Result:
    """Run a scenario.

    Parameters
    ----------
    scenario : str, Path, mapping or Scenario
        A file, the name of one that ships, or its content.
    overrides : mapping or iterable of Override
        Values to put in first, by path: ``{"training.workers": 32}``.
    say : callable, optional
        Told in a line what takes long; standard error by default.
    timeline : bool
        Keep what each worker does when, and the load of resources, for `simnet.experiment.timeline`; it takes longer.
    show : callable
        Shown a `simnet.experiment.telling.Progress` some times a second, from another thread.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Everything that is wrong with the scenario.
    SimulationError
        The run came to a stop.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, overrides)
    compile_for(scenario, say or tell, show)
    if timeline:
        scenario = replace(scenario, run=replace(scenario.run, records_timeline=True))
    return run_scenario(scenario, show)


def run_scenario(scenario: Scenario, show: Show = tell_nobody) -> Result:
    """Run a scenario that is loaded, with kernels that are compiled."""
    return result_of(simulate(scenario, show))


def result_of(simulation: Simulation) -> Result:
    """Make the tables of what has been simulated."""
    scenario, fabric = simulation.scenario, simulation.fabric
    findings = findings_of(simulation)
    return Result(
        **{name: make() for name, make in tables_of(simulation, findings).items()},
        scenario=scenario.resolved,
        about={
            "seed": scenario.run.seed,
            "protocol": scenario.protocol.name,
            "messages": fabric.counts.messages,
            "messages_simulated": fabric.counts.simulated_messages,
            "rate_solves": fabric.counts.solves,
            "simulated_s": float(fabric.env.now),
            "versions": _versions(),
        },
        warnings=findings.warnings,
        message_file=simulation.messages,
    )


def tables_of(simulation: Simulation, findings: Findings) -> dict[str, Callable[[], pd.DataFrame]]:
    """Return how to make each table that a simulation has, those of several jobs one below the other."""
    scenario, fabric, load = simulation.scenario, simulation.fabric, simulation.load

    def of_each(make: Callable[[JobFindings], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        return lambda: pd.concat([make(one) for one in findings.jobs], ignore_index=True)

    tables = {
        "summary": of_each(lambda one: ordered("summary", {name: [value] for name, value in one.summary.items()})),
        "iterations": of_each(lambda one: ordered("iterations", one.iterations)),
        "workers": of_each(lambda one: workers_table(one.job, fabric, one.iterations)),
        "collectives": of_each(lambda one: collectives_table(one.exchanges, one.job.course, fabric)),
        "links": lambda: ordered("links", findings.links),
    }
    if any(job.settings.training.sync.waits_alone for job in simulation.jobs):
        tables["staleness"] = of_each(lambda one: staleness_table(one.iterations))
    if isinstance(fabric, PacketFabric):
        tables["queues"] = lambda: queues_table(fabric)
        tables["connections"] = lambda: connections_table(fabric)
    if scenario.faults:
        tables["faults"] = lambda: faults_table(scenario.faults)
    if load is not None:
        tables["spans"] = lambda: spans_table(simulation.recorder.rows(SpanRow), simulation.jobs)
        tables["load"] = lambda: load.table(fabric.network)
    return tables


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("simnet-cluster", "simpy", "networkx", "numpy", "pandas", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            from simnet import __version__

            found[name] = __version__
    return found
