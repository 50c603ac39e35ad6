"""What a worker does in an iteration: how far it computes, what it then has ready, and what it waits for before.

A plan says it in moments of the model, such as "when gradient 7 is ready"; `simnet.training.computing.compute` says
when that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple

from simnet.training.communication.buckets import Bucket
from simnet.training.settings import TrainingSettings
from simnet.workload import Model

__all__ = ["Moment", "Part", "Plan", "Stretch", "plan_iteration"]


class Moment(NamedTuple):
    """How far an iteration has come.

    Attributes
    ----------
    kind : ``forward``: layers below `place` have been through the forward pass; ``ready``: gradient `place` is there;
        ``gradients``: all are; ``end``: the optimizer is through too
    place : layer or gradient
    """

    kind: str
    place: int = 0


class Part(NamedTuple):
    """Something that workers exchange in each iteration.

    Attributes
    ----------
    bucket : Bucket
    collective : ``all_reduce`` of its gradients, ``reduce_scatter`` of them, or ``all_gather`` of its parameters
    size_bytes : of what is exchanged, where it is compressed [bytes]
    pulled_bytes : what is pulled of parameter servers, where that is not what is pushed [bytes]
    """

    bucket: Bucket
    collective: str
    size_bytes: int | None = None
    pulled_bytes: int | None = None

    def buffer(self, element_bytes: float) -> tuple[int, float]:
        """Return what is exchanged as a number of elements and the size of each, given that of a gradient [bytes]."""
        return (self.bucket.elements, element_bytes) if self.size_bytes is None else (self.size_bytes, 1.0)


@dataclass(frozen=True)
class Stretch:
    """What a worker computes without stopping.

    Parameters
    ----------
    until : Moment
    after : tuple of int
        Parts whose exchange must be over before it begins.
    after_previous : tuple of int
        Parts of the previous iteration, likewise.
    announces : tuple of int
        Parts that it has ready at its end.
    extra_s : float
        What it computes besides the model: compressing what it announces, decompressing what it has waited for [s].
    """

    until: Moment
    after: tuple[int, ...] = ()
    after_previous: tuple[int, ...] = ()
    announces: tuple[int, ...] = ()
    extra_s: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What a worker does in each iteration.

    Parameters
    ----------
    parts : tuple of Part
    stretches : tuple of Stretch
        The last is until the end.
    """

    parts: tuple[Part, ...]
    stretches: tuple[Stretch, ...]

    @property
    def left_open(self) -> tuple[int, ...]:
        """Parts that an iteration leaves to the next one to wait for."""
        return tuple(part for stretch in self.stretches for part in stretch.after_previous)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The end of each stretch."""
        return tuple(stretch.until for stretch in self.stretches)

    @property
    def extra_s(self) -> tuple[float, ...]:
        """What has been computed besides the model at the end of each stretch [s]."""
        return tuple(accumulate(stretch.extra_s for stretch in self.stretches))


_GRADIENTS, _END = Moment("gradients"), Moment("end")


def plan_iteration(model: Model, buckets: Sequence[Bucket], training: TrainingSettings) -> Plan:
    """Return what workers in step do.

    Without more, each announces its buckets on the way, waits for all of them behind the backward pass, and lets the
    optimizer run. With `forward_overlap` it waits for a bucket just before the first layer that needs it.

    Sharded training (S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
    SC 2020): from stage 1 on each worker updates its share of the parameters, so that gradients are reduce-scattered,
    and parameters gathered behind the optimizer: together the bytes of an all-reduce. In stage 3 no worker keeps the
    parameters: they are gathered for the forward pass and again for the backward pass, half as much again.
    """
    if not buckets:
        return Plan((), (Stretch(_END),))
    if training.zero_stage == 3:
        return _gather_on_the_way(model, buckets, training.overlap)
    everything = tuple(range(len(buckets)))
    backward = _backward(buckets, everything, overlap=training.overlap)
    if training.zero_stage == 0:
        parts = tuple(Part(bucket, "all_reduce") for bucket in buckets)
        if not training.forward_overlap:
            return Plan(parts, (*backward, Stretch(_END, after=everything)))
        return Plan(parts, (*_forward(model, buckets, everything), *backward, Stretch(_END)))
    parts = tuple(Part(bucket, collective) for collective in ("reduce_scatter", "all_gather") for bucket in buckets)
    gathers = tuple(len(buckets) + index for index in everything)
    # What the next forward pass needs first is gathered first.
    ordered = tuple(gathers[index] for index in _by_first_layer(buckets))
    update = Stretch(_END, after=everything, announces=ordered)
    if training.forward_overlap:
        return Plan(parts, (*_forward(model, buckets, gathers), *backward, update))
    return Plan(parts, (*backward, update, Stretch(_END, after=gathers)))


def _gather_on_the_way(model: Model, buckets: Sequence[Bucket], overlap: bool) -> Plan:
    """Gather parameters before the layers that need them, in both passes."""
    count = len(buckets)
    parts = tuple(
        Part(bucket, collective) for collective in ("all_gather", "all_gather", "reduce_scatter") for bucket in buckets
    )
    order = _by_first_layer(buckets)
    stretches = [Stretch(Moment("forward", 0), announces=tuple(order))]
    needed = [(buckets[index].first_layer, index) for index in order]
    for (_, index), (following, _) in zip(needed, [*needed[1:], (len(model.layers), -1)], strict=True):
        stretches.append(Stretch(Moment("forward", following), after=(index,)))
    stretches[-1] = Stretch(stretches[-1].until, stretches[-1].after, announces=tuple(range(count, 2 * count)))
    for last, indices in groupby(range(count), lambda index: buckets[index].last_tensor):
        own = tuple(indices)
        scatter = tuple(2 * count + index for index in own) if overlap else ()
        stretches.append(Stretch(Moment("ready", last), tuple(count + index for index in own), announces=scatter))
    scatters = tuple(range(2 * count, 3 * count))
    stretches.append(Stretch(_GRADIENTS, announces=() if overlap else scatters))
    return Plan(parts, (*stretches, Stretch(_END, after=scatters)))


def _backward(buckets: Sequence[Bucket], parts: Sequence[int], *, overlap: bool) -> list[Stretch]:
    """Go through the backward pass and announce buckets when they are ready, or all at its end."""
    if not overlap:
        return [Stretch(_GRADIENTS, announces=tuple(parts))]
    ready = [
        Stretch(Moment("ready", last), announces=tuple(parts[index] for index in indices))
        for last, indices in groupby(range(len(buckets)), lambda index: buckets[index].last_tensor)
    ]
    return [*ready, Stretch(_GRADIENTS)]


def _forward(model: Model, buckets: Sequence[Bucket], parts: Sequence[int]) -> list[Stretch]:
    """Go through the forward pass and wait before a layer until its parameters are there."""
    needed = [
        (layer, tuple(parts[index] for index in indices))
        for layer, indices in groupby(_by_first_layer(buckets), lambda index: buckets[index].first_layer)
    ]
    stretches = [Stretch(Moment("forward", needed[0][0]))]
    for (_, awaited), (following, _) in zip(needed, [*needed[1:], (len(model.layers), ())], strict=True):
        stretches.append(Stretch(Moment("forward", following), after_previous=awaited))
    return stretches


def _by_first_layer(buckets: Sequence[Bucket]) -> list[int]:
    """Return the buckets in the order in which the forward pass needs them."""
    return sorted(range(len(buckets)), key=lambda index: (buckets[index].first_layer, index))
