"""What a workload is: the layers of a model, its gradients in order of readiness, and how long they compute.

Layers stand in the order in which the forward pass executes them; the backward pass goes through them in reverse. A
gradient is ready when the backward pass of its layer is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DTYPE_BYTES",
    "GRADIENT_DTYPES",
    "PRECISIONS",
    "Floats",
    "GradientTensor",
    "Integers",
    "Layer",
    "Model",
    "Workload",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

DTYPE_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Size of one number of each type [bytes]."""

GRADIENT_DTYPES = tuple(DTYPE_BYTES)
"""Types that gradients can have on the wire."""

PRECISIONS = ("fp32", "tf32", "amp")
"""Number formats of the computation: fp32 on ordinary cores, TF32 on tensor cores, and automatic mixed precision (fp16
with fp32 master weights)."""


@dataclass(frozen=True)
class Layer:
    """One module or function of a model, in what a sample costs.

    Parameters
    ----------
    name : str
        As its framework calls it; functions carry angle brackets, and may share a name.
    parameters : int
        Trainable parameters; those of tied weights count where they stand first.
    forward_flops, backward_flops : float
        Floating-point operations per sample; a multiply-add is two.
    memory_bytes : float
        Moved to and from memory by the forward pass of one sample, in fp32 [bytes].
    activation_bytes : float
        Output per sample, in fp32 [bytes].
    parameter_memory_bytes : float
        The part of `memory_bytes` that is the same for a batch of any size, in fp32 [bytes].
    op_class : str
        Kind of operation: conv, gemm, attn_matmul, norm, act, softmax, dropout, pool, add, …; empty when not known.
    kernel : str
        Of a convolution: height and width, ``3x3``.
    stride : int
        Of a convolution.
    in_place : bool
        The output takes the place of the input, so that it costs no memory of its own.
    """

    name: str
    parameters: int
    forward_flops: float = 0.0
    backward_flops: float = 0.0
    memory_bytes: float = 0.0
    activation_bytes: float = 0.0
    parameter_memory_bytes: float = 0.0
    op_class: str = ""
    kernel: str = ""
    stride: int = 1
    in_place: bool = False


@dataclass(frozen=True)
class GradientTensor:
    """The gradient of one parameter tensor.

    Parameters
    ----------
    name : str
    elements : int
    layer : int
        Index into the layers of the model.
    shape : tuple of int
        Empty when not known.
    dtype : str
        One of `DTYPE_BYTES`.
    """

    name: str
    elements: int
    layer: int
    shape: tuple[int, ...] = ()
    dtype: str = "fp32"


@dataclass(frozen=True)
class Model:
    """A neural network.

    Parameters
    ----------
    name : str
    layers : tuple of Layer
        In the order of the forward pass.
    tensors : tuple of GradientTensor
        In the order in which gradients become ready.
    sequence_length : int or None
        Tokens per sample; None where samples have no length.
    """

    name: str
    layers: tuple[Layer, ...]
    tensors: tuple[GradientTensor, ...]
    sequence_length: int | None = None

    @property
    def parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def activation_bytes(self) -> float:
        """Activations of one sample that the backward pass may need, in fp32 [bytes]."""
        return sum(layer.activation_bytes for layer in self.layers if not layer.in_place)

    @cached_property
    def tensor_elements(self) -> Integers:
        """Elements of each gradient in order of readiness, shape (tensors,)."""
        return np.array([tensor.elements for tensor in self.tensors], dtype=np.int64)

    @cached_property
    def tensor_layers(self) -> Integers:
        """Layer of each gradient in order of readiness, shape (tensors,)."""
        return np.array([tensor.layer for tensor in self.tensors], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Workload:
    """A model and how long one worker computes on a batch, without communication.

    Parameters
    ----------
    model : Model
    gpu : str
        Empty when not stated.
    precision : str
        One of `PRECISIONS`.
    batch_size : int
        Samples per worker and iteration.
    forward_s, backward_s : ndarray of float, shape (layers,)
        Time of each layer's forward and backward pass, indexed like the layers [s].
    source : str
        Where the compute time comes from.
    serial_s : float
        The part of it that every worker repeats, whatever its batch [s].
    memory_s : float
        The part of it that goes to the levels of a memory hierarchy, where one is given [s].

    Raises
    ------
    ValueError
        Times of layers that are negative, infinite or no numbers, or not one a layer.
    """

    model: Model
    gpu: str
    precision: str
    batch_size: int
    forward_s: Floats
    backward_s: Floats
    source: str
    serial_s: float = 0.0
    memory_s: float = 0.0

    def __post_init__(self) -> None:
        for times in (self.forward_s, self.backward_s):
            if times.shape != (len(self.model.layers),) or not np.all(np.isfinite(times)) or np.any(times < 0.0):
                raise ValueError(f"layer times of {self.model.name} are not finite, not negative, or not one a layer")
            times.setflags(write=False)

    @cached_property
    def compute_time_s(self) -> float:
        """Time of one iteration: all layers forward, then all backward [s]."""
        return float(self.forward_s.sum() + self.backward_s.sum())

    @property
    def samples_per_s(self) -> float:
        """Rate of one worker [samples/s]."""
        return self.batch_size / self.compute_time_s

    @property
    def tensor_elements(self) -> Integers:
        """Elements of each gradient in order of readiness, shape (tensors,)."""
        return self.model.tensor_elements

    @cached_property
    def tensor_ready_s(self) -> Floats:
        """When each gradient is ready, after the start of the backward pass; never decreasing, shape (tensors,) [s]."""
        layer_done_s = np.cumsum(self.backward_s[::-1])[::-1]
        return np.maximum.accumulate(layer_done_s[self.model.tensor_layers])
