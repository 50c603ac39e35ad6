"""A job: workers that compute and exchange gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.recorder import Recorder
from simnet.fabric.faults import HostSlow, busy_until_s
from simnet.fabric.interface import Fabric
from simnet.training.computing.compute import ComputeTimes, compute_times, ratio
from simnet.training.computing.shared_gpu import SharedGpu
from simnet.training.computing.slowdowns import HostSlowdowns, Slowdowns
from simnet.training.computing.split import StagePart, split_job
from simnet.training.computing.step import SplitStep, StepParts, begin_steps
from simnet.training.course import Course, InStep, InTotal
from simnet.training.group import Group, Grouping
from simnet.training.layout import lay_out_workers
from simnet.training.loader import Loader
from simnet.training.plan import Plan
from simnet.training.records import Sent, SpanRow
from simnet.training.recovery.alone import AloneSupervisor
from simnet.training.recovery.checkpoints import AloneCheckpoints, Checkpoints, InStepCheckpoints
from simnet.training.recovery.in_step import InStepSupervisor
from simnet.training.recovery.state import State, Store
from simnet.training.recovery.state_layout import lay_out_state
from simnet.training.recovery.supervisor import Crew
from simnet.training.settings import JobSettings, RunSettings
from simnet.training.worker import Worker, as_usual, untold, work
from simnet.workload import DataflowWorkload

__all__ = ["Job", "start_job"]


@dataclass(frozen=True, eq=False)
class Job:
    """A job that has been started.

    Attributes
    ----------
    settings : JobSettings
    nodes : ndarray of int, shape (workers,)
        Node index of each worker.
    groups : tuple of Group
    compute : ComputeTimes or None
        None where workers compute in steps that they do together.
    fastest_samples_per_s : callable
        Returns the rate over some iterations that one worker alone would compute at, with the speed of the fastest
        [samples/s].
    sent : Sent
    loader : Loader or None
    course : Course
        How long it goes on, and what of it is measured.
    checkpoints : Checkpoints or None
    supervisor : InStepSupervisor, AloneSupervisor or None
        None where nothing crashes.
    steps : mapping of int to SplitStep
        Of each replica, where workers compute in steps that they do together.
    """

    settings: JobSettings
    nodes: NDArray[np.int64]
    groups: tuple[Group, ...]
    compute: ComputeTimes | None
    fastest_samples_per_s: Callable[[Sequence[int]], float]
    sent: Sent
    loader: Loader | None
    course: Course
    checkpoints: Checkpoints | None = None
    supervisor: InStepSupervisor | AloneSupervisor | None = None
    steps: Mapping[int, SplitStep] = field(default_factory=dict)


def start_job(
    env: simpy.Environment,
    fabric: Fabric,
    recorder: Recorder,
    settings: JobSettings,
    run: RunSettings,
    nodes: NDArray[np.int64] | None = None,
    busy: frozenset[int] | None = None,
    others: list[simpy.Event] | None = None,
    slow: Sequence[HostSlow] = (),
) -> Job:
    """Start the workers of a job.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
        Receives an `IterationRow` for each worker and iteration, and a `CollectiveRow` for each exchange.
    settings : JobSettings
    run : RunSettings
    nodes : ndarray of int, shape (workers,), optional
        Where its workers are; laid out as `settings` say where not given.
    busy : frozenset of int, optional
        Hosts that workers of any job are on; where not given, those of this job.
    others : list of Event, optional
        The ends of all jobs, to which that of this one is added: a job that is through goes on, unmeasured, as long as
        others are not.
    slow : sequence of HostSlow
        Hosts that are slow for a while.
    """
    others = [] if others is None else others
    training, grid = settings.training, settings.training.grid
    if nodes is None:
        nodes = lay_out_workers(fabric.network.compiled, settings, run.seed)

    def is_alone() -> bool:
        return all(event.triggered for event in others if event is not course.done)

    course: Course
    if training.sync.waits_alone:
        course = InTotal(env, run, training.workers, is_alone)
    else:
        course = InStep(env, run, training.workers, is_alone, leaves_open=training.forward_overlap)
    others.append(course.done)
    sent = Sent(training.workers, course.is_measured, can_forget=bool(settings.crashes))
    start = _Start(env, fabric, recorder, settings, run, nodes, sent)
    grouping = Grouping(env, fabric, recorder, settings, run, nodes, busy, sent)
    groups: dict[tuple[int, int], Group] = {}
    lasts_s = [_lasting(slow, host) for host in fabric.network.compiled.host_of_node[nodes].tolist()]
    compute, steps = None, dict[int, SplitStep]()
    is_split = grid.replica > 1 or isinstance(settings.workload, DataflowWorkload)
    if not is_split:
        whole = grouping.form(settings.workload.model, np.arange(training.workers))
        groups[0, 0] = whole
        compute = compute_times(settings, whole.plan, run.seed)
        fastest_samples_per_s = compute.fastest_samples_per_s
    else:
        slowdowns = Slowdowns(settings, run.seed)
        parts = split_job(settings, fabric.network.compiled, nodes)
        for part in parts.stages:
            members = [grid.rank_of(part.stage, replica, part.inner) for replica in range(grid.data)]
            groups[part.stage, part.inner] = grouping.form(part.model, np.array(members))
        step_parts = parts.step(_plans(groups, parts.stages))
        for replica in range(grid.data):
            steps[replica] = start.step(step_parts, replica, slowdowns, lasts_s)

        def fastest_samples_per_s(iterations: Sequence[int]) -> float:  # noqa: ARG001
            return ratio(settings.workload.batch_size, parts.alone_s * float(slowdowns.slowness.min()))

    readers = np.array([rank for rank in range(training.workers) if _reads(settings, rank)])
    loader = start.loader(readers) if settings.dataset is not None else None
    exchanges_in = partial(training.sync.exchanges_in, last=run.warmup + run.iterations - 1)
    state = lay_out_state(settings, nodes, groups)
    checkpoints = start.checkpoints(state, course, groups)
    workers = []
    for rank in range(training.workers):
        stage, replica, inner = grid.place_of(rank)
        # Of workers that share memory the first exchanges the gradients of all.
        leads = inner < grid.tensor
        group = groups[(stage, inner if leads else 0)] if is_split else groups[0, 0]
        member = replica if is_split else rank
        worker = Worker(
            env,
            fabric,
            recorder,
            settings.name,
            rank,
            int(nodes[rank]),
            course,
            exchanges_in,
            settings.start_s,
            group.plan,
            group.of_member(member),
            member,
            leads,
            compute,
            steps.get(replica),
            loader,
            checkpoints,
            lasts_s[rank],
            _telling(env, recorder, settings.name, rank) if run.records_timeline or run.records_plays else untold,
            SharedGpu(fabric, int(nodes[rank]), training.overlap_slowdown)
            if training.overlap_slowdown is not None
            else None,
            training.step_overhead_s,
        )
        workers.append(worker)
    crew = Crew(env, fabric, recorder, settings.name, workers, course, sent, loader, state)
    supervisor = _supervise(crew, settings, groups, steps, checkpoints) if settings.crashes else None
    if supervisor is None:
        for worker in workers:
            env.process(work(worker))
    everything = tuple(groups.values())
    return Job(
        settings,
        nodes,
        everything,
        compute,
        fastest_samples_per_s,
        sent,
        loader,
        course,
        checkpoints,
        supervisor,
        steps,
    )


def _telling(env: simpy.Environment, recorder: Recorder, job: str, rank: int) -> Callable[..., None]:
    """Return what takes note of what a worker does when."""

    def tell(iteration: int, what: str, start_s: float, stretch: int = -1) -> None:
        if env.now > start_s:
            recorder.add(SpanRow(job, iteration, rank, what, start_s, env.now, stretch))

    return tell


def _lasting(slow: Sequence[HostSlow], host: int) -> Callable[[float, float], float]:
    """Return how long computing takes on a host that is slow for a while."""
    own = [fault for fault in slow if fault.host == host]
    if not own:
        return as_usual
    return lambda begin_s, work_s: busy_until_s(own, host, begin_s, work_s) - begin_s


def _supervise(
    crew: Crew,
    settings: JobSettings,
    groups: dict[tuple[int, int], Group],
    steps: dict[int, SplitStep],
    checkpoints: InStepCheckpoints | AloneCheckpoints | None,
) -> InStepSupervisor | AloneSupervisor:
    """Begin the processes of a job some of which crash."""
    whole = groups.get((0, 0))
    if whole is not None and whole.own:
        assert not isinstance(checkpoints, InStepCheckpoints)
        return AloneSupervisor(crew, settings.crashes, own=whole.own, peers=whole.peers, checkpoints=checkpoints)
    has_servers = settings.training.architecture.servers > 0
    communicators = [(group.communicator, has_servers) for group in groups.values() if group.communicator is not None]
    communicators += [(step.communicator, False) for step in steps.values()]
    assert not isinstance(checkpoints, AloneCheckpoints)
    return InStepSupervisor(crew, settings.crashes, communicators=communicators, checkpoints=checkpoints)


def _plans(groups: dict[tuple[int, int], Group], stages: Sequence[StagePart]) -> list[Plan]:
    return [groups[part.stage, part.inner].plan for part in stages]


def _reads(settings: JobSettings, rank: int) -> bool:
    """Tell whether a worker reads samples: of those that a replica is split over, the first."""
    stage, _, inner = settings.training.grid.place_of(rank)
    return stage == inner == 0


@dataclass(frozen=True, eq=False)
class _Start:
    """What is needed to start the parts of a job."""

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    settings: JobSettings
    run: RunSettings
    nodes: NDArray[np.int64]
    sent: Sent

    def checkpoints(
        self, state: State, course: Course, groups: dict[tuple[int, int], Group]
    ) -> InStepCheckpoints | AloneCheckpoints | None:
        """Have checkpoints written, where they are wanted."""
        settings = self.settings.training.checkpoint
        if settings is None:
            return None

        def counts() -> bool:
            return course.measured.triggered and not course.done.triggered

        store = Store(self.env, self.fabric, self.settings.name, settings)
        own = groups[0, 0].own if (0, 0) in groups else ()
        if own:
            return AloneCheckpoints(self.env, settings, store, state, counts, own[0].clocks, len(own))
        return InStepCheckpoints(self.env, settings, store, state, counts, len(self.nodes))

    def step(
        self, parts: StepParts, replica: int, slowdowns: Slowdowns, lasts_s: Sequence[Callable[[float, float], float]]
    ) -> SplitStep:
        """Let the workers of a replica do their steps together."""
        grid = self.settings.training.grid
        members = np.array(
            [grid.rank_of(stage, replica, inner) for stage in range(grid.pipeline) for inner in range(grid.inner)]
        )
        if any(lasts_s[member] is not as_usual for member in members.tolist()):
            usual_s = np.zeros(len(self.nodes))
            usual_s[members] = parts.compute_s
            slowdowns = HostSlowdowns(self.settings, self.run.seed, self.env, usual_s, lasts_s)
        step = SplitStep(parts, members, slowdowns)
        begin_steps(
            self.env,
            self.fabric,
            self.recorder,
            self.settings.name,
            step,
            parts,
            self.nodes,
            members,
            self.sent,
            varies=slowdowns.varies,
            joins_late=grid.shared_memory == 1,
            traced=self.run.records_plays,
        )
        return step

    def loader(self, readers: NDArray[np.int64]) -> Loader:
        """Let workers read their samples."""
        settings = self.settings
        assert settings.dataset is not None
        return Loader(
            self.env,
            self.fabric,
            settings.name,
            settings.dataset,
            self.nodes,
            readers,
            [settings.samples_of(rank) for rank in readers.tolist()],
            self.sent,
        )
