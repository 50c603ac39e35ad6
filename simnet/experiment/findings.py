"""What is to be known of a simulation: the summary of each job, how resources were used, and what is odd about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simnet.errors import InvariantError, SimulationError
from simnet.experiment.sanity import Look, sanity_warnings
from simnet.experiment.simulation import Simulation
from simnet.experiment.summary import summarise
from simnet.experiment.tables import Columns, iteration_columns, link_columns
from simnet.training.job import Job
from simnet.training.records import CollectiveRow, IterationRow

__all__ = ["Findings", "JobFindings", "findings_of", "mean_iteration_time_s"]


@dataclass(frozen=True, eq=False)
class JobFindings:
    """What is known of a job.

    Attributes
    ----------
    job : Job
    summary : dict
        Its row, by the columns of the table.
    iterations : columns
    exchanges : sequence of CollectiveRow
    """

    job: Job
    summary: dict[str, Any]
    iterations: Columns
    exchanges: Sequence[CollectiveRow]


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of a simulation.

    Attributes
    ----------
    jobs : tuple of JobFindings
    links : columns
        How resources were used.
    warnings : tuple of str
        What is odd about the scenario and its results, in words.
    """

    jobs: tuple[JobFindings, ...]
    links: Columns
    warnings: tuple[str, ...]


def findings_of(simulation: Simulation) -> Findings:
    """Return what is known of a simulation; tables are made of it.

    Raises
    ------
    InvariantError
        It was faster than it can be, or a resource carried more than it can.
    SimulationError
        The measured time was over before an iteration was.
    """
    jobs, fabric = simulation.jobs, simulation.fabric
    name = jobs[0].settings.name if len(jobs) == 1 else "all"
    links = link_columns(name, fabric, simulation.measurement, [job.sent for job in jobs])
    bottleneck = _bottleneck(links)
    if links["utilisation"].max() > 1 + 1e-9:
        raise InvariantError(f"{bottleneck} carried more than its capacity")
    iterations, exchanges = simulation.recorder.rows(IterationRow), simulation.recorder.rows(CollectiveRow)
    found: list[JobFindings] = []
    odd: list[str] = []
    for job in jobs:
        times = iteration_columns([row for row in iterations if row.job == job.settings.name], job.course)
        own = [row for row in exchanges if row.job == job.settings.name]
        # They are in order of their iterations; of many a copy would take a quarter of the memory.
        measured = {name: values[np.searchsorted(times["iteration"], 0) :] for name, values in times.items()}
        one = JobFindings(job, summarise(simulation, job, times, measured, own, bottleneck), times, own)
        found.append(one)
        odd += _odd(simulation, one, measured, links)
    return Findings(tuple(found), links, (*simulation.scenario.warnings, *odd))


def mean_iteration_time_s(simulation: Simulation, job: str) -> float:
    """Return what an iteration of a job takes, as in the summary, without the rest of it [s]."""
    one = next(each for each in simulation.jobs if each.settings.name == job)
    rows = [row for row in simulation.recorder.rows(IterationRow) if row.job == job]
    times_s = [row.iteration_time_s for row in rows if row.iteration >= one.course.first[row.rank]]
    if not times_s:
        raise SimulationError(f"no worker of job {job} ended an iteration in the measured time")
    return math.fsum(times_s) / len(times_s) + (one.supervisor.recovery_s() if one.supervisor is not None else 0.0)


def _odd(simulation: Simulation, one: JobFindings, measured: Columns, links: Columns) -> Iterator[str]:
    """Yield what is to be looked at twice; of which job, where there are several."""
    look = Look(simulation.scenario, one.job, simulation.fabric, one.summary, measured, links, one.exchanges)
    said = f"{one.job.settings.name}: " if len(simulation.jobs) > 1 else ""
    yield from (f"{said}{warning}" for warning in sanity_warnings(look))


def _bottleneck(links: Columns) -> str:
    """Return the resource that is used most, the first of those that are used alike; none where nothing is used.

    Not the one with a flow for the longest time: the memory of a host has one whenever any of its links has.
    """
    used = links["utilisation"]
    if used.max() <= 0:
        return ""
    return str(links["resource"][int(np.argmax(used >= used.max() * (1 - 1e-6)))])
