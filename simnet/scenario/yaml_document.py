"""YAML text as plain data, with the place of every key and value.

The rules are those of YAML 1.2's core schema (https://yaml.org/spec/1.2.2/, chapter 10.3): ``on``, ``yes`` and ``no``
are text, ``010`` is ten, ``0o10`` eight, ``1e9`` a number. PyYAML reads the text and finds the places; it follows YAML
1.1 in what a scalar means, so that part is decided here. Beyond the core schema nothing is read: no tags that build
objects, no merge keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from simnet.errors import InputError, KeyPath, Problem
from simnet.reading import garbage_kept, read_text
from simnet.scenario.document import DEEPEST, MOST_VALUES, UNREADABLE, Document, Place, is_text, problem_at

__all__ = ["parse_yaml", "read_yaml", "write_yaml"]

LARGEST_FILE = 4_000_000  # bytes
LONGEST_NUMBER = 400  # characters
_LONG = 50_000  # characters
_READ_OTHERWISE = frozenset("\t?!\x85\u2028\u2029\ufeff")
"""Characters of which libyaml makes something else in some places."""

_TOO_DEEP = f"more than {DEEPEST} levels inside each other"
_TOO_MANY = f"more than {MOST_VALUES} values, counting aliases"
_TAG = "tag:yaml.org,2002:"
_TEXT, _SEQUENCE, _MAPPING = (f"{_TAG}{name}" for name in ("str", "seq", "map"))
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NOT_TEXT = frozenset("~nNtTfF+-.0123456789")
"""What begins with something else is text."""

_SCALARS = {
    f"{_TAG}{name}": rule
    for name, rule in zip(("null", "bool", "int", "float"), (_NULL, _BOOL, _INT, _FLOAT), strict=True)
}


def read_yaml(path: Path) -> Document:
    """Return the document in a file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Document

    Raises
    ------
    InputError
        Missing, a directory, too large, not UTF-8, not YAML.
    """
    return parse_yaml(read_text(path, "a YAML file", LARGEST_FILE), str(path))


def parse_yaml(text: str, source: str) -> Document:
    """Return the document in a text.

    Parameters
    ----------
    text : str
    source : str
        What messages call the text: a file name, or the option it was given to.

    Returns
    -------
    Document

    Raises
    ------
    InputError
        Where the text cannot be read at all. What can be passed over is in the document's `problems`.

    Examples
    --------
    >>> parse_yaml("{on: 010, rate: 1e3}", "--set x").data
    {'on': 10, 'rate': 1000.0}
    """
    lines = tuple(_LINE_END.split(text))
    try:
        with garbage_kept():
            node = _node_of(text)
    except yaml.reader.ReaderError as error:
        before = _LINE_END.split(text[: error.position])
        message, place = f"the character {error.character!r} may not stand in YAML", (len(before), len(before[-1]) + 1)
        if isinstance(error.character, int):
            message = f"the character U+{error.character:04X} may not stand in YAML"
        raise InputError(problem_at(lines, source, message, "", *place)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise InputError(problem_at(lines, source, *_plain_words(error), line, column)) from None
    except RecursionError:
        raise InputError(Problem("is nested too deeply", source=source)) from None
    reader = _Reader(source, lines)
    if node is None:
        return Document(None, source, {(): Place(source, lines, 1, 1, 1, 1)})
    with garbage_kept():
        data = reader.value(node, ())
    return Document(data, source, reader.places, tuple(reader.problems))


def write_yaml(data: Any) -> str:
    """Return plain data as YAML that `parse_yaml` gives back, and any other reader of YAML 1.1 or 1.2 as well.

    Parameters
    ----------
    data : object
        Mappings, lists, text, numbers, truth values and None.

    Returns
    -------
    str
    """
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, which also puts text in quotes that only YAML 1.2 takes for something else."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (PyYAML's own table)
        first: list(rules) for first, rules in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


class _Composer(yaml.composer.Composer):
    """PyYAML's way to make nodes, with the scalars of YAML 1.2, and limits on depth and size."""

    peek_event: Any
    depth = 0
    values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=mark)
        self.values += 1
        if self.values > MOST_VALUES:  # with keys
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem=_TOO_MANY, problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag of what has none."""
        if kind is not yaml.ScalarNode:
            return _SEQUENCE if kind is yaml.SequenceNode else _MAPPING
        if not implicit[0] or (value and value[0] not in _NOT_TEXT):
            return _TEXT
        return next((tag for tag, rule in _SCALARS.items() if rule.fullmatch(value)), _TEXT)

    def descend_resolver(self, node: yaml.Node | None, index: Any) -> None:
        """No tag goes by the place of a value."""

    def ascend_resolver(self) -> None:
        """No tag goes by the place of a value."""


class _Loader(_Composer, yaml.SafeLoader):
    """PyYAML's own reader."""


def _node_of(text: str) -> yaml.Node | None:
    """Return the one node of a text.

    PyYAML's own reader takes ten times as long as libyaml, which says less clearly what is wrong, and where: it reads
    what is long and right.
    """
    if len(text) > _LONG and not _READ_OTHERWISE.intersection(text) and yaml.__with_libyaml__:
        with suppress(yaml.YAMLError, UnicodeError):
            return _fast_loader(text).get_single_node()
    # A loader checks the characters of the whole text when it is made.
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _fast_loader(text: str) -> _Composer:
    """Return a loader that reads with libyaml."""
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    yaml.reader.Reader(text)  # the characters that PyYAML allows

    class FastLoader(_Composer, CParser):
        def __init__(self) -> None:
            CParser.__init__(self, text)
            yaml.composer.Composer.__init__(self)

    return FastLoader()


