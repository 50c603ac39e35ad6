"""From the section ``workload`` of a scenario, and the files that it names, to a workload."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from simnet.errors import InputError, KeyPath, Problem, attempt, under
from simnet.scenario.compute import with_other_times
from simnet.scenario.fields import shown
from simnet.scenario.job_models import WorkloadSpec
from simnet.scenario.locate import find_file
from simnet.scenario.sections import NotKnownError, label, unknown_key
from simnet.scenario.yaml_document import read_yaml
from simnet.workload import (
    AnyWorkload,
    DataflowGraph,
    DataflowWorkload,
    GroupedWorkload,
    Workload,
    dataflow_from_data,
    load_dataflow_json,
    load_trace,
    load_workload_csv,
    table_workload,
    workload_from_rows,
)

__all__ = ["build_workload", "load_dataflow", "load_workload"]


def build_workload(spec: WorkloadSpec, workers: int | None, folder: Path | None = None) -> AnyWorkload:
    """Return the workload of one worker, or of those that a replica is split over.

    Parameters
    ----------
    spec : WorkloadSpec
    workers : int or None
        Over which a global batch is shared; None where that is not known.
    folder : Path, optional
        Folder of the scenario, where files are looked for first.

    Returns
    -------
    Workload, RecordedTrace, DataflowWorkload or GroupedWorkload
        The last where groups of workers differ.

    Raises
    ------
    InputError
        A global batch that cannot be shared evenly, a file that is wrong, a case that nobody has measured.
    NotKnownError
        What is right of it is right, but not all of it is.
    """
    try:
        groups = spec.groups
    except NotKnownError:
        # What else is wrong can be told; whether a GPU is missing cannot.
        stand_in = {"samples_per_s": 1.0} if spec.__dict__.get("gpu") is None else {}
        _of_alike(spec.model_copy(update=stand_in), workers, folder)
        raise
    if not groups:
        return _of_alike(spec, workers, folder)
    problems: list[Problem] = []
    sizes = tuple(group.workers for group in groups)
    if workers is not None and sum(sizes) != workers:
        message = f"groups have {sum(sizes)} workers, but there are {workers}"
        problems.append(Problem(message, "each worker is in one of them", ("groups",)))
    parts = [
        part
        for number in range(len(sizes))
        if isinstance(part := attempt(problems, partial(_of_group, spec, number, workers, folder)), Workload)
    ]
    if problems:
        raise InputError(dict.fromkeys(problems))
    return GroupedWorkload(tuple(parts), sizes)


def _of_group(spec: WorkloadSpec, number: int, workers: int | None, folder: Path | None) -> AnyWorkload:
    """Return the workload of one worker of a group; what the group does not say is as for all."""
    assert spec.groups is not None
    group = spec.groups[number]
    own = {key: value for key in ("gpu", "batch_size", "samples_per_s") if (value := getattr(group, key)) is not None}
    try:
        return _of_alike(spec.model_copy(update=own), workers, folder)
    except InputError as error:
        raise InputError(
            problem.under("groups", number) if problem.path and problem.path[0] in own else problem
            for problem in error.problems
        ) from None


def _of_alike(spec: WorkloadSpec, workers: int | None, folder: Path | None) -> AnyWorkload:
    """Return the workload of one of workers that are all alike."""
    problems: list[Problem] = []
    doubtful: set[str] = set()
    batch_size = attempt(problems, lambda: _batch_size(spec, workers))
    if batch_size is None:
        doubtful.add("batch_size")

    def setting(key: str, stand_in: Any) -> Any:
        """Return a setting; where it is wrong something that is right, so that all else can be looked at."""
        try:
            return getattr(spec, key)
        except NotKnownError:
            doubtful.add(key)
            return stand_in

    settings: dict[str, Any] = {
        "gpu": setting("gpu", None),
        "precision": setting("precision", "fp32"),
        "batch_size": batch_size or 1,
    }
    # With a rate of its own a workload needs no GPU, so that a stand-in asks for none.
    rate: dict[str, Any] = {"samples_per_s": setting("samples_per_s", 1.0) if "gpu" not in doubtful else 1.0}
    network: dict[str, Any] = {"model": setting("model", None), "sequence_length": setting("sequence_length", None)}
    made: AnyWorkload | None = None
    try:
        trace, file, graph = setting("trace", None), setting("file", None), setting("graph", None)
        if graph is not None:
            made = DataflowWorkload(load_dataflow(_find(graph, folder, "graph")), batch_size or 1)
        elif trace is not None:
            made = load_trace(_find(trace, folder, "trace"), **settings, **network)
        elif file is not None:
            made = load_workload(_find(file, folder, "file"), **settings, **rate)
        elif not doubtful:
            made = table_workload(**settings, **network, **rate)
    except InputError as error:
        # A batch per worker that nobody has measured is reported where the scenario has its size.
        given = "batch_size" if "batch_size" in doubtful or spec.batch_size is not None else "global_batch_size"
        problems += (
            replace(problem, path=(given,)) if problem.path == ("batch_size",) else problem
            for problem in error.problems
            if not problem.path or problem.path[0] not in doubtful
        )
    if problems:
        raise InputError(problems)
    if doubtful or made is None:
        raise NotKnownError(", ".join(sorted(doubtful)))
    return with_other_times(made, spec)


def _batch_size(spec: WorkloadSpec, workers: int | None) -> int | None:
    """Return the samples per worker, or None where they are not known."""
    # Only one of them is given: where one is known, the other does not matter.
    with suppress(NotKnownError):
        if spec.batch_size is not None:
            return spec.batch_size
    with suppress(NotKnownError):
        if spec.global_batch_size is not None and workers is not None:
            return _share(spec.global_batch_size, workers)
    return None


def _share(whole: int, workers: int) -> int:
    """Return the samples of each worker out of those of all."""
    share, rest = divmod(whole, workers)
    if rest or not share:
        message = f"global_batch_size is {whole}, which {workers} workers cannot share evenly"
        raise InputError(Problem(message, f"a multiple of {workers} is wanted", ("global_batch_size",)))
    return share


def load_workload(path: Path, *, batch_size: int, **settings: Any) -> Workload:
    """Return the own workload in a CSV or YAML file.

    Parameters
    ----------
    path : Path
    batch_size : int
        Samples per worker and iteration.
    settings
        ``gpu``, ``precision`` and ``samples_per_s``, as for `simnet.workload.load_workload_csv`.

    Returns
    -------
    Workload

    Raises
    ------
    InputError
        Everything that is wrong with the file.
    """
    if path.suffix.lower() not in (".yaml", ".yml"):
        return load_workload_csv(path, batch_size=batch_size, **settings)
    document = read_yaml(path)
    problems = list(document.problems)
    data = document.data
    rows: KeyPath = ()
    if isinstance(data, dict):
        problems += [unknown_key(document, (key,), ["layers"]) for key in data if key != "layers"]
        data, rows = data.get("layers"), ("layers",)
    made = None
    if not isinstance(data, list):
        hint = "one mapping a layer: '- {layer: conv1, parameters: 9408, forward_s: 1e-3, backward_s: 2e-3}'"
        message = f"{label(rows)} is {shown(data)}, and no list of layers"
        # Under an unknown key may be what is missing here.
        if not document.is_unreadable(rows) and not (data is None and problems):
            problems.append(document.problem(rows, message, hint))
    else:
        try:
            made = workload_from_rows(data, name=path.stem, batch_size=batch_size, **settings)
        except InputError as error:
            # Problems of a row have its number in front; those of a setting are for the scenario to place.
            problems += (
                document.at(rows, problem) if not problem.path or isinstance(problem.path[0], int) else problem
                for problem in error.problems
                if not document.is_unreadable((*rows, *problem.path))
            )
    if problems or made is None:
        raise InputError(problems)
    return made


def load_dataflow(path: Path) -> DataflowGraph:
    """Return the dataflow graph in a YAML or JSON file.

    Raises
    ------
    InputError
        Everything that is wrong with the file.
    """
    if path.suffix.lower() not in (".yaml", ".yml"):
        return load_dataflow_json(path)
    document = read_yaml(path)
    try:
        graph = dataflow_from_data(document.data, path.stem)
    except InputError as error:
        known = [problem for problem in error.problems if not document.is_unreadable(problem.path)]
        raise InputError([*document.problems, *(document.at((), problem) for problem in known)]) from None
    document.checked()
    return graph


def _find(name: str, folder: Path | None, key: str) -> Path:
    with under(key):
        return find_file(name, folder)
