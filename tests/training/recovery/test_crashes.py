"""Crashes of workers and servers against closed forms; where nothing else is said the network takes no time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.engine.recorder import Recorder
from simnet.errors import StalledError
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.training.communication.settings import Architecture, Scheduling, Sync
from simnet.training.job import Job, start_job
from simnet.training.records import IterationRow
from simnet.training.recovery.settings import Checkpoint, Crash, ServerCrash, WorkerCrash
from simnet.training.settings import JobSettings, Parallelism, RunSettings, TrainingSettings
from tests.training.building import workload

RING, SERVER = Architecture("ring"), Architecture("parameter_server", {"servers": 2})
GOSSIP, PAIRS = Architecture("gossip", {"graph": "ring"}), Architecture("gossip", {"graph": "mesh", "partners": "one"})
BSP, ASP, AS_USUAL = Sync(), Sync("asp"), Scheduling()
PASS_S = 0.03
"""Forward and backward pass of the workload [s]."""


def train(
    crashes: list[Crash],
    run: RunSettings,
    *,
    workers: int = 4,
    architecture: Architecture = RING,
    sync: Sync = BSP,
    checkpoint: Checkpoint | None = None,
    elements: tuple[int, ...] = (1, 1),
    bandwidth: float = 1e18,
    latency_s: float = 0.0,
    parallelism: Parallelism | None = None,
    scheduling: Scheduling = AS_USUAL,
    forward_overlap: bool = False,
    most_events: float = math.inf,
) -> tuple[Job, list[IterationRow], FluidFabric]:
    """Train on a star with hosts to spare."""
    env, recorder = simpy.Environment(), Recorder()
    topology = star(hosts=workers + 4, bandwidth_bytes_per_s=bandwidth, latency_s=latency_s / 2)
    fabric = FluidFabric(env, Network(topology, FlowProtocol(divisible=True)))
    replicas = {one.server: one.replica for one in crashes if isinstance(one, ServerCrash) and one.replica >= 0}
    if replicas:
        architecture = Architecture(architecture.name, {**architecture.options, "replicas": replicas})
    training = TrainingSettings(
        workers,
        architecture,
        sync,
        bucket_bytes=1.0,
        forward_overlap=forward_overlap,
        checkpoint=checkpoint,
        parallelism=parallelism,
        scheduling=scheduling,
    )
    job = start_job(
        env, fabric, recorder, JobSettings("job", workload(elements), training, crashes=tuple(crashes)), run
    )
    events, before_s = 0, 0.0
    while not job.course.done.triggered:
        env.step()
        events += 1
        assert events < most_events
        assert env.now >= before_s
        before_s = env.now
    fabric.require_conservation()
    return job, recorder.rows(IterationRow), fabric


def worker_crash(worker: int, at_s: float, for_s: float = math.inf, detect_after_s: float = 0.1) -> WorkerCrash:
    return WorkerCrash("worker_crash", f"worker {worker}", worker, at_s, at_s + for_s, detect_after_s)


def server_crash(
    server: int,
    at_s: float,
    for_s: float = math.inf,
    failover_s: float | None = None,
    replica: int = -1,
    detect_after_s: float = 0.1,
) -> ServerCrash:
    return ServerCrash(
        "server_crash", f"server {server}", server, at_s, at_s + for_s, detect_after_s, failover_s, replica
    )


def end_s(rows: list[IterationRow]) -> float:
    """When the last iteration is over."""
    return max(
        row.start_s + row.compute_time_s + row.exposed_communication_time_s + row.waiting_time_s + row.checkpoint_time_s
        for row in rows
    )


DISK = Checkpoint(every=4, size_bytes=1e6, bytes_per_s=1e8)
WRITE_S = 0.01


@pytest.mark.parametrize("sync", [Sync(), Sync("local_sgd", period=5), Sync("one_shot")], ids=lambda sync: sync.name)
@pytest.mark.parametrize("repair_s", [0.02, 1.0])
def test_workers_in_step_begin_again_from_the_last_checkpoint(sync: Sync, repair_s: float) -> None:
    """A crash in iteration k = 10 at t, the last checkpoint before iteration 8, of 20 iterations C long.

    Total = t + max(detection, repair) + reading R + (20 - 8) C + the checkpoints W still to come, before 12 and 16.
    """
    at_s = 10.5 * PASS_S + 2 * WRITE_S
    job, rows, _ = train([worker_crash(2, at_s, repair_s)], RunSettings(20, 0), sync=sync, checkpoint=DISK)
    total = at_s + max(0.1, repair_s) + WRITE_S + 12 * PASS_S + 2 * WRITE_S
    assert end_s(rows) == pytest.approx(total, rel=1e-9)
    assert job.checkpoints is not None
    assert job.checkpoints.count == 4
    assert job.supervisor is not None
    # Of iterations 8 and 9 the survivors of local_sgd have done more by the time they know.
    assert job.supervisor.lost_iterations >= 2.0
    if sync.name == "bsp":
        assert job.supervisor.lost_iterations == 2.0
    # Each iteration of each worker counts once, those from 8 on in the second attempt.
    assert sorted((row.iteration, row.rank) for row in rows) == [(i, rank) for i in range(20) for rank in range(4)]
    assert all(row.attempt == (row.iteration >= 8) for row in rows)


def test_without_checkpoints_training_begins_anew() -> None:
    """Total = t + max(detection, repair) + 20 C."""
    _, rows, _ = train([worker_crash(0, 0.1, 0.3)], RunSettings(18, 2))
    assert end_s(rows) == pytest.approx(0.1 + 0.3 + 20 * PASS_S, rel=1e-9)


def test_a_crash_during_the_repair_of_another_is_waited_for_as_well() -> None:
    """Total = the later of the two ends + 20 C."""
    crashes: list[Crash] = [worker_crash(0, 0.1, 0.3), worker_crash(1, 0.25, 0.4)]
    _, rows, _ = train(crashes, RunSettings(18, 2))
    assert end_s(rows) == pytest.approx(0.65 + 20 * PASS_S, rel=1e-9)


def test_a_split_model_begins_again_as_well() -> None:
    """Two stages of two replicas: as long after the crash as a run that begins then."""
    grid = Parallelism(data=2, pipeline=2)
    _, rows, _ = train([], RunSettings(6, 0), parallelism=grid, bandwidth=1e9)
    _, crashed, _ = train([worker_crash(3, 0.1, 0.2)], RunSettings(6, 0), parallelism=grid, bandwidth=1e9)
    assert end_s(crashed) == pytest.approx(0.3 + end_s(rows), rel=1e-9)


@pytest.mark.parametrize("architecture", [SERVER, GOSSIP, PAIRS], ids=["servers", "gossip", "pairs"])
def test_others_go_on_without_an_asynchronous_worker(architecture: Architecture) -> None:
    """In T = 20 C four workers do 20 iterations each; the one that crashes in its sixth and is away for 4.5 C loses 5.

    It had done half of the sixth, which it does again from 10 C on: 5 + 10.
    """
    run = RunSettings(duration_s=20.0 * PASS_S + 1e-9, warmup=0)
    crash = worker_crash(1, 5.5 * PASS_S, 4.5 * PASS_S)
    job, _, _ = train([crash], run, architecture=architecture, sync=ASP)
    assert job.course.count.tolist() == [20, 15, 20, 20]
    job, _, _ = train([worker_crash(1, 5.5 * PASS_S)], run, architecture=architecture, sync=ASP)
    assert job.course.count.tolist() == [20, 5, 20, 20]


@pytest.mark.parametrize("architecture", [SERVER, GOSSIP], ids=["servers", "gossip"])
@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_nobody_waits_for_a_worker_that_is_away(architecture: Architecture, staleness: int) -> None:
    """With a bound others go on meanwhile, and the worker goes on from where they are: nobody waits for it later."""
    run = RunSettings(duration_s=20.0 * PASS_S + 1e-9, warmup=0)
    crash = worker_crash(1, 5.5 * PASS_S, 4.5 * PASS_S)
    job, rows, _ = train([crash], run, architecture=architecture, sync=Sync("ssp", staleness=staleness))
    counts = job.course.count.tolist()
    assert counts[0] == counts[2] == counts[3] == 20
    assert counts[1] in (14, 15)
    assert max(row.ahead_iterations for row in rows) <= staleness + 1


def test_checkpoints_are_bytes_on_the_links_of_storage() -> None:
    """Worker 0 writes S before iterations 4, 8, ..., 16 of 20: 4 S into storage, each S/B + p long."""
    storage = Checkpoint(every=4, storage="host3", size_bytes=1e6)
    _, rows, fabric = train([], RunSettings(20, 0), checkpoint=storage, bandwidth=1e8, latency_s=1e-3, workers=1)
    links = fabric.network.compiled.link_name
    carried = fabric.carried_bytes()
    assert carried[links.index("switch->host3")] == pytest.approx(4e6, rel=1e-9)
    assert carried[links.index("host0->switch")] == pytest.approx(4e6, rel=1e-9)
    assert end_s(rows) == pytest.approx(20 * PASS_S + 4 * (0.01 + 1e-3), rel=1e-9)


@pytest.mark.parametrize(
    ("architecture", "sync", "written", "read"),
    [(RING, BSP, 1, 4), (RING, Sync("local_sgd", period=5), 4, 4), (SERVER, BSP, 1, 1), (GOSSIP, BSP, 4, 4)],
    ids=["ring", "averages", "servers", "gossip"],
)
def test_who_writes_and_who_reads(architecture: Architecture, sync: Sync, written: int, read: int) -> None:
    """Of 4 workers one writes all of S; where they differ each does. All read all of it; servers a shard each.

    After a crash in iteration 5 of 8 with checkpoints before 2, 4, 6 three are written, and one is read.
    """
    storage = Checkpoint(every=2, storage="host7", size_bytes=1e6)
    at_s = 5.5 * PASS_S + 2 * written * 0.01
    _, _, fabric = train(
        [worker_crash(1, at_s, 0.1, detect_after_s=0.001)],
        RunSettings(8, 0),
        architecture=architecture,
        sync=sync,
        checkpoint=storage,
        bandwidth=1e8,
    )
    carried = dict(zip(fabric.network.compiled.link_name, fabric.carried_bytes().tolist(), strict=False))
    assert carried["switch->host7"] == pytest.approx(3 * written * 1e6, rel=1e-9)
    assert carried["host7->switch"] == pytest.approx(read * 1e6, rel=1e-9)


def test_a_checkpoint_beside_training_takes_no_time_of_it() -> None:
    """Unless the one before is still being written: writing takes 5 C, they are 4 C apart, three of four wait for C."""
    beside = Checkpoint(every=4, blocking=False, size_bytes=1e6, bytes_per_s=1e6 / (5 * PASS_S))
    _, rows, _ = train([], RunSettings(20, 0), checkpoint=beside)
    assert end_s(rows) == pytest.approx(23 * PASS_S, rel=1e-9)
    quick = Checkpoint(every=4, blocking=False, size_bytes=1e6, bytes_per_s=1e8)
    _, rows, _ = train([], RunSettings(20, 0), checkpoint=quick)
    assert end_s(rows) == pytest.approx(20 * PASS_S, rel=1e-9)


def test_a_checkpoint_that_is_not_complete_does_not_count() -> None:
    """It is written from before iteration 8 on, for 3 C; a crash in iteration 9 goes back to iteration 4."""
    beside = Checkpoint(every=4, blocking=False, size_bytes=1e6, bytes_per_s=1e6 / (3 * PASS_S))
    at_s = 9.5 * PASS_S
    _, rows, _ = train([worker_crash(0, at_s, 0.2)], RunSettings(20, 0), checkpoint=beside)
    assert end_s(rows) == pytest.approx(at_s + 0.2 + 3 * PASS_S + 16 * PASS_S, rel=1e-9)
    assert min(row.iteration for row in rows if row.attempt) == 4


@pytest.mark.parametrize("for_s", [math.inf, 0.5])
def test_a_replica_takes_over_and_nothing_is_lost(for_s: float) -> None:
    """In step: the iteration in which a server crashes takes longer, by what is left of the failover and not hidden.

    The crash comes 0.2 C before the pushes begin, so that they wait for 0.25 s - 0.2 C.
    """
    crash = server_crash(0, 5.8 * PASS_S, for_s, failover_s=0.25, replica=8)
    job, rows, _ = train([crash], RunSettings(20, 0), architecture=Architecture("parameter_server"), elements=(1,))
    assert job.supervisor is not None
    assert job.supervisor.lost_iterations == 0.0
    assert end_s(rows) == pytest.approx(20 * PASS_S + 0.25 - 0.2 * PASS_S, rel=1e-9)
    assert not any(row.attempt for row in rows)


def test_an_exchange_under_way_is_done_again_with_the_replica() -> None:
    """Pushes of S take N S/B; the crash comes in the middle of them, of iteration 2: they are lost, and come again.

    Without: iterations of C + 2 (N S/B + p) + (S/B + p), as the server sends each update to its replica first.
    """
    size, bandwidth, latency_s = 1_000_000, 1e9, 1e-5
    push_s, copy_s = 4 * 4.0 * size / bandwidth + latency_s, 4.0 * size / bandwidth + latency_s
    whole_s = PASS_S + 2 * push_s + copy_s
    at_s = 2 * whole_s + PASS_S + push_s / 2
    crash = server_crash(0, at_s, failover_s=0.1, replica=6)
    server = Architecture("parameter_server")
    settings_of = {"architecture": server, "elements": (size,), "bandwidth": bandwidth, "latency_s": latency_s}
    _, rows, fabric = train([crash], RunSettings(3, 0), **settings_of)  # type: ignore[arg-type]
    # When the replica has taken over there is nobody to send updates to.
    assert end_s(rows) == pytest.approx(at_s + 0.1 + 2 * push_s, rel=1e-9)
    carried = dict(zip(fabric.network.compiled.link_name, fabric.carried_bytes().tolist(), strict=False))
    # Two iterations are replicated, the third is pushed to the replica itself.
    assert carried["switch->host6"] == pytest.approx((2 + 4) * 4.0 * size, rel=1e-9)


@pytest.mark.parametrize("sync", [Sync(), ASP], ids=lambda sync: sync.name)
def test_a_server_without_a_replica_comes_back_with_its_last_checkpoint(sync: Sync) -> None:
    """In step all go back to it; asynchronous workers lose the updates since, and stand still for R and the repair."""
    crash = server_crash(1, 10.5 * PASS_S + 2 * WRITE_S, 1.0)
    run = RunSettings(20, 0)
    job, rows, _ = train([crash], run, architecture=SERVER, sync=sync, checkpoint=DISK)
    assert job.supervisor is not None
    # Each of two servers writes and reads half of it.
    half_s = WRITE_S / 2
    if sync.name == "bsp":
        assert end_s(rows) == pytest.approx(crash.begin_s + 1.0 + half_s + 12 * PASS_S + 2 * half_s, rel=1e-9)
        assert job.supervisor.lost_iterations == 2.0
    else:
        # 20 iterations of each, two checkpoints before and two after; the eleventh waits from its end on.
        waits_s = crash.begin_s + 1.0 + half_s - (11 * PASS_S + 2 * half_s)
        assert job.course.duration_s == pytest.approx(20 * PASS_S + 4 * half_s + waits_s, rel=1e-9)
        assert job.supervisor.lost_iterations == pytest.approx(2.0, abs=1.0)


def test_who_waits_for_whom_if_nobody_comes_back() -> None:
    with pytest.raises(
        StalledError,
        match=r"worker 3 crashed at 0.1 s and does not come back; 3 workers of job job "
        r"wait for it since 0.2 s in iteration 3",
    ):
        train([worker_crash(3, 0.1)], RunSettings(20, 0))
    for sync in (Sync(), ASP):
        with pytest.raises(StalledError, match=r"server 1 crashed at 0.1 s and does not come back; 4 workers"):
            train([server_crash(1, 0.1)], RunSettings(20, 0), architecture=SERVER, sync=sync)
    with pytest.raises(StalledError, match=r"worker 3 crashed at 0.1 s as the last of the 4 workers of job job"):
        train([worker_crash(rank, 0.1) for rank in range(4)], RunSettings(20, 0), architecture=SERVER, sync=ASP)


SYNCS = [Sync(), Sync("local_sgd", period=3), Sync("one_shot"), ASP, Sync("ssp", staleness=0), Sync("ssp", staleness=2)]
INSTANT = st.one_of(st.floats(0.0, 0.4), st.sampled_from([0.0, 0.01, PASS_S, 2 * PASS_S, 0.1]))


@st.composite
def crashes_of(draw: st.DrawFn, architecture: Architecture) -> list[Crash]:
    """Draw some crashes; at most one of each server has a replica that takes over."""
    found: list[Crash] = []
    for _ in range(draw(st.integers(1, 3))):
        for_s = draw(st.sampled_from([0.0, 0.02, 0.15, math.inf]))
        at_s, detect_after_s = draw(INSTANT), draw(st.sampled_from([0.0, 0.05]))
        if architecture.name != "parameter_server" or draw(st.booleans()):
            found.append(worker_crash(draw(st.integers(0, 3)), at_s, for_s, detect_after_s))
            continue
        server = draw(st.integers(0, 1))
        free = not any(isinstance(one, ServerCrash) and one.server == server and one.replica >= 0 for one in found)
        if free and draw(st.booleans()):
            found.append(server_crash(server, at_s, for_s, draw(st.sampled_from([0.0, 0.04])), replica=6 + server))
        else:
            found.append(server_crash(server, at_s, for_s, detect_after_s=detect_after_s))
    return found


@st.composite
def schedulings_of(draw: st.DrawFn, architecture: Architecture, sync: Sync) -> Scheduling:
    """Draw what goes first, in pieces of what size, and what together."""
    if sync.waits_alone:
        return AS_USUAL
    scheduling = Scheduling(
        order=draw(st.sampled_from(["first_ready", "priority"])),
        piece_bytes=draw(st.sampled_from([math.inf, 1e5])),
        streams=draw(st.sampled_from([None, 1, 2])),
    )
    if architecture is not RING:
        return scheduling
    negotiation_s, cycles = draw(st.sampled_from([0.0, 2e-3])), draw(st.booleans())
    fusion: Any = {"fusion": "cycle", "cycle_s": 5e-3, "buffer_bytes": 3e5} if cycles else {}
    credit_bytes = draw(st.sampled_from([math.inf, 2e5]))
    return replace(scheduling, negotiation_s=negotiation_s, credit_bytes=credit_bytes, **fusion)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_crash_at_any_instant_never_hangs(data: st.DataObject) -> None:
    """The run ends, or says who does not come back; bytes are conserved, and time never goes back."""
    architecture = data.draw(st.sampled_from([RING, SERVER, GOSSIP, PAIRS]))
    alone_only = "partners" in architecture.options
    possible = [one for one in SYNCS if architecture.name in ("parameter_server", "gossip") or not one.waits_alone]
    sync = data.draw(st.sampled_from([one for one in possible if one.waits_alone or not alone_only]))
    crashes = data.draw(crashes_of(architecture))
    scheduling = data.draw(schedulings_of(architecture, sync))
    checkpoint = data.draw(
        st.sampled_from(
            [None, DISK, Checkpoint(2, "host7", size_bytes=1e5), Checkpoint(2, "host7", blocking=False, size_bytes=1e6)]
        )
    )
    said = ""
    try:
        job, rows, _ = train(
            crashes,
            RunSettings(6, 1),
            architecture=architecture,
            sync=sync,
            checkpoint=checkpoint,
            elements=(100_000, 50_000),
            bandwidth=1e8,
            latency_s=1e-4,
            scheduling=scheduling,
            forward_overlap=sync.name == "bsp" and data.draw(st.booleans()),
            most_events=100_000,
        )
    except StalledError as error:
        said = str(error)
    if said:
        assert "crashed at" in said
        assert any(math.isinf(one.end_s) for one in crashes)
        return
    if not sync.waits_alone:
        assert sorted((row.iteration, row.rank) for row in rows) == [(i, rank) for i in range(7) for rank in range(4)]
        assert job.sent.payload_bytes.min() > 0.0
    assert np.isfinite(end_s(rows))
