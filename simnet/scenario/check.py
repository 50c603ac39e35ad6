"""Say what a file is and what was understood of it."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from simnet.errors import InputError, Problem
from simnet.scenario.algorithm_options import unusual
from simnet.scenario.build import TOPOLOGY_FILES, load_topology
from simnet.scenario.fields import hint_at
from simnet.scenario.load import SCENARIO_SUFFIXES, load_scenario
from simnet.scenario.locate import find_file, shipped_names
from simnet.scenario.overrides import Override
from simnet.scenario.settings import Fault, Scenario
from simnet.scenario.workloads import load_workload
from simnet.scenario.yaml_document import read_yaml
from simnet.topology import TOPOLOGY_SUFFIXES, generator_names, summary_lines
from simnet.traffic import algorithm_names, algorithm_of, parameter_server_push_pull
from simnet.training.memory import largest_memory_use, state_bytes
from simnet.training.recovery.settings import Checkpoint, ServerCrash
from simnet.training.settings import JobSettings, TrainingSettings
from simnet.units import format_duration, format_size
from simnet.workload import (
    REFERENCE_GPU,
    AnyWorkload,
    DataflowWorkload,
    GroupedWorkload,
    RecordedTrace,
    Workload,
    list_models,
    load_trace,
)
from simnet.workload.trace import TRACE_COLUMNS

__all__ = ["describe", "describe_scenario", "describe_workload", "kind_of_file"]

_SHIPPED = {"scenarios": SCENARIO_SUFFIXES, "topologies": TOPOLOGY_FILES}


def describe(file: str | Path, overrides: Iterable[Override] = ()) -> list[str]:
    """Validate a scenario, a topology or a workload and return lines that say what was understood.

    Parameters
    ----------
    file : str or Path
        A file, or the name of a scenario or topology that ships.
    overrides : iterable of Override
        Values to put into a scenario first.

    Returns
    -------
    list of str
        Quantities in them have units.

    Raises
    ------
    InputError
        Everything that is wrong with it and with the files that it names.
    """
    path = _find(str(file))
    match kind_of_file(path):
        case "topology":
            return summary_lines(load_topology(path))
        case "workload":
            return describe_workload(_workload(path))
        case "trace":
            return describe_workload(load_trace(path, batch_size=1))
    return describe_scenario(load_scenario(path, overrides))


def kind_of_file(path: Path) -> str:
    """Tell by suffix and content what a file is: ``scenario``, ``topology``, ``workload`` or ``trace``.

    Raises
    ------
    InputError
        It is none of these, or cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix in TOPOLOGY_SUFFIXES:
        return "topology"
    if suffix == ".csv":
        return "trace" if set(_first_line(path)) >= set(TRACE_COLUMNS) else "workload"
    if suffix not in SCENARIO_SUFFIXES:
        known = ", ".join(dict.fromkeys([*SCENARIO_SUFFIXES, *TOPOLOGY_SUFFIXES, ".csv"]))
        raise InputError(Problem(f"{path.name!r} is nothing known by its suffix", f"known: {known}", source=str(path)))
    data = read_yaml(path).data
    if isinstance(data, list) or (isinstance(data, dict) and "layers" in data):
        return "workload"
    if isinstance(data, dict) and data and all(key in generator_names() for key in data):
        return "topology"
    return "scenario"


def describe_scenario(scenario: Scenario) -> list[str]:
    """Return what a scenario says, in lines for people."""
    run = scenario.run
    lines = [
        f"scenario {scenario.name}, fidelity {scenario.fidelity}",
        *summary_lines(scenario.topology),
        f"protocol {scenario.protocol.name}: {scenario.protocol.summary}",
    ]
    for job in scenario.jobs:
        if len(scenario.jobs) > 1:
            lines.append(f"job {job.name}")
        lines += [*describe_workload(job.workload), *_training_lines(job)]
    if scenario.background is not None:
        background = scenario.background
        lines.append(
            f"background traffic: load {background.load:g}, {background.sizes} flows of "
            f"{format_size(background.mean_bytes)} in the mean, {background.pairs} pairs"
        )
    lines += [_fault_line(fault, scenario.topology.compiled.node_names) for fault in scenario.faults]
    lines.append(f"run: {run.iterations} iterations after {run.warmup} of warm-up, seed {run.seed}")
    return [*lines, *(f"note: {warning}" for warning in scenario.warnings)]


