"""What can go wrong with a machine: never a traceback, nothing half written, and a line that says what."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simnet.experiment.result import load_result
from simnet.experiment.sweep.store import Store
from simnet.shipped import shipped_folder

from .conftest import Output

PROFILE = Path(__file__).parents[1] / "workload" / "data" / "profile_modules.json"
LOG = "# OSU MPI Latency Test v5.8\n# Size Latency (us)\n8 2.001\n1024 2.256\n1048576 264.144\n"

WRITES = {
    "run": ["run", "own_workload", "-o", "{}/r"],
    "timeline": ["run", "own_workload", "-o", "elsewhere", "--timeline", "{}/t.json"],
    "sweep": ["sweep", "scan.yaml", "-o", "{}/s"],
    "merge": ["merge", "scan", "--sweep", "scan.yaml", "-o", "{}/m"],
    "table": ["table", "scan", "-o", "{}/t.csv"],
    "parquet": ["table", "scan", "--format", "parquet", "-o", "{}/t.parquet"],
    "plot": ["plot", "scan", "-o", "{}/p.svg"],
    "report": ["report", "scan", "--no-point", "-o", "{}/r.html"],
    "scaling": ["scaling", "own_workload", "--workers", "1,2", "--plot", "{}/s.svg"],
    "explain": ["explain", "own_workload", "--no-sensitivity", "-o", "{}/e.txt"],
    "compare": ["compare", "own_workload", "own_workload", "--no-explain", "-o", "{}/c.txt"],
    "topology": ["topology", "make", "{{star: {{hosts: 3, bandwidth: 1 Gbps, latency: 1 us}}}}", "-o", "{}/t.json"],
    "workload": ["workload", "from-profile", str(PROFILE), "--rank", "0", "-o", "{}/w.csv"],
    "calibrate": ["calibrate", "log.txt", "-o", "{}/c.yaml"],
}
"""Every command that writes, with where it does; `simnet validate` takes long, and writes as these do."""


@pytest.fixture(scope="module")
def scan(tmp_path_factory) -> Path:
    """Return a folder with a sweep file, what came of it, and a log."""
    folder = tmp_path_factory.mktemp("scan")
    (folder / "scan.yaml").write_text(
        "scenario: own_workload\ngrid: {training.workers: [1, 2]}\nset: {run.iterations: 2}\n"
    )
    (folder / "log.txt").write_text(LOG)
    return folder


@pytest.fixture
def sweep_here(here, scan, command) -> Path:
    """Have the sweep here."""
    for file in scan.iterdir():
        (shutil.copytree if file.is_dir() else shutil.copy)(file, here / file.name)
    if not (here / "scan").is_dir():
        assert command("sweep", "scan.yaml", "-o", "scan", "-q").status == 0
        shutil.copytree(here / "scan", scan / "scan")
    return here


@pytest.fixture
def full(here) -> Iterator[Path]:
    """Yield a folder on a file system on which there is no room, where one may be mounted."""
    folder = here / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        with pytest.raises(OSError, match="No space"):
            (folder / "filler").write_bytes(b"x" * 16384)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("name", list(WRITES))
def test_a_full_disk(sweep_here, full, command, name):
    """Status 1, the file and why, and nothing is left of what was begun."""
    before = _files(full)
    output: Output = command(*(word.format("full") for word in WRITES[name]))
    assert output.status == 1, output.err
    assert output.err.splitlines()[-1].startswith("full/")
    assert output.err.endswith(": cannot be written: No space left on device\n")
    assert _files(full) == before


@pytest.mark.parametrize("name", list(WRITES))
def test_a_folder_below_a_file(sweep_here, command, name):
    """Status 2, as the place was chosen."""
    (sweep_here / "file").touch()
    output: Output = command(*(word.format("file/below") for word in WRITES[name]))
    assert output.status == 2, output.err
    assert "cannot be written: Not a directory, choose another place with -o" in output.err


@pytest.mark.parametrize("name", list(WRITES))
def test_a_folder_that_is_not_there_is_made(sweep_here, command, name):
    """Also below others, and with letters and blanks in its name."""
    place = "n ew/ünter/日本"
    output: Output = command(*(word.format(place) for word in WRITES[name]))
    assert output.status == 0, output.err
    assert _files(sweep_here / place)


SAVE = """
import sys, simnet
result = simnet.run("own_workload", overrides={"run.iterations": int(sys.argv[1])})
print("begun", flush=True)
for _ in range(int(sys.argv[2])):
    result.save("kept")
