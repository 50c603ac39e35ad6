"""The examples in README and docs: run as they stand, and compared with what stands below them.

Code blocks are read by their first line:

* ``console``: lines that begin with ``$`` are commands, the others what they print;
* a language and a file name (``yaml my_job.yaml``): the file, written before what follows runs;
* ``python``: run; a block ``text`` right behind it is what it prints;
* a comment ``<!-- file: SOURCE -> NAME -->`` copies a file of the repository;
* a comment ``<!-- installed: FOLDER -->``: commands find the package in this folder of the repository, as if installed.

Everything on a page runs in one empty folder, in order. Other blocks are not run. Commands are ``simnet ...``,
``python FILE``, ``make demo``, ``cat FILE``, ``head -N FILE`` and ``ls FOLDER``, and ``| grep -E PATTERN`` behind them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["Example", "difference", "run_page"]

ROOT = Path(__file__).parents[1]

_BLOCK = re.compile(r"^```(?P<about>[^\n`]+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_COMPILING = "compiling the simulation kernels"
_COPY = re.compile(r"<!-- file: (\S+) -> (\S+) -->")
_INSTALLED = re.compile(r"<!-- installed: (\S+) -->")
_CLOCK = re.compile(r"^wall_time_s .*$|(?<=\"wall_time_s\": )[0-9.e-]+", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A block whose output is shown.

    Parameters
    ----------
    line : int
        Of the page, from 1.
    shown : str
        The text of the block.
    printed : str
        The text as it would be if it were written now.
    start, end : int
        Where `shown` stands in the page.
    """

    line: int
    shown: str
    printed: str
    start: int
    end: int


def run_page(page: str, folder: Path) -> Iterator[Example]:
    """Run everything on a page in a folder; yield the blocks that show output.

    Parameters
    ----------
    page : str
        Markdown.
    folder : Path
        Empty.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    waiting: str | None = None
    last_end = 0
    for source, name in _COPY.findall(page):
        shutil.copy(ROOT / source, folder / name)
    installed = [str(ROOT / package) for package in _INSTALLED.findall(page)]
    with contextlib.chdir(folder), mock.patch.object(sys, "path", [*sys.path, *installed]):
        for block in _BLOCK.finditer(page):
            language, _, file = block["about"].partition(" ")
            printed = None
            if language == "console":
                printed = _console(block["text"], installed)
            elif file:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).write_text(block["text"], encoding="utf-8")
            elif language == "python":
                waiting = _printed_by(lambda text=block["text"]: exec(compile(text, "example", "exec"), names))
            elif language == "text" and waiting is not None and not page[last_end : block.start()].strip():
                printed = waiting
            if language != "python":
                waiting = None
            last_end = block.end()
            if printed is not None:
                line = page.count("\n", 0, block.start()) + 1
                yield Example(line, block["text"], printed, block.start("text"), block.end("text"))


def difference(example: Example) -> bool:
    """Tell whether what is printed differs from what is shown, apart from the time on the clock."""
    return _comparable(example.shown) != _comparable(example.printed)


def _comparable(text: str) -> str:
    return _CLOCK.sub("wall_time_s", text)


def _console(text: str, installed: list[str]) -> str:
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{_printed_by(lambda line=line: _pipeline(line[2:], installed))}" for line in commands)


def _pipeline(line: str, installed: list[str]) -> None:
    words = shlex.split(line)
    if "|" not in words:
        _command(words, installed)
        return
    pipe = words.index("|")
    grep, option, pattern = words[pipe + 1 :]
    if (grep, option) != ("grep", "-E"):
        raise ValueError(f"an example cannot run {line!r}")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        _command(words[:pipe], installed)
    print("\n".join(found for found in output.getvalue().splitlines() if re.search(pattern, found)))


def _printed_by(action: Any) -> str:
    """Return what an action prints, on both outputs, without ends of spaces and what is said only once."""
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(output):
        action()
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith(_COMPILING))


def _command(words: list[str], installed: list[str]) -> None:
    program, *arguments = words
    if program == "make":
        _command(_recipe(*arguments), installed)
    elif program == "simnet" and installed:
        _simnet_of_its_own(arguments, installed)
    elif program == "simnet":
        _simnet(arguments)
    elif program == "python":
        runpy.run_path(arguments[0], run_name="__main__")
    elif program == "cat":
        print(Path(arguments[0]).read_text(encoding="utf-8"), end="")
    elif program == "head":
        lines = Path(arguments[1]).read_text(encoding="utf-8").splitlines()
        print("\n".join(lines[: int(arguments[0].removeprefix("-"))]))
    elif program == "ls":
        print("\n".join(sorted(entry.name for entry in Path(arguments[0]).iterdir())))
    else:
        raise ValueError(f"an example cannot run {program!r}")


def _recipe(target: str) -> list[str]:
    """Return the one command of a target of the Makefile."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"^{target}:.*\n\t(.*)$", text, re.MULTILINE)
    if not found:
        raise ValueError(f"the Makefile has no target {target!r}")
    return shlex.split(found[1].replace("$(BIN)/", ""))


def _simnet(arguments: list[str]) -> None:
    from simnet.cli.main import main

    with mock.patch.object(sys, "argv", ["simnet", *arguments]), contextlib.suppress(SystemExit):
        main()


def _simnet_of_its_own(arguments: list[str], installed: list[str]) -> None:
    """Run the command in a process of its own: packages are looked for once in a process."""
    paths = os.pathsep.join([str(ROOT), *installed])
    finished = subprocess.run(
        [sys.executable, "-m", "simnet", *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(finished.stdout, end="")
