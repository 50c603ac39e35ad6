"""The keys of a sweep file: the single source for validation and for the documentation."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from simnet.scenario.fields import Name, Text, Whole, hint_at, refuse, shown
from simnet.scenario.sections import Section

__all__ = ["KEPT", "MOST_POINTS", "SampleSpec", "SweepSpec"]

KEPT = ("iterations", "workers", "collectives", "links", "queues", "connections", "faults", "staleness")
"""Tables of a point that a sweep can keep."""

MOST_POINTS = 1_000_000


def _by_path(value: Any, example: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        refuse(f"is {shown(value)}", f"a mapping from paths of keys is wanted, like {example}")
    for path in value:
        if not isinstance(path, str):
            refuse(f"has the key {shown(path)}", "the path of a key of the scenario is wanted", key=path)
    return dict(value)


def _settings(value: Any) -> dict[str, Any]:
    return _by_path(value, "{training.workers: 8}")


def _lists(value: Any) -> dict[str, Any]:
    found = _by_path(value, "{training.workers: [1, 2, 4]}")
    for path, values in found.items():
        if not isinstance(values, list) or not values:
            refuse(f"has {shown(values)} for {path}", "a list of at least one value is wanted", key=path)
    return found


def _pairs(value: Any) -> dict[str, Any]:
    found = _lists(value)
    for path, values in found.items():
        if len(values) != 2:
            refuse(f"has {shown(values)} for {path}", "the lowest and the highest value are wanted", key=path)
    return found


def _aligned(value: Any) -> dict[str, Any]:
    found = _lists(value)
    lengths = [len(values) for values in found.values()]
    for path, length in zip(found, lengths, strict=True):
        if length != lengths[0]:
            first = next(iter(found))
            hint = f"{lengths[0]} are wanted, one for each of {first}"
            refuse(f"has {length} values for {path}", hint, key=path)
    return found


def _points(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        refuse(f"is {shown(value)}", "a list of mappings is wanted, like [{protocol: tcp}, {protocol: rdma}]")
    return [_settings(point) for point in value]


def _seeds(value: Any) -> list[int]:
    if not isinstance(value, list):
        return list(range(Whole(1, 10_000).check(value)))
    seeds = [Whole().check(seed) for seed in value]
    if not seeds or len(set(seeds)) < len(seeds):
        refuse(f"is {shown(value)}", "how many seeds, or a list of different ones, is wanted")
    return seeds


def _kept(value: Any) -> list[str]:
    if not isinstance(value, list):
        refuse(f"is {shown(value)}", f"a list out of {', '.join(KEPT)} is wanted")
    for name in value:
        if name not in KEPT:
            refuse(f"names {shown(name)}", hint_at(str(name), KEPT))
    return list(value)


def _conditions(value: Any) -> list[str]:
    return [
        Text("a condition, or a list of them,").check(one) for one in (value if isinstance(value, list) else [value])
    ]


def _scenario(value: Any) -> str | dict[str, Any]:
    if isinstance(value, dict) and value:
        return value
    return Text("a file, the name of a scenario that ships, or a scenario").check(value)


_LISTS = {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}}
_Lists = Annotated[dict[str, Any], PlainValidator(_lists), WithJsonSchema(_LISTS)]
_Pairs = Annotated[dict[str, Any], PlainValidator(_pairs), WithJsonSchema(_LISTS)]
_Aligned = Annotated[dict[str, Any], PlainValidator(_aligned), WithJsonSchema(_LISTS)]
_Settings = Annotated[dict[str, Any], PlainValidator(_settings), WithJsonSchema({"type": "object"})]
_Points = Annotated[Any, PlainValidator(_points), WithJsonSchema({"type": "array", "items": {"type": "object"}})]
_Seeds = Annotated[Any, PlainValidator(_seeds), WithJsonSchema({"type": ["integer", "array"]})]
_Kept = Annotated[Any, PlainValidator(_kept), WithJsonSchema({"type": "array", "items": {"enum": KEPT}})]
_Conditions = Annotated[Any, PlainValidator(_conditions), WithJsonSchema({"type": ["string", "array"]})]
_Scenario = Annotated[Any, PlainValidator(_scenario), WithJsonSchema({"type": ["string", "object"]})]


class SampleSpec(Section):
    """Points drawn at random, so that each of as many parts of every range has one (Latin hypercube)."""

    points: Annotated[int, Whole(1, MOST_POINTS)] = Field(description="How many.")
    seed: Annotated[int, Whole()] = Field(0, description="Of the drawing.")
    linear: _Pairs | None = Field(
        None, description="Lowest and highest value by path: numbers, whole ones where both are, or quantities."
    )
    log: _Pairs | None = Field(None, description="The same, with as many points in each decade.")
    among: _Lists | None = Field(None, description="Values to choose from, by path.")


class SweepSpec(Section):
    """A scenario, and which of its keys take which values; where several are given, their product."""

    scenario: _Scenario = Field(description="What is varied: a file, the name of one that ships, or a scenario.")
    name: Annotated[str, Name()] | None = Field(None, description="Name of the sweep; that of the file by default.")
    set: _Settings | None = Field(None, description="Values that are the same at every point, by path.")
    grid: _Lists | None = Field(None, description="Values by path, every combination of them.")
    zip: _Aligned | None = Field(None, description="Values by path that go together, the first with the first.")
    list: _Points | None = Field(None, description="Points one by one, each a mapping from path to value.")
    sample: SampleSpec | None = Field(None, description="Points drawn at random between bounds.")
    repeat: _Seeds | None = Field(None, description="How many seeds (run.seed from 0 on), or a list of them.")
    where: _Conditions | None = Field(
        None, description="Conditions on values, such as 'training.workers <= 64'; points that miss one are dropped."
    )
    baseline: _Settings | None = Field(
        None, description="Values of the point that speed-up and efficiency refer to; all else as at each point."
    )
    keep: _Kept | None = Field(None, description=f"Tables of each point to keep: {', '.join(KEPT)}.")
