"""Buckets: gradient tensors that travel together, and pieces of those that are too large to travel at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from simnet.workload import GradientTensor

__all__ = ["Bucket", "cut_buckets", "make_buckets", "merge_buckets"]


@dataclass(frozen=True)
class Bucket:
    """Gradient tensors that travel together, or a piece of them.

    Parameters
    ----------
    index : int
        Place in the order of readiness, from 0; pieces have that of the whole.
    elements : int
    first_tensor, tensors : int
        Tensors first_tensor .. first_tensor + tensors - 1, in the order in which they become ready.
    first_layer : int
        The first layer that has parameters in it.
    """

    index: int
    elements: int
    first_tensor: int
    tensors: int
    first_layer: int

    @property
    def last_tensor(self) -> int:
        """The tensor whose readiness makes the bucket ready."""
        return self.first_tensor + self.tensors - 1


def make_buckets(tensors: Sequence[GradientTensor], element_bytes: float, bucket_bytes: float) -> tuple[Bucket, ...]:
    """Put tensors, in the order in which they become ready, into buckets.

    A bucket is closed as soon as it holds at least `bucket_bytes`, as PyTorch's DistributedDataParallel does (S. Li et
    al., *PyTorch Distributed*, VLDB 2020, section 3.2.3); tensors are never cut.

    Parameters
    ----------
    tensors : sequence of GradientTensor
    element_bytes : float
        [bytes]
    bucket_bytes : float
        [bytes]
    """
    ends, held = [], 0
    for number, tensor in enumerate(tensors):
        held += tensor.elements
        if held * element_bytes >= bucket_bytes or number == len(tensors) - 1:
            ends.append(number + 1)
            held = 0
    return _buckets(tensors, ends)


def merge_buckets(
    tensors: Sequence[GradientTensor],
    ready_s: Sequence[float] | NDArray[np.float64],
    exchange_s: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[Bucket, ...]:
    """Put tensors into the buckets whose exchange, one after the other, is over first.

    Merged-gradient wait-free backpropagation (S. Shi, X. Chu, B. Li, "MG-WFBP: efficient data communication for
    distributed synchronous SGD algorithms", INFOCOM 2019): to merge two buckets saves what an exchange takes whatever
    its size, and costs the time that the first waits for the second. If an exchange begins when its bucket is ready and
    the one before is over, the first j tensors are exchanged at the earliest at
    F(j) = min over i < j of max(F(i), ready(j)) + T(i + 1 .. j), which is found from the first tensor on: of all ways
    to cut the best, whatever T; of equal ones that with the larger last bucket.

    Parameters
    ----------
    tensors : sequence of GradientTensor
        In the order in which they become ready.
    ready_s : array_like, shape (tensors,)
        When each is, not decreasing [s].
    exchange_s : callable
        What the exchange of so many elements takes, not decreasing; of arrays [s].
    """
    sums = np.concatenate([[0], np.cumsum([tensor.elements for tensor in tensors])])
    over_s, begun = np.zeros(len(tensors) + 1), np.zeros(len(tensors) + 1, dtype=np.int64)
    for end in range(1, len(tensors) + 1):
        choices_s = np.maximum(over_s[:end], ready_s[end - 1]) + exchange_s((sums[end] - sums[:end]).astype(np.float64))
        begun[end] = np.argmin(choices_s)
        over_s[end] = choices_s[begun[end]]
    ends = [len(tensors)] if tensors else []
    while ends and begun[ends[-1]] > 0:
        ends.append(int(begun[ends[-1]]))
    return _buckets(tensors, ends[::-1])


def cut_buckets(buckets: Sequence[Bucket], element_bytes: float, piece_bytes: float) -> tuple[Bucket, ...]:
    """Cut buckets into pieces of at most so much, which travel one by one; at least one element each.

    A piece is as large as can be, but for the last of a bucket (Y. Peng et al., "A generic communication scheduler for
    distributed DNN training acceleration", SOSP 2019, section 4.2).

    Parameters
    ----------
    buckets : sequence of Bucket
    element_bytes : float
        [bytes]
    piece_bytes : float
        Infinite: they stay whole [bytes].
    """
    pieces: list[Bucket] = []
    for bucket in buckets:
        most = int(max(min(piece_bytes / element_bytes, bucket.elements), 1))
        whole, rest = divmod(bucket.elements, most)
        sizes = [most] * whole + [rest] * (rest > 0)
        pieces += [replace(bucket, elements=size) for size in sizes or [bucket.elements]]
    return tuple(pieces)


def _buckets(tensors: Sequence[GradientTensor], ends: Sequence[int]) -> tuple[Bucket, ...]:
    """Return the buckets that end before some tensors."""
    found = []
    for index, (first, end) in enumerate(pairwise([0, *ends])):
        own = tensors[first:end]
        elements, first_layer = sum(tensor.elements for tensor in own), min(tensor.layer for tensor in own)
        found.append(Bucket(index, elements, first, len(own), first_layer))
    return tuple(found)
