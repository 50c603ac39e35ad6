"""Making a recorded trace of a PyTorch profile (Chrome trace JSON, as ``export_chrome_trace`` writes it).

Supported: ``torch.profiler.profile`` around a loop that calls ``profiler.step()``, so that there are ``ProfilerStep#n``
ranges; one rank a file; CPU and CUDA; eager mode, forward then backward once an iteration. Not supported: compiled or
captured graphs, gradient accumulation, pipelining.

*Layers* of the forward pass are, where there are any, calls of the innermost ``nn.Module`` (``with_stack=True``), else
the innermost own ``record_function`` ranges; differentiable operators outside of them are layers too. A layer that is
called again in an iteration is another layer, ``ReLU_0#2``.

*Backward*: the autograd engine marks each node by ``autograd::engine::evaluate_function: …`` with the sequence number
of the operator that made it, which tells the layer. Accumulating a gradient belongs to the node before it; with
``record_shapes=True`` it also tells the number of parameters. A layer's backward pass ends with its last node.

*Times* are those of the CPU ranges, or on a GPU those of the kernels that were launched inside of them; kernels of NCCL
are communication and left out. ``Optimizer.step`` is the optimizer's; the rest of an iteration is ``other``. On a GPU
an iteration lasts from its first kernel to the first of the next, or to its last one where communication was recorded,
for which the optimizer may have waited.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

from simnet.workload.csv_table import LARGEST_COUNT, shown
from simnet.workload.profile_file import (
    ACCUMULATE,
    SEQUENCE,
    Event,
    ProfileProblems,
    profiled_rank,
    read_events,
    read_profile,
    read_steps,
)
from simnet.workload.trace import TraceRow
from simnet.workload.trace_file import trace_problems

__all__ = ["from_profile"]

_MODULE = "nn.Module: "
_OPTIMIZER = "Optimizer.step"
_NODE = "autograd::engine::evaluate_function: "
_NOT_LAYERS = ("ProfilerStep#", "Optimizer.", "DistributedDataParallel.", "enumerate(DataLoader)", "## ")


@dataclass
class _Span:
    """From the first beginning to the last end of something."""

    start: float = math.inf
    end: float = -math.inf

    def add(self, event: Event) -> None:
        self.start, self.end = min(self.start, event.start), max(self.end, event.end)


@dataclass
class _Spans:
    """When layers computed in one step: in the forward and the backward pass, and what else there was."""

    forward: dict[str, _Span] = field(default_factory=dict)
    backward: dict[str, _Span] = field(default_factory=dict)
    optimizer: _Span = field(default_factory=_Span)
    whole: _Span = field(default_factory=_Span)


_Meaning = TypeVar("_Meaning")


class _Ranges(Generic[_Meaning]):
    """Ranges of one thread that do not overlap, with what they stand for."""

    def __init__(self, ranges: Iterable[tuple[Event, _Meaning]]) -> None:
        self._ranges = sorted(ranges, key=lambda pair: pair[0].start)
        self._starts = [event.start for event, _ in self._ranges]

    def __iter__(self) -> Iterator[tuple[Event, _Meaning]]:
        return iter(self._ranges)

    def at(self, time: float) -> _Meaning | None:
        """Return what the range around `time` stands for."""
        place = bisect_right(self._starts, time) - 1
        return self._ranges[place][1] if place >= 0 and time <= self._ranges[place][0].end else None


def from_profile(path: str | Path, *, rank: int | None = None) -> tuple[TraceRow, ...]:
    """Return the rows of a recorded trace, one iteration for each profiled step.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    rank : int, optional
        Which rank it is; what the profile says, or 0, when not given.

    Returns
    -------
    tuple of TraceRow
        Times are in seconds.

    Raises
    ------
    InputError
        If it is not such a profile, or holds no step with a forward and a backward pass.
    """
    text, document = read_profile(Path(path))
    said = ProfileProblems(str(path), text)
    events = read_events(document, said)
    if rank is None:
        rank = profiled_rank(document, said)
    steps = read_steps(events, said)
    said.raise_any()
    profile = _Profile(events, steps[0].thread)
    computed = [profile.step(step) for step in steps]
    rows: list[TraceRow] = []
    for iteration, (step, (spans, parameters)) in enumerate(zip(steps, computed, strict=True)):
        missing = [phase for phase, found in (("forward", spans.forward), ("backward", spans.backward)) if not found]
        if missing:
            hint = "profile forward and backward in the same step, with operators (ProfilerActivity.CPU)"
            said.add(step.index, f"no {' and no '.join(missing)} pass in {step.name}", hint)
        for layer, elements in parameters.items():
            if elements > LARGEST_COUNT:
                hint = f"at most {LARGEST_COUNT:g} are possible"
                said.add(step.index, f"{shown(layer)} has {elements:g} parameters in {step.name}", hint)
        if not missing:
            until = computed[iteration + 1][0].whole.start if iteration + 1 < len(steps) else -math.inf
            rows += _step_rows(iteration, rank, spans, profile.bounds(step, spans, until), parameters)
    said.raise_any()
    # Whatever else may be odd about a profile, no trace is written that is refused when it is read.
    # The traces of several ranks may be put together, so this one counts as all there is.
    for problem in trace_problems([replace(row, rank=0) for row in rows], said.source):
        said.add(None, f"the trace of this profile could not be replayed: {problem.message}", problem.hint)
    said.raise_any()
    return tuple(rows)


class _Profile:
    """The events of a profile, by what they are good for."""

    def __init__(self, events: Sequence[Event], thread: Any) -> None:
        self.operators = [event for event in events if event.category == "cpu_op" and event.thread == thread]
        self.nodes = [event for event in events if event.category == "cpu_op" and event.name.startswith(_NODE)]
        self.accumulations = [event for event in events if event.category == "cpu_op" and event.name == ACCUMULATE]
        annotations = [event for event in events if event.category == "user_annotation" and event.thread == thread]
        self.optimizers = [event for event in annotations if event.name.startswith(_OPTIMIZER)]
        modules = [
            event
            for event in events
            if event.category == "python_function" and event.thread == thread and event.name.startswith(_MODULE)
        ]
        own = [event for event in annotations if not event.name.startswith(_NOT_LAYERS)]
        self.layers = _innermost(modules or own)
        launches = {
            event.args["correlation"]: event
            for event in events
            if event.category in ("cuda_runtime", "cuda_driver") and "correlation" in event.args
        }
        kernels = [event for event in events if event.category in ("kernel", "gpu_memcpy", "gpu_memset")]
        self.communicates = any(event.name.startswith("nccl") for event in kernels)
        self.kernels = [
            (event, launches[event.args["correlation"]])
            for event in kernels
            if not event.name.startswith("nccl") and event.args.get("correlation") in launches
        ]

    def step(self, step: Event) -> tuple[_Spans, dict[str, int]]:
        """Return when layers computed in a step, and their parameters."""
        nodes = sorted((event for event in self.nodes if _inside(event, step)), key=lambda event: event.start)
        layers, node_layers = self._layers(step, nodes)
        by_thread = {
            thread: _Ranges((node, layer) for node, layer in node_layers if node.thread == thread)
            for thread in {node.thread for node in nodes}
        }
        optimizers = [event for event in self.optimizers if _inside(event, step)]
        spans = _Spans()
        if self.kernels:
            for kernel, launch in self.kernels:
                if not _inside(launch, step):
                    continue
                spans.whole.add(kernel)
                backward = by_thread[launch.thread].at(launch.start) if launch.thread in by_thread else None
                forward = layers.at(launch.start) if launch.thread == step.thread else None
                if backward is not None:
                    spans.backward.setdefault(backward, _Span()).add(kernel)
                elif forward is not None:
                    spans.forward.setdefault(forward, _Span()).add(kernel)
                elif any(_inside(launch, optimizer) for optimizer in optimizers):
                    spans.optimizer.add(kernel)
        else:
            spans.whole.add(step)
            for event, layer in layers:
                spans.forward.setdefault(layer, _Span()).add(event)
            for node, layer in node_layers:
                spans.backward.setdefault(layer, _Span()).add(node)
            for optimizer in optimizers:
                spans.optimizer.add(optimizer)
        return spans, self._parameters(step, by_thread)

    def bounds(self, step: Event, spans: _Spans, next_start: float) -> tuple[float, float]:
        """Return when an iteration begins and ends."""
        if not self.kernels:
            return step.start, step.end
        return spans.whole.start, spans.whole.end if self.communicates else max(spans.whole.end, next_start)

    def _layers(self, step: Event, nodes: Sequence[Event]) -> tuple[_Ranges[str], list[tuple[Event, str]]]:
        """Return the layers of the forward pass of a step, and the layer of each node of its backward pass."""
        makers: dict[int, Event] = {}
        wanted = {node.args[SEQUENCE] for node in nodes if SEQUENCE in node.args}
        before = min((node.start for node in nodes), default=step.end)
        operators = [event for event in self.operators if _inside(event, step) and event.start < before]
        for event in operators:
            number = event.args.get(SEQUENCE, -1)
            if number not in wanted:
                continue
            # Operators without gradient carry the number of the next one that has; the last to start made the node.
            if number not in makers or makers[number].start <= event.start:
                makers[number] = event
        chosen = [event for event in self.layers if _inside(event, step)]
        named = _Ranges((event, event.name) for event in chosen)
        outermost = _Ranges((event, event) for event in _outermost(operators))
        for operator in makers.values():
            around = outermost.at(operator.start) or operator
            if named.at(operator.start) is None and around not in chosen:
                chosen.append(around)
        calls: Counter[str] = Counter()
        taken: set[str] = set()
        layers = []
        for event in sorted(chosen, key=lambda event: event.start):
            name = _layer_name(event)
            calls[name] += 1
            numbers = itertools.count(calls[name])
            numbered = (name if number == 1 else f"{name}#{number}" for number in numbers)
            layers.append((event, next(candidate for candidate in numbered if candidate not in taken)))
            taken.add(layers[-1][1])
        ranges = _Ranges(layers)
        found: list[tuple[Event, str]] = []
        for node in nodes:
            maker = makers.get(node.args.get(SEQUENCE, -1))
            layer = ranges.at(maker.start) if maker is not None else None
            if layer is None and maker is None and found:
                layer = found[-1][1]
            if layer is not None:
                found.append((node, layer))
        return ranges, found

    def _parameters(self, step: Event, by_thread: dict[Any, _Ranges[str]]) -> dict[str, int]:
        """Return the elements of the gradients that were accumulated for each layer, as far as shapes were recorded."""
        parameters: Counter[str] = Counter()
        for event in self.accumulations:
            if event.elements is None or event.thread not in by_thread or not _inside(event, step):
                continue
            layer = by_thread[event.thread].at(event.start)
            if layer is not None:
                parameters[layer] += event.elements
        return dict(parameters)


def _step_rows(
    iteration: int, rank: int, spans: _Spans, bounds: tuple[float, float], parameters: dict[str, int]
) -> list[TraceRow]:
    """Return the rows of one iteration; each begins at its own start, but not before the end of the one before."""
    begin, end = bounds
    passes = [
        (phase, layer, span)
        for phase, found in (("forward", spans.forward), ("backward", spans.backward))
        for layer, span in sorted(found.items(), key=lambda pair: pair[1].end)
    ]
    if spans.optimizer.end > spans.optimizer.start:
        passes.append(("optimizer", "", spans.optimizer))
    rows = []
    clock = begin
    first = min(max(passes[0][2].start, begin), passes[0][2].end)
    if first > begin:
        rows.append(TraceRow(iteration, rank, "", "other", begin, first - begin))
        clock = first
    for phase, layer, span in passes:
        start = max(span.start, clock)
        clock = max(span.end, start)
        count = parameters.get(layer, 0) if parameters and layer else None
        rows.append(TraceRow(iteration, rank, layer, phase, start, clock - start, count))
    if end > clock:
        rows.append(TraceRow(iteration, rank, "", "other", clock, end - clock))
    return rows


def _layer_name(event: Event) -> str:
    """Return what a layer is called: one line of printable text."""
    name = " ".join(event.name.removeprefix(_MODULE).removeprefix("aten::").split())
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name) or "unnamed"


def _inside(event: Event, around: Event) -> bool:
    return around.start <= event.start <= around.end


def _innermost(events: Iterable[Event]) -> list[Event]:
    """Return the ranges that hold no other."""
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    followed = [event for event, after in pairwise(ordered) if after.start >= event.end]
    return followed + ordered[-1:]


def _outermost(events: Iterable[Event]) -> list[Event]:
    """Return the ranges that no other holds, in order."""
    found: list[Event] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        if not found or event.start >= found[-1].end:
            found.append(event)
    return found
