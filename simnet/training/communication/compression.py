"""Compression of gradients: what travels of a bucket instead of its fp32 gradients, and what compressing takes.

What travels follows from the shapes of the tensors, in whole bytes. Each scheme is one function here, of the tensors of
a bucket; everything else asks `SCHEMES`. Compressing and decompressing takes the worker's time, which computes nothing
else meanwhile.

References
----------
.. [1] F. Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of
   speech DNNs", Interspeech 2014.
.. [2] D. Alistarh et al., "QSGD: communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017.
.. [3] I. Markov, H. Ramezanikebrya, D. Alistarh, "CGX: adaptive system support for communication-efficient deep
   learning", Middleware 2022: quantised all-reduce.
.. [4] Y. Lin et al., "Deep gradient compression: reducing the communication bandwidth for distributed training",
   ICLR 2018.
.. [5] T. Vogels, S. Karimireddy, M. Jaggi, "PowerSGD: practical low-rank gradient compression for distributed
   optimization", NeurIPS 2019.
.. [6] S. Agarwal et al., "On the utility of gradient compression in distributed training systems", MLSys 2022: times of
   encoding and decoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from simnet.training.communication.settings import Compression
from simnet.training.plan import Part, Plan, Stretch
from simnet.training.settings import TrainingSettings
from simnet.units import MEBIBYTE
from simnet.workload import DTYPE_BYTES, GradientTensor, Model

__all__ = ["NUMBER_BYTES", "SCHEMES", "Message", "Scheme", "compressed", "is_factored", "standard_costs_s_per_byte"]

NUMBER_BYTES = DTYPE_BYTES["fp32"]
"""Size of an element of a gradient before it is compressed, of a scale, and of a factor [bytes]."""

INDEX_BYTES = 4
"""Size of the place of an element in its tensor [bytes]."""


class Message(NamedTuple):
    """What is exchanged of a bucket at once.

    Attributes
    ----------
    collective : ``all_reduce`` or ``all_gather``
    size_bytes : of what is added up, or of what all workers together gather [bytes]
    pulled_bytes : what a worker pulls of parameter servers, where that is not what it pushes [bytes]
    """

    collective: str
    size_bytes: int
    pulled_bytes: int | None = None


# -- what travels ------------------------------------------------------------------------------------------------------


def _cast(tensors: Sequence[GradientTensor], *_: object) -> list[Message]:
    """Send half precision, in either format: 2 bytes an element, added up as they are."""
    return [Message("all_reduce", DTYPE_BYTES["fp16"] * sum(tensor.elements for tensor in tensors))]


def _quantized(tensors: Sequence[GradientTensor], *_: object, bits: int) -> list[Message]:
    """Send a few bits an element, in whole bytes a tensor, and one scale a tensor [1]_ [2]_.

    Whoever adds up reads the numbers, adds, and quantises the sum anew, so that it is as long as what it is the sum
    of [3]_: each rank of an all-reduce at each hop, and each server.
    """
    return [Message("all_reduce", sum(-(-tensor.elements * bits // 8) + NUMBER_BYTES for tensor in tensors))]


def _sparsified(tensors: Sequence[GradientTensor], workers: int, served: bool, ratio: float) -> list[Message]:
    """Send the values and places of the largest elements of each tensor [4]_.

    Different workers choose different ones, so that there is nothing to add up on the way: each gathers what all have
    chosen. Servers add up, and send the union; at most it is as many elements as all have chosen, which is what is
    counted, and no longer than the tensor without compression.
    """
    # As the decimal number that was written: 0.01 of 300 elements are 3, not 4.
    share = Fraction(str(ratio))
    own = [(INDEX_BYTES + NUMBER_BYTES) * max(1, math.ceil(share * tensor.elements)) for tensor in tensors]
    if not served:
        return [Message("all_gather", workers * sum(own))]
    union = [min(workers * size, NUMBER_BYTES * tensor.elements) for size, tensor in zip(own, tensors, strict=True)]
    return [Message("all_reduce", sum(own), sum(union))]


def _factored(tensors: Sequence[GradientTensor], *_: object, rank: int) -> list[Message]:
    """Send two factors of each matrix, of which the second is made from the sum of the first [5]_.

    What is not factored goes with the first.
    """
    first = second = 0
    for tensor in tensors:
        if is_factored(tensor, rank):
            rows, columns = _matrix(tensor)
            first, second = first + rank * rows, second + rank * columns
        else:
            first += tensor.elements
    return [Message("all_reduce", NUMBER_BYTES * elements) for elements in (first, second) if elements]


def is_factored(tensor: GradientTensor, rank: int) -> bool:
    """Tell whether a tensor is a matrix whose two factors are smaller than itself."""
    rows, columns = _matrix(tensor)
    return rank * (rows + columns) < rows * columns


def _matrix(tensor: GradientTensor) -> tuple[int, int]:
    """Return rows and columns: the first dimension, and all others together, as in the code of its authors."""
    if len(tensor.shape) < 2:
        return 1, tensor.elements
    return tensor.shape[0], math.prod(tensor.shape[1:])


# -- what it takes -----------------------------------------------------------------------------------------------------


_RESNET50_BYTES = 97.5 * MEBIBYTE
_V100_BYTES_PER_S = 9e11
_CAST_S = (NUMBER_BYTES + DTYPE_BYTES["fp16"]) * _RESNET50_BYTES / NUMBER_BYTES / _V100_BYTES_PER_S


@dataclass(frozen=True)
class Scheme:
    """A way to compress.

    Parameters
    ----------
    messages : callable
        ``(tensors, workers, served, **options) -> [Message]``: what goes one after the other of the tensors of a
        bucket; `served` says whether there are parameter servers.
    measured_s : mapping of float to float
        For how long a V100 encodes and decodes the gradients of ResNet-50, 97.5 MiB, by the value of the option [s].
    compressing : float
        Share of that before the exchange.
    option : str
        Name of the one option; empty where there is none.
    """

    messages: Callable[..., list[Message]]
    measured_s: Mapping[float, float]
    compressing: float = 0.5
    option: str = ""


# Casts read 4 bytes and write 2, or the other way round, at the bandwidth of the memory. All else is of [6], which
# gives encoding and decoding together: of the three products of matrices of PowerSGD two come before the exchange, of
# top-k nearly all is choosing. Bits hardly matter to a pass over all elements.
SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "fp16": Scheme(_cast, {0.0: 2.0 * _CAST_S}),
        "bf16": Scheme(_cast, {0.0: 2.0 * _CAST_S}),
        "quantize": Scheme(_quantized, {1.0: 0.01634}, option="bits"),
        "sparsify": Scheme(_sparsified, {0.01: 0.240, 0.1: 0.289, 0.2: 0.295}, compressing=0.9, option="ratio"),
        "low_rank": Scheme(_factored, {4.0: 0.045, 8.0: 0.064, 16.0: 0.130}, compressing=2.0 / 3.0, option="rank"),
    }
)
"""The schemes by the names that scenarios use."""


def standard_costs_s_per_byte(name: str, options: Mapping[str, float]) -> tuple[float, float]:
    """Return what compressing and decompressing takes for each byte of fp32 gradients, as measured on a V100 [s].

    Between measured values of the option along a straight line; beyond them as at the nearest, but for ranks above the
    largest, which take more in proportion.
    """
    scheme = SCHEMES[name]
    values, seconds = list(scheme.measured_s), list(scheme.measured_s.values())
    value = float(options.get(scheme.option, 0.0))
    together_s = float(np.interp(value, values, seconds))
    if scheme.option == "rank":
        together_s *= max(value / values[-1], 1.0)
    per_byte = together_s / _RESNET50_BYTES
    return scheme.compressing * per_byte, (1.0 - scheme.compressing) * per_byte


# -- plans -------------------------------------------------------------------------------------------------------------


def compressed(plan: Plan, model: Model, training: TrainingSettings) -> Plan:
    """Return a plan in which what workers all-reduce is compressed before, and decompressed after.

    A part becomes as many as it has messages, announced together, so that on one stream they go one after the other.
    The stretch that announces it goes on until it is compressed; the one that waits for it begins with decompressing.
    With forward overlap that is the previous iteration's, and the first iteration decompresses what is not there.

    Parameters
    ----------
    plan : Plan
        Whose parts are all-reduces.
    model : Model
    training : TrainingSettings
    """
    compression, workers = training.compression, training.grid.data
    if compression is None or workers == 1:
        return plan
    served = training.architecture.servers > 0
    parts: list[Part] = []
    places: list[range] = []
    for part in plan.parts:
        bucket = part.bucket
        tensors = model.tensors[bucket.first_tensor : bucket.last_tensor + 1]
        messages = SCHEMES[compression.name].messages(tensors, workers, served, **compression.options)
        places.append(range(len(parts), len(parts) + len(messages)))
        parts += [Part(bucket, *message) for message in messages]
    sizes = [float(NUMBER_BYTES * part.bucket.elements) for part in plan.parts]
    stretches = tuple(_compressing(stretch, places, sizes, compression) for stretch in plan.stretches)
    return Plan(tuple(parts), stretches)


def _compressing(
    stretch: Stretch, places: Sequence[range], sizes: Sequence[float], compression: Compression
) -> Stretch:
    def of(parts: Sequence[int]) -> tuple[int, ...]:
        return tuple(place for part in parts for place in places[part])

    compress_s = sum(sizes[part] for part in stretch.announces) * compression.compress_s_per_byte
    awaited = (*stretch.after, *stretch.after_previous)
    decompress_s = sum(sizes[part] for part in awaited) * compression.decompress_s_per_byte
    return replace(
        stretch,
        after=of(stretch.after),
        after_previous=of(stretch.after_previous),
        announces=of(stretch.announces),
        extra_s=stretch.extra_s + compress_s + decompress_s,
    )
