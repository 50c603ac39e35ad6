"""Fixtures of the workload tests."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import pytest

REFERENCE = Path(os.environ.get("SIMNET_REFERENCE", Path(__file__).parents[3] / "shared"))

Rows = list[dict[str, str]]


@pytest.fixture(scope="session")
def reference_rows() -> Callable[[str], Rows]:
    """Read one of the tables that the shipped ones were made of; skips the test where they are not at hand."""

    def rows(name: str) -> Rows:
        path = REFERENCE / name
        if not path.is_file():
            pytest.skip(f"needs the reference table {name}")
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return rows


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a text to a file and return its path."""

    def written(text: str) -> Path:
        path = tmp_path / "input.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return written
