"""What a sweep would run, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from simnet.experiment.simulation import compile_all
from simnet.experiment.sweep.point import Outcome, run_tasks
from simnet.experiment.sweep.running import tasks_of
from simnet.experiment.sweep.tables import shown
from simnet.experiment.telling import Show, tell_nobody
from simnet.scenario.sweep.load import Sweep

__all__ = ["estimate_s", "points_table"]

_TRIED = 3


def points_table(sweep: Sweep, outcomes: Mapping[str, Outcome], shard: tuple[int, int] = (1, 1)) -> pd.DataFrame:
    """Return one row a point: its number, the parameters, and whether it is there, has failed, or is to be run."""
    number, shards = shard
    points = sweep.points[number - 1 :: shards]
    rows = []
    for point, task in zip(points, tasks_of(sweep, shard), strict=True):
        found = outcomes.get(task.key)
        status = "to run" if found is None else "failed" if found.error else "there"
        values = {path: shown(point.values.get(path)) for path in sweep.parameters}
        rows.append({"point": point.number, **values, "status": status})
    return pd.DataFrame(rows)


def estimate_s(
    sweep: Sweep,
    outcomes: Mapping[str, Outcome],
    shard: tuple[int, int] = (1, 1),
    say: Callable[[str], None] = tell_nobody,
    show: Show = tell_nobody,
) -> float:
    """Return about how long one process would take for what is to be run [s].

    By the mean of what is there already; where nothing is, a few points from all over the sweep are run.
    """
    tasks = {task.key: task for task in tasks_of(sweep, shard)}
    left = [task for key, task in tasks.items() if key not in outcomes]
    if not left:
        return 0.0
    known = [outcomes[key].wall_s for key in tasks if key in outcomes and not outcomes[key].error]
    if not known:
        compile_all(say, show)
        step = max(len(left) // _TRIED, 1)
        # The first one pays for what is only done once.
        run_tasks(left[:1])
        known = [outcome.wall_s for outcome in run_tasks(left[step // 2 :: step][:_TRIED])]
    return len(left) * sum(known) / len(known)
