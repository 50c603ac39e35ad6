"""Topology files as text in which the wrong places are marked.

In these texts every § stands right before a place that must be pointed at; they are taken out before reading.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simnet.errors import InputError, Problem
from simnet.topology import load_topology_file

DEFAULTS = {"bandwidth": "1 Gbps", "latency": "1 us", "kind": "wan"}


def problems(folder: Path, suffix: str, marked: str, **defaults: object) -> list[Problem]:
    """Read a text that is wrong at the marked places, and expect problems there in this order."""
    path = folder / f"cluster{suffix}"
    path.write_text(marked.replace("§", ""), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_topology_file(path, defaults or None)
    found = list(caught.value.problems)
    assert [(problem.line, problem.column) for problem in found if problem.line] == places(marked)
    for problem in found:
        if problem.line:
            assert problem.source == str(path)
            assert problem.text == marked.replace("§", "").split("\n")[problem.line - 1]
    return found


def places(marked: str) -> list[tuple[int, int]]:
    found = []
    for number, line in enumerate(marked.split("\n"), start=1):
        parts = line.split("§")
        column = 1
        for part in parts[:-1]:
            column += len(part)
            found.append((number, column))
    return found


def said(found: list[Problem]) -> list[str]:
    return [f"{problem.message}; {problem.hint}" for problem in found]


def expect(found: list[Problem], *fragments: str) -> None:
    assert len(found) == len(fragments), said(found)
    for text, fragment in zip(said(found), fragments, strict=True):
        assert fragment in text
