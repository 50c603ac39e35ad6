"""Buckets: gradient tensors that travel together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Bucket", "make_buckets"]


@dataclass(frozen=True)
class Bucket:
    """Gradient tensors that travel together.

    Parameters
    ----------
    index : int
        Place in the order of readiness, from 0.
    elements : int
    first_tensor, tensors : int
        Tensors first_tensor .. first_tensor + tensors - 1, in the order in which they become ready.
    """

    index: int
    elements: int
    first_tensor: int
    tensors: int

    @property
    def last_tensor(self) -> int:
        """The tensor whose readiness makes the bucket ready."""
        return self.first_tensor + self.tensors - 1


def make_buckets(elements: Sequence[int], element_bytes: float, bucket_bytes: float) -> tuple[Bucket, ...]:
    """Cut the tensors, in the order in which they become ready, into buckets.

    A bucket is closed as soon as it holds at least `bucket_bytes`, as PyTorch's DistributedDataParallel does (S. Li et
    al., *PyTorch Distributed*, VLDB 2020, section 3.2.3); tensors are never cut.

    Parameters
    ----------
    elements : sequence of int, shape (tensors,)
    element_bytes : float
        [bytes]
    bucket_bytes : float
        [bytes]
    """
    buckets: list[Bucket] = []
    first, held = 0, 0
    for tensor, size in enumerate(elements):
        held += int(size)
        if held * element_bytes >= bucket_bytes or tensor == len(elements) - 1:
            buckets.append(Bucket(len(buckets), held, first, tensor - first + 1))
            first, held = tensor + 1, 0
    return tuple(buckets)
