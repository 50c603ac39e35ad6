"""Sweeps that are stopped, killed and cut into shards come to the same tables as one that is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import simnet
from simnet.experiment.columns import COLUMNS
from simnet.experiment.sweep import load_sweep, merge_sweeps, run_sweep
from simnet.experiment.sweep.point import Outcome, run_tasks
from simnet.experiment.sweep.running import tasks_of
from simnet.experiment.sweep.store import Store
from simnet.experiment.sweep.tables import means_of, write_sweep
from simnet.experiment.telling import Progress
from simnet.scenario.sweep.load import Sweep, load_sweep_file
from tests.experiment.examples import star_scenario

SUMMARY = [column.name for column in COLUMNS["summary"]]


def sweep_of(**keys: Any) -> Sweep:
    scenario = star_scenario(4, jitter={"distribution": "lognormal", "sigma": 0.1}) | {"run": {"iterations": 1}}
    return load_sweep_file({"scenario": scenario, **keys})


GRID = {"training.workers": [1, 2, 3, 4], "training.overlap": [True, False]}


def timeless(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="wall_time_s")


def test_each_row_is_the_run_of_its_point(tmp_path):
    sweep, store = sweep_of(grid=GRID), Store(tmp_path)
    end = run_sweep(sweep, store)
    assert (end.whole, end.found, end.done, end.failed, end.left_s) == (8, 0, 8, 0, 0)
    frame = write_sweep(sweep, store)
    assert list(frame.columns) == [*GRID, "status", "error", *SUMMARY]
    scenario = sweep.scenario.data
    for number, point in enumerate(sweep.points):
        alone = simnet.run(scenario, dict(point.values)).summary
        row = frame.loc[[number], SUMMARY].reset_index(drop=True)
        pd.testing.assert_frame_equal(timeless(row), timeless(alone))


def test_what_is_there_is_not_run_again(tmp_path):
    sweep, store = sweep_of(grid=GRID), Store(tmp_path)
    run_sweep(sweep, store, shard=(1, 3))
    end = run_sweep(sweep, store)
    assert (end.found, end.done) == (3, 5)
    assert run_sweep(sweep, store).done == 0


def test_another_seed_is_another_point(tmp_path):
    store = Store(tmp_path)
    run_sweep(sweep_of(grid=GRID), store)
    assert run_sweep(sweep_of(grid=GRID, set={"run.seed": 1}), store).done == 8


def test_points_that_are_alike_are_run_once(tmp_path):
    sweep, store = sweep_of(grid={"training.workers": [2, 2]}), Store(tmp_path)
    assert run_sweep(sweep, store).done == 1
    assert len(write_sweep(sweep, store)) == 2


def test_a_point_that_fails_is_a_row_and_the_others_go_on(tmp_path):
    """A star of 4 has no room for 5 workers; it is run again only when that is asked for."""
    sweep, store = sweep_of(grid={"training.workers": [4, 5]}), Store(tmp_path)
    assert run_sweep(sweep, store).failed == 1
    frame = write_sweep(sweep, store)
    assert frame["status"].tolist() == ["ok", "failed"]
    assert "5 workers do not fit on the 4 ranks" in frame["error"][1]
    assert frame["iteration_time_s"].isna().tolist() == [False, True]
    assert run_sweep(sweep, store).over == 2
    assert run_sweep(sweep, store, retry_failed=True).failed == 1
    read = load_sweep(tmp_path)
    pd.testing.assert_frame_equal(read, frame)


def test_shards_together_are_the_whole(tmp_path):
    sweep = sweep_of(grid=GRID)
    run_sweep(sweep, Store(tmp_path / "whole"))
    whole = write_sweep(sweep, Store(tmp_path / "whole"))
    for number in (1, 2, 3):
        store = Store(tmp_path / f"shard{number}")
        run_sweep(sweep, store, shard=(number, 3))
        write_sweep(sweep, store)
    assert merge_sweeps([tmp_path / f"shard{number}" for number in (1, 2, 3)], tmp_path / "merged") == 8
    pd.testing.assert_frame_equal(timeless(write_sweep(sweep, Store(tmp_path / "merged"))), timeless(whole))


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 11])
def test_each_point_is_in_one_shard(shards):
    sweep = sweep_of(grid=GRID)
    keys = [task.key for number in range(1, shards + 1) for task in tasks_of(sweep, (number, shards))]
    assert sorted(keys) == sorted(task.key for task in tasks_of(sweep))


class _Here(Executor):
    """Runs what is submitted at once, in this thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_will_do(tmp_path):
    sweep = sweep_of(grid=GRID)
    with ThreadPoolExecutor(1) as threads:
        assert run_sweep(sweep, Store(tmp_path / "a"), executor=threads).done == 8
    assert run_sweep(sweep, Store(tmp_path / "b"), executor=_Here()).done == 8
    first, second = (timeless(write_sweep(sweep, Store(tmp_path / name))) for name in "ab")
    pd.testing.assert_frame_equal(first, second)


