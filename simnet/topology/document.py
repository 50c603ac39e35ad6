"""A topology file as it was written: names, attributes and where they stand, before anything is checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simnet.errors import InputError, KeyPath, Problem

__all__ = ["MOST_PROBLEMS", "Document", "DocumentLink", "DocumentNode", "Places", "at_offset", "placed", "shortened"]

MOST_PROBLEMS = 200
"""How many problems are shown one by one."""

Places = dict[KeyPath, tuple[int, int]]
"""Line and column, both from 1, of parts of a document."""


@dataclass(frozen=True)
class DocumentNode:
    """A node: the `key` by which links refer to it, its name, its attributes, and its path in the document."""

    key: str
    name: str
    attributes: Mapping[str, Any]
    path: KeyPath = ()


@dataclass(frozen=True)
class DocumentLink:
    """A link, or a cable where `directed` is false, between the nodes of two keys."""

    source: str
    target: str
    attributes: Mapping[str, Any]
    directed: bool
    path: KeyPath = ()


@dataclass
class Document:
    """What a file says.

    Attributes
    ----------
    attributes : of the graph as a whole, besides `defaults`
    nodes, links : in file order
    defaults : attributes for links that lack them, and ``node_kind`` for nodes
    defaults_path : where these stand
    problems : what the reader found wrong and could read over; each with its path
    """

    attributes: dict[str, Any] = field(default_factory=dict)
    nodes: list[DocumentNode] = field(default_factory=list)
    links: list[DocumentLink] = field(default_factory=list)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    defaults_path: KeyPath = ("graph", "defaults")
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, path: KeyPath, message: str, hint: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(message, hint, path=path))


def at_offset(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def placed(problems: Iterable[Problem], places: Places, source: str, text: str) -> list[Problem]:
    """Return the problems at their lines, in the order of the file; those without a line at the end."""
    lines = text.split("\n")
    found = []
    for problem in problems:
        path = problem.path
        nearest_first = (path[:length] for length in range(len(path), -1, -1))
        line, column = next((places[part] for part in nearest_first if part in places), (0, 0))
        if problem.line:
            line, column = problem.line, problem.column
        shown = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""
        found.append(replace(problem, source=source, line=line, column=column, text=shown))
    return sorted(found, key=lambda problem: (problem.line == 0, problem.line, problem.column))


def shortened(problems: Sequence[Problem]) -> InputError:
    """Return the error of all problems, or of the first many and how much was left out."""
    rest = len(problems) - MOST_PROBLEMS
    return InputError([*problems[:MOST_PROBLEMS], Problem(f"and {rest} more problems")] if rest > 0 else problems)
