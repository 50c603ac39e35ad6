"""Run the points of a sweep that are not there yet, on this machine or by any executor.

Points go out in chunks of about the same time, so that a task costs little beside its work; each outcome is kept as
soon as its chunk is back. A worker process that is killed takes its chunk with it: points that were under way are
run again, each alone, and one that kills its process each time fails.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from simnet.experiment.processes import Processes
from simnet.experiment.result import OPTIONAL_TABLES
from simnet.experiment.simulation import compile_all
from simnet.experiment.sweep.point import Outcome, Task, keys_of, run_tasks
from simnet.experiment.sweep.store import Store
from simnet.experiment.telling import Progress, Show, tell_nobody, watched
from simnet.scenario.sweep.load import Sweep

__all__ = ["run_sweep", "tasks_of"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

_CHUNK_S = 0.25
_MOST_IN_CHUNK = 256
_MOST_TRIES = 3


def tasks_of(sweep: Sweep, shard: tuple[int, int] = (1, 1)) -> list[Task]:
    """Return the points of a sweep as tasks; of several shards those of one.

    Parameters
    ----------
    sweep : Sweep
    shard : (int, int)
        ``(i, n)``: each n-th point, from the i-th on, counted from 1.
    """
    number, shards = shard
    return [
        Task(
            key,
            sweep.scenario,
            sweep.scenario_name,
            sweep.folder,
            point.overrides,
            sweep.keep,
        )
        for key, point in list(zip(keys_of(sweep), sweep.points, strict=True))[number - 1 :: shards]
    ]


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    executor: Executor | None = None,
    processes: int = 1,
    shard: tuple[int, int] = (1, 1),
    retry_failed: bool = False,
    show: Show = tell_nobody,
    say: Callable[[str], None] = tell_nobody,
) -> Progress:
    """Run the points that a store does not have, and keep each as soon as it is there.

    Parameters
    ----------
    sweep : Sweep
    store : Store
    executor : Executor, optional
        Runs the chunks; by default this process, or as many processes as `processes` says.
    processes : int
    shard : (int, int)
        As of `tasks_of`.
    retry_failed : bool
        Run points again that have failed.
    show : callable
        Shown how many points are over.
    say : callable
        Told, in a line, what takes long at the beginning.

    Returns
    -------
    Progress
        At the end.
    """
    tasks = tasks_of(sweep, shard)
    unique = {task.key: task for task in tasks}
    wanted = [task for task in unique.values() if not _is_there(store, task, retry_failed)]
    course = _Course(store, len(unique), len(unique) - len(wanted))
    if not wanted:
        return course.progress()
    compile_all(say, show, packets=any(_wants_packets(task) for task in wanted))
    course.begin()
    with watched(show, course.progress):
        if executor is not None:
            _run(_Lasting(executor), wanted, course, 2 * max(processes, 1))
        elif processes > 1:
            with Processes(processes) as pool:
                _run(pool, wanted, course, 2 * processes)
        else:
            for task in wanted:
                course.take(run_tasks([task]))
    return course.progress()


def _is_there(store: Store, task: Task, retry_failed: bool) -> bool:
    found = store.get(task.key, task.keep)
    if found is None or (found.error and retry_failed):
        return False
    return bool(found.error) or set(found.tables) >= set(task.keep) - set(OPTIONAL_TABLES)


def _wants_packets(task: Task) -> bool:
    given = task.scenario.data.get("fidelity") if isinstance(task.scenario.data, dict) else None
    values = [one.document.data for one in task.overrides if one.path == ("fidelity",)]
    return "packet" in (given, *values)


@dataclass
class _Course:
    """Keeps outcomes and counts them."""

    store: Store
    points: int
    found: int
    done: int = 0
    failed: int = 0
    began_s: float = field(default_factory=time.monotonic)
    point_s: float = 0.0  # mean over those that are back

    def begin(self) -> None:
        """Let the time of the points begin: what kernels took to compile is none of theirs."""
        self.began_s = time.monotonic()

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Keep what has come back."""
        for outcome in outcomes:
            self.store.put(outcome)
            self.failed += bool(outcome.error)
            self.done += not outcome.error
            self.point_s += (outcome.wall_s - self.point_s) / (self.done + self.failed)

    def chunk(self) -> int:
        """Return how many points go out together."""
        return max(1, min(int(_CHUNK_S / self.point_s), _MOST_IN_CHUNK)) if self.point_s else 1

    def progress(self) -> Progress:
        """Return how far it has come."""
        return Progress("points", self.points, self.done, time.monotonic() - self.began_s, self.found, self.failed)


class _Lasting:
    """An executor of somebody else's, which looks after its workers itself."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(
        self, function: Callable[_Given, _Made], *arguments: _Given.args, **named: _Given.kwargs
    ) -> Future[_Made]:
        """Have a function called."""
        return self._executor.submit(function, *arguments, **named)

    def begin_again(self) -> None:
        """Nothing that could be done is left undone."""


def _run(pool: _Lasting | Processes, tasks: Sequence[Task], course: _Course, at_once: int) -> None:
    """Have tasks run, some chunks at once, until all are back."""
    waiting = deque(tasks)
    tries: dict[str, int] = {}
    under_way: dict[Future[list[Outcome]], list[Task]] = {}
    while waiting or under_way:
        while waiting and len(under_way) < at_once:
            # Who was there when a process was killed is run alone: so it shows whose fault it was.
            is_suspect = waiting[0].key in tries
            if is_suspect and under_way:
                break
            chunk = [waiting.popleft() for _ in range(min(1 if is_suspect else course.chunk(), len(waiting)))]
            under_way[pool.submit(run_tasks, chunk)] = chunk
            if is_suspect:
                break
        over, _ = wait(under_way, return_when=FIRST_COMPLETED)
        lost: list[Task] = []
        for future in over:
            chunk = under_way.pop(future)
            try:
                course.take(future.result())
            except BrokenProcessPool:
                lost += chunk
        if lost:
            # With one process all are lost.
            for chunk in under_way.values():
                lost += chunk
            under_way.clear()
            pool.begin_again()
            waiting.extendleft(reversed(_tried_again(lost, tries, course)))


def _tried_again(lost: Sequence[Task], tries: dict[str, int], course: _Course) -> list[Task]:
    """Return the lost tasks that are worth another try; the others have failed."""
    again = []
    for task in lost:
        tries[task.key] = tries.get(task.key, 0) + 1
        if tries[task.key] < _MOST_TRIES:
            again.append(task)
        else:
            said = f"its process was killed {_MOST_TRIES} times, perhaps for lack of memory"
            course.take([Outcome(task.key, error=said)])
    return again