def test_progress_counts_up(tmp_path):
    """From no point to all eight; those that were there already are told apart."""
    told: list[Progress] = []
    sweep, store = sweep_of(grid=GRID), Store(tmp_path)
    run_sweep(sweep, store, show=told.append)
    points = [progress for progress in told if progress.what == "points"]
    assert (points[0].over, points[-1].over) == (0, 8)
    assert [progress.done for progress in points] == sorted(progress.done for progress in points)
    assert {progress.whole for progress in points} == {8}
    end = run_sweep(sweep, store)
    assert (end.found, end.done, end.over) == (8, 0, 8)


def test_repeats_have_a_mean_and_an_interval(tmp_path):
    """Three seeds: mean, and 4.303 s / sqrt(3), Student's t of two degrees of freedom."""
    sweep, store = sweep_of(grid={"training.workers": [2, 4]}, repeat=3), Store(tmp_path)
    run_sweep(sweep, store)
    frame = write_sweep(sweep, store)
    means = means_of(frame, sweep.parameters)
    assert means["training.workers"].tolist() == [2, 4]
    assert means["seeds"].tolist() == [3, 3]
    for number, workers in enumerate((2, 4)):
        times = frame.loc[frame["training.workers"] == workers, "iteration_time_s"]
        assert means["iteration_time_s"][number] == pytest.approx(times.mean(), rel=1e-12)
        half = 4.303 * times.std() / 3**0.5
        assert means["iteration_time_s_ci95"][number] == pytest.approx(half, rel=1e-9)
    assert (tmp_path / "means.csv").is_file()


@pytest.mark.parametrize(("seeds", "t"), [(31, 2.0423), (32, 2.0395), (61, 2.0003), (101, 1.98397)])
def test_an_interval_of_many_seeds_is_still_of_student(seeds, t):
    """Quantiles of 30, 31, 60 and 100 degrees of freedom, as tables have them."""
    frame = pd.DataFrame({"status": "ok", "job": "train", "iteration_time_s": np.arange(seeds, dtype=float)})
    half = means_of(frame, [])["iteration_time_s_ci95"][0]
    assert half == pytest.approx(t * frame["iteration_time_s"].std() / seeds**0.5, rel=2e-4)


def test_a_baseline_of_a_key_that_some_points_lack(tmp_path):
    points = [{"training.workers": 1}, {"training.workers": 2}, {"training.overlap": False}]
    sweep, store = sweep_of(list=points, baseline={"training.workers": 1}), Store(tmp_path)
    run_sweep(sweep, store)
    assert write_sweep(sweep, store)["baseline_speedup"][0] == 1.0


def test_a_baseline_is_the_same_point_with_its_values(tmp_path):
    """Speed-up over one worker; efficiency is that over the workers."""
    sweep, store = sweep_of(grid=GRID, baseline={"training.workers": 1}), Store(tmp_path)
    run_sweep(sweep, store)
    frame = write_sweep(sweep, store).set_index(list(GRID))
    for workers, overlap in frame.index:
        ratio = (
            frame.loc[(workers, overlap), "throughput_samples_per_s"]
            / frame.loc[(1, overlap), "throughput_samples_per_s"]
        )
        assert frame.loc[(workers, overlap), "baseline_speedup"] == pytest.approx(ratio)
        assert frame.loc[(workers, overlap), "baseline_efficiency"] == pytest.approx(ratio / workers)


def test_tables_of_points_are_kept_and_asked_for_later(tmp_path):
    grid, store = {"training.workers": [2, 4]}, Store(tmp_path)
    run_sweep(sweep_of(grid=grid), store)
    sweep = sweep_of(grid=grid, keep=["links", "iterations"])
    assert run_sweep(sweep, store).done == 2, "they had not been kept"
    assert run_sweep(sweep, store).done == 0
    found = store.get(tasks_of(sweep)[1].key, ("links", "iterations"))
    assert found is not None
    alone = simnet.run(sweep.scenario.data, {"training.workers": 4})
    pd.testing.assert_frame_equal(found.tables["links"], alone.links)
    pd.testing.assert_frame_equal(found.tables["iterations"], alone.iterations)


# -- stores ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", ["", "{", '{"key": 1}', "[]", "null"])
def test_an_outcome_that_cannot_be_read_is_none(tmp_path, torn):
    store = Store(tmp_path)
    store.put(Outcome("ab12", ({"workers": 1},)))
    assert store.get("ab12") is not None
    (tmp_path / "points" / "ab" / "ab12.json").write_text(torn)
    assert store.get("ab12") is None


def test_numbers_come_back_to_the_last_bit(tmp_path):
    row = {"a": 0.1 + 0.2, "b": float("inf"), "c": 5e-324, "d": 2**60, "e": "µ"}
    store = Store(tmp_path)
    store.put(Outcome("ab12", (row,)))
    found = store.get("ab12")
    assert found is not None
    assert found.rows == (row,)


def test_a_file_that_is_named_counts_by_what_is_in_it(tmp_path, monkeypatch):
    """Another topology under the same name is another point."""
    monkeypatch.chdir(tmp_path)
    scenario = star_scenario(2) | {"topology": "t.json"}
    text = simnet_topology(2)
    Path("t.json").write_text(text)
    before = tasks_of(load_sweep_file({"scenario": scenario}))[0].key
    Path("t.json").write_text(text + "\n")
    assert tasks_of(load_sweep_file({"scenario": scenario}))[0].key != before


