"""What holds in the tables of every run, whatever the scenario."""

from __future__ import annotations

import numpy as np
import pytest

import simnet
from simnet.experiment.columns import COLUMNS
from simnet.scenario import load_scenario

from .examples import BATCH, RATE, VARIED

PARTS = ["compute_time_s", "exposed_communication_time_s", "waiting_time_s"]


@pytest.fixture(scope="module", params=list(VARIED))
def name(request):
    """Return the name of a scenario; each is run once for the whole file."""
    return request.param


@pytest.fixture(scope="module")
def result(name):
    """Return the result of the scenario."""
    return simnet.run(VARIED[name])


@pytest.fixture(scope="module")
def summary(result):
    """Return the one row of its summary."""
    return result.summary.iloc[0]


def test_iteration_is_compute_plus_exposed_plus_waiting_exactly(result):
    """Equal to the last bit, in every row of every table that has the four columns."""
    for frame in (result.summary, result.iterations, result.workers):
        compute, exposed, waiting = (frame[part] for part in PARTS)
        assert (frame["iteration_time_s"] == compute + exposed + waiting).all()
        for part in PARTS:
            assert (frame[part] >= 0).all(), part


def test_an_iteration_lasts_until_the_next_begins(result):
    """What was recorded in parts adds up to the clock: start of k + iteration time of k = start of k + 1."""
    for _, rows in result.iterations.groupby("rank"):
        ends = (rows["start_s"] + rows["iteration_time_s"]).to_numpy()
        np.testing.assert_allclose(ends[:-1], rows["start_s"].to_numpy()[1:], rtol=1e-12, atol=1e-12)
        assert rows["start_s"].iloc[0] == 0


def test_the_warm_up_is_recorded_and_not_counted(result, summary):
    assert sorted(result.iterations["iteration"].unique()) == [-1, 0, 1, 2]
    measured = result.iterations[result.iterations["iteration"] >= 0]
    assert summary.iterations == 3
    for column in [*PARTS, "communication_time_s"]:
        assert summary[column] == pytest.approx(measured[column].mean(), rel=1e-15), column
    assert summary.iteration_time_p95_s == pytest.approx(np.percentile(measured["iteration_time_s"], 95), rel=1e-15)


def test_means_of_workers_are_those_of_the_summary(result, summary):
    assert len(result.workers) == summary.workers
    for column in ["iteration_time_s", *PARTS, "communication_time_s"]:
        assert result.workers[column].mean() == pytest.approx(summary[column], rel=1e-12, abs=1e-18), column
    assert result.workers["bytes_sent"].mean() == summary.bytes_sent_per_worker
    assert result.workers["wire_bytes"].mean() == summary.wire_bytes


def test_ratios(summary):
    """Each as the table of columns says it."""
    assert summary.communication_compute_ratio == summary.communication_time_s / summary.compute_time_s
    throughput = summary.workers * BATCH / summary.iteration_time_s
    assert summary.throughput_samples_per_s == pytest.approx(throughput, rel=1e-15)
    # One worker of the fastest group: none here is faster than the measured rate.
    assert summary.speedup == pytest.approx(throughput / RATE, rel=1e-12)
    assert summary.scaling_efficiency == pytest.approx(summary.speedup / summary.workers, rel=1e-15)


def test_the_scenario_may_name_the_baseline(name, summary):
    against = simnet.run(VARIED[name] | {"baseline": {"samples_per_s": 100}}).summary.iloc[0]
    assert against.speedup == pytest.approx(summary.throughput_samples_per_s / 100, rel=1e-12)


def test_nothing_is_faster_than_its_bound(result, summary):
    assert 0 < summary.bound_iteration_time_s <= summary.iteration_time_s * (1 + 1e-9)
    assert (result.collectives["bound_time_s"] <= result.collectives["duration_s"] * (1 + 1e-9)).all()


def test_no_resource_carries_more_than_its_capacity(result, summary):
    """0 <= utilisation = wire bytes / (bandwidth * measured time) <= 1, and busy no longer than measured."""
    measured = result.iterations[result.iterations["iteration"] >= 0]
    duration = (measured["start_s"] + measured["iteration_time_s"]).max() - measured["start_s"].min()
    links = result.links
    assert links["utilisation"].between(0, 1 + 1e-9).all()
    assert (links["busy_time_s"] <= duration * (1 + 1e-9)).all()
    # At less than full rate a resource is busy for longer than its bytes take at full rate.
    assert (links["wire_bytes"] / links["bandwidth_bytes_per_s"] <= links["busy_time_s"] * (1 + 1e-9) + 1e-12).all()
    if summary.workers > 1:
        named = links[links["resource"] == summary.bottleneck].iloc[0]
        assert named.utilisation == pytest.approx(links["utilisation"].max(), rel=1e-6)


def test_a_worker_is_not_exposed_to_more_than_there_was(result):
    """Exposed communication is part of the time in which exchanges were under way."""
    for iteration, rows in result.iterations.groupby("iteration"):
        exchanges = result.collectives[result.collectives["iteration"] == iteration]
        assert (rows["exposed_communication_time_s"] <= exchanges["duration_s"].sum() + 1e-12).all()


def test_exchanges_follow_each_other_on_one_stream(name, result):
    """Announced <= start, and none starts before the one before it has ended; servers take what comes, at once."""
    rows = result.collectives.sort_values("start_s")
    if name == "servers":
        assert (rows["announced_s"] >= rows["start_s"]).all()
        return
    assert (rows["announced_s"] <= rows["start_s"]).all()
    ends = (rows["start_s"] + rows["duration_s"]).to_numpy()
    assert (ends[:-1] <= rows["start_s"].to_numpy()[1:] * (1 + 1e-12)).all()
    assert (rows["algbw_GBps"] == rows["size_bytes"] / rows["duration_s"] / 1e9).all()


def test_all_gradients_are_exchanged_in_each_iteration(name, result, summary):
    elements = load_scenario(VARIED[name]).job.workload.tensor_elements.sum()
    if summary.workers == 1:
        return
    for _, rows in result.collectives.groupby("iteration"):
        assert rows["size_bytes"].sum() == 4 * elements
        assert list(rows.sort_values("start_s")["bucket"]) == list(range(len(rows)))
    assert result.collectives["messages"].sum() == summary.messages
    if not name.startswith("servers"):
        per_iteration = result.collectives[result.collectives["iteration"] == 0]["bytes_sent"].sum()
        assert per_iteration == pytest.approx(result.workers["bytes_sent"].sum(), rel=1e-12)


def test_headers_only_add(result, summary):
    assert summary.wire_bytes >= summary.bytes_sent_per_worker
    assert (result.workers["wire_bytes"] >= result.workers["bytes_sent"]).all()


def test_tables_have_the_documented_columns_and_types(result):
    kinds = {"str": "OU", "int": "i", "float": "f"}
    for table in ("summary", "iterations", "workers", "collectives", "links"):
        frame, columns = getattr(result, table), COLUMNS[table]
        assert list(frame.columns) == [column.name for column in columns], table
        assert (frame["job"] == "train").all()
        for column in columns:
            assert frame[column.name].dtype.kind in kinds[column.dtype], (table, column.name)
            assert not frame[column.name].isna().any(), (table, column.name)


def test_rows_stand_in_order(result):
    order = result.iterations[["iteration", "rank"]].to_records(index=False).tolist()
    assert order == sorted(order)
    assert result.workers["rank"].tolist() == list(range(len(result.workers)))
