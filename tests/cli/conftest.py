"""Fixtures of the command-line tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import simnet
from simnet.cli.main import main


class Output(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(monkeypatch, capsys) -> Callable[..., Output]:
    """Run ``simnet ...`` in this process, in the working directory of the test."""

    def run(*arguments: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["simnet", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Output(int(left.value.code or 0), out, err)

    return run


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Go to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Return the environment for a ``simnet`` in a process of its own."""
    return os.environ | {"PYTHONPATH": str(Path(simnet.__file__).parents[1])}


@pytest.fixture
def process(environment, here) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``simnet ...`` in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "simnet.cli.main", *arguments],
            env=environment,
            cwd=here,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
