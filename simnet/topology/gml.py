"""GML, as networkx, Gephi and the Internet Topology Zoo write it.

Nodes are referred to by ``id`` and called by ``label``; where labels repeat, the id is added to them.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from simnet.errors import InputError, KeyPath, Problem
from simnet.json_text import places_in
from simnet.topology.document import Document, DocumentLink, DocumentNode, Places, at_offset

__all__ = ["places_in_gml", "read_gml", "write_gml"]

_TOKEN = re.compile(
    r"""\s*(?:\#[^\n]*\s*)*  # comments run to the end of the line
    (?:(?P<key>[A-Za-z_][0-9A-Za-z_]*)(?=[\s\["])
    |(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[Ee][+-]?[0-9]+)?|\.[0-9]+(?:[Ee][+-]?[0-9]+)?|INF|NAN)(?=[\s\]]|\Z))
    |"(?P<string>[^"]*)"
    |(?P<open>\[)
    |(?P<close>\])
    |(?P<end>\Z)
    |(?P<unknown>\S+))""",
    re.VERBOSE,
)

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx
_DEEPEST = 100  # lists inside each other
_LONGEST_NUMBER = 400  # characters
_LIST_START = "_networkx_list_start"


class _Pair(NamedTuple):
    """A key, its value (a list of pairs where it is in brackets) and where the value begins."""

    key: str
    value: Any
    offset: int


def read_gml(text: str) -> Document:
    """Return what the text says.

    Raises
    ------
    InputError
        It is not GML; with line and column.
    """
    return _document(text, None)


def places_in_gml(text: str, wanted: Collection[KeyPath]) -> Places:
    """Return where the values at some paths of a text that can be read begin, and those that they are in."""
    offsets: dict[KeyPath, int] = {}
    _document(text, offsets)
    paths = {path[:length] for path in wanted for length in range(len(path) + 1)}
    place = places_in(text)
    return {path: place(offsets[path]) for path in paths if path in offsets}


def write_gml(graph: nx.MultiDiGraph[str]) -> str:
    """Return a graph as GML.

    Raises
    ------
    InputError
        An attribute has a name or value that GML cannot hold.
    """
    import networkx as nx

    try:
        return "\n".join(nx.generate_gml(graph)) + "\n"
    except nx.NetworkXError as error:
        raise InputError(Problem(f"this topology cannot be written as GML: {error}", "write JSON")) from None


def _document(text: str, offsets: dict[KeyPath, int] | None) -> Document:
    document = Document()
    graphs = [pair for pair in _pairs(text) if pair.key == "graph" and isinstance(pair.value, list)]
    if len(graphs) != 1:
        message = f"there are {len(graphs)} graphs" if graphs else "there is no 'graph [ … ]'"
        raise InputError(Problem(message, "one graph a file is wanted", line=1, column=1))
    read = _Reader(document, offsets)
    (graph,) = graphs
    read.place((), graph.offset)
    directed = any(pair.key == "directed" and pair.value == 1 for pair in graph.value)
    for pair in graph.value:
        if pair.key in ("directed", "multigraph") and pair.value not in (0, 1):
            read.place((pair.key,), pair.offset)
            shown = "a list" if isinstance(pair.value, list) else repr(pair.value)
            document.wrong((pair.key,), f"{pair.key} is {shown}", "0 or 1 is wanted")
    nodes = [pair for pair in graph.value if pair.key == "node"]
    edges = [pair for pair in graph.value if pair.key == "edge"]
    rest = [pair for pair in graph.value if pair.key not in ("node", "edge", "directed", "multigraph")]
    attributes = read.mapping(rest, ("graph",))
    if "label" in attributes:
        attributes.setdefault("name", attributes.pop("label"))
    defaults = attributes.pop("defaults", {})
    if isinstance(defaults, dict):
        document.defaults = defaults
    else:
        document.wrong(("graph", "defaults"), "defaults is no list", 'expected [ bandwidth "100 Gbps" latency "1 us" ]')
    document.attributes = attributes
    read.nodes(nodes)
    read.edges(edges, directed)
    return document


class _Reader:
    """Turns pairs into nodes and links, and notes where they stand if `offsets` is given."""

    def __init__(self, document: Document, offsets: dict[KeyPath, int] | None) -> None:
        self._document = document
        self._offsets = offsets

    def place(self, path: KeyPath, offset: int) -> None:
        if self._offsets is not None:
            self._offsets[path] = offset

    def mapping(self, pairs: list[_Pair], path: KeyPath) -> dict[str, Any]:
        """Return pairs as a dictionary; keys that repeat hold lists."""
        found: dict[str, list[Any]] = {}
        for pair in pairs:
            self.place((*path, pair.key), pair.offset)
            value = self.mapping(pair.value, (*path, pair.key)) if isinstance(pair.value, list) else pair.value
            found.setdefault(pair.key, []).append(value)
        return {
            key: values[0] if len(values) == 1 else [value for value in values if value != _LIST_START]
            for key, values in found.items()
        }

    def nodes(self, pairs: list[_Pair]) -> None:
        entries: list[tuple[str, dict[str, Any], KeyPath]] = []
        for number, attributes in enumerate(self._entries(pairs, "node")):
            path: KeyPath = ("node", number)
            if attributes is None:
                continue
            if "id" in attributes:
                entries.append((str(attributes.pop("id")), attributes, path))
            else:
                self._document.wrong(path, f"node {number} has no id", "a whole number is wanted")
        labels = Counter(str(attributes.get("label", key)) for key, attributes, _ in entries)
        for key, attributes, place in entries:
            label = str(attributes.pop("label", key))
            name = label if labels[label] == 1 else f"{label}#{key}"
            self._document.nodes.append(DocumentNode(key, name, attributes, place))

    def edges(self, pairs: list[_Pair], directed: bool) -> None:
        for number, attributes in enumerate(self._entries(pairs, "edge")):
            path: KeyPath = ("edge", number)
            if attributes is None:
                continue
            missing = [key for key in ("source", "target") if key not in attributes]
            if missing:
                self._document.wrong(path, f"edge {number} has no {' and no '.join(missing)}", "a node's id is wanted")
                continue
            source, target = (str(attributes.pop(key)) for key in ("source", "target"))
            attributes.pop("key", None)
            self._document.links.append(DocumentLink(source, target, attributes, directed, path))

    def _entries(self, pairs: list[_Pair], key: str) -> list[dict[str, Any] | None]:
        entries: list[dict[str, Any] | None] = []
        for number, pair in enumerate(pairs):
            self.place((key, number), pair.offset)
            if isinstance(pair.value, list):
                entries.append(self.mapping(pair.value, (key, number)))
            else:
                self._document.wrong((key, number), f"{key} {number} is no list", f"expected {key} [ … ]")
                entries.append(None)
        return entries


def _pairs(text: str) -> list[_Pair]:
    """Read the whole text as pairs of a key and a value."""
    root: list[_Pair] = []
    lists = [root]
    opened: list[int] = []
    key = ""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "key":
            if key:
                raise _syntax(text, match.start(kind), f"{key!r} has no value")
            key = match["key"]
        elif kind == "string" and key:
            lists[-1].append(_Pair(key, html.unescape(match["string"]), match.start(kind) - 1))
            key = ""
        elif kind == "number" and key:
            if len(match["number"]) > _LONGEST_NUMBER:
                raise _syntax(text, match.start(kind), f"a number of {len(match['number'])} digits is too long")
            lists[-1].append(_Pair(key, _number(match["number"]), match.start(kind)))
            key = ""
        elif kind == "open" and key:
            value: list[_Pair] = []
            lists[-1].append(_Pair(key, value, match.start(kind)))
            lists.append(value)
            opened.append(match.start(kind))
            if len(opened) > _DEEPEST:
                raise _syntax(text, opened[-1], f"more than {_DEEPEST} lists inside each other")
            key = ""
        elif kind == "close" and opened and not key:
            lists.pop()
            opened.pop()
        elif kind == "end":
            break
        else:
            raise _syntax(text, *_unexpected(match, key))
    if opened:
        raise _syntax(text, opened[-1], "this '[' is never closed")
    if key:
        raise _syntax(text, len(text.rstrip()), f"{key!r} has no value")
    return root


def _unexpected(match: re.Match[str], key: str) -> tuple[int, str]:
    """Say where and why a token cannot stand where it does."""
    kind = match.lastgroup or "end"
    if kind == "unknown":
        quote = match[kind].startswith('"')
        return match.start(kind), "this text is never closed" if quote else f"{match[kind][:20]!r} is not expected"
    if kind == "close":
        return match.start(kind), f"{key!r} has no value" if key else "nothing is open that ']' could close"
    return match.start(kind) - (kind == "string"), "a key is expected before a value"


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _syntax(text: str, offset: int, message: str) -> InputError:
    line, column = at_offset(text, offset)
    return InputError(Problem(f"this is not GML: {message}", line=line, column=column))
