"""Change single values of a scenario before it is validated: ``--set training.workers=32``.

A path names keys and positions in lists, with dots between them. Where the scenario has the short form of a choice
(``protocol: tcp``), a path may go on into it (``protocol.tcp.mtu``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simnet.errors import InputError, KeyPath, Problem
from simnet.scenario.document import Document, Place, python_document
from simnet.scenario.fields import shown
from simnet.scenario.protocol_models import is_protocol_file
from simnet.scenario.yaml_document import parse_yaml

__all__ = ["Override", "apply_overrides", "override_from_text", "overrides_from_mapping"]


def _itself(text: str) -> dict[str, Any]:
    return {text: {}}


def _file(text: str) -> dict[str, Any]:
    return {"file": text}


# Where text stands for a mapping, the mapping that it stands for.
_SHORT_FORMS: dict[KeyPath, Callable[[str], dict[str, Any]]] = {
    ("protocol",): lambda text: _file(text) if is_protocol_file(text) else _itself(text),
    ("training", "architecture"): _itself,
    ("training", "compression"): _itself,
    ("topology",): _file,
}


@dataclass(frozen=True)
class Override:
    """One value to be put into a scenario.

    Attributes
    ----------
    path : keys from the root; positions in lists are still text
    document : the value, and where it was written
    """

    path: tuple[str, ...]
    document: Document


def override_from_text(text: str, option: str = "--set") -> Override:
    """Return the override that ``PATH=VALUE`` asks for; the value is YAML.

    Parameters
    ----------
    text : str
    option : str
        The option it was given to, for messages.

    Returns
    -------
    Override

    Raises
    ------
    InputError
        No ``=``, no path, or a value that is not YAML.

    Examples
    --------
    >>> override_from_text("training.workers=32").path
    ('training', 'workers')
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        hint = "write it like training.workers=32"
        raise InputError(Problem(f"{shown(text)} names no key and value", hint, source=option))
    path = _path(name.strip(), option)
    before = name + equals
    try:
        document = parse_yaml(value, option)
    except InputError as error:
        raise InputError(_problem_behind(before, problem) for problem in error.problems) from None
    places = {inner: _place_behind(before, place) for inner, place in document.places.items()}
    root = places.get((), Place(option, (text,), 1, 1, 1, len(before) + 1))
    places[()] = replace(root, key_line=1, key_column=name.rfind(".") + 2)
    problems = tuple(_problem_behind(before, problem) for problem in document.problems)
    return Override(path, Document(document.data, option, places, problems))


def overrides_from_mapping(values: Mapping[str, object]) -> list[Override]:
    """Return the overrides of a mapping from path to value, such as ``{"training.workers": 32}``.

    Raises
    ------
    InputError
        A path that is not text or has an empty part.
    """
    return [
        Override(_path(path, "overrides"), replace(python_document(value, "overrides"), places=_nowhere("overrides")))
        for path, value in values.items()
    ]


def apply_overrides(document: Document, overrides: Iterable[Override]) -> Document:
    """Return a document with values replaced, the later override on top of the earlier.

    Raises
    ------
    InputError
        Paths that lead nowhere: through a value that is no mapping, or past the end of a list; all of them.
    """
    refused: list[Problem] = []
    for override in overrides:
        try:
            document = _apply(document, override)
        except InputError as error:
            refused.extend(error.problems)
    if refused:
        raise InputError([*document.problems, *refused])
    return document


def _place_behind(before: str, place: Place) -> Place:
    """Return a place in a text seen from one that has `before` in front of it."""
    return replace(
        place,
        lines=(before + place.lines[0], *place.lines[1:]),
        key_column=place.key_column + (len(before) if place.key_line == 1 else 0),
        column=place.column + (len(before) if place.line == 1 else 0),
    )


def _problem_behind(before: str, problem: Problem) -> Problem:
    if problem.line != 1:
        return problem
    return replace(problem, column=problem.column + len(before), text=before + problem.text)


def _path(text: object, source: str) -> tuple[str, ...]:
    parts = tuple(text.split(".")) if isinstance(text, str) else ()
    if not parts or not all(part.strip() for part in parts) or len(parts) > 20:
        hint = "write it like training.workers"
        raise InputError(Problem(f"{shown(text)} is not the path of a key", hint, source=source))
    return parts


def _nowhere(source: str) -> dict[KeyPath, Place]:
    return {(): Place(source, (), 0, 0, 0, 0)}


def _apply(document: Document, override: Override) -> Document:
    below = override.document
    places = dict(document.places)
    reached: list[KeyPath] = []
    new_place = below.places.get((), Place(below.source, (), 0, 0, 0, 0))

    def put(node: Any, path: KeyPath, rest: tuple[str, ...]) -> Any:
        if not rest:
            reached.append(path)
            for known in [known for known in places if known[: len(path)] == path]:
                del places[known]
            places.update({(*path, *inner): place for inner, place in below.places.items()})
            places[path] = new_place
            return below.data
        part, *others = rest
        # Of several jobs each has the sections that a scenario of one has.
        section = path[2:] if path[:1] == ("jobs",) else path
        if isinstance(node, str) and section in _SHORT_FORMS:
            node = _SHORT_FORMS[section](node)
            places[*path, *node] = places.get(path, new_place)
        if node is None:
            node = {}
            places[path] = new_place
        if isinstance(node, list):
            position = int(part) if _is_number(part) else len(node)
            if position >= len(node):
                there = f"positions from 0 to {len(node) - 1} are there" if node else "the list is empty"
                message = f"{_dotted(path)} has no position {part!r}"
                raise InputError(below.problem((), message, there, at_key=True))
            return [*node[:position], put(node[position], (*path, position), tuple(others)), *node[position + 1 :]]
        if not isinstance(node, dict):
            message, hint = f"{_dotted(path)} is {shown(node)}", f"so there is no {part!r} to set below it"
            raise InputError(below.problem((), message, hint, at_key=True))
        name: str | int = int(part) if _is_number(part) and int(part) in node else part
        return {**node, name: put(node.get(name), (*path, name), tuple(others))}

    data = put(document.data, (), override.path)
    [changed] = reached
    found = (problem.under(*changed) for problem in below.problems)
    return Document(data, document.source, places, (*document.problems, *found))


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 10


def _dotted(path: KeyPath) -> str:
    return ".".join(str(key) for key in path) or "the scenario"