for _name, _rule in _SCALARS.items():
    _Dumper.add_implicit_resolver(_name, re.compile(rf"(?:{_rule.pattern})\Z"), None)


class _Reader:
    """Turns PyYAML's nodes into data, and notes places and problems."""

    def __init__(self, source: str, lines: tuple[str, ...]) -> None:
        self.source = source
        self.lines = lines
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._values = 0

    def value(self, node: yaml.Node, path: KeyPath, key: yaml.Node | None = None) -> Any:
        start, key_start = node.start_mark, (key or node).start_mark
        self.places[path] = Place(
            self.source, self.lines, key_start.line + 1, key_start.column + 1, start.line + 1, start.column + 1
        )
        self._values += 1
        if self._values > MOST_VALUES:
            raise InputError(self._problem(node, path, _TOO_MANY))
        if id(node) in self._open:
            raise InputError(self._problem(node, path, "an alias stands inside what it repeats"))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if len(path) >= DEEPEST:  # reached through aliases only: the loader counts what is written
            raise InputError(self._problem(node, path, _TOO_DEEP))
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                self._refuse_tag(node, path, "seq")
                return [self.value(child, (*path, place)) for place, child in enumerate(node.value)]
            self._refuse_tag(node, path, "map")
            return dict(self._entries(node, path))
        finally:
            self._open.discard(id(node))

    def _entries(self, node: yaml.Node, path: KeyPath) -> Iterator[tuple[str | int, Any]]:
        first_line: dict[str, int] = {}  # a number and the same as text are one key
        for key_node, value_node in node.value:
            key = self._scalar(key_node, path) if isinstance(key_node, yaml.ScalarNode) else None
            if key is UNREADABLE:
                continue
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                message, hint = "a list or mapping cannot be a key", ""
                if isinstance(key_node, yaml.ScalarNode):
                    message = f"the key {key_node.value or 'null'!a} is neither text nor a whole number"
                    hint = "put it in quotes if text is meant"
                self.problems.append(self._problem(key_node, path, message, hint))
                continue
            if str(key) in first_line:
                hint = f"it was given on line {first_line[str(key)]} before"
                self.problems.append(self._problem(key_node, (*path, key), f"the key {key!r} is given twice", hint))
                continue
            first_line[str(key)] = key_node.start_mark.line + 1
            yield key, self.value(value_node, (*path, key), key_node)

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        tag, text = node.tag, node.value
        if tag == f"{_TAG}str":
            if not is_text(text):
                self.problems.append(self._problem(node, path, "half a character (a surrogate) is not text"))
                return UNREADABLE
            return str(text)
        rule = _SCALARS.get(tag)
        if rule is None:
            self._refuse_tag(node, path, "")
            return UNREADABLE
        if not rule.fullmatch(text):
            self.problems.append(self._problem(node, path, f"{text!r} is not of type {tag.removeprefix(_TAG)}"))
            return UNREADABLE
        if rule is _NULL:
            return None
        if rule is _BOOL:
            return str(text).lower() == "true"
        if len(text) > LONGEST_NUMBER:
            self.problems.append(
                self._problem(
                    node, path, f"a number of {len(text)} digits is too long", f"at most {LONGEST_NUMBER} are read"
                )
            )
            return UNREADABLE
        return _integer(text) if rule is _INT else _float(text)

    def _refuse_tag(self, node: yaml.Node, path: KeyPath, allowed: str) -> None:
        if node.tag != f"{_TAG}{allowed}":
            shown = node.tag.replace(_TAG, "!!")
            self.problems.append(self._problem(node, path, f"the tag {shown!r} is not allowed", "leave it out"))

    def _problem(self, node: yaml.Node, path: KeyPath, message: str, hint: str = "") -> Problem:
        mark = node.start_mark
        return problem_at(self.lines, self.source, message, hint, mark.line + 1, mark.column + 1, path)


def _integer(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text[2:] if base != 10 else text, base)


def _float(text: str) -> float:
    lowered = text.lower()
    if lowered.endswith(".inf"):
        return -math.inf if lowered.startswith("-") else math.inf
    return math.nan if lowered == ".nan" else float(text)


def _plain_words(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    """Return PyYAML's complaint and a hint for the mistakes that people make."""
    said = (error.problem or "cannot be read as YAML").strip()
    if error.context and error.context.startswith("found duplicate anchor"):
        said = error.context
    for beginning, message, hint in _COMPLAINTS:
        if said.startswith(beginning):
            return message, hint
    message = said.replace("<", "").replace(">", "")
    context = f" {error.context}" if error.context else ""
    return f"not YAML{context}: {message}", ""


_COMPLAINTS = (
    ("expected the node content", "a value is missing here", "is a bracket left open?"),
    (
        "mapping values are not allowed",
        "a second colon stands in this line, or the line is indented wrongly",
        "put text that contains ': ' in quotes",
    ),
    (
        "could not find expected ':'",
        "a key without a colon",
        "write 'key: value'",
    ),
    (
        "found character '\\t'",
        "a tab where YAML wants spaces",
        "indent with spaces",
    ),
    (
        "expected a single document",
        "a second document begins here",
        "one document a file is wanted",
    ),
    ("but found another document", "a second document begins here", "one document a file is wanted"),
    ("found duplicate anchor", "an anchor with this name was set before", "give each anchor its own name"),
    (_TOO_DEEP, _TOO_DEEP, ""),
    (_TOO_MANY, _TOO_MANY, ""),
    (
        "expected ',' or '}'",
        "a mapping '{' that is not closed, or an entry without a comma before it",
        "write '{key: value, key: value}'",
    ),
    (
        "expected ',' or ']'",
        "a list '[' that is not closed, or an element without a comma before it",
        "write '[value, value]'",
    ),
)
