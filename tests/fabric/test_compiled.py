"""Where compiled kernels are kept, and that they are compiled once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from simnet.fabric.kernels import compiled

FABRIC = Path(compiled.__file__).parent


@pytest.fixture
def folder(monkeypatch):
    """Return what `cache_folder` returns under an environment."""

    def found(**environment: str | None) -> Path:
        for name in ("SIMNET_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
            if environment.get(name) is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, environment[name])
        return compiled.cache_folder.__wrapped__()

    return found


def test_the_chosen_folder_comes_first(folder, tmp_path):
    chosen, home = tmp_path / "chosen", tmp_path / "home"
    assert chosen in folder(SIMNET_CACHE_DIR=str(chosen), HOME=str(home)).parents
    assert not home.exists()


def test_then_the_cache_of_the_user(folder, tmp_path):
    assert tmp_path / "xdg" / "simnet" in folder(XDG_CACHE_HOME=str(tmp_path / "xdg"), HOME=str(tmp_path)).parents
    assert tmp_path / "home" / ".cache" / "simnet" in folder(HOME=str(tmp_path / "home")).parents


def test_one_that_cannot_be_written_falls_back(folder, tmp_path, monkeypatch):
    """A file is in the way of each folder: the next is taken, in the end the system's for temporary files."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    home = tmp_path / "home"
    assert home in folder(SIMNET_CACHE_DIR=str(blocked), HOME=str(home)).parents
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert temporary in folder(SIMNET_CACHE_DIR=str(blocked), HOME=str(blocked)).parents
    assert temporary in folder(XDG_CACHE_HOME=str(blocked / "below"), HOME=str(home)).parents


def test_no_home_at_all_falls_back(folder, tmp_path, monkeypatch):
    """As in a container under a user that the system does not know."""

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert tmp_path in folder().parents


def test_a_folder_that_others_could_have_put_there_is_not_trusted(folder, tmp_path, monkeypatch):
    """The fall-back has a name that anybody could guess; what lies in it would be run."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = folder(HOME=str(blocked))
    private = next(parent for parent in found.parents if parent.parent == tmp_path)
    assert private.stat().st_mode & 0o077 == 0
    private.chmod(0o777)
    other = folder(HOME=str(blocked))
    assert tmp_path in other.parents
    assert private not in other.parents


def test_the_name_changes_with_any_source_and_with_nothing_else(folder, tmp_path, monkeypatch):
    """A copy of the sources: the same twice; another when one byte is added to any of them."""
    copy = tmp_path / "fabric"
    shutil.copytree(FABRIC, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiled, "__file__", str(copy / "compiled.py"))
    environment = {"SIMNET_CACHE_DIR": str(tmp_path / "cache")}
    first = folder(**environment)
    assert folder(**environment) == first
    sources = sorted(copy.glob("*.py"))
    assert "compiled.py" in [source.name for source in sources]
    names = {first}
    for source in sources:
        source.write_text(source.read_text() + "\n")
        names.add(folder(**environment))
    assert len(names) == 1 + len(sources)


def test_the_name_changes_with_place_and_date(folder, tmp_path, monkeypatch):
    """numba compiles again what lies elsewhere or was written anew, so nobody must think it compiled."""
    names = set()
    for place in ("one", "other"):
        copy = tmp_path / place
        shutil.copytree(FABRIC, copy, ignore=shutil.ignore_patterns("__pycache__"))
        monkeypatch.setattr(compiled, "__file__", str(copy / "compiled.py"))
        names.add(folder(SIMNET_CACHE_DIR=str(tmp_path / "cache")))
    os.utime(copy / "maxmin.py", (1.0, 1.0))
    names.add(folder(SIMNET_CACHE_DIR=str(tmp_path / "cache")))
    assert len(names) == 3


def test_the_name_changes_with_numba(folder, tmp_path, monkeypatch):
    environment = {"SIMNET_CACHE_DIR": str(tmp_path / "cache")}
    first = folder(**environment)
    monkeypatch.setattr("numba.__version__", "0.0.0")
    assert folder(**environment) != first


SMALL = """
    import sys
    from pathlib import Path
    from simnet.fabric.kernels.compiled import compile_once, kernel

    @kernel
    def twice(x: float) -> float:
        return 2.0 * x

    def warm_up():
        assert twice(2.0) == 4.0
        with Path(sys.argv[1]).open("a") as log:
            log.write("compiled\\n")

    seconds = compile_once([warm_up], lambda line: print(line, file=sys.stderr))
    print(seconds > 0.0)
