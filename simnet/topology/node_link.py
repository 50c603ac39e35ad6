"""Node-link JSON, as ``networkx.node_link_data`` writes it: ``{"directed": …, "nodes": [{"id": …}], "edges": […]}``.

The list of links is called ``edges`` since networkx 3.4 and was ``links`` before; both are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from simnet.errors import KeyPath, nearest
from simnet.json_text import parse_graph
from simnet.topology.document import Document, DocumentLink, DocumentNode

__all__ = ["read_node_link", "write_node_link"]

_LONGEST_SHOWN = 60  # characters
_TOP_LEVEL = ("directed", "multigraph", "graph", "nodes", "edges", "links")


def read_node_link(text: str) -> Document:
    """Return what the text says.

    Raises
    ------
    InputError
        It is not JSON, or so far from node-link JSON that nothing more can be said; with line and column.
    """
    data, repeated = parse_graph(text)
    document = Document()
    document.problems += repeated
    for key in ("directed", "multigraph"):
        if not isinstance(data.get(key, False), bool):
            document.wrong((key,), f"{key} is {_shown(data[key])}", "true or false is wanted")
    directed = data.get("directed", False)
    attributes = data.get("graph", {})
    if isinstance(attributes, dict):
        document.attributes = {key: value for key, value in attributes.items() if key != "defaults"}
        defaults = attributes.get("defaults", {})
        if isinstance(defaults, dict):
            document.defaults = defaults
        else:
            document.wrong(("graph", "defaults"), "defaults is not an object", _expected("bandwidth", "latency"))
    else:
        document.wrong(("graph",), "graph is not an object", 'expected {"name": …}')
    for number, node in _objects(document, data, "nodes"):
        _read_node(document, node, ("nodes", number))
    for key in _links_key(document, data):
        for number, link in _objects(document, data, key):
            _read_link(document, link, bool(directed), (key, number))
    return document


def _expected(*keys: str) -> str:
    return "expected {" + ", ".join(f'"{key}": …' for key in keys) + "}"


def _objects(document: Document, data: dict[str, Any], key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    entries = data.get(key)
    if key not in data:
        document.wrong((), f"there is no list of {key}", _meant(data, key))
    elif not isinstance(entries, list):
        document.wrong((key,), f"{key} is not a list", "expected [{…}, …]")
    else:
        for number, entry in enumerate(entries):
            if isinstance(entry, dict):
                yield number, entry
            else:
                document.wrong((key, number), f"{key}[{number}] is not an object", "expected {…}")


def _meant(data: dict[str, Any], key: str) -> str:
    """Say which key was probably written instead of the one that is missing."""
    for written in data:
        if written not in _TOP_LEVEL and nearest(written, _TOP_LEVEL).startswith(f"did you mean {key!r}"):
            return f"is {written!r} meant to be it?"
    return f'expected "{key}": [{{…}}, …]'


def _links_key(document: Document, data: dict[str, Any]) -> tuple[str, ...]:
    if "links" in data and "edges" in data:
        document.wrong(("links",), "both edges and links are given", "leave one out")
    return ("links",) if "links" in data else ("edges",)


def _read_node(document: Document, node: dict[str, Any], path: KeyPath) -> None:
    name = _name(document, node, "id", path)
    if name is not None:
        attributes = {key: value for key, value in node.items() if key != "id"}
        document.nodes.append(DocumentNode(name, name, attributes, path))


def _read_link(document: Document, link: dict[str, Any], directed: bool, path: KeyPath) -> None:
    source, target = _name(document, link, "source", path), _name(document, link, "target", path)
    if source is not None and target is not None:
        attributes = {key: value for key, value in link.items() if key not in ("source", "target", "key")}
        document.links.append(DocumentLink(source, target, attributes, directed, path))


def _name(document: Document, entry: dict[str, Any], key: str, path: KeyPath) -> str | None:
    if key not in entry:
        document.wrong(path, f"{'.'.join(map(str, path))} has no {key}", "text or a whole number is wanted")
        return None
    name = entry[key]
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        document.wrong((*path, key), f"{key} is {_shown(name)}", "text or a whole number is wanted")
        return None
    return str(name)


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def write_node_link(
    attributes: dict[str, Any],
    nodes: list[tuple[str, dict[str, Any]]],
    links: list[tuple[str, str, int, dict[str, Any]]],
) -> str:
    """Return node-link JSON with one node or link a line."""

    def lines(rows: list[dict[str, Any]]) -> str:
        return ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)

    node_rows = [{"id": name, **values} for name, values in nodes]
    link_rows = [{"source": source, "target": target, "key": key, **values} for source, target, key, values in links]
    return (
        '{"directed": true, "multigraph": true,\n'
        f' "graph": {json.dumps(attributes, ensure_ascii=False)},\n'
        f' "nodes": [\n{lines(node_rows)}\n ],\n'
        f' "edges": [\n{lines(link_rows)}\n ]}}\n'
    )
