"""The JSON Schema of a scenario for editors, and the same as a list of keys for the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from simnet.scenario.models import ScenarioSpec
from simnet.scenario.sections import Choice, is_list, section_of

__all__ = ["ScenarioKey", "scenario_keys", "scenario_schema"]


class _Schema(GenerateJsonSchema):
    """JSON Schema whose defaults are written as a scenario has them: ``25 MiB``, not 26214400.0."""

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:
        default = super().get_default_value(schema)
        inner: dict[str, Any] = dict(schema["schema"])
        write = inner.get("serialization", {}).get("function")
        if inner["type"] == "function-plain" and write is not None and isinstance(default, float):
            return write(default)
        make: Any = schema.get("default_factory")
        return default if make is None else make()


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario file, with a description of every key.

    Returns
    -------
    dict
    """
    schema = ScenarioSpec.model_json_schema(mode="validation", schema_generator=_Schema)
    return {"$schema": _Schema.schema_dialect} | schema


@dataclass(frozen=True)
class ScenarioKey:
    """One key of a scenario.

    Parameters
    ----------
    path : str
        Keys from the root, with dots between.
    default : object
        As a scenario has it; None where it has none.
    required : bool
    description : str
    is_list : bool
        It holds a list of sections; the keys behind it are those of each.
    """

    path: str
    default: Any
    required: bool
    description: str
    is_list: bool


def scenario_keys() -> list[ScenarioKey]:
    """Return every key of a scenario, those of a section behind it.

    Returns
    -------
    list of ScenarioKey
    """
    return list(_keys(ScenarioSpec, ()))


def _keys(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[ScenarioKey]:
    defaults = _defaults(model)
    for key, field in model.model_fields.items():
        below = section_of(model, (key,))
        default = defaults.get(key)
        yield ScenarioKey(
            ".".join((*path, key)), default, field.is_required(), field.description or "", is_list(model, key)
        )
        if below is not None:
            yield from _keys(below, (*path, key))


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return the defaults of a model's keys as a scenario has them; sections have theirs key by key."""
    values = {
        key: default
        for key, field in model.model_fields.items()
        if (default := field.get_default(call_default_factory=True)) is not None
        and not field.is_required()
        and (isinstance(default, Choice) or section_of(model, (key,)) is None)
    }
    return model.model_construct(**values).model_dump(include=set(values)) if values else {}
