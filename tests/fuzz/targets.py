"""Inputs loaded as their kind is, and what must not happen meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from simnet import calibrate
from simnet.errors import InputError, SimnetError
from simnet.experiment.validation.cases import load_data_set
from simnet.experiment.validation.measurements import Measurement, read_measurements
from simnet.scenario import load_scenario, load_topology
from simnet.scenario.build import load_protocol
from simnet.scenario.sweep.load import load_sweep_file
from simnet.workload import from_profile
from simnet.workload.csv_table import read_table

from .corpus import ROOT, Input, companions
from .mutations import SENTINEL

__all__ = ["TARGETS", "Fault", "Outcome", "Watch", "loaded", "workplace", "write_input"]

LONGEST_S = 20
_FOREIGN_WORDS = ("pydantic", "Input should be", "Value error", "Traceback", "object at 0x")


class Fault(Exception):  # noqa: N818 (it tells of a fault in what is tested, not in the tests)
    """Something that must not happen, whatever the input is."""


class _TooLong(BaseException):
    """The time is over; no handler of errors may catch it."""


@dataclass(frozen=True)
class Outcome:
    """What became of an input: whether it was loaded, or which of its problems have no line."""

    is_loaded: bool
    without_line: tuple[str, ...] = ()


def _in_scenario(key: str) -> Callable[[Path], object]:
    def load(path: Path) -> object:
        workload = {key: path.name, "batch_size": 32} | ({} if key == "graph" else {"gpu": "v100"})
        return load_scenario({"topology": {"star": {"hosts": 4}}, "protocol": "tcp", "workload": workload})

    return load


@cache
def _measurements() -> tuple[Measurement, ...]:
    return read_measurements(ROOT / "validation" / "measurements.csv")


def _data_set(path: Path) -> object:
    found = load_data_set(path)
    rows = _measurements()
    return found.about, found.cases(rows[:50])


@cache
def _columns() -> tuple[str, ...]:
    lines = [path.read_text(encoding="utf-8").splitlines() for path in sorted(ROOT.glob("workloads/**/*.csv"))]
    headers = [next(line for line in rows if not line.startswith("#")) for rows in lines]
    return tuple(sorted({column for header in headers for column in header.split(",")}))


TARGETS: dict[str, Callable[[Path], object]] = {
    "scenario": load_scenario,
    "sweep": load_sweep_file,
    "topology": load_topology,
    "layers": _in_scenario("file"),
    "trace": _in_scenario("trace"),
    "graph": _in_scenario("graph"),
    "profile": from_profile,
    "table": lambda path: tuple(read_table(path, (), _columns())),
    "data_set": _data_set,
    "measurements": read_measurements,
    "log": calibrate,
    "protocol": load_protocol,
}


@dataclass
class Watch:
    """Notes what a process does that no loading may: it writes a file, runs a program, or calls somebody."""

    is_on: bool = False
    seen: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Be told of an event by Python's audit hooks (PEP 578)."""
        if not self.is_on:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes or (isinstance(mode, str) and set(mode) & set("wax+")):
                self.seen.append(f"writes {path!r}")
        elif event.split(".")[0] in ("socket", "subprocess", "shutil", "ctypes", "pickle", "marshal", "pty", "ftplib"):
            # Modules are loaded from what was compiled before.
            if event not in ("marshal.loads", "marshal.load", "ctypes.dlopen", "ctypes.dlsym", "ctypes.set_errno"):
                self.seen.append(f"{event} {arguments!r}"[:300])
        elif event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments!r}"[:300])


_FORBIDDEN = frozenset(
    f"os.{name}"
    for name in (
        "system",
        "exec",
        "fork",
        "posix_spawn",
        "remove",
        "rename",
        "mkdir",
        "rmdir",
        "link",
        "symlink",
        "chmod",
    )
)

WATCH = Watch()


@cache
def _hooked() -> None:
    sys.addaudithook(WATCH)


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Have a folder with what shipped scenarios name beside them as the working directory."""
    work = folder / "work"
    work.mkdir()
    (folder / "workloads").mkdir()
    shutil.copytree(ROOT / "workloads" / "dataflow", folder / "workloads" / "dataflow")
    for path in ROOT.glob("scenarios/*.csv"):
        shutil.copy(path, work)
    for name, text in companions().items():
        (work / name).write_text(text, encoding="utf-8")
    before = Path.cwd()
    os.chdir(work)
    try:
        yield work
    finally:
        os.chdir(before)


@contextmanager
def _watched(longest_s: float) -> Iterator[None]:
    def over(_: int, __: FrameType | None) -> NoReturn:
        raise _TooLong

    _hooked()
    WATCH.seen.clear()
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, over) if is_main else None
    if is_main:
        signal.setitimer(signal.ITIMER_REAL, longest_s)
    WATCH.is_on = True
    try:
        yield
    finally:
        WATCH.is_on = False
        if is_main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def loaded(kind: str, path: Path, longest_s: float = LONGEST_S) -> Outcome:
    """Load a file as its kind is.

    Raises
    ------
    Fault
        Whatever else happens than a result, or an error of simnet that says what is wrong.
    """
    known = set(path.parent.rglob("*"))
    begin = time.perf_counter()
    try:
        with _watched(longest_s), warnings.catch_warnings():
            warnings.simplefilter("error")
            TARGETS[kind](path)
            outcome = Outcome(is_loaded=True)
    except InputError as error:
        outcome = Outcome(False, _checked(error))
    except SimnetError as error:
        if not str(error).strip():
            raise Fault("an error that says nothing") from error
        outcome = Outcome(is_loaded=False)
    except _TooLong as error:
        raise Fault(f"more than {longest_s} s") from error
    except (Exception, RecursionError, SystemExit) as error:
        raise Fault(f"{type(error).__name__}: {error}"[:300]) from error
    if WATCH.seen:
        raise Fault(f"does what no loading may: {'; '.join(WATCH.seen)}")
    if any(place.exists() for place in (Path(SENTINEL), path.parent / SENTINEL)):
        raise Fault("code was run")
    if new := {one.name for one in path.parent.rglob("*")} - {one.name for one in known}:
        raise Fault(f"wrote {sorted(new)}")
    if time.perf_counter() - begin > longest_s:
        raise Fault(f"more than {longest_s} s")
    return outcome


def _checked(error: InputError) -> tuple[str, ...]:
    """Return the messages that have no line; each must say something, in words of simnet, of some place."""
    if not error.problems:
        raise Fault("an error without a problem") from error
    for problem in error.problems:
        if not problem.message.strip():
            raise Fault(f"a problem without a message: {problem!r}") from error
        said = str(problem)
        said.encode()
        if any(word in problem.message + problem.hint for word in _FOREIGN_WORDS):
            raise Fault(f"words that are not for people: {said}") from error
        if any(not letter.isprintable() and letter not in "\n\t" for letter in said):
            raise Fault(f"what is printed could steer a terminal: {said!a}"[:500]) from error
    return tuple(problem.message for problem in error.problems if not problem.line)


def write_input(folder: Path, one: Input) -> Path:
    """Write an input into a folder under the name that all have."""
    path = folder / f"input{one.suffix}"
    path.write_bytes(one.content)
    return path
