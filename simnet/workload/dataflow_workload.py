"""A dataflow graph as what is trained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from simnet.workload.dataflow import DataflowGraph
from simnet.workload.model import GradientTensor, Integers, Layer, Model

__all__ = ["DataflowWorkload"]


@dataclass(frozen=True, eq=False)
class DataflowWorkload:
    """A graph of one training step, and of how many samples that is.

    Parameters
    ----------
    graph : DataflowGraph
    batch_size : int
        Samples of one step.
    gpu : str
        For the result tables; may be empty.
    precision : str
        One of `PRECISIONS`.
    """

    graph: DataflowGraph
    batch_size: int
    gpu: str = ""
    precision: str = "fp32"

    @property
    def source(self) -> str:
        """Where the compute time comes from."""
        return "times of the operations of the graph"

    @property
    def compute_time_s(self) -> float:
        """Time of all operations, one after the other [s]."""
        return sum(operation.time_s for operation in self.graph.operations)

    @cached_property
    def model(self) -> Model:
        """Its operations as layers, in an order in which they can run, and their gradients."""
        return self._part(self.graph.order)

    @property
    def tensor_elements(self) -> Integers:
        """Elements of each gradient, shape (tensors,)."""
        return self.model.tensor_elements

    def of_device(self, device: int) -> Model:
        """Return the operations and gradients of one device as a model.

        Parameters
        ----------
        device : int
            Counted from 0.
        """
        return self._part([index for index in self.graph.order if self.graph.operations[index].device == device])

    def _part(self, order: tuple[int, ...] | list[int]) -> Model:
        operations = [self.graph.operations[index] for index in order]
        layers = tuple(Layer(one.name, one.gradient_elements) for one in operations)
        tensors = tuple(
            GradientTensor(one.name, one.gradient_elements, layer)
            for layer, one in enumerate(operations)
            if one.gradient_elements
        )
        return Model(self.graph.name, layers, tensors)
