"""What of a run is to be looked at twice, in words: settings without effect, and numbers that mean less than they seem.

One rule a function, all of them in `RULES`. What can be told before a scenario is run is told when it is loaded
(`simnet.scenario.Scenario.warnings`). Impossible results, such as one that is faster than its lower bound, are no
warnings but errors: see `simnet.experiment.summary`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simnet.experiment.tables import Columns
from simnet.fabric.bounds import Bound
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric
from simnet.fabric.network import INSIDE_KINDS
from simnet.fabric.packet.fabric import PacketFabric
from simnet.scenario import Scenario
from simnet.training.job import Job
from simnet.training.records import CollectiveRow
from simnet.units import format_bandwidth, format_duration, format_size
from simnet.workload import GroupedWorkload, RecordedTrace

__all__ = ["RULES", "Look", "sanity_warnings"]

_SHOWS = 0.1
"""Communication that is exposed for less of an iteration is not worth a word."""

_MOSTLY = 0.9
_FULL = 0.95
_STEADY = 0.05
_FEW = 20
_LONG = 10.0

_HELD_UP = 1.5
"""Exchanges that take less than so many times as long as each would alone gain little where workers spread out."""


@dataclass(frozen=True, eq=False)
class Look:
    """What rules look at: one job of a run.

    Attributes
    ----------
    scenario : Scenario
    job : Job
    fabric : Fabric
    summary : mapping
        The row of the job.
    iterations : columns
        Its measured iterations.
    links : columns
        Of the run.
    exchanges : sequence of CollectiveRow
        Of the job.
    """

    scenario: Scenario
    job: Job
    fabric: Fabric
    summary: Mapping[str, Any]
    iterations: Columns
    links: Columns
    exchanges: Sequence[CollectiveRow]

    @property
    def shows(self) -> bool:
        """Whether communication is exposed for so long that it matters."""
        return float(self.summary["exposed_communication_time_s"]) > _SHOWS * float(self.summary["iteration_time_s"])

    @property
    def is_disturbed(self) -> bool:
        """Whether chance, or something that happens, makes iterations and workers differ."""
        training, scenario = self.job.settings.training, self.scenario
        dataset = self.job.settings.dataset
        others = scenario.background is not None or len(scenario.jobs) > 1
        happens = scenario.faults or others or training.checkpoint or (dataset is not None and dataset.reshuffle)
        loses = bool((scenario.topology.compiled.link_loss_probability > 0.0).any())
        slow = (training.jitter is not None and training.jitter.parameter > 0.0) or training.stragglers
        return bool(happens or loses or slow or isinstance(self.job.settings.workload, RecordedTrace))


Rule = Callable[[Look], Iterator[str]]


def sanity_warnings(look: Look) -> Iterator[str]:
    """Yield what is to be looked at twice."""
    for rule in RULES:
        yield from rule(look)


def mostly_latency(look: Look) -> Iterator[str]:
    """Buckets that are so small that links are idle for most of their exchange."""
    if not look.shows:
        return
    placements = {id(row.placement): row for row in look.exchanges if row.what != "step"}
    total_s = sum(row.duration_s for row in look.exchanges)
    counts: dict[int, float] = {}
    for row in look.exchanges:
        counts[id(row.placement)] = counts.get(id(row.placement), 0.0) + row.duration_s
    small = [(row, _idle_share(look.fabric.bound(row.placement))) for row in placements.values()]
    small = [(row, idle) for row, idle in small if idle > _MOSTLY]
    if total_s > 0.0 and sum(counts[id(row.placement)] for row, _ in small) > 0.5 * total_s:
        row, idle = max(small, key=lambda one: counts[id(one[0].placement)])
        several = len(look.job.groups[0].buckets) > 1
        yield (
            f"a bucket of {format_size(row.size_bytes)} over {len(row.placement.nodes)} ranks is {idle * 100.0:.0f} % "
            f"latency and overheads{': fuse buckets (training.bucket_size)' if several else ''}"
        )


def _idle_share(bound: Bound) -> float:
    return 1.0 - bound.cut_s / bound.total_s if bound.total_s > 0.0 else 0.0


def full_resource(look: Look) -> Iterator[str]:
    """Something else than a link of the network that is busy all the time."""
    utilisation = look.links["utilisation"]
    kinds, names = look.links["kind"], look.links["resource"]
    inside = {*INSIDE_KINDS, "memory", "send stack", "receive stack", "core"}
    full = [place for place in np.flatnonzero(utilisation > _FULL).tolist() if kinds[place] in inside]
    if full:
        fullest = max(full, key=lambda place: float(utilisation[place]))
        more = f", and {len(full) - 1} more like it" if len(full) > 1 else ""
        busy = f"{utilisation[fullest] * 100.0:.0f} %"
        yield f"{names[fullest]} is busy {busy} of the time{more}: no link limits this run"


def one_bucket(look: Look) -> Iterator[str]:
    """Buckets that are larger than the model, so that nothing is exchanged while workers compute."""
    training = look.job.settings.training
    [group, *others] = look.job.groups
    whole = not others and training.overlap and training.scheduling.fusion == "size" and not training.zero_stage
    if look.shows and whole and len(group.buckets) == 1 and len(look.job.settings.workload.model.tensors) > 1:
        size_bytes = group.buckets[0].elements * training.gradient_element_bytes
        yield (
            f"all gradients, {format_size(size_bytes)}, are in one bucket of {format_size(training.bucket_bytes)}: "
            "nothing is exchanged before the backward pass is over (training.bucket_size)"
        )


def idle_streams(look: Look) -> Iterator[str]:
    """More streams than there is to exchange at once."""
    streams = look.job.settings.training.scheduling.streams
    parts = max((len(group.plan.parts) for group in look.job.groups), default=0)
    if streams is not None and math.isfinite(streams) and 0 < parts < streams:
        yield f"{streams:g} streams have no effect beyond {parts}: so much is exchanged in an iteration"


def limited_by_core(look: Look) -> Iterator[str]:
    """Links that are faster than what hosts can send or receive."""
    protocol, compiled = look.scenario.protocol, look.scenario.topology.compiled
    most = min(protocol.host_send_capacity_bytes_per_s, protocol.host_receive_capacity_bytes_per_s)
    is_ring = look.job.settings.training.architecture.name == "ring" and "gpu" not in compiled.node_kind
    if is_ring:
        # Of a ring each host sends on one connection.
        most = min(most, protocol.connection_cap_bytes_per_s * protocol.transport.connections_per_pair)
    outside = np.array([kind not in INSIDE_KINDS for kind in compiled.link_kind], dtype=np.bool_)
    hosts = compiled.host_of_node[look.job.nodes]
    own = outside & np.isin(compiled.host_of_node[compiled.link_source], hosts)
    slowest = float(compiled.link_bandwidth[outside].min(initial=math.inf))
    if look.shows and own.any() and most < slowest and float(look.summary["bytes_sent_per_worker"]) > 0.0:
        what = f"a {'connection' if is_ring else 'host'} of {protocol.name}"
        yield (
            f"{what} carries at most {format_bandwidth(most)}, and no link is slower than "
            f"{format_bandwidth(slowest)}: more bandwidth would change nothing"
        )


def no_computing(look: Look) -> Iterator[str]:
    """Workers that do little but exchange."""
    compute_s = float(look.summary["compute_time_s"])
    exposed_s = float(look.summary["exposed_communication_time_s"])
    if exposed_s > _LONG * compute_s > 0.0:
        yield (
            f"exchanges that show take {exposed_s / compute_s:.0f} times as long as computing: "
            "the batch, or the network, is too small for this model"
        )


def not_steady(look: Look) -> Iterator[str]:
    """Measured iterations that still change, though nothing happens in them."""
    if look.is_disturbed or look.job.settings.training.sync.name != "bsp":
        return
    numbers, times_s = look.iterations["iteration"], look.iterations["iteration_time_s"]
    first_s, last_s = (float(times_s[numbers == number].mean()) for number in (numbers.min(), numbers.max()))
    if abs(first_s - last_s) > _STEADY * last_s:
        yield (
            f"iterations are not steady: the first that is measured takes {format_duration(first_s)}, the last "
            f"{format_duration(last_s)}: more warm-up is wanted (run.warmup)"
        )


def all_alike(look: Look) -> Iterator[str]:
    """Workers that could go their own ways, have no reason to, and hold each other up."""
    training = look.job.settings.training
    grouped = isinstance(look.job.settings.workload, GroupedWorkload)
    differ = look.is_disturbed or grouped or len(set(training.speed_factors)) > 1
    may_spread_out = training.sync.waits_alone and training.sync.bound > 0
    if look.shows and may_spread_out and not differ and _held_up(look) > _HELD_UP:
        yield (
            f"workers are all alike, so that they need the network at the same time under {training.sync.label}: "
            "those whose times vary, as real ones do, spread out (training.jitter)"
        )


def _held_up(look: Look) -> float:
    """Return how many times as long exchanges take as each would alone."""
    bounds_s = {id(row.placement): look.fabric.bound(row.placement).total_s for row in look.exchanges}
    alone_s = sum(bounds_s[id(row.placement)] for row in look.exchanges)
    return sum(row.duration_s for row in look.exchanges) / alone_s if alone_s > 0.0 else 1.0


def few_iterations(look: Look) -> Iterator[str]:
    """Too few iterations for a percentile of times that differ much."""
    if look.job.settings.training.sync.name in ("local_sgd", "one_shot"):
        return
    numbers = look.iterations["iteration"]
    times_s = np.zeros(int(numbers.max()) + 1)
    np.maximum.at(times_s, numbers, look.iterations["iteration_time_s"])
    if 1 < len(times_s) < _FEW and times_s.std() > _SHOWS * times_s.mean() and not look.scenario.faults:
        yield (
            f"iteration_time_p95_s is of {len(times_s)} iterations that differ by "
            f"{times_s.std() / times_s.mean() * 100.0:.0f} %: at least {_FEW} are wanted (run.iterations)"
        )


def timeouts(look: Look) -> Iterator[str]:
    """Senders that wait for their timeout for much of the time."""
    count, shortest_s = _timeouts(look.fabric), look.scenario.protocol.transport.shortest_timeout_s
    time_s = float(look.summary["iteration_time_s"])
    iterations = int(look.summary["iterations"]) + look.scenario.run.warmup
    if count >= iterations and count / iterations * shortest_s > _SHOWS * time_s:
        yield (
            f"{count / iterations:.1f} timeouts an iteration, of at least {format_duration(shortest_s)} each, where an "
            f"iteration takes {format_duration(time_s)}: chance decides this result"
        )


def _timeouts(fabric: Fabric) -> int:
    """Return how often senders of a run heard nothing for too long."""
    if isinstance(fabric, PacketFabric):
        return int(np.sum(fabric.connection_counts()["timeouts"]))
    return fabric.timeouts if isinstance(fabric, FluidFabric) else 0


def overflows(look: Look) -> Iterator[str]:
    """Queues of which the flow level is known not to say what happens."""
    links = look.fabric.overflowing if isinstance(look.fabric, FluidFabric) else []
    if links:
        more = f" and {len(links) - 1} more" if len(links) > 1 else ""
        yield (
            f"the queue of {links[0]}{more} would overflow with {look.scenario.protocol.name}, and what is dropped and "
            "sent again then is not simulated at fidelity flow: the time may be far too short, see fidelity: packet"
        )


RULES: tuple[Rule, ...] = (
    mostly_latency,
    full_resource,
    one_bucket,
    idle_streams,
    limited_by_core,
    no_computing,
    not_steady,
    all_alike,
    few_iterations,
    timeouts,
    overflows,
)
"""All rules, in the order in which they are told."""