def describe_workload(workload: AnyWorkload) -> list[str]:
    """Return what a workload says, in lines for people."""
    model = workload.model
    lines = [
        f"workload {model.name}: {len(model.layers)} layers, {len(model.tensors)} gradients, "
        f"{model.parameters:,} parameters",
    ]
    if isinstance(workload, DataflowWorkload):
        graph = workload.graph
        lines = [
            f"dataflow graph {graph.name}: {len(graph.operations)} operations on {graph.devices} devices, "
            f"{format_duration(workload.compute_time_s)} in all"
        ]
        crossing = sum(graph.bytes_between_devices.values())
        lines.append(f"  {len(graph.transfers)} tensors move between devices, {format_size(crossing)} in a step")
    elif isinstance(workload, RecordedTrace):
        times = workload.iteration_time_s
        lines.append(
            f"  recorded: {workload.iterations} iterations of {workload.ranks} ranks, "
            f"{format_duration(float(times.min()))} to {format_duration(float(times.max()))} each"
        )
    elif isinstance(workload, GroupedWorkload):
        for workers, part in zip(workload.workers, workload.parts, strict=True):
            lines.append(f"  {workers} worker{'s' if workers > 1 else ''}:")
            lines += [f"  {line}" for line in _time_lines(part)]
    else:
        lines += _time_lines(workload)
    return lines


def _time_lines(workload: Workload) -> list[str]:
    """Say how long a worker computes."""
    on = f" on {workload.gpu} in {workload.precision}" if workload.gpu else ""
    batch = f"{workload.batch_size} sample{'s' if workload.batch_size > 1 else ''}"
    return [
        f"  {format_duration(workload.compute_time_s)} for {batch}{on}: "
        f"{format_duration(float(workload.forward_s.sum()))} forward, "
        f"{format_duration(float(workload.backward_s.sum()))} backward",
        f"  compute time: {workload.source}",
    ]


def _training_lines(job: JobSettings) -> list[str]:
    training, workload = job.training, job.workload
    gradients = float(workload.tensor_elements.sum()) * training.gradient_element_bytes
    lines = [
        _training_line(training, isinstance(workload, DataflowWorkload)),
        f"  {format_size(gradients)} of gradients a replica, {_what_travels(training)}, "
        f"{'sent while the backward pass goes on' if training.overlap else 'sent after the backward pass'}",
    ]
    use = largest_memory_use(job)
    if use is not None:
        lines.append(f"  {format_size(use.total_bytes)} of memory a worker")
    if training.checkpoint is not None:
        lines.append(_checkpoint_line(job, training.checkpoint))
    if job.dataset is not None:
        source = f" from {', '.join(job.dataset.storage)}" if job.dataset.storage else ""
        lines.append(f"  samples of {format_size(job.dataset.bytes_per_sample)}{source}, {job.dataset.split}")
    return lines


def _what_travels(training: TrainingSettings) -> str:
    """Say what of the gradients travels together, and what first."""
    scheduling = training.scheduling
    said = {
        "size": f"{format_size(training.bucket_bytes)} a bucket",
        "merged": "in merged buckets",
        "cycle": f"what is ready after cycles of {format_duration(scheduling.cycle_s)} together",
    }[scheduling.fusion]
    if scheduling.piece_bytes < math.inf:
        said += f" in pieces of {format_size(scheduling.piece_bytes)}"
    return f"{said}, by priority" if scheduling.order == "priority" else said


