"""Ctrl-C on a terminal, and what is shown until then: one line, status 130, within a second, nothing half written."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from simnet.experiment.telling import Progress

pty = pytest.importorskip("pty")

LONGEST_S = 1.0
"""From Ctrl-C to the end; tests on a machine that is busy allow twice as much."""


class Ended(NamedTuple):
    """How a command on a terminal has ended."""

    status: int
    screen: str
    took_s: float


@pytest.fixture
def terminal(environment, here) -> Callable[..., Ended]:
    """Run ``simnet ...`` on a terminal of its own, and press Ctrl-C once it has shown something, or has gone so far."""

    def run(*arguments: str, shown: str = "", after_s: float = 60.0, **variables: str) -> Ended:
        child, screen = pty.fork()
        if child == 0:
            words = [sys.executable, "-m", "simnet", *arguments]
            os.execvpe(words[0], words, environment | {"TERM": "xterm", "COLUMNS": "100"} | variables)
        seen, began_s, pressed_s = "", time.monotonic(), None
        while time.monotonic() - began_s < 100:
            if select.select([screen], [], [], 0.01)[0]:
                try:
                    read = os.read(screen, 65536)
                except OSError:
                    break
                seen += read.decode()
            if pressed_s is None and ((shown and shown in seen) or time.monotonic() - began_s > after_s):
                pressed_s = time.monotonic()
                os.write(screen, b"\x03")
        _, status = os.waitpid(child, 0)
        os.close(screen)
        return Ended(os.waitstatus_to_exitcode(status), seen, time.monotonic() - (pressed_s or began_s))

    return run


def test_a_bar_shows_how_far_it_is_until_it_is_interrupted(terminal, here):
    """A run of a million iterations: a bar with what is done and left, then one line in its place."""
    ended = terminal("run", "own_workload", "--set", "run.iterations=1000000", shown=" left")
    assert re.search(r"iterations .*[\d,]+ of 1,000,001, 0:00:0\d, about \d:\d\d:\d\d left", ended.screen)
    assert re.search(r"interrupted: [\d,]+ of 1,000,001 iterations are done; nothing is written\r\n$", ended.screen)
    assert ended.status == 130
    assert ended.took_s < 2 * LONGEST_S
    assert "Traceback" not in ended.screen
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.9])
def test_at_any_instant_of_loading(terminal, here, after_s):
    ended = terminal("run", "own_workload", "--set", "run.iterations=1000000", after_s=after_s)
    assert ended.status == 130
    assert ended.screen.endswith("interrupted: nothing is written\r\n")
    assert ended.took_s < 2 * LONGEST_S


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_sweep_keeps_its_points(terminal, here, processes):
    """Processes hear nothing of Ctrl-C, from their beginning on; points are counted, whole, and said."""
    iterations = ", ".join(map(str, range(400, 460)))
    (here / "scan.yaml").write_text(f"scenario: own_workload\ngrid: {{run.iterations: [{iterations}]}}\n")
    ended = terminal("sweep", "scan.yaml", "-o", "kept", "-j", processes, shown=" left")
    assert ended.status == 130
    said = re.search(
        r"interrupted: (\d+) of 60 points are done; kept has them, and the same command goes on from there\r\n$",
        ended.screen,
    )
    assert said is not None, ended.screen
    assert "Traceback" not in ended.screen
    assert ended.took_s < 2 * LONGEST_S
    files = [file.name for file in here.glob("kept/points/??/*")]
    assert len(files) == int(said[1]) > 0
    assert all(name.endswith(".json") and not name.startswith(".") for name in files)


STUCK = """
import ctypes, pathlib, sys, time
import simnet.experiment.run
from simnet.cli.main import main
from simnet.writing import unfinished

def simulate(*_):
    with unfinished(pathlib.Path("half")) as made:
        made.write_text("half")
        print("begun", flush=True)
        while True:
            try:
                {stuck}
            except BaseException:
                pass

simnet.experiment.run.simulate = simulate
sys.argv = ["simnet", "run", "own_workload"]
main()
"""


@pytest.mark.parametrize("stuck", ["[ctypes.CDLL(None).usleep(500_000) for _ in range(100)]", "time.sleep(100)"])
def test_where_python_does_not_hear_of_it(environment, here, stuck):
    """In something compiled that goes on after a signal, and where somebody passes over any exception."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK.format(stuck=stuck)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        pressed_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert time.monotonic() - pressed_s < 2 * LONGEST_S
    assert (process.returncode, err.splitlines()[-1]) == (130, "interrupted: nothing is written")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("arguments", [["-q"], []])
def test_no_bar_where_none_is_wanted_or_none_can_be(terminal, here, arguments):
    """Quiet, or on a terminal on which nothing can be written over."""
    variables = {} if arguments else {"TERM": "dumb"}
    settings = ["--set", "run.iterations=1000000", *arguments]
    ended = terminal("run", "own_workload", *settings, after_s=5.0, **variables)
    lines = [line.lstrip("^C") for line in ended.screen.splitlines() if "compiling" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("interrupted: ")


def test_what_is_left_is_by_what_is_done():
    """Of 10 points 2 were there, and 2 took 3 s: 6 are left, which take 9 s; while nothing is done nobody knows."""
    assert Progress("points", whole=10, done=1, elapsed_s=3.0, found=2, failed=1).left_s == pytest.approx(9.0)
    assert Progress("points", whole=10, done=0, elapsed_s=3.0, found=2).left_s is None
    assert Progress("compiling", whole=0, done=0, elapsed_s=3.0).left_s is None
