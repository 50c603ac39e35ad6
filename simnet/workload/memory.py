"""How much memory of a GPU training takes: parameters, gradients, optimizer state, activations and buffers.

What a parameter takes follows S. Rajbhandari et al., *ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models*, SC 2020: in mixed precision 2 bytes for itself, 2 for its gradient, and for the optimizer 4 for the fp32 master
copy and 4 for each number that it remembers (Adam two, momentum one). In fp32 and TF32 the parameter takes 4 bytes and
is its own master copy. Stage 1 of ZeRO shares the optimizer state out over N ranks, stage 2 also the gradients, stage 3
also the parameters.

Of the outputs of layers those are kept that a backward pass reads: the input of a layer that multiplies by it or is not
linear in it, and the output of softmax and activation functions. Sums, scalings, copies, dropout and embeddings need no
input, and dropout keeps a mask of one byte a value (V. Korthikanti et al., *Reducing Activation Recomputation in Large
Transformer Models*, MLSys 2023, section 4, whose formula for a transformer layer the tables so meet within some 4 %).
What kind a layer is, an own workload does not say: all of its outputs are kept.

Not counted: what the framework itself takes, workspaces of libraries, fragments, and the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simnet.units import MEBIBYTE
from simnet.workload.model import DTYPE_BYTES, PRECISIONS, Floats, Model
from simnet.workload.roofline import list_gpus, matches_gpu

__all__ = [
    "ACTIVATION_BYTES",
    "OPTIMIZERS",
    "MemoryUse",
    "gpu_memory_bytes",
    "kept_activation_bytes",
    "training_memory",
]

OPTIMIZERS = {"sgd": 0, "sgd_momentum": 1, "adam": 2}
"""How many numbers each optimizer remembers for a parameter, all in fp32."""

ACTIVATION_BYTES = {"fp32": DTYPE_BYTES["fp32"], "tf32": DTYPE_BYTES["fp32"], "amp": DTYPE_BYTES["fp16"]}
"""Size of one number of an activation, and of a parameter that is computed with, in each precision [bytes]."""

_TABLE_BYTES = DTYPE_BYTES["fp32"]
_MASK_BYTES = 1
_NEED_NO_INPUT = ("add", "cat", "copy", "dropout", "embed", "scale", "softmax")
_NEED_THEIR_OUTPUT = ("act", "softmax", "")
_BUCKETS = 2  # one that fills up, and one that is on its way
_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class MemoryUse:
    """What one rank holds.

    Parameters
    ----------
    parameters_bytes : float
        In the precision of the computation [bytes].
    gradients_bytes : float
        [bytes]
    optimizer_bytes : float
        With the master copy of the parameters, in mixed precision [bytes].
    activations_bytes : float
        Kept for the backward pass [bytes].
    buffers_bytes : float
        Gradients on their way, and parameters gathered for one layer [bytes].
    """

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    buffers_bytes: float

    @property
    def model_states_bytes(self) -> float:
        """Parameters, gradients and optimizer state, which the batch does not change [bytes]."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def total_bytes(self) -> float:
        """All of it [bytes]."""
        return self.model_states_bytes + self.activations_bytes + self.buffers_bytes