def simnet_topology(hosts: int) -> str:
    """A star as node-link JSON."""
    nodes = [{"id": f"h{n}", "kind": "host"} for n in range(hosts)] + [{"id": "s", "kind": "switch"}]
    links = [
        {"source": a, "target": b, "bandwidth": "10 Gbps", "latency": "1 us", "kind": "ethernet"}
        for n in range(hosts)
        for a, b in ((f"h{n}", "s"), ("s", f"h{n}"))
    ]
    return json.dumps({"directed": True, "multigraph": True, "graph": {}, "nodes": nodes, "links": links})


# -- processes ---------------------------------------------------------------------------------------------------------

_KILLER = """
import sys
from simnet.experiment.sweep import run_sweep
from simnet.experiment.sweep.store import Store
from simnet.experiment.sweep.tables import write_sweep
from simnet.scenario.sweep.load import load_sweep_file
if __name__ == "__main__":
    sweep, store = load_sweep_file(sys.argv[1]), Store(__import__("pathlib").Path(sys.argv[2]))
    run_sweep(sweep, store, processes=int(sys.argv[3]), show=lambda p: print(p.done, flush=True) if p.done else None)
    write_sweep(sweep, store)
"""


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_as_if_nothing_had_been(tmp_path):
    """kill -9 five times, then to the end: the same bytes but for wall times."""
    (tmp_path / "sweep.yaml").write_text(
        "scenario: resnet50_16gpu\nset: {run.iterations: 1}\n"
        "grid: {protocol: [tcp, rdma], training.workers: [1, 2, 4, 8, 16], training.overlap: [true, false]}\n"
    )
    (tmp_path / "run.py").write_text(_KILLER)

    def command(folder: str) -> list[str]:
        return [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "sweep.yaml"), str(tmp_path / folder), "2"]

    subprocess.run(command("whole"), check=True, capture_output=True)
    for number in range(5):
        with subprocess.Popen(command("killed"), stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            for _ in range(number % 3 + 1):
                process.stdout.readline()
            time.sleep(0.01 * number)
            os.killpg(process.pid, signal.SIGKILL)
    subprocess.run(command("killed"), check=True, capture_output=True)
    whole, killed = (timeless(load_sweep(tmp_path / name)) for name in ("whole", "killed"))
    pd.testing.assert_frame_equal(whole, killed, check_exact=True)


@pytest.mark.slow
def test_a_worker_of_a_dask_cluster_is_killed_and_nothing_is_lost(tmp_path):
    """Two processes, one killed half way: the same table as in this process."""
    distributed = pytest.importorskip("distributed")
    sweep = sweep_of(grid={"training.workers": [1, 2, 3, 4], "training.overlap": [True, False], "run.seed": [0, 1, 2]})
    run_sweep(sweep, Store(tmp_path / "here"))
    store = Store(tmp_path / "cluster")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        processes = sorted(client.run(os.getpid).values())

        def show(progress: Progress) -> None:
            if progress.done >= 8 and len(processes) == 2:
                os.kill(processes.pop(), signal.SIGKILL)

        end = run_sweep(sweep, store, executor=client.get_executor(), processes=2, show=show)
    assert len(processes) == 1
    assert (end.done, end.failed) == (24, 0)
    whole, cluster_made = (timeless(write_sweep(sweep, one)) for one in (Store(tmp_path / "here"), store))
    pd.testing.assert_frame_equal(whole, cluster_made, check_exact=True)


def _die_at(tasks: Any) -> list[Outcome]:
    """Run points in a process that is killed by one of them."""
    if any("overlap" in str(override.path) and override.document.data is False for override in tasks[0].overrides):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_tasks(tasks)


@pytest.mark.slow
def test_a_point_that_kills_its_process_fails_and_the_others_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr("simnet.experiment.sweep.running.run_tasks", _die_at)
    sweep, store = sweep_of(grid={"training.workers": [1, 2], "training.overlap": [True, False]}), Store(tmp_path)
    end = run_sweep(sweep, store, processes=2)
    frame = write_sweep(sweep, store)
    assert (end.done, end.failed) == (2, 2)
    assert frame["status"].tolist() == ["ok", "failed"] * 2
    assert frame["error"][1].startswith("its process was killed")


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """What waits for tasks holds the queue open itself, and would wait for ever."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, time\n"
        "from simnet.experiment.processes import Processes\n"
        "if __name__ == '__main__':\n"
        "    with Processes(2) as pool:\n"
        "        pool.submit(os.getpid).result()\n"
        "        print(*pool._pool._processes, flush=True)\n"
        "        time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(number) for number in parent.stdout.readline().split()]
        parent.kill()
    assert workers
    until = time.monotonic() + 30
    while (left := [worker for worker in workers if _is_running(worker)]) and time.monotonic() < until:
        time.sleep(0.05)
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert not left


def _is_running(process: int) -> bool:
    try:
        # What nobody waits for stays as a zombie (Z) where there is no init.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
