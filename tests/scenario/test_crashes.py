"""Crashes and checkpoints in a scenario: what they come to, and mistakes told at their places."""

from __future__ import annotations

import math

import pytest

import simnet
from simnet.errors import StalledError
from simnet.scenario import load_scenario
from simnet.scenario.check import describe_scenario
from simnet.training.recovery.settings import Checkpoint, ServerCrash, WorkerCrash

from .marked import at_mark, said_of, with_changed

STAR = "{star: {hosts: 8, bandwidth: 10 Gbps, latency: 1 us}}"
SERVERS = "{workers: 4, architecture: {parameter_server: {servers: 2}}}"
JOB = {"workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64}}


def scenario_of(faults, training, **more):
    return {
        "topology": {"star": {"hosts": 8, "bandwidth": "10 Gbps", "latency": "1 us"}},
        "protocol": "ideal",
        "training": training,
        "faults": faults,
        **JOB,
        **more,
    }


def test_crashes_are_of_a_job_and_in_the_order_of_the_list():
    """Replicas are on the first hosts that nobody is on: workers have 0 to 3, servers 4 and 5."""
    scenario = load_scenario(
        scenario_of(
            [
                {"server_crash": {"server": 1, "at": "1 s", "for": "9 s", "failover": "2 s"}},
                {"host_slow": {"host": "host0", "at": "1 s", "factor": 0.5}},
                {"worker_crash": {"worker": 3, "at": "2 s", "for": "10 s", "detect_after": "1 s"}},
                {"server_crash": {"server": 0, "at": "1 s", "failover": "2 s"}},
            ],
            {"workers": 4, "architecture": {"parameter_server": {"servers": 2}}},
        )
    )
    nodes = scenario.topology.compiled.node_index
    first, _, worker, last = scenario.faults
    assert first == ServerCrash("server_crash", "server 1", 1, 1.0, 10.0, 15.0, 2.0, nodes["host6"])
    assert first.end_s == 3.0
    assert worker == WorkerCrash("worker_crash", "worker 3", 3, 2.0, 12.0, 1.0)
    assert last.replica == nodes["host7"]
    assert scenario.job.crashes == (first, worker, last)
    assert scenario.job.training.architecture.options["replicas"] == {1: nodes["host6"], 0: nodes["host7"]}


def test_checkpoints():
    training = {"workers": 4, "checkpoint": {"every": 5}}
    assert load_scenario(scenario_of([], training)).job.training.checkpoint == Checkpoint(5)
    training["checkpoint"] |= {"storage": "host7", "blocking": False, "size": "1 GB"}
    assert load_scenario(scenario_of([], training)).job.training.checkpoint == Checkpoint(5, "host7", False, 1e9)


def test_check_says_what_was_understood():
    training = {"workers": 4, "architecture": "parameter_server", "checkpoint": {"every": 5, "storage": "host7"}}
    crash = {"server_crash": {"server": 0, "at": "1 s", "failover": "2 s"}}
    lines = describe_scenario(load_scenario(scenario_of([crash], training)))
    assert "fault server_crash: server 0, at 1 s; host5 takes over after 2 s" in lines
    # 25,557,032 parameters, and momentum, of 4 bytes each.
    assert "  204.5 MB of state, to host7 each 5 iterations" in lines
    assert not any("replicas" in line for line in lines)


def test_the_tables_tell_of_crashes_and_checkpoints():
    """Eight workers' worth of columns: what adds up does, and the crash has a row."""
    crash = {"worker_crash": {"worker": 3, "at": "2 s", "for": "3 s", "detect_after": "1 s"}}
    training = {"workers": 4, "checkpoint": {"every": 4, "storage": "host7"}}
    result = simnet.run(scenario_of([crash], training, run={"iterations": 20, "warmup": 0}))
    row = result.summary.iloc[0]
    parts = ["compute", "exposed_communication", "waiting", "input", "checkpoint", "recovery"]
    assert row.iteration_time_s == pytest.approx(sum(row[f"{part}_time_s"] for part in parts), rel=1e-12)
    ends = result.iterations["start_s"] + result.iterations["iteration_time_s"]
    assert row.iteration_time_s * 20 == pytest.approx(ends.max(), rel=1e-9)
    assert row.checkpoints == 4
    assert row.recovery_time_s * 20 > 3.0
    assert 0.0 < row.goodput_ratio < 1.0 - 3.0 / ends.max()
    assert result.iterations.groupby("rank")["iteration"].apply(list).iloc[0] == list(range(20))
    assert set(result.iterations["attempt"]) == {0, 1}
    assert result.faults.to_dict("records") == [
        {"kind": "worker_crash", "what": "worker 3", "begin_s": 2.0, "end_s": 5.0}
    ]


def test_of_several_jobs_only_its_own_begins_again():
    """The job beside it goes on, and is through when it would be anyway."""
    jobs = [{"name": name, **JOB, "training": {"workers": 2}} for name in ("first", "second")]
    base = scenario_of([], None, run={"iterations": 10, "warmup": 0})
    for key in ("workload", "training"):
        del base[key]
    crash = {"worker_crash": {"job": "second", "worker": 0, "at": "1 s", "for": "1 s", "detect_after": "1 s"}}
    result = simnet.run({**base, "jobs": jobs, "faults": [crash]})
    first, second = (result.summary.iloc[number] for number in (0, 1))
    assert (first.recovery_time_s, first.lost_iterations) == (0.0, 0.0)
    assert second.lost_iterations > 0
    assert second.recovery_time_s * 10 == pytest.approx(2.0, rel=1e-9)


def test_a_host_that_is_slow_computes_slowly():
    """Half as fast for the whole run: twice the compute time of one of two, which the other waits for."""
    base = scenario_of([], {"workers": 2}, run={"iterations": 3, "warmup": 0})
    usual = simnet.run(base).workers["compute_time_s"]
    slow = simnet.run({**base, "faults": [{"host_slow": {"host": "host1", "at": "0 s", "factor": 0.5}}]}).workers
    assert slow["compute_time_s"].tolist() == pytest.approx([usual[0], 2 * usual[1]], rel=1e-9)


@pytest.mark.parametrize("split", [{"pipeline": 2}, {"tensor": 2}])
def test_so_do_the_workers_that_a_model_is_split_over(split):
    """The host of one of two is half as fast, from the first iteration on: twice its compute time."""
    training = {"parallelism": {"data": 1, **split}}
    base = scenario_of([], training, run={"iterations": 2, "warmup": 0})
    usual = simnet.run(base).workers["compute_time_s"]
    slow = simnet.run({**base, "faults": [{"host_slow": {"host": "host1", "at": "0 s", "factor": 0.5}}]}).workers
    assert slow["compute_time_s"].tolist() == pytest.approx([usual[0], 2 * usual[1]], rel=1e-9)


def test_who_does_not_come_back_ends_the_run():
    crash = {"worker_crash": {"worker": 3, "at": "1 s", "detect_after": "100 ms"}}
    with pytest.raises(StalledError, match=r"worker 3 crashed at 1 s and does not come back; 3 workers of job train"):
        simnet.run(scenario_of([crash], {"workers": 4}))
    assert math.isinf(load_scenario(scenario_of([crash], {"workers": 4})).faults[0].end_s)


@pytest.mark.parametrize(
    ("workers", "said"),
    [(2, r"1 worker of job train waits for it since 1.1 s in"), (1, r"nobody is left of job train in")],
)
def test_so_it_does_where_few_are_left(workers, said):
    crash = {"worker_crash": {"worker": 0, "at": "1 s", "detect_after": "100 ms"}}
    with pytest.raises(StalledError, match=r"worker 0 crashed at 1 s and does not come back; " + said):
        simnet.run(scenario_of([crash], {"workers": workers}))


@pytest.mark.parametrize(
    ("training", "fault", "said"),
    [
        (
            "{workers: 4}",
            "{worker_crash: {worker: »4, at: 1 s}}",
            "there is no worker 4, those from 0 to 3 are there",
        ),
        (
            "{workers: 4}",
            "{server_crash: {server: »0, at: 1 s}}",
            "server_crash stands beside architecture ring, architecture: parameter_server is wanted",
        ),
        (
            SERVERS,
            "{server_crash: {server: »2, at: 1 s}}",
            "there is no server 2, those from 0 to 1 are there",
        ),
        (
            SERVERS,
            "{server_crash: {server: 0, at: 1 s, failover: 1 s, replica: »host9}}",
            "there is no host 'host9', did you mean 'host7'?",
        ),
        (
            SERVERS,
            "{server_crash: {server: 0, at: 1 s, failover: 1 s, replica: »host4}}",
            "server 0 itself is on host4, another host is wanted",
        ),
        (
            SERVERS,
            "{server_crash: {server: 0, at: 1 s, replica: »host6}}",
            "replica stands beside no failover, say how long it takes",
        ),
        (
            "{workers: 6, architecture: {parameter_server: {servers: 2}}}",
            "{server_crash: {server: 0, at: 1 s, failover: »1 s}}",
            "there is no host left for the replica of server 0, name one: replica: host0",
        ),
        (
            "{workers: 4}",
            "{worker_crash: {worker: 0, at: 1 s, job: »other}}",
            "there is no job 'other', known: train",
        ),
        (
            "{workers: 4, checkpoint: {every: 5, storage: »switch}}",
            "{worker_crash: {worker: 0, at: 1 s}}",
            "'switch' is a switch, a node of kind storage or host is wanted, known: host0, ",
        ),
        (
            "{workers: 4, checkpoint: {every: 5, storage: »hots1}}",
            "{worker_crash: {worker: 0, at: 1 s}}",
            "topology star has no node 'hots1', a node of kind storage or host is wanted, did you mean 'host1'?",
        ),
        (
            "{workers: 4, checkpoint: {every: 5, storage: host1, rate: »1 GB/s}}",
            "{worker_crash: {worker: 0, at: 1 s}}",
            "rate stands beside storage, leave it out: the network says how long writing to storage takes",
        ),
        (
            "{workers: 4, forward_overlap: true, checkpoint: »{every: 5}}",
            "{worker_crash: {worker: 0, at: 1 s}}",
            "checkpoint stands beside forward_overlap, leave one of them out",
        ),
        (
            "{workers: 4, checkpoint: {every: »0}}",
            "{worker_crash: {worker: 0, at: 1 s}}",
            "every is 0, a whole number of at least 1 is wanted",
        ),
    ],
)
def test_mistakes(tmp_path, training, fault, said):
    """Each is told once, at its place."""
    text, expected = at_mark(with_changed(topology=STAR, training=training, faults=f"[{fault}]"), said)
    [told] = said_of(tmp_path, text)
    assert told.startswith(expected)


WORKER = {"worker_crash": {"worker": 1, "at": "200 ms", "for": "50 ms", "detect_after": "10 ms"}}
REPLICA = {"server_crash": {"server": 0, "at": "200 ms", "for": "80 ms", "failover": "20 ms"}}
SERVER = {"server_crash": {"server": 0, "at": "200 ms", "for": "50 ms", "detect_after": "10 ms"}}


@pytest.mark.parametrize(("sync", "fault"), [("bsp", WORKER), ("asp", WORKER), ("bsp", SERVER), ("asp", REPLICA)])
def test_packets_that_are_cancelled_are_conserved_too(sync, fault):
    """The run checks it; each worker does its iterations, or all together do."""
    training = {"workers": 2, "architecture": "parameter_server", "sync": sync, "bucket_size": "1 GB"}
    training["checkpoint"] = {"every": 1, "storage": "host7", "size": "100 kB"}
    base = scenario_of([fault], training, fidelity="packet", run={"iterations": 3, "warmup": 0})
    rows = simnet.run({**base, "protocol": "tcp"}).iterations
    assert len(rows) == 6
    assert rows["attempt"].any() == ("worker_crash" in fault or sync == "bsp")


@pytest.mark.parametrize("sync", ["bsp", "asp"])
def test_a_worker_that_begins_again_reads_its_samples_again(sync):
    """It is as if it had just begun: two batches ahead, while those of the others go on."""
    training = {"workers": 2, "architecture": "gossip", "sync": sync}
    dataset = {"bytes_per_sample": "100 kB", "storage": "host7", "prefetch": 2}
    run = {"iterations": 5, "warmup": 0}
    usual = simnet.run(scenario_of([], training, dataset=dataset, run=run))
    crashed = simnet.run(scenario_of([WORKER], training, dataset=dataset, run=run))
    assert len(crashed.iterations) == 10
    name = "switch->host1"
    carried = [result.links.set_index("resource")["wire_bytes"][name] for result in (usual, crashed)]
    assert carried[1] > carried[0] + 64 * 100e3
