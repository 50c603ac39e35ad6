"""Ctrl-C on a terminal, and what is shown until then: one line, status 130, within a second, nothing half written."""

from __future__ import annotations

import io
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

from simnet.cli import progress
from simnet.experiment.telling import Progress

pty = pytest.importorskip("pty")

LONGEST_S = 1.0
"""From Ctrl-C to the end; tests on a machine that is busy allow twice as much."""


class Ended(NamedTuple):
    """How a command on a terminal has ended."""

    status: int
    screen: str
    took_s: float


@pytest.fixture(autouse=True)
def heard():
    """Have what is begun hear of Ctrl-C, also where the tests themselves are in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def terminal(environment, here) -> Callable[..., Ended]:
    """Run ``simnet ...`` on a terminal of its own, and press Ctrl-C once it has shown something."""

    def run(*arguments: str, shown: str) -> Ended:
        child, screen = pty.fork()
        if child == 0:
            words = [sys.executable, "-m", "simnet", *arguments]
            os.execvpe(words[0], words, environment | {"TERM": "xterm", "COLUMNS": "100"})
        seen, began_s, pressed_s = "", time.monotonic(), None
        while time.monotonic() - began_s < 100:
            if select.select([screen], [], [], 0.01)[0]:
                try:
                    read = os.read(screen, 65536)
                except OSError:
                    break
                seen += read.decode()
            if pressed_s is None and shown in seen:
                pressed_s = time.monotonic()
                os.write(screen, b"\x03")
        else:
            os.kill(child, signal.SIGKILL)
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


@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_sweep_keeps_its_points(terminal, here, processes):
    """Processes hear nothing of Ctrl-C, from their beginning on; points are counted, whole, and said."""
    iterations = ", ".join(map(str, range(400, 460)))
    (here / "scan.yaml").write_text(f"scenario: own_workload\ngrid: {{run.iterations: [{iterations}]}}\n")
    ended = terminal("sweep", "scan.yaml", "-o", "kept", "-j", processes, shown=" left")
    assert ended.status == 130
    said = re.search(
        r"interrupted: (\d+) of 60 points are done; "
        r"what is finished is in kept, and the same command goes on from there\r\n$",
        ended.screen,
    )
    assert said is not None, ended.screen
    assert "Traceback" not in ended.screen
    assert ended.took_s < 2 * LONGEST_S
    files = [file.name for file in here.glob("kept/points/??/*")]
    assert len(files) == int(said[1]) > 0
    assert all(name.endswith(".json") and not name.startswith(".") for name in files)


@pytest.mark.parametrize("ending", ["ImportError('initialization failed')", "SystemExit(1)"])
def test_whatever_comes_out_after_it_is_an_interruption(environment, here, ending):
    """A module that is loaded turns Ctrl-C into an error of its own."""
    script = (
        "import signal, sys, simnet.cli.app\n"
        "from simnet.cli.main import main\n"
        "def app():\n"
        "    try: signal.raise_signal(signal.SIGINT)\n"
        f"    except KeyboardInterrupt: raise {ending} from None\n"
        "simnet.cli.app.app = app\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: nothing is written\n")


STUCK = """
import ctypes, pathlib, sys
import simnet.experiment.run
from simnet.cli.main import main
from simnet.writing import unfinished

def simulate(*_):
    with unfinished(pathlib.Path("half")) as made:
        made.write_text("half")
        print("begun", flush=True)
        while True:
            try:
                ctypes.CDLL(None).usleep(900_000)
            except BaseException:
                pass

simnet.experiment.run.simulate = simulate
sys.argv = ["simnet", "run", "own_workload"]
main()
"""


def test_where_python_does_not_hear_of_it(environment, here):
    """In something compiled that goes on after a signal, and whose caller passes over any exception."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK],
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


class Tty(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "term", "quiet", "drawn"),
    [
        (Tty, "xterm", False, True),
        (Tty, "xterm", True, False),
        (Tty, "dumb", False, False),
        (io.StringIO, "xterm", False, False),
    ],
)
def test_a_bar_only_on_a_terminal_on_which_something_can_be_written_over(monkeypatch, stream, term, quiet, drawn):
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stderr", screen := stream())
    with progress.shown(quiet=quiet) as show:
        show(Progress("points", whole=4, done=1, elapsed_s=3.0))
    assert ("1 of 4, 0:00:03, about 0:00:09 left" in screen.getvalue()) is drawn
    assert bool(screen.getvalue()) is drawn


def test_no_bar_for_what_is_over_soon(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := Tty())
    with progress.shown() as show:
        show(Progress("points", whole=4, done=1, elapsed_s=1.0))
    assert screen.getvalue() == ""


def test_what_is_left_is_by_what_is_done():
    """Of 10 points 2 were there, and 2 took 3 s: 6 are left, which take 9 s; while nothing is done nobody knows."""
    assert Progress("points", whole=10, done=1, elapsed_s=3.0, found=2, failed=1).left_s == pytest.approx(9.0)
    assert Progress("points", whole=10, done=0, elapsed_s=3.0, found=2).left_s is None
    assert Progress("compiling", whole=0, done=0, elapsed_s=3.0).left_s is None


@pytest.mark.skipif(sys.platform == "win32", reason="shells of Unix have what is in the background ignore Ctrl-C")
def test_what_is_in_the_background_goes_on(environment, here):
    """What is begun with Ctrl-C ignored, as shells do with `&`, does not hear of it."""
    interrupted = (
        "import os, signal\n"
        "from simnet.cli import main\n"
        "run = main._run\n"
        "main._run = lambda: (os.kill(os.getpid(), signal.SIGINT), run())\n"
        "main.main()\n"
    )
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", ignoring, sys.executable, "-c", interrupted, "--version"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.startswith("simnet "), done.stderr) == (0, True, "")
