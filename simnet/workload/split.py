"""How the layers of a model are split over ranks: in stages one after the other, or each layer over all.

The tables have the layers in the order in which they run, not the graph of which reads which. Where a model is a
chain, what crosses a cut is the output of the layer before it. Elsewhere that is an approximation, and too little: what
skips a cut (inside of a block the other term of the sums of ResNet and of transformers, and the branches of Inception)
is left out. A tensor that one layer shares with another (tied embeddings) belongs to the stage of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simnet.errors import InputError, Problem
from simnet.workload.memory import ACTIVATION_BYTES
from simnet.workload.model import DTYPE_BYTES, Floats, Model, Workload

__all__ = ["Stage", "describe_stages", "matrix_layers", "output_bytes_per_sample", "split_into_stages"]

_MATRICES = ("conv", "embed", "gemm")


@dataclass(frozen=True)
class Stage:
    """Some layers of a model that stand one after the other.

    Parameters
    ----------
    layers : range
        Their indices.
    tensors : tuple of int
        Indices of their gradients, in the order in which they become ready.
    forward_s, backward_s : float
        Time of a batch of the workload, all layers together [s].
    output_bytes_per_sample : float
        Activations that go on to the next stage, and whose gradients come back; 0 of the last one [bytes].
    """

    layers: range
    tensors: tuple[int, ...]
    forward_s: float
    backward_s: float
    output_bytes_per_sample: float


def split_into_stages(workload: Workload, stages: int) -> tuple[range, ...]:
    """Return the layers of each stage, so that the longest takes as short as can be.

    A stage takes the forward and backward time of its layers. The split is the best there is: for each number of
    stages and of layers, the longest stage is the least over all places of the last cut.

    Parameters
    ----------
    workload : Workload
    stages : int
        Each has at least one layer.

    Returns
    -------
    tuple of range
        Indices of layers, one range a stage.

    Raises
    ------
    InputError
        There are more stages than layers, or none.
    """
    count = len(workload.model.layers)
    if not 1 <= stages <= count:
        message = f"{workload.model.name} has {count} layers, which cannot be split into {stages} stages"
        raise InputError(Problem(message, f"1 to {count} stages are possible"))
    done_s = np.concatenate(([0.0], np.cumsum(workload.forward_s + workload.backward_s)))
    # [end, begin]: what the layers from begin to end take; a stage without layers is none.
    stage_s = np.where(np.tri(count + 1, k=-1, dtype=bool), done_s[:, np.newaxis] - done_s, np.inf)
    longest_s = stage_s[:, 0]
    cuts = []
    for _ in range(stages - 1):
        with_cut_s = np.maximum(longest_s, stage_s)
        cuts.append(with_cut_s.argmin(axis=1))
        longest_s = with_cut_s.min(axis=1)
    ends = [count]
    for cut in reversed(cuts):
        ends.append(int(cut[ends[-1]]))
    ends.append(0)
    return tuple(range(begin, end) for end, begin in zip(ends[-2::-1], ends[:0:-1], strict=True))


def describe_stages(workload: Workload, stages: Sequence[range]) -> tuple[Stage, ...]:
    """Return what each stage computes, holds and passes on.

    Parameters
    ----------
    workload : Workload
    stages : sequence of range
        As of `split_into_stages`: all layers, in order.

    Returns
    -------
    tuple of Stage

    Raises
    ------
    ValueError
        They are not all layers, in order.
    """
    count = len(workload.model.layers)
    if [layer for stage in stages for layer in stage] != list(range(count)) or not all(stages):
        raise ValueError(f"these are not the {count} layers of {workload.model.name} in order: {list(stages)}")
    tensors: list[list[int]] = [[] for _ in stages]
    stage_of = np.repeat(np.arange(len(stages)), [len(stage) for stage in stages])
    for tensor, stage in enumerate(stage_of[workload.model.tensor_layers].tolist()):
        tensors[stage].append(tensor)
    output_bytes = output_bytes_per_sample(workload.model, workload.precision)
    return tuple(
        Stage(
            layers,
            tuple(of_stage),
            float(workload.forward_s[layers.start : layers.stop].sum()),
            float(workload.backward_s[layers.start : layers.stop].sum()),
            float(output_bytes[layers.stop - 1]) if layers.stop < count else 0.0,
        )
        for layers, of_stage in zip(stages, tensors, strict=True)
    )


def matrix_layers(model: Model) -> tuple[int, ...]:
    """Return the indices of the layers that multiply by a matrix of parameters, in order.

    Splitting within layers splits these. An own workload does not say what its layers do: all that have parameters
    are taken.

    Parameters
    ----------
    model : Model

    Returns
    -------
    tuple of int
    """
    known = any(layer.op_class for layer in model.layers)
    return tuple(
        index
        for index, layer in enumerate(model.layers)
        if (layer.op_class in _MATRICES if known else layer.parameters > 0)
    )


def output_bytes_per_sample(model: Model, precision: str) -> Floats:
    """Return the size of each layer's output in a precision, shape (layers,) [bytes].

    Parameters
    ----------
    model : Model
    precision : str
        One of `PRECISIONS`.

    Returns
    -------
    ndarray of float, shape (layers,)
        [bytes]
    """
    scale = ACTIVATION_BYTES[precision] / DTYPE_BYTES["fp32"]
    return scale * np.array([layer.activation_bytes for layer in model.layers])
