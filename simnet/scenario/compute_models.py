"""The sections of a job about how long its workers compute, and until when: see `simnet.scenario.job_models`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, WithJsonSchema

from simnet.scenario.algorithm_options import MOST_WORKERS
from simnet.scenario.fields import Quantity, Real, Text, Whole, Word, refuse, shown
from simnet.scenario.sections import Choice, Section

__all__ = [
    "DISTRIBUTIONS",
    "LARGEST_BATCH",
    "GroupSpec",
    "JitterSpec",
    "MemoryHierarchySpec",
    "OverlapSlowdownSpec",
    "PatternSpec",
    "SpeedFactors",
    "StragglerSpec",
    "TargetSpec",
]

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


DISTRIBUTIONS = {
    "lognormal": "sigma",
    "normal": "sigma",
    "uniform": "half_width",
    "exponential": "scale",
    "pareto": "shape",
}
"""Distribution of jitter and the name of its one parameter."""


class JitterSpec(Section):
    """A random factor on the compute time of each worker in each iteration."""

    distribution: Annotated[str, Word(tuple(DISTRIBUTIONS))] = Field(
        "lognormal",
        description="lognormal: exp(sigma z - sigma²/2); normal: 1 + sigma z, at least 0; uniform: between "
        "1 - half_width and 1 + half_width; exponential: 1 - scale + scale x, x with mean 1; pareto: at least "
        "(shape - 1)/shape. All have mean 1.",
    )
    sigma: Annotated[float, Real(minimum=0, maximum=10)] | None = Field(
        None, description="lognormal: standard deviation of the logarithm; normal: standard deviation. Relative."
    )
    half_width: Annotated[float, Real(minimum=0, maximum=1)] | None = Field(
        None, description="uniform: largest deviation from 1. Relative."
    )
    scale: Annotated[float, Real(minimum=0, maximum=1)] | None = Field(
        None, description="exponential: the part of the time that is random; 1: all of it, as Poisson processes are."
    )
    shape: Annotated[float, Real(above=1, maximum=1e6)] | None = Field(
        None, description="pareto: the smaller, the longer the rarest; finite variance above 2."
    )


class OverlapSlowdownSpec(Section):
    """How computing and communicating at once slow each other down."""

    compute: Annotated[float, Real(minimum=1, maximum=1000)] = Field(
        1.16,
        description="Computing takes so many times as long while something is exchanged: as measured beside a matrix "
        "product on four A100 (docs/training.md).",
    )
    communication: Annotated[float, Real(minimum=1, maximum=1000)] = Field(
        1.48,
        description="Links of a GPU inside of its host carry so many times less while it computes: as measured there.",
    )


class _Rank(Whole):
    """The number of a rank as a key, which JSON can only write as text."""

    def check(self, value: object) -> int:
        """Return the number or refuse it."""
        # As the number is written, so that no rank has two keys.
        is_number = isinstance(value, str) and re.fullmatch(r"0|[1-9][0-9]{0,8}", value)
        return super().check(int(value) if is_number else value)  # type: ignore[call-overload]


_Speed = Annotated[float, Real(above=0.0, maximum=1e6)]
_SPEED_OF_EACH: TypeAdapter[tuple[float, ...]] = TypeAdapter(tuple[_Speed, ...])
_SPEED_BY_RANK: TypeAdapter[dict[int, float]] = TypeAdapter(dict[Annotated[int, _Rank(0, MOST_WORKERS)], _Speed])


def _speed_factors(value: Any) -> dict[int, float] | tuple[float, ...]:
    if isinstance(value, (list, tuple)):
        return _SPEED_OF_EACH.validate_python(value)
    if not isinstance(value, dict):
        refuse(f"is {shown(value)}", "a list with one speed a worker, or a mapping {rank: speed}, is wanted")
    return dict(sorted(_SPEED_BY_RANK.validate_python(value).items()))


_SPEED_FACTORS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
        {"type": "object", "patternProperties": {r"^(0|[1-9][0-9]*)$": {"type": "number", "exclusiveMinimum": 0}}},
    ]
}

SpeedFactors = Annotated[
    dict[int, float] | tuple[float, ...], PlainValidator(_speed_factors), WithJsonSchema(_SPEED_FACTORS_SCHEMA)
]
"""Relative speed of workers: of all, or by rank."""
