"""Keys that are each right and together wrong.

These rules look at which keys are given, not at what they hold, so that they are reported together with everything
else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simnet.errors import KeyPath, Problem
from simnet.scenario.compute_models import DISTRIBUTIONS
from simnet.scenario.document import Document
from simnet.workload import PRECISIONS
from simnet.workload.roofline import gpu_problems
from simnet.workload.tables import model_problems

__all__ = ["combination_problems"]


def combination_problems(document: Document) -> list[Problem]:
    """Return every impossible combination of keys in a scenario."""
    problems = list(_jobs(document))
    data = document.data
    jobs = data.get("jobs") if isinstance(data, Mapping) else None
    paths: list[KeyPath] = [("jobs", number) for number in range(len(jobs))] if isinstance(jobs, list) else [()]
    for path in paths:
        problems += [*_workload(document, (*path, "workload")), *_jitter(document, (*path, "training", "jitter"))]
    return problems


def _jobs(document: Document) -> Iterator[Problem]:
    """Yield what stands beside several jobs, each of which has its own."""
    given = _given(document.data, ())
    if given is None:
        return
    if "jobs" not in given:
        if "workload" not in given:
            hint = "wanted: what is trained, and how long it computes; or jobs, each with its own"
            empty = "workload" in document.data
            yield document.problem(("workload",), "workload is empty" if empty else "'workload' is missing", hint)
        return
    for key in ("workload", "training", "dataset"):
        if key in given:
            yield document.problem((key,), f"{key} stands beside jobs", "each job has its own", at_key=True)
    jobs = given["jobs"]
    if isinstance(jobs, list):
        if not jobs:
            yield document.problem(("jobs",), "jobs is empty", "at least one is wanted")
        names = [job.get("name") if isinstance(job, Mapping) else None for job in jobs]
        for number, name in enumerate(names):
            if name is not None and name in names[:number]:
                yield document.problem(("jobs", number, "name"), f"two jobs are called {name!r}", "one name each")


def _workload(document: Document, path: KeyPath) -> Iterator[Problem]:
    given = _given(document.data, path)
    if given is None:
        return
    # A trace may name the model that it is a recording of.
    kinds = [key for key in given if key in ("model", "file", "trace", "graph")]
    if not (set(kinds) <= {"model", "trace"} and kinds):
        yield from _exactly_one(document, path, given, ("model", "file", "trace", "graph"))
    yield from _exactly_one(document, path, given, ("batch_size", "global_batch_size"))
    if "trace" in given and "samples_per_s" in given:
        message = "samples_per_s stands beside a trace, which is replayed as recorded"
        yield document.problem((*path, "samples_per_s"), message, "leave it out", at_key=True)
    for key in ("samples_per_s", "gpu") if "graph" in given else ():
        if key in given:
            message = f"{key} stands beside a graph, whose operations have times"
            yield document.problem((*path, key), message, "leave it out", at_key=True)
    for key in ("groups", "serial_time", "memory_hierarchy"):
        timed = next((kind for kind in ("trace", "graph") if kind in given), "")
        if timed and key in given:
            message = f"{key} stands beside a {timed}, which has times of its own"
            yield document.problem((*path, key), message, "leave it out", at_key=True)
    groups = given.get("groups")
    for number, group in enumerate(groups if isinstance(groups, list) and "global_batch_size" in given else ()):
        if isinstance(group, Mapping) and group.get("batch_size") is not None:
            message = "batch_size of a group stands beside global_batch_size"
            place = (*path, "groups", number, "batch_size")
            yield document.problem(place, message, "give the batch_size of the others instead", at_key=True)
    if "model" not in given and kinds and "sequence_length" in given:
        message = "sequence_length stands beside no model"
        yield document.problem((*path, "sequence_length"), message, "only shipped models have one", at_key=True)
    yield from _names(document, path, given, kinds)
    if kinds == ["model"] and not given.keys() & {"gpu", "samples_per_s", "groups"}:
        hint = "name the GPU, or give samples_per_s, the measured rate of one worker"
        yield document.problem((*path, "gpu"), "'gpu' is missing in workload", hint)


def _names(document: Document, path: KeyPath, given: Mapping[str, Any], kinds: list[str]) -> Iterator[Problem]:
    """Yield names that nothing has; building the workload would find them too, but only when all else is right."""
    model, gpu, precision = given.get("model"), given.get("gpu"), given.get("precision", "fp32")
    if isinstance(model, str) and model.strip():
        yield from (document.at(path, problem) for problem in model_problems(model, None))
    if kinds == ["model"] and isinstance(gpu, str) and gpu.strip():
        known = precision if precision in PRECISIONS else None
        yield from (document.at(path, problem) for problem in gpu_problems(gpu, known))


def _jitter(document: Document, path: KeyPath) -> Iterator[Problem]:
    given = _given(document.data, path)
    if given is None:
        return
    distribution = given.get("distribution", "lognormal")
    wanted = DISTRIBUTIONS.get(distribution) if isinstance(distribution, str) else None
    if wanted is None:
        return
    if wanted not in given:
        yield document.problem((*path, wanted), f"{wanted!r} is missing in jitter", f"{distribution} needs it")
    for key in dict.fromkeys(DISTRIBUTIONS.values()):
        if key in given and key != wanted:
            message, hint = f"{distribution} jitter has no {key!r}", f"its parameter is {wanted!r}"
            yield document.problem((*path, key), message, hint, at_key=True)


def _exactly_one(
    document: Document, path: KeyPath, given: Mapping[str, Any], keys: tuple[str, ...]
) -> Iterator[Problem]:
    found = [key for key in given if key in keys]
    names = f"{', '.join(keys[:-1])} and {keys[-1]}"
    if not found:
        yield document.problem((*path, keys[0]), f"{path[-1]} has none of {names}", "give one of them")
    for key in found[1:]:
        message = f"{path[-1]} has both {found[0]!r} and {key!r}"
        yield document.problem((*path, key), message, "leave one of them out, or empty", at_key=True)


def _given(data: Any, path: KeyPath) -> dict[str, Any] | None:
    """Return the keys at `path` that are not empty, or None where there is no mapping."""
    for key in path:
        if isinstance(data, list) and isinstance(key, int):
            data = data[key]
        elif isinstance(data, Mapping):
            data = data.get(key)
        else:
            return None
    if not isinstance(data, Mapping):
        return None
    return {key: value for key, value in data.items() if value is not None}
