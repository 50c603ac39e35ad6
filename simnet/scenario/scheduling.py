"""The section ``scheduling`` of a job: what travels together and what goes first; its models, checks and settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from simnet.errors import Problem
from simnet.scenario.fields import Quantity, Whole, Word
from simnet.scenario.sections import Choice, Section
from simnet.training.communication.architectures import EACH_BY_ITSELF
from simnet.training.communication.settings import Scheduling, Sync
from simnet.units import MEBIBYTE, MILLISECOND

__all__ = ["ORDERS", "FusionSpec", "SchedulingSpec", "build_scheduling", "idle_scheduling", "scheduling_problems"]

ORDERS = ("first_ready", "priority")


class _SizeSpec(Section):
    """Tensors are put into a bucket until it holds bucket_size."""


class _MergedSpec(Section):
    """Tensors are put into the buckets whose exchange is over first (MG-WFBP)."""


class _CycleSpec(Section):
    """What is ready when a cycle ends travels together (Horovod)."""

    time: Annotated[float, Quantity("duration", positive=True)] = Field(
        MILLISECOND, description="From the end of one cycle to that of the next, counted from the start of the run."
    )
    buffer: Annotated[float, Quantity("size", positive=True)] = Field(
        128.0 * MEBIBYTE, description="What travels together is at most so much; larger tensors travel alone."
    )


class FusionSpec(Choice):
    """What travels together."""

    size: _SizeSpec | None = Field(None, description="Tensors until a bucket holds bucket_size.")
    merged: _MergedSpec | None = Field(
        None, description="Tensors so that all is exchanged soonest, by what exchanges take alone (MG-WFBP)."
    )
    cycle: _CycleSpec | None = Field(
        None, description="Tensors that are ready when a cycle ends; else each would travel alone (Horovod)."
    )


class SchedulingSpec(Section):
    """What travels together, and what goes first."""

    order: Annotated[Literal["first_ready", "priority"], Word(ORDERS)] = Field(
        "first_ready",
        description="first_ready: in the order in which all have announced it; priority: what the forward pass needs "
        "first. What is under way is not interrupted, so that partition says how soon it can be passed.",
    )
    partition: Annotated[float, Quantity("size", positive=True)] | None = Field(
        None, description="Buckets are cut into pieces of at most so much; they stay whole where not given."
    )
    fusion: FusionSpec = Field(
        default_factory=lambda: FusionSpec(size=_SizeSpec()), description="What travels together: size, merged, cycle."
    )
    negotiation: Annotated[float, Quantity("duration")] = Field(
        0.0,
        description="From the announcement of the last worker until all know of it, for each exchange; with a cycle, "
        "from its end.",
    )
    credit: Annotated[float, Quantity("size", positive=True)] | None = Field(
        None,
        description="As long as less has set out and is not over, the next that all have announced is negotiated, or "
        "waits for the end of a cycle (ByteScheduler); no limit where not given.",
    )
    streams: Annotated[int, Whole(1, 1_000_000)] | None = Field(
        None,
        description="Exchanges that may be under way at once; with parameter_server and gossip, those that a worker "
        "may be pushing. Where not given: 1, or no limit there; with priority 1 there too.",
    )


def build_scheduling(spec: SchedulingSpec) -> Scheduling:
    """Return the settings in SI units."""
    cycle = spec.fusion.cycle
    return Scheduling(
        order=spec.order,
        fusion=spec.fusion.name,  # type: ignore[arg-type]  # the fields of FusionSpec are its names
        cycle_s=cycle.time if cycle is not None else math.inf,
        buffer_bytes=cycle.buffer if cycle is not None else math.inf,
        piece_bytes=math.inf if spec.partition is None else spec.partition,
        negotiation_s=spec.negotiation,
        credit_bytes=math.inf if spec.credit is None else spec.credit,
        streams=spec.streams,
    )


def scheduling_problems(
    scheduling: SchedulingSpec, *, sync: str, architecture: str, compression: str, zero_stage: int, is_split: bool
) -> Iterator[Problem]:
    """Yield what stands beside something else that leaves it no meaning; paths are below the section ``training``.

    Parameters
    ----------
    scheduling : SchedulingSpec
    sync, architecture, compression : str
        Their names.
    zero_stage : int
    is_split : bool
        A model is split over workers.
    """
    place = ("scheduling",)
    fusion = scheduling.fusion.name
    if Sync(sync).waits_alone:
        given = {
            "order": scheduling.order != "first_ready",
            "fusion": fusion != "size",
            "negotiation": scheduling.negotiation > 0.0,
            "credit": scheduling.credit is not None,
            "streams": scheduling.streams is not None,
        }
        for key in (key for key, is_given in given.items() if is_given):
            hint = "it goes with bsp and local_sgd: here each worker pushes what it has at once"
            yield Problem(f"{key} stands beside sync {sync}", hint, (*place, key))
        return
    if architecture in EACH_BY_ITSELF:
        hint = "it is for an all-reduce: here each worker pushes what it has by itself"
        if fusion != "size":
            yield Problem(f"fusion {fusion} stands beside architecture {architecture}", hint, (*place, "fusion"))
        for key in ("negotiation", "credit"):
            if getattr(scheduling, key):
                yield Problem(f"{key} stands beside architecture {architecture}", hint, (*place, key))
    if fusion == "merged" and (is_split or zero_stage):
        beside = f"zero_stage {zero_stage}" if zero_stage else "a model that is split"
        hint = "size is possible: it is for gradients that are all-reduced as one backward pass makes them"
        yield Problem(f"fusion merged stands beside {beside}", hint, (*place, "fusion"))
    if compression == "none":
        return
    beside = f"stands beside compression {compression}"
    if scheduling.partition is not None:
        hint = "leave one of them out: what is compressed are whole tensors; bucket_size says how many"
        yield Problem(f"partition {beside}", hint, (*place, "partition"))
    if fusion == "merged":
        yield Problem(f"fusion merged {beside}", "size is possible, or cycle", (*place, "fusion"))
    if compression == "low_rank" and fusion == "cycle":
        hint = "size is possible: the second factor is made of the sum of the first"
        yield Problem(f"fusion cycle {beside}", hint, (*place, "fusion"))
    if compression == "low_rank" and scheduling.streams not in (None, 1):
        hint = "1 is possible: the second factor is made of the sum of the first"
        yield Problem(f"streams {scheduling.streams} {beside}", hint, (*place, "streams"))


def idle_scheduling(scheduling: SchedulingSpec, *, architecture: str, forward_overlap: bool) -> Iterator[str]:
    """Yield what is given and has no effect, or another than one may think, in words."""
    agrees = scheduling.fusion.cycle is not None or scheduling.negotiation > 0.0
    one_by_one = scheduling.order == "first_ready" and scheduling.streams in (None, 1)
    if scheduling.credit is not None and one_by_one and not agrees:
        yield (
            "scheduling: credit has no effect without a cycle, negotiation, priority or more streams: "
            "one exchange is under way, that which was ready first"
        )
    if scheduling.order != "priority" or forward_overlap:
        return
    if architecture in EACH_BY_ITSELF and scheduling.streams is None:
        yield "scheduling: order priority without forward_overlap only has pushes go one by one (streams: 1)"
    else:
        yield "scheduling: order priority has no effect to speak of without forward_overlap: workers wait for all"
