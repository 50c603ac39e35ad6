"""From a document to a topology: every attribute read, everything that is wrong collected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simnet.errors import KeyPath, Problem
from simnet.topology.attributes import (
    DEFAULTS_HINT,
    LINK_ATTRIBUTES,
    AttributeProblem,
    read_link_attributes,
    read_node_attributes,
)
from simnet.topology.document import Document, DocumentLink, DocumentNode
from simnet.topology.model import NODE_KINDS, Topology, rank_names

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx

__all__ = ["build_topology"]

_REQUIRED = {"bandwidth": "bandwidth_bytes_per_s", "latency": "latency_s", "kind": "kind"}
_SHOWN_NAMES = 8


def build_topology(
    document: Document, defaults: Mapping[str, Any] | None, name: str
) -> tuple[Topology, list[Problem], list[Problem]]:
    """Return the topology that a document describes, and all that is wrong with it.

    Parameters
    ----------
    document : Document
    defaults : mapping, optional
        Attributes for links that lack them, as in files, and ``node_kind`` for nodes; before those of the document.
    name : str
        Of the topology, if the document has none.

    Returns
    -------
    topology : Topology
        Of no use where there are problems.
    problems : list of Problem
        With their paths in the document.
    of_defaults : list of Problem
        Those of `defaults`, below the path ``defaults``.
    """
    build = _Build(document)
    build.problems += build.read_defaults(document.defaults, document.defaults_path)
    of_defaults = build.read_defaults(defaults or {}, ("defaults",))
    # Whether ranks are joined can be said where all nodes and ends of links are known, whatever their values.
    whole = not document.problems
    for node in document.nodes:
        whole &= build.node(node)
    for link in document.links:
        whole &= build.link(link)
    build.host_references()
    if whole:
        build.ranks()
    build.graph.graph.update(document.attributes)
    title = str(document.attributes.get("name") or name)
    build.graph.graph["name"] = title
    return Topology.from_graph(title, build.graph), build.problems, of_defaults


class _Build:
    """A graph under construction, and the problems so far."""

    def __init__(self, document: Document) -> None:
        import networkx as nx

        self.graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self.problems = list(document.problems)
        self._names: dict[str, str] = {}
        self._nodes: dict[str, DocumentNode] = {}
        self._link_defaults: dict[str, Any] = {}
        self._node_kind: str | None = None
        self._read: dict[Any, tuple[dict[str, Any], list[AttributeProblem]]] = {}

    def wrong(self, path: KeyPath, message: str, hint: str = "") -> None:
        self.problems.append(Problem(message, hint, path=path))

    def read_defaults(self, given: Mapping[str, Any], path: KeyPath) -> list[Problem]:
        """Take in defaults over those so far, and return what is wrong with them."""
        links = {key: value for key, value in given.items() if key != "node_kind"}
        found, wrong = read_link_attributes(links)
        if "node_kind" in given:
            node, more = read_node_attributes({"kind": given["node_kind"]})
            self._node_kind = node["kind"]
            wrong += [("node_kind", message, hint) for _, message, hint in more]
        known = {*_REQUIRED.values(), "buffer_bytes", "loss_probability"}
        slips = {attribute for attribute, _, _ in wrong}
        for key in found.keys() - known - slips:
            wrong.append((key, f"unknown default {key!r}", f"known: {', '.join((*LINK_ATTRIBUTES, 'node_kind'))}"))
        self._link_defaults |= {key: value for key, value in found.items() if key in known}
        return [Problem(message, hint, path=(*path, key)) for key, message, hint in sorted(wrong)]

    def node(self, node: DocumentNode) -> bool:
        """Add a node; return whether it is a new one of a known kind."""
        if node.key in self._names:
            self.wrong((*node.path, "id"), f"two nodes have the id {node.key!r}", "ids must differ")
            return False
        if node.name in self._nodes:
            self.wrong((*node.path, "label"), f"two nodes have the name {node.name!r}", "names must differ")
            return False
        if not node.name.isprintable() or not node.name.strip():
            self.wrong((*node.path, "id"), f"{node.name!r} cannot be the name of a node", "printable text is wanted")
        self._names[node.key] = node.name
        self._nodes[node.name] = node
        attributes, wrong = read_node_attributes(node.attributes)
        for attribute, message, hint in wrong:
            self.wrong((*node.path, attribute), f"node {node.name!r}: {message}", hint)
        if "kind" not in attributes:
            attributes["kind"] = self._node_kind or ""
            if self._node_kind is None:
                hint = f"give one of {', '.join(NODE_KINDS)}, or for all nodes 'defaults: {{node_kind: host}}'"
                self.wrong(node.path, f"node {node.name!r} has no kind", hint)
        self.graph.add_node(node.name, **attributes)
        return attributes["kind"] in NODE_KINDS

    def link(self, link: DocumentLink) -> bool:
        """Add a link, or both links of a cable; return whether both of its ends exist."""
        shown = f"link {self._shown(link.source)} -> {self._shown(link.target)}"
        dangling = [end for end in ("source", "target") if getattr(link, end) not in self._names]
        for end in dangling:
            self.wrong((*link.path, end), f"{shown}: there is no node {getattr(link, end)!r}", "add it to the nodes")
        if link.source == link.target and not dangling:
            self.wrong((*link.path, "target"), f"{shown} ends where it begins", "two nodes are wanted")
        given, wrong = self._read_link(link.attributes)
        for attribute, message, hint in wrong:
            self.wrong((*link.path, attribute), f"{shown}: {message}", hint)
        attributes = {**self._link_defaults, **given}
        missing = [name for name, key in _REQUIRED.items() if key not in attributes]
        if missing:
            self.wrong(link.path, f"{shown} has no {', no '.join(missing)}", DEFAULTS_HINT)
        if dangling:
            return False
        source, target = self._names[link.source], self._names[link.target]
        self.graph.add_edge(source, target, **attributes)
        if not link.directed:
            self.graph.add_edge(target, source, **attributes)
        return True

    def _read_link(self, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[AttributeProblem]]:
        """Read attributes; a file repeats the same ones thousands of times."""
        key = (*attributes.items(), *map(type, attributes.values()))
        try:
            known = self._read.get(key)
        except TypeError:  # a list or dictionary among the attributes
            return read_link_attributes(attributes)
        if known is None:
            known = self._read[key] = read_link_attributes(attributes)
        return known

    def _shown(self, key: str) -> str:
        return repr(self._names.get(key, key))

    def host_references(self) -> None:
        """Expect the attribute ``host`` to name a host; it may do so by the id as well."""
        for name, attributes in self.graph.nodes.items():
            if "host" not in attributes:
                continue
            reference = attributes["host"]
            host = reference if reference in self._nodes else self._names.get(reference, "")
            attributes["host"] = host
            path = (*self._nodes[name].path, "host")
            if not host:
                self.wrong(path, f"node {name!r}: there is no node {reference!r}", "the name of a host is wanted")
            elif self.graph.nodes[host]["kind"] != "host":
                self.wrong(path, f"node {name!r}: {host!r} is not a host", "the name of a host is wanted")

    def ranks(self) -> None:
        """Expect ranks, and a way from each to each."""
        ranks = rank_names(self.graph.nodes)
        if not ranks:
            self.wrong(("nodes",), "there are no ranks", "at least one node of kind gpu or host is wanted")
            return
        import networkx as nx

        first = ranks[0]
        for reach, said in ((nx.descendants, f"from {first!r} to"), (nx.ancestors, f"to {first!r} from")):
            reached = reach(self.graph, first)
            lost = [name for name in ranks if name not in reached and name != first]
            if lost:
                shown = ", ".join(lost[:_SHOWN_NAMES]) + (", …" if len(lost) > _SHOWN_NAMES else "")
                message = f"there is no way {said} {len(lost)} of {len(ranks)} ranks: {shown}"
                self.wrong(self._nodes[lost[0]].path, message, "every rank must reach every other")
                return
