"""What of a stretch of computing is which part of the model, and what of it somebody is slow for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simnet.experiment.explain.ideal import Piece
from simnet.experiment.explain.path import Stretch
from simnet.training.job import Job
from simnet.training.plan import Plan
from simnet.workload import RecordedTrace, Workload, parts_of

__all__ = ["STRAGGLERS", "Computing"]

STRAGGLERS = "stragglers"
IN_OVERLAP = "slowed down by communication"

_GROUPS = 4
"""The backward pass is shown in so many groups of layers, which take about as long as each other."""


@dataclass
class Computing:
    """Cuts stretches of computing of one job.

    Parameters
    ----------
    job : Job
    """

    job: Job

    def pieces(self, stretch: Stretch) -> list[Piece]:
        """Return the parts of a stretch, adding up to it."""
        span, compute = stretch.span, self.job.compute
        assert span is not None
        assert compute is not None
        plan = self._plan
        timeline = np.array(compute.timeline(span.iteration, span.rank))
        number = span.stretch
        lasted_s = span.end_s - span.start_s
        usual_s = float(np.diff(compute.usual(span.iteration, span.rank), prepend=0.0)[number])
        held_up = _share(lasted_s - usual_s, lasted_s)
        # What it takes longer than it would with nothing beside it, however slow the worker is.
        own_s = float(np.diff(timeline, prepend=0.0)[number])
        in_overlap = _share(lasted_s - own_s, lasted_s) if self.job.settings.training.overlap_slowdown else 0.0
        held_up = max(held_up - in_overlap, 0.0)
        model = np.diff(compute.of_model(span.iteration, span.rank), prepend=0.0)
        before_s, extra_s = float(model[:number].sum()), plan.stretches[number].extra_s
        layers = [
            (name, min(until, before_s + model[number]) - max(since, before_s))
            for name, since, until in self._layers(span.iteration, span.rank)
        ]
        found = [(name, seconds) for name, seconds in [*layers, ("compression", extra_s)] if seconds > 0.0]
        whole_s = sum(seconds for _, seconds in found)
        computing_s = stretch.duration_s * (1.0 - held_up - in_overlap)
        pieces = [Piece(name, computing_s * seconds / whole_s) for name, seconds in found]
        if not pieces:
            pieces = [Piece("computing", computing_s)]
        if in_overlap > 0.0:
            pieces.append(Piece(IN_OVERLAP, stretch.duration_s * in_overlap))
        if held_up > 0.0:
            pieces.append(Piece(STRAGGLERS, stretch.duration_s * held_up, f"worker {span.rank}"))
        return pieces

    @property
    def _plan(self) -> Plan:
        return self.job.groups[0].plan

    def _layers(self, iteration: int, rank: int) -> list[tuple[str, float, float]]:
        """Return groups of layers of a worker, each from when until when in the times of its workload [s]."""
        settings = self.job.settings
        workload = settings.workload
        if isinstance(workload, RecordedTrace):
            step = workload.forward_end_s[iteration % workload.iterations, rank % workload.ranks]
            forward_s, end_s = float(step.max(initial=0.0)), np.inf
            return [("forward", 0.0, forward_s), ("backward", forward_s, end_s)]
        part = parts_of(workload)[settings.part_of(rank)]
        assert isinstance(part, Workload)
        passes, pass_s = settings.training.accumulation, part.compute_time_s
        forward_s = float(part.forward_s.sum())
        found = []
        for number in range(passes):
            since = number * pass_s
            found.append(("forward", since, since + forward_s))
            found += _backward(part, since + forward_s)
        return found


def _share(seconds: float, whole_s: float) -> float:
    """Return a part as a share; a rounding of the clock is nobody's fault."""
    share = max(seconds, 0.0) / whole_s
    return share if share > _ROUNDING else 0.0


_ROUNDING = 1e-8


def _backward(part: Workload, since_s: float) -> list[tuple[str, float, float]]:
    """Cut the backward pass into groups of layers."""
    names = [layer.name for layer in part.model.layers][::-1]
    ends_s = np.cumsum(part.backward_s[::-1])
    total_s = float(ends_s[-1]) if len(ends_s) else 0.0
    if total_s <= 0.0:
        return []
    marks = [int(np.searchsorted(ends_s, total_s * number / _GROUPS)) for number in range(_GROUPS)]
    cuts = sorted({0, *(min(mark + (mark > 0), len(names)) for mark in marks), len(names)})
    found = []
    for first, end in pairwise(cuts):
        which = names[first] if end - first == 1 else f"{names[first]} to {names[end - 1]}"
        begin = float(ends_s[first - 1]) if first else 0.0
        until = float(ends_s[end - 1]) if end < len(names) else total_s
        found.append((f"backward: {which}", since_s + begin, since_s + until))
    return found
