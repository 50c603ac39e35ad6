"""The sections of a job about how long its workers compute, and until when: see `simnet.scenario.job_models`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simnet.scenario.algorithm_options import MOST_WORKERS
from simnet.scenario.fields import Quantity, Real, Text, Whole
from simnet.scenario.sections import Choice, Section

__all__ = ["LARGEST_BATCH", "GroupSpec", "MemoryHierarchySpec", "PatternSpec", "StragglerSpec", "TargetSpec"]

LARGEST_BATCH = 1_000_000_000
_Factor = Annotated[float, Real(minimum=1.0, maximum=1e6)]


class GroupSpec(Section):
    """Workers that compute alike."""

    workers: Annotated[int, Whole(1, MOST_WORKERS)] = Field(description="How many; groups are consecutive ranks.")
    gpu: Annotated[str, Text("the name of a GPU")] | None = Field(None, description="Their GPU.")
    batch_size: Annotated[int, Whole(1, LARGEST_BATCH)] | None = Field(
        None, description="Their samples per worker and iteration."
    )
    samples_per_s: Annotated[float, Real(minimum=1e-6, maximum=1e12)] | None = Field(
        None, description="Measured rate of each of them without communication [samples/s]."
    )


class MemoryLevelSpec(Section):
    """A cache, or memory."""

    size: Annotated[float, Quantity("size", positive=True)] = Field(description="What fits in.")
    bandwidth: Annotated[float, Quantity("bandwidth", positive=True)] = Field(
        description="At which what is in it is accessed."
    )


class MemoryHierarchySpec(Section):
    """Caches and memory of a worker, and what it has in them."""

    levels: tuple[MemoryLevelSpec, ...] = Field(
        description="Caches and memory of a worker, the smallest first; what fits into one is served by it."
    )
    bytes_per_sample: Annotated[float, Quantity("size")] = Field(
        description="Working set of a sample; a global batch that more workers share is less for each."
    )
    fixed_size: Annotated[float, Quantity("size")] = Field(
        0.0, description="Working set whatever the batch: parameters, say."
    )
    uses: Annotated[float, Real(minimum=0.0, maximum=1e12)] = Field(
        description="How often each byte of it is accessed in a pass: N in the product of two matrices of N x N."
    )


class ConstantSpec(Section):
    """Always slower."""

    factor: _Factor = Field(description="They take so many times as long.")


class DriftingSpec(Section):
    """Slower and slower."""

    per_iteration: Annotated[float, Real(minimum=0.0, maximum=1e6)] = Field(
        description="Each iteration takes longer than the one before by this part of the usual time."
    )
    at_most: _Factor = Field(1e6, description="Never more than so many times as long.")


class PeriodicSpec(Section):
    """Slower now and then."""

    factor: _Factor = Field(description="They take so many times as long.")
    every: Annotated[int, Whole(1)] = Field(description="Iterations from one time to the next.")
    lasts: Annotated[int, Whole(1)] = Field(description="Iterations that it lasts, from the first of each period on.")


class OccasionalSpec(Section):
    """Slower by chance."""

    factor: _Factor = Field(description="They take so many times as long.")
    probability: Annotated[float, Real(minimum=0.0, maximum=1.0)] = Field(
        description="In each iteration, for each worker by itself."
    )


class PatternSpec(Choice):
    """When workers are slower, and by how much."""

    constant: ConstantSpec | None = Field(None, description="Always.")
    drifting: DriftingSpec | None = Field(None, description="More and more, from the first iteration on.")
    periodic: PeriodicSpec | None = Field(None, description="For some iterations of each period.")
    occasional: OccasionalSpec | None = Field(None, description="By chance.")


class StragglerSpec(Section):
    """Workers that are slower than they should be."""

    workers: tuple[Annotated[int, Whole(0, MOST_WORKERS)], ...] = Field(description="Their ranks.")
    pattern: PatternSpec = Field(
        description="When, and by how much: constant, drifting, periodic or occasional. The warm-up counts."
    )


class TargetSpec(Section):
    """How much the whole training goes through, of which a run simulates a few iterations."""

    samples: Annotated[int, Whole(1)] | None = Field(
        None, description="Samples in all. Either these are given, or epochs and dataset_samples."
    )
    epochs: Annotated[int, Whole(1)] | None = Field(None, description="Passes over the data set.")
    dataset_samples: Annotated[int, Whole(1)] | None = Field(None, description="Samples in the data set.")
