"""Model parallelism: a step of a model that is split by layer into the stages of a pipeline, and within its layers.

A step takes m micro-batches through p stages, forward and backward. On stage s, with s counted from 0:

``gpipe``: all m forward passes, then all m backward passes [1]_. A stage holds the activations of up to m of them.

``1f1b``: w - 1 forward passes to warm up, where w = min(p - s, m); then forward and backward by turns, until m are
through; then the backward passes that are left [2]_, [3]_. A stage holds the activations of up to w micro-batches.

As marked graphs, with F_k and B_k the passes of micro-batch k through one stage, in both orders F_k waits for F_(k-1)
and B_k for B_(k-1). In ``gpipe`` B_k waits for all F (offset 1 - m). In ``1f1b`` F_k waits for B_(k-w) (offset w), and
B_k for F_(k+w-1), or for the last F (offset 1 - w). No circle: if F_k on stage s is given the number 2k + s and B_k the
number 2k + 2p - 1 - s, everything waits for smaller numbers only. Where f = b these are the times at which they begin.

The letters: f and b the seconds that a stage takes for one micro-batch, forward and backward.

*Bubble*: with equal stages and messages that take no time both orders take (m + p - 1)(f + b): m(f + b) for the work of
a stage, and the rest idle, a fraction of (p - 1)/(m + p - 1) [1]_, [3]_. With messages of x_f and x_b seconds, no
longer than f and b, and a latency of l, ``gpipe`` takes (m + p - 1)(f + b) + (p - 1)(x_f + x_b + 2l).

*Within layers* [4]_: the t ranks of a stage compute the same segments, each its part, and all-reduce the activations,
or their gradients, after each: a ring sends 2(t - 1)/t of these bytes from each rank.

References
----------
.. [1] Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019.
.. [2] D. Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML 2021 (PipeDream-flush).
.. [3] D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
   section 2.2.
.. [4] M. Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model parallelism",
   arXiv:1909.08053, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Literal

import numpy as np

from simnet.traffic.all_reduce import AllReduce
from simnet.traffic.composing import Phase, follow_ranks, join_ranks, place_part, repeated
from simnet.traffic.flat_all_reduce import ring_all_reduce
from simnet.traffic.patterns import require_positive
from simnet.traffic.schedule import Integers, Partition, Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder
from simnet.traffic.step import Step

__all__ = ["Segment", "Stage", "pipeline_step"]


@dataclass(frozen=True)
class Segment:
    """A part of the forward or the backward pass of one micro-batch through a stage.

    Parameters
    ----------
    seconds : float
        How long each rank of the stage computes [s].
    all_reduce_bytes : float
        What the ranks of the stage all-reduce after it, before the next segment may begin [bytes].
    memory_bytes : float
        What each rank reads and writes meanwhile in the memory of its host; the segment takes at least as long [bytes].
    """

    seconds: float
    all_reduce_bytes: float = 0.0
    memory_bytes: float = 0.0


@dataclass(frozen=True)
class Stage:
    """What one stage of a pipeline does with one micro-batch.

    Parameters
    ----------
    forward, backward : tuple of Segment
        In the order in which they are computed; at least one each.
    forward_bytes : float
        Activations that each rank sends to the next stage; of no effect in the last [bytes].
    backward_bytes : float
        Gradients of activations that each rank sends to the stage before; of no effect in the first [bytes].
    """

    forward: tuple[Segment, ...]
    backward: tuple[Segment, ...]
    forward_bytes: float = 0.0
    backward_bytes: float = 0.0


def pipeline_step(
    stages: Sequence[Stage],
    micro_batches: int,
    *,
    order: Literal["gpipe", "1f1b"] = "gpipe",
    tensor: int = 1,
    all_reduce: AllReduce = ring_all_reduce,
    element_bytes: float = 4.0,
    divisible: bool = False,
) -> Step:
    """Return one step of a pipeline: every micro-batch forward and backward through all stages.

    One stage and one micro-batch is a step of a model that is split within its layers only, or not at all.

    A stage does one pass at a time: in ``gpipe`` [1]_ all forward, then all backward, in ``1f1b`` [2]_, [3]_ by turns
    after a warm-up. Its ranks all-reduce after each segment [4]_. `simnet.traffic.pipeline` says how long that takes.

    Parameters
    ----------
    stages : sequence of Stage
        p of them. Rank t of stage s is worker ``s tensor + t``; it sends to rank t of the stages beside.
    micro_batches : int
        m. Operations fire so many times, once for each; so their number does not grow with m.
    order : {"gpipe", "1f1b"}
    tensor : int
        t, the ranks of each stage.
    all_reduce : callable
        One out of `simnet.traffic.ALL_REDUCE`.
    element_bytes : float
        Of what is all-reduced [bytes]: a buffer has as few elements of equal size as there can be that are not larger.
    divisible : bool
        Cut elements too, so that chunks of these buffers are exactly equal.

    Returns
    -------
    Step
        With a milestone for each backward segment of each worker: when that of the last micro-batch has been computed;
        its gradients need not wait for the all-reduce after it.

    Raises
    ------
    ValueError
        No stage, a stage without segments, an unknown order, or numbers below 1.

    References
    ----------
    .. [1] Y. Huang et al. (GPipe), NeurIPS 2019.
    .. [2] D. Narayanan et al. (PipeDream-flush), ICML 2021.
    .. [3] D. Narayanan et al., SC 2021, section 2.2.
    .. [4] M. Shoeybi et al. (Megatron-LM), arXiv:1909.08053, 2019.
    """
    name = "pipeline step"
    for what, value in (("stages", len(stages)), ("micro-batches", micro_batches), ("ranks of a stage", tensor)):
        require_positive(name, what, value)
    if order not in ("gpipe", "1f1b"):
        raise ValueError(f"the order of a {name} is 'gpipe' or '1f1b': {order!r}")
    if not all(stage.forward and stage.backward for stage in stages):
        raise ValueError(f"each stage of a {name} has at least one segment forward and one backward")
    workers = len(stages) * tensor
    parts = np.array([len(stage.backward) for stage in stages]).repeat(tensor)
    ready = np.full((workers, int(parts.max())), -1)
    has = np.arange(ready.shape[1]) < parts[:, np.newaxis]
    ready[has] = workers + np.arange(int(parts.sum()))
    build = ScheduleBuilder(name, workers + int(parts.sum()), Partition(0, element_bytes))

    @cache
    def exchange(size_bytes: float) -> Schedule:
        elements = ceil(size_bytes / element_bytes)
        return repeated(all_reduce(tensor, elements, size_bytes / elements, divisible=divisible), micro_batches)

    member = np.arange(workers).reshape(-1, tensor)
    forward, backward = (
        [_pass(build, rank, parts, micro_batches, exchange) for rank, parts in zip(member, way, strict=True)]
        for way in ([stage.forward for stage in stages], [stage.backward for stage in stages])
    )
    last = len(stages) - 1
    for place, (there, back) in enumerate(zip(forward, backward, strict=True)):
        in_flight = min(last + 1 - place, micro_batches) if order == "1f1b" else micro_batches
        _wait(build, there.over, there.begun, offset=1)
        _wait(build, back.over, back.begun, offset=1)
        _wait(build, there.over, back.begun, offset=1 - in_flight)
        if in_flight < micro_batches:
            _wait(build, back.over, there.begun, offset=in_flight)
        if place < last:
            _send(build, member[place : place + 2], there, forward[place + 1], stages[place].forward_bytes)
        if place > 0:
            _send(build, member[[place, place - 1]], back, backward[place - 1], stages[place].backward_bytes)
        _add_milestones(build, ready[member[place]], back)
    return Step(build.schedule(), workers, ready, np.repeat(np.arange(workers), parts))


@dataclass(frozen=True, eq=False)
class _Pass:
    """One way through a stage, of all micro-batches.

    Parameters
    ----------
    repeat : int
        How many these are.
    begun, over : list of array of int, shape (tensor,)
        The operations of each rank that begin it, and those at whose end it is over.
    computed : list of list of array of int, shape (tensor,)
        For each segment the operations at whose end it has been computed.
    """

    repeat: int
    begun: list[Integers]
    over: list[Integers]
    computed: list[list[Integers]]


def _pass(
    build: ScheduleBuilder,
    rank: Integers,
    segments: Sequence[Segment],
    repeat: int,
    exchange: Callable[[float], Schedule],
) -> _Pass:
    """Add the segments of one way through a stage, one after the other."""
    begun: list[Integers] = []
    over: list[Integers] = []
    computed: list[list[Integers]] = []
    for segment in segments:
        doing = [build.calc(rank, segment.seconds, stream=0, repeat=repeat)]
        if segment.memory_bytes > 0:
            doing.append(build.memory(rank, segment.memory_bytes, repeat=repeat))
        _wait(build, over, doing)
        begun = begun or doing
        computed.append(doing)
        over = doing
        if segment.all_reduce_bytes > 0 and len(rank) > 1:
            over = [_all_reduce(build, rank, doing, exchange(segment.all_reduce_bytes), repeat)]
    return _Pass(repeat, begun, over, computed)


def _all_reduce(
    build: ScheduleBuilder, rank: Integers, after: list[Integers], exchange: Schedule, repeat: int
) -> Integers:
    """Add an all-reduce of one stage after each micro-batch; return what ends it on each rank."""
    placed = place_part(build, Phase(exchange, rank))
    ended = np.full(build.ranks, -1)
    for operation in after:
        ended[rank] = operation
        follow_ranks(build, placed, ended)
    joined: Integers = join_ranks(build, placed, ended, times=repeat)[rank]
    return joined


def _wait(build: ScheduleBuilder, before: list[Integers], after: list[Integers], *, offset: int = 0) -> None:
    """Let each rank's operations wait for all of those before."""
    for one in before:
        for other in after:
            build.depend(one, other, offset=offset)


def _send(build: ScheduleBuilder, ends: Integers, before: _Pass, after: _Pass, size_bytes: float) -> None:
    """Add the messages from one stage to one beside it, after each micro-batch."""
    source, target = ends
    send = build.send(source, target, repeat=before.repeat, width=0, fixed_bytes=size_bytes)
    _wait(build, before.over, [send])
    _wait(build, [send], after.begun)


def _add_milestones(build: ScheduleBuilder, ready: Integers, back: _Pass) -> None:
    """Add what waits for the last micro-batch of each segment; `ready` as of `Step`, for the ranks of one stage."""
    for segment, doing in enumerate(back.computed):
        milestone = build.calc(ready[:, segment])
        for operation in doing:
            build.depend(operation, milestone, offset=1 - back.repeat)
