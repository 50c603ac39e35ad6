"""The scenario: every key, its type, its default and what it means.

This is the single source for validation, for ``simnet schema`` and for the documentation; the sections of a job are in
`simnet.scenario.job_models`, faults in `simnet.scenario.fault_models`. Key names are the contract.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.scenario.exchange_models import MOST_ITERATIONS
from simnet.scenario.fault_models import FaultSpec
from simnet.scenario.fields import Flag, Name, Quantity, Real, Whole, Word
from simnet.scenario.job_models import DatasetSpec, JobSpec, TrainingSpec, WorkloadSpec
from simnet.scenario.protocol_models import ProtocolSpec
from simnet.scenario.sections import Section
from simnet.scenario.topology_models import TopologySpec
from simnet.training.background import PAIRS, SIZES
from simnet.units import MEBIBYTE

__all__ = ["BackgroundSpec", "BaselineSpec", "EngineSpec", "PacketSpec", "RunSpec", "ScenarioSpec"]


class RunSpec(Section):
    """How long is simulated and measured."""

    iterations: Annotated[int, Whole(1, MOST_ITERATIONS)] = Field(10, description="Measured iterations.")
    warmup: Annotated[int, Whole(0, MOST_ITERATIONS)] = Field(1, description="Iterations before those, not measured.")
    duration: Annotated[float, Quantity("duration", positive=True)] | None = Field(
        None,
        description="Measure for so long instead. Under sync asp and ssp, where it is over when all workers together "
        "have done iterations times their number otherwise.",
    )
    seed: Annotated[int, Whole(0, 2**53)] = Field(0, description="Seed of all random streams.")
    record: Annotated[str, Word(("tables", "messages"))] = Field(
        "tables", description="What is kept: the tables, or also every single message, which is then played."
    )


class EngineSpec(Section):
    """Ways of the engine to be fast; with and without them times agree within 1e-9."""

    recurrence: Annotated[bool, Flag()] = Field(
        True, description="Play exchanges that share nothing as a recurrence, without events."
    )
    skip_periods: Annotated[bool, Flag()] = Field(True, description="Skip whole periods of a recurrence.")
    repeats: Annotated[bool, Flag()] = Field(True, description="Play what comes again, and shares nothing, once.")
    local_repair: Annotated[bool, Flag()] = Field(
        True, description="Solve rates again only around what changed, not for whole connected components."
    )


class PacketSpec(Section):
    """Switches at packet level."""

    buffer: Annotated[float, Quantity("size", positive=True)] = Field(
        DEFAULT_PACKETS.buffer_bytes, description="Of each port of a switch whose link does not say."
    )
    shared_buffer: Annotated[float, Quantity("size", positive=True)] | None = Field(
        None, description="That all ports of a switch share instead of having their own."
    )
    threshold_shift: Annotated[int, Whole(0, 16)] = Field(
        DEFAULT_PACKETS.threshold_shift,
        description="Of a shared buffer a queue, or what came by one link, may hold what is free / 2^shift.",
    )
    pause_at: Annotated[float, Quantity("size", positive=True)] = Field(
        DEFAULT_PACKETS.pause_at_bytes,
        description="Bytes that came by one link and are still held, at which a switch pauses the neighbour (PFC).",
    )
    resume_at: Annotated[float, Quantity("size")] = Field(
        DEFAULT_PACKETS.resume_at_bytes, description="Bytes at which it lets the neighbour go on."
    )
    headroom: Annotated[float, Quantity("size", positive=True)] | None = Field(
        None, description="For what still comes after a pause; as much as that can be, where not given."
    )
    credit: Annotated[float, Quantity("size", positive=True)] = Field(
        DEFAULT_PACKETS.credit_bytes, description="Room of each link with credits (InfiniBand), for each class."
    )
    input_round_robin: Annotated[bool, Flag()] = Field(
        False, description="The inputs of a switch take turns at each output, as they do where links have credits."
    )


class BaselineSpec(Section):
    """What speedup refers to."""

    samples_per_s: Annotated[float, Real(minimum=1e-6, maximum=1e15)] = Field(
        description="Throughput that counts as speedup 1 [samples/s]."
    )


class BackgroundSpec(Section):
    """Traffic of others on the same links."""

    load: Annotated[float, Real(minimum=0, maximum=1)] = Field(
        description="Mean rate at which a host sends, as a part of the bandwidth of its way out."
    )
    sizes: Annotated[str, Word(SIZES)] = Field(
        "exponential", description="Distribution of the sizes of flows, which begin at random (Poisson)."
    )
    mean_size: Annotated[float, Quantity("size", positive=True)] = Field(
        1.0 * MEBIBYTE, description="Mean size of a flow."
    )
    shape: Annotated[float, Real(above=1.0, maximum=1e3)] = Field(1.5, description="Shape of the Pareto distribution.")
    pairs: Annotated[str, Word(PAIRS)] = Field(
        "random", description="random: each flow between any two hosts; permutation: each host to one other, always."
    )


class ScenarioSpec(Section):
    """A training run on a cluster."""

    name: Annotated[str, Name()] = Field(
        "scenario", description="Name in tables and of the result's folder; the file's name where not given."
    )
    topology: TopologySpec = Field(
        description="The cluster: a shipped name, a file, {file: FILE, defaults: {…}}, or a generator with options."
    )
    protocol: ProtocolSpec = Field(
        description="The transport: a name, {name: {what differs from its defaults}}, or a file."
    )
    fidelity: Annotated[str, Word(("flow", "packet"))] = Field(
        "flow",
        description="flow: messages share links max-min fairly; packet: every packet on every hop between hosts.",
    )
    packet: PacketSpec = Field(default_factory=PacketSpec, description="Switches, with fidelity: packet.")
    workload: WorkloadSpec | None = Field(
        None, description="What is trained, and how long it computes. Either this or jobs is given."
    )
    training: TrainingSpec = Field(default_factory=TrainingSpec, description="Who trains, and how they keep in step.")
    dataset: DatasetSpec | None = Field(
        None, description="Where training data comes from; where not given, samples are there when they are needed."
    )
    jobs: tuple[JobSpec, ...] | None = Field(
        None, description="Several jobs at once on the same links, in the place of workload, training and dataset."
    )
    background: BackgroundSpec | None = Field(None, description="Traffic of others on the same links.")
    faults: tuple[FaultSpec, ...] | None = Field(
        None, description="What goes wrong, and when: a list, {kind: {option: value}} each."
    )
    reduction_rate: Annotated[float, Quantity("bandwidth", positive=True, limit=True)] = Field(
        math.inf, description="Rate at which a receiver adds what it gets to what it has; unlimited takes no time."
    )
    run: RunSpec = Field(default_factory=RunSpec, description="How long is simulated and measured.")
    engine: EngineSpec = Field(default_factory=EngineSpec, description="How the engine works; changes no result.")
    baseline: BaselineSpec | None = Field(
        None,
        description="What speedup refers to; one worker of the fastest group without communication where not given.",
    )
