"""Topology files: node-link JSON, GraphML and GML, told apart by suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simnet.errors import InputError, Problem, nearest
from simnet.json_text import json_places
from simnet.reading import garbage_kept, read_text
from simnet.topology.attributes import as_text
from simnet.topology.checks import build_topology
from simnet.topology.document import Document, DocumentLink, DocumentNode, Places, placed, shortened
from simnet.topology.gml import places_in_gml, read_gml, write_gml
from simnet.topology.graphml import places_in_graphml, read_graphml, write_graphml
from simnet.topology.model import Topology
from simnet.topology.node_link import read_node_link, write_node_link
from simnet.writing import write_whole

if TYPE_CHECKING:
    # Loaded where it is needed: it takes as long as many a simulation.
    import networkx as nx

__all__ = ["TOPOLOGY_SUFFIXES", "check_suffix", "load_topology_file", "save_topology", "topology_from_graph"]

_READERS: dict[str, tuple[Callable[[str], Document], Callable[[str, list[Problem]], Places]]] = {
    ".json": (read_node_link, lambda text, problems: json_places(text, {problem.path for problem in problems})),
    ".graphml": (read_graphml, lambda text, _: places_in_graphml(text)),
    ".gml": (read_gml, lambda text, problems: places_in_gml(text, [problem.path for problem in problems])),
}

TOPOLOGY_SUFFIXES = tuple(_READERS)
"""Suffixes of the files that can be read and written."""


def load_topology_file(path: str | Path, defaults: Mapping[str, Any] | None = None) -> Topology:
    """Read a topology from a file.

    An undirected file lists cables, each of which becomes two links; the links of a directed file are taken as they
    are. Parallel links are kept. ``defaults`` among the attributes of the graph fill in what links lack.

    Parameters
    ----------
    path : str or Path
        Node-link JSON (``.json``), GraphML (``.graphml``) or GML (``.gml``).
    defaults : mapping, optional
        Attributes for links that lack them, as text with units: ``bandwidth``, ``latency``, ``kind``, ``buffer``,
        ``loss_probability``; and ``node_kind`` for nodes. They go before the defaults of the file.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        Everything that is wrong with the file, in its order, with line and column; and with `defaults`, below the path
        ``defaults`` and without a source.
    """
    with garbage_kept():
        return _load(Path(path), defaults)


def _load(path: Path, defaults: Mapping[str, Any] | None) -> Topology:
    read, places_in = _READERS[check_suffix(path)]
    source = str(path)
    text = read_text(path, "a topology file")
    try:
        document = read(text)
    except InputError as error:
        raise InputError(placed(error.problems, {}, source, text)) from None
    topology, problems, of_defaults = build_topology(document, defaults, path.stem)
    if problems:
        problems = placed(problems, places_in(text, problems), source, text)
    if problems or of_defaults:
        raise shortened([*problems, *of_defaults])
    return topology


def topology_from_graph(graph: nx.Graph[Any], name: str = "", defaults: Mapping[str, Any] | None = None) -> Topology:
    """Return the topology of a networkx graph of any type, checked like a file.

    Parameters
    ----------
    graph : networkx graph
        Attributes as in files: text with units, or numbers with the unit in the name. Edges of undirected graphs are
        cables.
    name : str
        By default that of the graph.
    defaults : mapping, optional
        As of `load_topology_file`.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        Everything that is wrong.
    """
    attributes = {key: value for key, value in graph.graph.items() if key != "defaults"}
    document = Document(attributes=attributes, defaults=graph.graph.get("defaults", {}))
    for node, given in graph.nodes.items():
        document.nodes.append(DocumentNode(str(node), str(node), given))
    for ends, given in graph.edges.items():
        document.links.append(DocumentLink(str(ends[0]), str(ends[1]), given, graph.is_directed()))
    if name:
        attributes["name"] = name
    topology, problems, of_defaults = build_topology(document, defaults, "topology")
    if problems or of_defaults:
        raise shortened([*problems, *of_defaults])
    return topology


def save_topology(topology: Topology, path: str | Path) -> None:
    """Write a topology to a file that `load_topology_file` reads back as exactly the same.

    Parameters
    ----------
    topology : Topology
    path : str or Path
        The suffix says in which format, as for `load_topology_file`.

    Raises
    ------
    InputError
        Unknown suffix, or there can be no such file.
    OutputError
        The machine cannot take it.
    """
    path = Path(path)
    suffix = check_suffix(path)
    nodes = [(name, as_text(attributes)) for name, attributes in topology.graph.nodes.items()]
    links = [(*ends, as_text(attributes)) for ends, attributes in topology.graph.edges.items()]
    attributes = {**topology.graph.graph, "name": topology.name}
    if suffix == ".json":
        text = write_node_link(attributes, nodes, links)
    else:
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(**attributes)
        graph.add_nodes_from(nodes)
        graph.add_edges_from(links)
        text = write_graphml(graph) if suffix == ".graphml" else write_gml(graph)
    with write_whole(path) as made:
        made.write_text(text, encoding="utf-8")


def check_suffix(path: Path) -> str:
    """Return the suffix, one of `TOPOLOGY_SUFFIXES`, or refuse the name of a file that is of no known format.

    Parameters
    ----------
    path : Path
        It need not exist.

    Returns
    -------
    str
        In small letters, with its dot.

    Raises
    ------
    InputError
        It is of no known format.
    """
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        hint = nearest(suffix, _READERS) if suffix else f"known: {', '.join(_READERS)}"
        raise InputError(Problem(f"{path.name!r} is no topology file by its suffix", hint, source=str(path)))
    return suffix