"""


def _savers(environment, here, iterations, times) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-c", SAVE, str(count), str(times)],
            env=environment,
            cwd=here,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for count in iterations
    ]


@pytest.mark.slow
def test_many_that_save_into_one_folder(environment, here):
    """Eight at once: in the end there is one of the eight results, whole, and nothing else."""
    savers = _savers(environment, here, range(2, 10), 20)
    for saver in savers:
        _, err = saver.communicate(timeout=200)
        assert (saver.returncode, err) == (0, "")
    kept = load_result(here / "kept")
    assert len(kept.iterations) == 4 * (1 + kept.scenario["run"]["iterations"])
    assert [file.name for file in here.iterdir()] == ["kept"]


@pytest.mark.slow
def test_killed_at_any_instant(environment, here):
    """What is in the folder is always a whole result; in the one instant in which it is exchanged there may be none."""
    for wait_s in (0.0, 0.003, 0.011, 0.029):
        [saver] = _savers(environment, here, [3], 10_000)
        assert saver.stdout is not None
        saver.stdout.readline()
        time.sleep(0.2 + wait_s)
        saver.send_signal(signal.SIGKILL)
        saver.communicate(timeout=30)
        if (here / "kept").exists():
            assert load_result(here / "kept").scenario["run"]["iterations"] == 3


def test_a_folder_that_goes_while_a_sweep_runs(sweep_here, monkeypatch, command):
    """It is made again; points that were in it are run again by the same command."""
    put, gone = Store.put, []

    def put_and_lose(store, outcome):
        put(store, outcome)
        if not gone:
            gone.append(outcome.key)
            shutil.rmtree(store.folder)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", put_and_lose)
        output = command("sweep", "scan.yaml", "-o", "lost")
    assert (output.status, "wrote lost" in output.err) == (0, True)
    output = command("sweep", "scan.yaml", "-o", "lost")
    assert "2 points: 1 were there, 1 done, 0 failed" in output.err


def test_a_clock_that_is_set_back(sweep_here, monkeypatch, command):
    """Nothing goes by the time of day: a result without any, and points that are there are there."""
    monkeypatch.setattr(time, "time", lambda: -1e9)
    monkeypatch.setattr(time, "time_ns", lambda: -(10**18))
    assert command("run", "own_workload", "-o", "early").status == 0
    os.utime(sweep_here / "scan.yaml", (0, 0))
    assert "2 points: 2 were there, 0 done" in command("sweep", "scan.yaml", "-o", "scan").err


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are always text there")
def test_names_that_are_no_text(here, command):
    """Bytes that are not UTF-8, in the name of a scenario, of a topology and of a result."""
    name = os.fsdecode(b"caf\xe9")
    shipped = shipped_folder("scenarios")
    shutil.copy(shipped / "own_workload_layers.csv", here)
    (here / f"{name}.yaml").write_bytes((shipped / "own_workload.yaml").read_bytes())
    star = "{star: {hosts: 4, bandwidth: 1 Gbps, latency: 1 us}}"
    assert command("topology", "make", star, "-o", f"{name}.json").status == 0
    assert command("topology", "show", f"{name}.json").status == 0
    output = command("run", f"{name}.yaml", "-o", f"{name}/r", "--timeline", f"{name}.json.gz")
    assert output.status == 0, output.err
    assert len(load_result(here / name / "r").workers) == 4


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1", "TERM": "dumb"}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}])
def test_any_surroundings(environment, here, variables):
    """Without colours, without a terminal, and without letters but those of ASCII."""
    done = subprocess.run(
        [sys.executable, "-m", "simnet", "run", "own_workload", "--set", "name=réseau", "-o", "a é"],
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr, b"\x1b" in done.stdout) == (0, False, False), done.stderr
    assert load_result(here / "a é").scenario["name"] == "réseau"
