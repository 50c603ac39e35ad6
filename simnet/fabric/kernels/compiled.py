"""Compiling the kernels once, and keeping what was compiled.

numba notices changes in the file of a function, not in the functions that it calls. So everything compiled lies in a
folder whose name is a hash of all kernel sources, of numba and llvmlite, and of the processor; a change of any of them
means another folder. ``NUMBA_DISABLE_JIT=1`` runs the same functions as plain Python.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
from numba.core.compiler import Compiler

from simnet.errors import OutputError

__all__ = ["cache_folder", "called", "compile_once", "inlined", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

_READY = "ready"
_config: Any = numba.config


@cache
def cache_folder(sources: Path | None = None) -> Path:
    """Return the folder that holds the compiled kernels of exactly these sources on this processor.

    It lies below ``$SIMNET_CACHE_DIR``, else below the user's cache folder (``$XDG_CACHE_HOME`` or ``~/.cache``), else,
    where neither can be written, below the system's folder for temporary files.

    Parameters
    ----------
    sources : Path, optional
        The folder that the kernels are in, this one by default; what all kernels share, here, counts as well, and so do
        the congestion controls.
    """
    digest = hashlib.sha256()
    own = Path(__file__).parent.resolve()
    controls = own.parents[1] / "protocols" / "congestion"
    for source in sorted({*own.glob("*.py"), *(sources or own).glob("*.py"), *controls.glob("*.py")}):
        # numba compiles again what lies elsewhere or has another date, so that is another folder too.
        digest.update(f"{source}\0{source.stat().st_mtime_ns}\0".encode() + source.read_bytes() + b"\0")
    cpu = f"{_config.CPU_NAME} {_config.CPU_FEATURES}" if _config.CPU_NAME else _host_cpu()
    for part in (numba.__version__, llvmlite.__version__, platform.python_version(), cpu):
        digest.update(str(part).encode() + b"\0")
    folder = _writable_root() / "kernels" / digest.hexdigest()[:20]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kernel(function: Function) -> Function:
    """Compile a function that Python calls, at its first call; keep the result in `cache_folder`."""
    return _compile(function)


def inlined(function: Function) -> Function:
    """Compile a function that only compiled functions call, into the body of each of them.

    For what is short, or called from one place.
    """
    return _compile_for_others(function, forceinline=True)


def called(function: Function) -> Function:
    """Compile a function that only compiled functions call, once; for what is long and called from several places."""
    return _compile_for_others(function)


def _compile_for_others(function: Function, **options: Any) -> Function:
    return _compile(
        function,
        cache=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        pipeline_class=_LeavesOptimising,
        **options,
    )


def _compile(function: Function, **options: Any) -> Function:
    before = _config.CACHE_DIR
    sources = Path(function.__code__.co_filename).resolve().parent
    own = Path(__file__).resolve().parent
    _config.CACHE_DIR = str(cache_folder(None if sources == own else sources))
    try:
        # The kernels allocate nothing, so they need none of numba's reference counts, which cost more than the work.
        # numba hands "forceinline" down to whatever a function calls, unless that says otherwise.
        # Without Python's lock, others can show meanwhile how far it is, and hear whether somebody wants it to stop.
        options = dict[str, Any](cache=True, error_model="numpy", _nrt=False, forceinline=False, nogil=True) | options
        compiled: Any = numba.njit(**options)(function)
    finally:
        _config.CACHE_DIR = before
    if not _config.DISABLE_JIT:
        _take_no_literals(compiled)
        if options["cache"]:
            _load_alone(compiled)
    return cast(Function, compiled)


class _LeavesOptimising(Compiler):
    """Compiles what goes into the bodies of others, and leaves it to be optimised there, once for all of it.

    Else each function would be optimised, with all that it calls, again and again on the way up.
    """

    def compile_extra(self, function: Any) -> Any:
        """Compile with a library that is not optimised by itself."""
        library: Any = self.state.targetctx.codegen().create_library(function.__qualname__)
        library._optimize_final_module = lambda: None
        if not self.state.flags.forceinline:
            add = library.add_ir_module

            def add_called(module: Any) -> None:
                for compiled in module.functions:
                    if not compiled.is_declaration:
                        compiled.attributes.add("noinline")
                add(module)

            library.add_ir_module = add_called
        self.state.library = library
        return super().compile_extra(function)  # type: ignore[no-untyped-call]


def _take_no_literals(compiled: Any) -> None:
    """Have a function compiled once for all integers, not again for each constant that it is called with."""
    template = compiled.get_call_template
    plain: Callable[[Any], Any] = numba.types.unliteral

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        return template(tuple(map(plain, arguments)), {name: plain(kind) for name, kind in keywords.items()})

    compiled.get_call_template = get_call_template


def _load_alone(compiled: Any) -> None:
    """Have a compiled function read from the cache without all that compiling needs.

    numba first makes itself ready to compile, which takes longer (0.3 s) than many a run; it does so again before it
    compiles anything. Where a version of numba has no such parts, nothing is changed.
    """
    cache = compiled._cache
    load, guard = (getattr(cache, name, None) for name in ("_load_overload", "_guard_against_spurious_io_errors"))
    if load is None or guard is None:
        return

    def load_overload(signature: Any, target: Any) -> Any:
        with guard():
            return load(signature, target)

    cache.load_overload = load_overload


def compile_once(
    warm_ups: Sequence[Callable[[], None]], say: Callable[[str], None], sources: Path | None = None
) -> float:
    """Run functions that call every kernel, unless an earlier process has left them compiled.

    Several processes that start at once compile once: the others wait for the first.

    Parameters
    ----------
    warm_ups : sequence of callable
        Functions of modules that call, between them, each kernel with the types that it will be called with. All but
        the first are run in processes of their own, beside it.
    say : callable
        Told, in one line, that compiling takes a while.
    sources : Path, optional
        The folder that the kernels are in, this one by default.

    Returns
    -------
    float
        Seconds spent compiling; 0.0 where nothing was to be done.

    Raises
    ------
    OutputError
        They cannot be kept.
    """
    folder = cache_folder(sources)
    if _config.DISABLE_JIT or (folder / _READY).exists():
        return 0.0
    with _keeping(folder), _locked(folder / "lock"):
        if (folder / _READY).exists():
            return 0.0
        say("compiling the simulation kernels (once; kept for later runs) ...")
        start = time.perf_counter()
        first, *others = warm_ups
        with ExitStack() as helpers:
            started = [helpers.enter_context(_called_elsewhere(warm_up)) for warm_up in others]
            first()
            for helper in started:
                helper.wait()
        # Reads what the others have compiled, and compiles what they have not where one has failed.
        for warm_up in others:
            warm_up()
        (folder / _READY).touch()
        return time.perf_counter() - start


@contextmanager
def _keeping(folder: Path) -> Iterator[None]:
    """Tell of a folder in which nothing can be kept."""
    try:
        yield
    except OSError as error:
        said = f"compiled kernels cannot be kept: {error.strerror or error}; SIMNET_CACHE_DIR names another folder"
        raise OutputError(f"{folder}: {said}") from None


@contextmanager
def _called_elsewhere(function: Callable[[], None]) -> Iterator[subprocess.Popen[bytes]]:
    """Call a function of a module in another process, which says nothing, and ends when this one does."""
    module, name = function.__module__, function.__name__
    call = f"{_END_WITH_PARENT}sys.path[:] = {sys.path!r}\nfrom {module} import {name}\n{name}()"
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", call]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet) as helper:
        try:
            yield helper
        finally:
            helper.kill()


_END_WITH_PARENT = """
import os, sys, threading
def end_with_parent():
    os.read(0, 1)
    os._exit(1)
threading.Thread(target=end_with_parent, daemon=True).start()
"""


def _host_cpu() -> str:
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def _writable_root() -> Path:
    chosen, caches = os.environ.get("SIMNET_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")
    # Where the system does not know the user, `~` stays as it is, and is no folder.
    home = Path(caches) if caches else Path(os.path.expanduser("~"), ".cache")  # noqa: PTH111
    for root in ([Path(chosen)] if chosen else []) + ([home / "simnet"] if home.is_absolute() else []):
        try:
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=root):
                return root
        except OSError:
            continue
    return _own_temporary_folder()


def _own_temporary_folder() -> Path:
    """Return a folder below the system's for temporary files into which nobody else can have put anything to be run."""
    if sys.platform == "win32":
        return Path(tempfile.gettempdir()) / "simnet"
    folder = Path(tempfile.gettempdir()) / f"simnet-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        return Path(tempfile.mkdtemp(prefix="simnet-"))
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        return Path(tempfile.mkdtemp(prefix="simnet-"))
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; it goes with the process that holds it."""
    with path.open("w") as handle:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