def training_memory(
    model: Model,
    batch_size: int,
    *,
    precision: str,
    gradient_bytes_per_element: float,
    optimizer: str = "sgd_momentum",
    zero_stage: int = 0,
    data_parallel: int = 1,
    tensor_parallel: int = 1,
    layers: Sequence[int] | None = None,
    bucket_bytes: float = 25.0 * MEBIBYTE,
    micro_batches_in_flight: int = 1,
) -> MemoryUse:
    """Return what one rank of a training job holds.

    Parameters
    ----------
    model : Model
    batch_size : int
        Samples of a rank that go through the model together: of a micro-batch, where there are any.
    precision : str
        One of `PRECISIONS`.
    gradient_bytes_per_element : float
        [bytes]
    optimizer : str
        One of `OPTIMIZERS`.
    zero_stage : int
        0 to 3: what is shared out over the ranks of `data_parallel`.
    data_parallel : int
        Ranks with a copy of the same layers.
    tensor_parallel : int
        Ranks over which every layer is split. All is divided by it, activations too (sequence parallelism of
        Korthikanti et al.), but for the small part that real splits repeat.
    layers : sequence of int, optional
        Indices of the layers of this rank, each once; all when not given. Their gradients are those of the rank.
    bucket_bytes : float
        Gradients that are exchanged together; one bucket fills up while another is on its way [bytes].
    micro_batches_in_flight : int
        Micro-batches whose backward pass is still to come, at most.

    Returns
    -------
    MemoryUse

    Raises
    ------
    ValueError
        A number out of its range, or a name that is not known.

    References
    ----------
    Parameters, gradients, optimizer state: S. Rajbhandari et al., *ZeRO*, SC 2020. Activations: V. Korthikanti et al.,
    *Reducing Activation Recomputation in Large Transformer Models*, MLSys 2023, section 4.
    """
    if precision not in PRECISIONS or optimizer not in OPTIMIZERS or zero_stage not in _STAGES:
        raise ValueError(f"unknown precision, optimizer or stage: {precision!r}, {optimizer!r}, {zero_stage!r}")
    if min(batch_size, data_parallel, tensor_parallel, micro_batches_in_flight) < 1:
        raise ValueError("batch size, ranks and micro-batches in flight are at least 1")
    if min(gradient_bytes_per_element, bucket_bytes) < 0.0:
        raise ValueError("sizes of gradients and buckets are not negative")
    own = np.arange(len(model.layers)) if layers is None else np.unique(np.asarray(layers, dtype=np.int64))
    by_layer = np.bincount(model.tensor_layers, model.tensor_elements, len(model.layers))[own] / tensor_parallel
    elements = float(by_layer.sum())
    number_bytes = ACTIVATION_BYTES[precision]
    master_bytes = DTYPE_BYTES["fp32"] if precision == "amp" else 0
    state_bytes = master_bytes + DTYPE_BYTES["fp32"] * OPTIMIZERS[optimizer]
    shards = [data_parallel if zero_stage >= stage else 1 for stage in _STAGES]
    buffers_bytes = 0.0
    if data_parallel > 1:
        buffers_bytes = min(_BUCKETS * bucket_bytes, elements * gradient_bytes_per_element)
    if shards[3] > 1:
        buffers_bytes += float(by_layer.max(initial=0.0)) * number_bytes
    kept = kept_activation_bytes(model, precision)[own].sum()
    return MemoryUse(
        parameters_bytes=elements * number_bytes / shards[3],
        gradients_bytes=elements * gradient_bytes_per_element / shards[2],
        optimizer_bytes=elements * state_bytes / shards[1],
        activations_bytes=float(kept) * batch_size * micro_batches_in_flight / tensor_parallel,
        buffers_bytes=buffers_bytes,
    )


def kept_activation_bytes(model: Model, precision: str) -> Floats:
    """Return what each layer keeps of one sample until its backward pass, shape (layers,) [bytes].

    Which layer reads an output is not in the tables: it is taken for the next one. A layer that works in place keeps
    nothing of its own, but lets the output that it takes the place of be kept.

    Parameters
    ----------
    model : Model
    precision : str
        One of `PRECISIONS`.

    Returns
    -------
    ndarray of float, shape (layers,)
        [bytes]

    References
    ----------
    V. Korthikanti et al., *Reducing Activation Recomputation in Large Transformer Models*, MLSys 2023, section 4.
    """
    count = len(model.layers)
    kept = np.zeros(count)
    number_bytes = ACTIVATION_BYTES[precision]
    is_read = False  # by the layer after, or by what takes its place
    for index in range(count - 1, -1, -1):
        layer = model.layers[index]
        is_kept = is_read or layer.op_class in _NEED_THEIR_OUTPUT
        if is_kept and not layer.in_place:
            kept[index] = layer.activation_bytes / _TABLE_BYTES * number_bytes
        if layer.op_class == "dropout":
            kept[index] += layer.activation_bytes / _TABLE_BYTES * _MASK_BYTES
        is_read = layer.op_class not in _NEED_NO_INPUT or (layer.in_place and is_kept)
    return kept


def gpu_memory_bytes(gpu: str) -> float | None:
    """Return the memory of a GPU, or None where it is not known [bytes].

    Parameters
    ----------
    gpu : str
        As in ``gpus.csv``. A name that stands for several variants, as ``v100`` does, has the memory of the largest:
        what does not fit there fits none of them.

    Returns
    -------
    float or None
        [bytes]

    Examples
    --------
    >>> from simnet.units import format_size
    >>> format_size(gpu_memory_bytes("v100")), format_size(gpu_memory_bytes("v100_pcie_16gb"))
    ('32 GiB', '16 GiB')
    """
    return max((known.memory_bytes for known in list_gpus() if matches_gpu(gpu, known.name)), default=None)
