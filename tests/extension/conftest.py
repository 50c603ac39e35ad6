"""Processes in which packages are installed that add to simnet."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import simnet

EXAMPLE = Path(__file__).parent / "example_package"

# Many commands in one process, since each process takes a second or two to import numba and pandas.
_SCRIPT = """\
import contextlib, io, json, sys
from simnet.cli.main import main
done = []
for arguments in json.load(sys.stdin):
    sys.argv = ["simnet", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as left:
            status = int(left.code or 0)
    done.append([status, out.getvalue(), err.getvalue()])
json.dump([done, sorted(sys.modules)], sys.stdout)
"""


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


class Commands(NamedTuple):
    """What several commands left behind, and which modules they imported."""

    done: list[Done]
    modules: list[str]


@pytest.fixture(scope="session")
def example() -> Path:
    """Return the folder of the example package, with what an installer would note of it."""
    return EXAMPLE


@pytest.fixture(scope="session")
def commands() -> Callable[[Sequence[Path], Sequence[str], Path], Commands]:
    """Run commands, written as in a shell, in one process that finds packages in some folders, in a working folder."""

    def run(folders: Sequence[Path], lines: Sequence[str], working_folder: Path) -> Commands:
        paths = [Path(simnet.__file__).parents[1], *folders]
        finished = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            input=json.dumps([shlex.split(line) for line in lines]),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            cwd=working_folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        done, modules = json.loads(finished.stdout)
        return Commands([Done(*one) for one in done], modules)

    return run


@pytest.fixture(scope="session")
def add_package() -> Callable[..., None]:
    """Write a package of one module, and what an installer would note of it."""

    def add(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]], code: str = "") -> None:
        module = name.replace("-", "_")
        about = folder / f"{module}-1.0.dist-info"
        about.mkdir(parents=True)
        (folder / f"{module}.py").write_text(code, encoding="utf-8")
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        lines = [line for group, of in groups.items() for line in (f"[{group}]", *(f"{key} = {of[key]}" for key in of))]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return add
