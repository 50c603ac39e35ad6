"""GraphML, as networkx, yEd and Gephi write it; one flat graph a file, read with expat.

A document type is refused before anything in it is read, so there are no entities to expand or to fetch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from xml.parsers import expat

from simnet.errors import InputError, KeyPath, Problem
from simnet.topology.attributes import LINK_ATTRIBUTES
from simnet.topology.document import Document, DocumentLink, DocumentNode, Places, at_offset

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx

__all__ = ["places_in_graphml", "read_graphml", "write_graphml"]

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_DEEPEST = 100  # elements inside each other
_MOST_KEYS = 1000
_LONGEST_SHOWN = 60  # characters


def _whole(text: str) -> int:
    """Return a whole number in ASCII digits; Python would also read ``1_000`` and digits of other scripts."""
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        raise ValueError
    return int(text)


def _real(text: str) -> float:
    if not text.isascii() or "_" in text:
        raise ValueError
    return float(text)


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_TYPES: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _BOOLEANS[text.strip().lower()],
    "double": _real,
    "float": _real,
    "int": _whole,
    "integer": _whole,
    "long": _whole,
    "string": str,
}


def read_graphml(text: str) -> Document:
    """Return what the text says.

    Raises
    ------
    InputError
        It is not XML or not GraphML, or it has a document type; with line and column.
    """
    return _Reader(text, None).document


def places_in_graphml(text: str) -> Places:
    """Return where the elements of a text that can be read begin."""
    places: Places = {}
    _Reader(text, places)
    return places


def write_graphml(graph: nx.MultiDiGraph[str]) -> str:
    """Return a graph as GraphML; what is neither text, number nor truth value becomes JSON text."""
    import networkx as nx

    flat: nx.MultiDiGraph[str] = nx.MultiDiGraph(**_flat(graph.graph))
    flat.add_nodes_from((name, _flat(attributes)) for name, attributes in graph.nodes.items())
    flat.add_edges_from((*ends, _flat(attributes)) for ends, attributes in graph.edges.items())
    return "\n".join(nx.generate_graphml(flat, named_key_ids=True)) + "\n"


def _flat(attributes: dict[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool)
    return {key: value if isinstance(value, plain) else json.dumps(value) for key, value in attributes.items()}


@dataclass
class _Key:
    """A ``<key>``: name and type of an attribute, and of what (``node``, ``edge``, ``graph`` or ``all``)."""

    of: str
    name: str
    type: str


@dataclass
class _Element:
    """A node, edge or graph that is open: what its tag says, its path, where it begins, and its data so far."""

    given: dict[str, str]
    path: KeyPath
    at: tuple[int, int]
    attributes: dict[str, Any] = field(default_factory=dict)


class _Reader:
    """Takes in a text element by element; `places` is filled on the way where it is given."""

    def __init__(self, text: str, places: Places | None) -> None:
        self.document = Document(defaults_path=("key",))
        self._data = text.encode()
        self._places = places
        self._keys: dict[str, dict[str, _Key]] = {}  # by id, then by what they are for
        self._default_values: dict[str, dict[str, Any]] = {"node": {}, "edge": {}, "graph": {}}
        self._tags: list[str] = []
        self._elements: list[_Element] = []
        self._key: _Key | None = None
        self._text: list[str] | None = None
        self._text_at = (0, 0)
        self._directed = False
        self._graphs = 0
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            message = f"this is not XML: {expat.ErrorString(error.code)}"
            raise InputError(Problem(message, line=error.lineno, column=error.offset + 1)) from None

    def _here(self) -> tuple[int, int]:
        return self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1

    def _wrong(self, message: str, hint: str = "", at: tuple[int, int] | None = None) -> None:
        line, column = at or self._here()
        self.document.problems.append(Problem(message, hint, line=line, column=column))

    def _refuse(self, message: str, hint: str) -> NoReturn:
        line, column = self._here()
        raise InputError(Problem(message, hint, line=line, column=column))

    def _refuse_doctype(self, *_: object) -> None:
        # expat reports it from somewhere behind its first words.
        read = self._data[: self._parser.CurrentByteIndex + 1].decode(errors="ignore")
        line, column = at_offset(read, read.rfind("<!DOCTYPE"))
        message, hint = "a document type (DOCTYPE) is not accepted", "leave it out"
        raise InputError(Problem(message, hint, line=line, column=column))

    def _start(self, tag: str, given: dict[str, str]) -> None:
        namespace, _, name = tag.rpartition(" ")
        if namespace not in ("", _NAMESPACE):
            name = tag
        parent = self._tags[-1] if self._tags else ""
        self._tags.append(name)
        if len(self._tags) > _DEEPEST:
            self._refuse(f"more than {_DEEPEST} elements inside each other", "one flat graph a file is wanted")
        if not parent and name != "graphml":
            self._refuse(f"this is <{name}>, not GraphML", "<graphml> is wanted")
        elif name == "graph":
            self._start_graph(given)
        elif name == "node":
            self._open(_Element(given, ("nodes", len(self.document.nodes)), self._here()))
        elif name == "edge":
            self._open(_Element(given, ("edges", len(self.document.links)), self._here()))
        elif name == "hyperedge":
            self._wrong("a hyperedge is not a link between two nodes", "write a switch and its links")
        elif name == "key":
            self._start_key(given)
        elif name == "default" and self._key is not None:
            self._start_text(("key", self._key.name))
        elif name == "data" and parent in ("node", "edge", "graph"):
            self._start_data(given, parent)

    def _end(self, _: str) -> None:
        name = self._tags.pop()
        if name in ("data", "default") and self._text is not None and self._key is not None:
            value = self._converted(self._key, "".join(self._text))
            self._text = None
            if name == "default":
                self._end_default(self._key, value)
            elif value is not None:
                self._set(self._elements[-1].attributes, self._key.name, value)
        elif name == "node":
            self._end_node(self._elements.pop())
        elif name == "edge":
            self._end_edge(self._elements.pop())
        elif name == "graph":
            self.document.attributes.update(self._elements.pop().attributes)
        elif name == "key":
            self._key = None
        elif name == "graphml":
            self._set_defaults()

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _open(self, element: _Element) -> None:
        self._elements.append(element)
        if self._places is not None:
            self._places[element.path] = element.at

    def _start_graph(self, given: dict[str, str]) -> None:
        self._graphs += 1
        self._open(_Element(given, ("graph",), self._here()))
        if self._graphs > 1:
            where = "a graph inside of a node" if "node" in self._tags else "a second graph"
            self._wrong(f"{where} is not read", "one flat graph a file is wanted")
        default = given.get("edgedefault", "undirected")
        if default not in ("directed", "undirected"):
            self._wrong(f"edgedefault is {default!r}", "'directed' or 'undirected' is wanted")
        self._directed = default == "directed"

    def _start_key(self, given: dict[str, str]) -> None:
        kind = given.get("attr.type", "string")
        if kind not in _TYPES:
            self._wrong(f"unknown attr.type {kind!r}", f"known: {', '.join(_TYPES)}")
        # Keys without a name are for the drawing (yEd); their data are passed over.
        self._key = _Key(given.get("for", "all"), given.get("attr.name", ""), kind)
        name = given.get("id")
        if name is None:
            self._wrong("this <key> has no id", "data refer to it by its id")
            return
        if len(self._keys) > _MOST_KEYS:
            self._refuse(f"more than {_MOST_KEYS} keys", "simnet reads a handful")
        # Writers that make ids of names give the same to what is for nodes and what is for edges.
        same = self._keys.setdefault(name, {})
        if self._key.of in same or "all" in same or (same and self._key.of == "all"):
            self._wrong(f"two keys have the id {name!r}", "ids must differ")
        same[self._key.of] = self._key

    def _end_default(self, key: _Key, value: Any) -> None:
        values = [known for of, known in self._default_values.items() if key.of in (of, "all")]
        if key.name and any(key.name in known for known in values):
            self._wrong(f"{key.name!r} has a default already", "leave one out", at=self._text_at)
        if key.name and value is not None:
            for known in values:
                known[key.name] = value

    def _start_data(self, given: dict[str, str], parent: str) -> None:
        name = given.get("key", "")
        same = self._keys.get(name, {})
        # What a key is for is not always kept to.
        self._key = same.get(parent) or same.get("all") or next(iter(same.values()), None)
        if self._key is None:
            self._wrong(f"no <key> declares {name!r}", "declare it before the graph")
        elif self._key.name:
            self._start_text((*self._elements[-1].path, self._key.name))

    def _start_text(self, path: KeyPath) -> None:
        self._text = []
        self._text_at = self._here()
        if self._places is not None:
            self._places[path] = self._text_at

    def _converted(self, key: _Key, text: str) -> Any:
        try:
            return _TYPES.get(key.type, str)(text)
        except (ValueError, KeyError):
            shown = repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}…"
            self._wrong(f"{key.name}: {shown} is not of type {key.type}", at=self._text_at)
            return None

    def _set(self, attributes: dict[str, Any], name: str, value: Any) -> None:
        if name in attributes:
            self._wrong(f"{name!r} is given twice", "leave one out", at=self._text_at)
        attributes[name] = value

    def _end_node(self, element: _Element) -> None:
        name = element.given.get("id")
        if name is None:
            self._wrong("this node has no id", at=element.at)
            return
        attributes = self._default_values["node"] | element.attributes
        self.document.nodes.append(DocumentNode(name, name, attributes, element.path))

    def _end_edge(self, element: _Element) -> None:
        source, target = element.given.get("source"), element.given.get("target")
        if source is None or target is None:
            self._wrong(f"this edge has no {'source' if source is None else 'target'}", at=element.at)
            return
        said = element.given.get("directed", "true" if self._directed else "false")
        if said not in _BOOLEANS:
            self._wrong(f"directed is {said!r}", "'true' or 'false' is wanted", at=element.at)
        directed = _BOOLEANS.get(said, False)
        defaults = self._default_values["edge"]
        unknown = {name: value for name, value in defaults.items() if name not in LINK_ATTRIBUTES}
        attributes = unknown | element.attributes
        self.document.links.append(DocumentLink(source, target, attributes, directed, element.path))

    def _set_defaults(self) -> None:
        defaults = self._default_values["edge"]
        self.document.defaults = {name: value for name, value in defaults.items() if name in LINK_ATTRIBUTES}
