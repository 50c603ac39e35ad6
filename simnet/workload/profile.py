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

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

from simnet.errors import InputError, Problem
from simnet.units import MICROSECOND
from simnet.workload.trace import TraceRow

__all__ = ["from_profile"]

_STEP = "ProfilerStep#"
_MODULE = "nn.Module: "
_OPTIMIZER = "Optimizer.step"
_NODE = "autograd::engine::evaluate_function: "
_ACCUMULATE = "torch::autograd::AccumulateGrad"
_NOT_LAYERS = ("ProfilerStep#", "Optimizer.", "DistributedDataParallel.", "enumerate(DataLoader)", "## ")


@dataclass(frozen=True)
class _Event:
    """A complete event of the profile; times in seconds after the first step."""

    name: str
    category: str
    thread: Any
    start: float
    end: float
    args: dict[str, Any]


@dataclass
class _Span:
    """From the first beginning to the last end of something."""

    start: float = math.inf
    end: float = -math.inf

    def add(self, event: _Event) -> None:
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

    def __init__(self, ranges: Iterable[tuple[_Event, _Meaning]]) -> None:
        self._ranges = sorted(ranges, key=lambda pair: pair[0].start)
        self._starts = [event.start for event, _ in self._ranges]

    def __iter__(self) -> Iterator[tuple[_Event, _Meaning]]:
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

    Raises
    ------
    InputError
        If it is not such a profile, or holds no step with a forward and a backward pass.
    """
    source = str(path)
    document = _read(Path(path))
    events = _events(document, source)
    if rank is None:
        told = document.get("distributedInfo")
        rank = told.get("rank") if isinstance(told, dict) else None
    rank = rank if isinstance(rank, int) else 0
    steps = sorted(
        (event for event in events if event.category == "user_annotation" and event.name.startswith(_STEP)),
        key=lambda event: event.start,
    )
    if not steps:
        hint = "call profiler.step() at the end of each iteration"
        raise InputError(Problem(f"the profile has no {_STEP}n ranges", hint, source=source))
    profile = _Profile(events, steps[0].thread)
    computed = [profile.step(step) for step in steps]
    rows: list[TraceRow] = []
    for iteration, (step, (spans, parameters)) in enumerate(zip(steps, computed, strict=True)):
        for phase, found in (("forward", spans.forward), ("backward", spans.backward)):
            if not found:
                hint = "profile forward and backward in the same step, with operators (ProfilerActivity.CPU)"
                raise InputError(Problem(f"no {phase} pass in {step.name}", hint, source=source))
        until = computed[iteration + 1][0].whole.start if iteration + 1 < len(steps) else -math.inf
        bounds = profile.bounds(step, spans, until)
        rows += _step_rows(iteration, rank, spans, bounds, parameters)
    return tuple(rows)


def _read(path: Path) -> dict[str, Any]:
    # Only here, because every run imports this module and hardly one reads a profile.
    import gzip
    import json
    import zlib

    source = str(path)
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        document = json.loads(raw)
    except FileNotFoundError:
        raise InputError(Problem(f"no such file: {source}", source=source)) from None
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror or error}", source=source)) from None
    except (EOFError, zlib.error) as error:
        raise InputError(Problem(f"the compressed file is damaged: {error}", source=source)) from None
    except UnicodeDecodeError:
        raise InputError(Problem("not a text file", "a Chrome trace (JSON) is wanted", source=source)) from None
    except json.JSONDecodeError as error:
        lines = error.doc.splitlines()
        text = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        raise InputError(
            Problem(
                f"not JSON: {error.msg}", "a whole Chrome trace is wanted", (), source, error.lineno, error.colno, text
            )
        ) from None
    if isinstance(document, list):
        document = {"traceEvents": document}
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        hint = "the file that torch.profiler's export_chrome_trace writes is wanted"
        raise InputError(Problem("the file has no list 'traceEvents'", hint, source=source))
    return document


def _events(document: dict[str, Any], source: str) -> list[_Event]:
    """Return the complete events, in seconds after the first of them."""
    chosen = []
    for event in document["traceEvents"]:
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        try:
            start, duration = float(event["ts"]), float(event.get("dur", 0.0))
        except (KeyError, TypeError, ValueError):
            message = f"an event has no times: {str(event)[:80]}"
            raise InputError(Problem(message, "is this a Chrome trace?", source=source)) from None
        chosen.append((event, start, duration))
    # Counted from the first one, because microseconds since the epoch do not leave room for nanoseconds.
    origin = min((start for _, start, _ in chosen), default=0.0)
    return [
        _Event(
            str(event.get("name", "")),
            str(event.get("cat", "")),
            event.get("tid"),
            (start - origin) * MICROSECOND,
            (start - origin + duration) * MICROSECOND,
            event["args"] if isinstance(event.get("args"), dict) else {},
        )
        for event, start, duration in chosen
    ]


class _Profile:
    """The events of a profile, by what they are good for."""

    def __init__(self, events: Sequence[_Event], thread: Any) -> None:
        self.operators = [event for event in events if event.category == "cpu_op" and event.thread == thread]
        self.nodes = [event for event in events if event.category == "cpu_op" and event.name.startswith(_NODE)]
        self.accumulations = [event for event in events if event.category == "cpu_op" and event.name == _ACCUMULATE]
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

    def step(self, step: _Event) -> tuple[_Spans, dict[str, int]]:
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

    def bounds(self, step: _Event, spans: _Spans, next_start: float) -> tuple[float, float]:
        """Return when an iteration begins and ends."""
        if not self.kernels:
            return step.start, step.end
        return spans.whole.start, spans.whole.end if self.communicates else max(spans.whole.end, next_start)

    def _layers(self, step: _Event, nodes: Sequence[_Event]) -> tuple[_Ranges[str], list[tuple[_Event, str]]]:
        """Return the layers of the forward pass of a step, and the layer of each node of its backward pass."""
        makers: dict[int, _Event] = {}
        wanted = {node.args["Sequence number"] for node in nodes if "Sequence number" in node.args}
        before = min((node.start for node in nodes), default=step.end)
        operators = [event for event in self.operators if _inside(event, step) and event.start < before]
        for event in operators:
            number = event.args.get("Sequence number", -1)
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
        layers = []
        for event in sorted(chosen, key=lambda event: event.start):
            name = event.name.removeprefix(_MODULE).removeprefix("aten::")
            calls[name] += 1
            layers.append((event, name if calls[name] == 1 else f"{name}#{calls[name]}"))
        ranges = _Ranges(layers)
        found: list[tuple[_Event, str]] = []
        for node in nodes:
            maker = makers.get(node.args.get("Sequence number", -1))
            layer = ranges.at(maker.start) if maker is not None else None
            if layer is None and maker is None and found:
                layer = found[-1][1]
            if layer is not None:
                found.append((node, layer))
        return ranges, found

    def _parameters(self, step: _Event, by_thread: dict[Any, _Ranges[str]]) -> dict[str, int]:
        """Return the elements of the gradients that were accumulated for each layer, as far as shapes were recorded."""
        parameters: Counter[str] = Counter()
        for event in self.accumulations:
            shapes = event.args.get("Input Dims")
            if not shapes or event.thread not in by_thread or not _inside(event, step):
                continue
            layer = by_thread[event.thread].at(event.start)
            if layer is not None and all(isinstance(size, int) for size in shapes[0]):
                parameters[layer] += math.prod(shapes[0])
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


def _inside(event: _Event, around: _Event) -> bool:
    return around.start <= event.start <= around.end


def _innermost(events: Iterable[_Event]) -> list[_Event]:
    """Return the ranges that hold no other."""
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    followed = [event for event, after in pairwise(ordered) if after.start >= event.end]
    return followed + ordered[-1:]


def _outermost(events: Iterable[_Event]) -> list[_Event]:
    """Return the ranges that no other holds, in order."""
    found: list[_Event] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        if not found or event.start >= found[-1].end:
            found.append(event)
    return found