"""


@pytest.fixture
def start(tmp_path):
    """Start a process that compiles a small kernel, with a cache of its own."""
    script = tmp_path / "small.py"
    script.write_text(textwrap.dedent(SMALL))

    def started(**environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "log")],
            env={**os.environ, "SIMNET_CACHE_DIR": str(tmp_path / "cache"), **environment},
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return started


def test_processes_that_start_at_once_compile_once(start, tmp_path):
    """Of eight, one compiles and says so in one line; the others, and one that comes later, find it done."""
    answers = [process.communicate() for process in [start() for _ in range(8)]]
    answers.append(start().communicate())
    assert sorted(out.strip() for out, _ in answers) == ["False"] * 8 + ["True"]
    said = [err for _, err in answers if err]
    assert len(said) == 1
    assert len(said[0].splitlines()) == 1
    assert (tmp_path / "log").read_text() == "compiled\n"


def test_without_compiling_there_is_nothing_to_compile(start, tmp_path):
    out, err = start(NUMBA_DISABLE_JIT="1").communicate()
    assert (out.strip(), err) == ("False", "")
    assert not (tmp_path / "log").exists()


KERNELS = {
    "callee": """
        from kernels.compiled import inlined

        @inlined
        def twice(x: float) -> float:
            return 2.0 * x
    """,
    "caller": """
        from kernels.callee import twice
        from kernels.compiled import kernel

        @kernel
        def four_times(x: float) -> float:
            return twice(twice(x))

        @kernel
        def half(x: float) -> float:
            return x / 2.0

        def quarter() -> None:
            half(half(8.0))

        def multiply() -> None:
            four_times(2.0)
    """,
    "main": """
        from kernels.caller import four_times, half, multiply, quarter
        from kernels.compiled import cache_folder, compile_once

        compile_once([multiply, quarter], lambda line: None)
        print(four_times(2.0), half.stats.cache_hits.total(), four_times.stats.cache_hits.total(), cache_folder().name)
    """,
}


@pytest.fixture
def own_kernels(tmp_path):
    """A package of two kernels that is compiled as ours are; return its folder and how to run it."""
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(FABRIC / "compiled.py", package)
    for name, source in KERNELS.items():
        (package / f"{name}.py").write_text(textwrap.dedent(source))

    def run() -> list[str]:
        command = [sys.executable, "-m", "kernels.main"]
        environment = {**os.environ, "SIMNET_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return package, run


def test_an_edited_callee_is_compiled_again(own_kernels):
    """A function of another file is made to triple: the caller, whose file is the same, gives 18 instead of 8."""
    package, run = own_kernels
    first = run()
    assert first[0] == "8.0"
    callee = package / "callee.py"
    callee.write_text(callee.read_text().replace("2.0 * x", "3.0 * x"))
    second = run()
    assert second[0] == "18.0"
    assert second[-1] != first[-1]


def test_nothing_is_written_beside_the_sources(own_kernels):
    """As they may lie where nobody can write: an installed package."""
    package, run = own_kernels
    before = sorted(package.iterdir())
    run()
    assert sorted(package.iterdir()) == before


def test_what_another_process_compiled_is_read(own_kernels):
    """The second warm-up is called in a process of its own at first; so its kernel comes from the cache."""
    _, run = own_kernels
    _, halves, fours, _ = run()
    assert (halves, fours) == ("1", "0")
    # Later processes need no warm-up, and read what they call.
    assert run()[1:3] == ["0", "1"]