def _fault_line(fault: Fault, node_names: Sequence[str]) -> str:
    line = f"fault {fault.kind}: {fault.what}, at {format_duration(fault.begin_s)}"
    if isinstance(fault, ServerCrash) and fault.failover_s is not None:
        return f"{line}; {node_names[fault.replica]} takes over after {format_duration(fault.failover_s)}"
    return f"{line}, for good" if math.isinf(fault.end_s) else f"{line} until {format_duration(fault.end_s)}"


def _checkpoint_line(job: JobSettings, checkpoint: Checkpoint) -> str:
    size_bytes = sum(state_bytes(job)) if checkpoint.size_bytes is None else checkpoint.size_bytes
    beside = "" if checkpoint.blocking else ", beside training"
    where = checkpoint.storage or "disks of their own"
    return f"  {format_size(size_bytes)} of state, to {where} each {checkpoint.every} iterations{beside}"


def _training_line(training: TrainingSettings, is_graph: bool) -> str:
    architecture, grid = training.architecture, training.grid
    given = {key: value for key, value in architecture.options.items() if key != "replicas"}
    is_all_reduce = architecture.name in algorithm_names("all_reduce")
    make = algorithm_of("all_reduce", architecture.name).make if is_all_reduce else parameter_server_push_pull
    options = ", ".join(unusual(given, make))
    line = f"training: {training.workers} workers, {architecture.name}{f' ({options})' if options else ''}"
    if is_graph:
        line += f", {grid.data} replicas of {grid.pipeline} devices"
    elif grid.replica > 1:
        line += f", {grid.data} x {grid.pipeline} x {grid.inner} (data, pipeline, "
        line += f"{'shared memory' if grid.shared_memory > 1 else 'tensor'})"
    if grid.micro_batches > 1:
        line += f", {grid.micro_batches} micro-batches ({grid.order})"
    if training.zero_stage:
        line += f", ZeRO stage {training.zero_stage}"
    if training.compression is not None:
        options = ", ".join(f"{key}: {value:g}" for key, value in training.compression.options.items())
        line += f", {training.compression.name}{f' ({options})' if options else ''}"
    line += f", {training.sync.label}"
    if training.accumulation > 1:
        line += f", {training.accumulation} passes an iteration"
    if training.stragglers:
        line += f", {len({rank for straggler in training.stragglers for rank in straggler.workers})} stragglers"
    if training.jitter is not None:
        line += f", {training.jitter.distribution} jitter of {training.jitter.parameter:g}"
    if training.overlap_slowdown is not None:
        slowdown = training.overlap_slowdown
        line += f", computing {slowdown.compute:g} and links of GPUs {slowdown.communication:g} times slower in overlap"
    if training.step_overhead_s > 0.0:
        line += f", {format_duration(training.step_overhead_s)} more for each iteration"
    slowest, fastest = min(training.speed_factors), max(training.speed_factors)
    return line if slowest == fastest == 1.0 else f"{line}, speeds from {slowest:g} to {fastest:g}"


def _find(name: str) -> Path:
    """Return the file, or what ships under the name."""
    known: list[str] = []
    for kind, suffixes in _SHIPPED.items():
        known += shipped_names(kind, suffixes)
        try:
            return find_file(name, None, kind, suffixes)
        except InputError as error:
            [problem] = error.problems
    hint = "a file is wanted" if name.strip() and Path(name).is_dir() else hint_at(name, known)
    if name in list_models():
        hint = f"that is a model; a scenario names it as workload: {{model: {name}}}"
    raise InputError(Problem(problem.message, hint))


def _workload(path: Path) -> Workload:
    """Return an own workload for one sample; where its layers have no times, on a GPU that has a roofline."""
    try:
        return load_workload(path, batch_size=1)
    except InputError:
        return load_workload(path, batch_size=1, gpu=REFERENCE_GPU)


def _first_line(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return [cell.strip() for cell in next(csv.reader([file.readline(10_000)]), [])]
    except OSError:
        return []  # whoever reads the file says what is wrong with it
