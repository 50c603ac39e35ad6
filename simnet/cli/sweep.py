"""``simnet sweep``, ``simnet merge`` and ``simnet table``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simnet.cli.interruption import interruption
from simnet.cli.progress import shown
from simnet.experiment.telling import tell, tell_nobody

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simnet.experiment.sweep.store import Store
    from simnet.scenario.sweep.load import Sweep

__all__ = ["merge", "sweep", "table"]

_FORMATS = ("csv", "markdown", "latex", "json", "parquet")
_GO_ON = "the same command goes on from there"
_MOST_SHOWN = 50

_Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="DIR", help="Folder of the results; results/sweeps/NAME by default."),
]


def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A sweep file.")],
    output: _Output = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario at every point."),
    ] = None,
    processes: Annotated[
        int, typer.Option("-j", "--jobs", metavar="N", min=1, max=1024, help="Processes, one a core.")
    ] = 1,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: the address of its scheduler.")
    ] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help="Run only each N-th point, from the I-th on.")] = "1/1",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the points and estimate the time.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run points again that have failed.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run a scenario at many points; a rerun goes on where it was stopped."""
    from simnet.errors import InputError, OutputError, Problem, attempt
    from simnet.experiment.sweep import run_sweep
    from simnet.experiment.sweep.store import Store, check_store
    from simnet.experiment.sweep.tables import write_sweep
    from simnet.scenario import override_from_text
    from simnet.scenario.sweep.load import load_sweep_file

    problems: list[Problem] = []
    changes = [attempt(problems, partial(override_from_text, text)) for text in settings or []]
    part = attempt(problems, lambda: _shard(shard))
    known = [change for change in changes if change is not None]
    loaded = attempt(problems, lambda: load_sweep_file(file, known))
    folder = output or Path("results/sweeps") / (loaded.name if loaded is not None else "sweep")
    if not dry_run:
        attempt(problems, lambda: check_store(folder))
    if problems or loaded is None or part is None:
        raise InputError(dict.fromkeys(problems))
    store = Store(folder)
    if dry_run:
        _list_points(loaded, store, part, processes)
        return
    say = tell_nobody if quiet else tell
    with shown(f"what is finished is in {folder}, and {_GO_ON}", quiet=quiet) as show, _executor(dask) as executor:
        try:
            end = run_sweep(
                loaded,
                store,
                executor=executor,
                processes=processes,
                shard=part,
                retry_failed=retry_failed,
                show=show,
                say=say,
            )
        except KeyboardInterrupt:
            interruption.say()
            write_sweep(loaded, store)
            raise
        except (InputError, OutputError):
            tell(f"stopped: what is finished is kept, and {_GO_ON}")
            raise
    frame = write_sweep(loaded, store)
    say(f"{end.whole} points: {end.found} were there, {end.done} done, {end.failed} failed; wrote {folder}")
    failures = frame.loc[frame["status"] == "failed", "error"]
    if len(failures):
        say(f"{len(failures)} of the points have failed, the first with:\n{failures.iloc[0]}")


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of shards of one sweep.")],
    file: Annotated[str, typer.Option("--sweep", metavar="FILE", help="The sweep file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder of the whole.")],
) -> None:
    """Put the points of shards together."""
    from simnet.experiment.sweep import merge_sweeps
    from simnet.experiment.sweep.store import Store, check_store
    from simnet.experiment.sweep.tables import sweep_about, write_sweep
    from simnet.scenario.sweep.load import load_sweep_file

    loaded = load_sweep_file(file)
    check_store(output)
    merge_sweeps(folders, output)
    write_sweep(loaded, Store(output))
    about = sweep_about(output)
    tell(f"{about['finished']} of {about['points']} points; wrote {output}")


def table(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")],
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns; parameters and what differs by default.")
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORM", help=f"One of {', '.join(_FORMATS)}.")] = "markdown",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there; parquet needs it.")
    ] = None,
) -> None:
    """Print the table of a sweep for papers and other tools."""
    from simnet.cli.frames import print_or_write
    from simnet.errors import InputError, Problem, attempt
    from simnet.experiment.parquet import write_parquet
    from simnet.experiment.sweep import load_sweep
    from simnet.experiment.sweep.printing import chosen, in_form
    from simnet.writing import write_whole

    problems: list[Problem] = []
    if form not in _FORMATS:
        problems.append(Problem(f"--format is {form!r}", f"one of {', '.join(_FORMATS)} is wanted"))
    if form == "parquet" and output is None:
        problems.append(Problem("parquet is not for a screen", "say where to write it with -o"))
    frame = attempt(problems, lambda: load_sweep(folder))
    wanted = attempt(problems, lambda: chosen(folder, columns)) if frame is not None else None
    if problems or frame is None or wanted is None:
        raise InputError(problems)
    if form == "parquet":
        assert output is not None
        with write_whole(output) as file:
            write_parquet(wanted, file)
        return
    print_or_write(in_form(wanted, form), output)


def _shard(text: str) -> tuple[int, int]:
    from simnet.errors import InputError, Problem

    number, stroke, shards = text.partition("/")
    if stroke and number.isdecimal() and shards.isdecimal() and 1 <= int(number) <= int(shards) <= 1_000_000:
        return int(number), int(shards)
    raise InputError(Problem(f"--shard is {text!r}", "write it like 2/8: the second of eight"))


def _list_points(sweep: Sweep, store: Store, shard: tuple[int, int], processes: int) -> None:
    """Print the points, and how long they would take by those that are there already, or by one of them."""
    from simnet.cli.frames import frame_as_text
    from simnet.experiment.sweep.planning import estimate_s, points_table
    from simnet.experiment.sweep.point import keys_of
    from simnet.units import format_duration

    outcomes = store.found(keys_of(sweep))
    frame = points_table(sweep, outcomes, shard)
    print(frame_as_text(frame.head(_MOST_SHOWN)))
    if len(frame) > _MOST_SHOWN:
        print(f"... and {len(frame) - _MOST_SHOWN} more")
    left = int((frame["status"] == "to run").sum())
    with shown() as show:
        seconds = estimate_s(sweep, outcomes, shard, tell, show) / processes
    print(f"{len(frame)} points, {left} to run: about {format_duration(float(f'{seconds:.2g}'))}")


@contextmanager
def _executor(address: str | None) -> Iterator[Executor | None]:
    """Yield an executor on a Dask cluster; None where none is asked for."""
    if address is None:
        yield None
        return
    from simnet.errors import InputError, Problem

    try:
        from distributed import Client
    except ImportError:
        hint = "pip install 'simnet-cluster[dask]' brings it"
        raise InputError(Problem("Dask is not installed", hint, source="--dask")) from None
    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(Problem(f"no Dask scheduler answers at {address!r}: {error}", source="--dask")) from None
    with client:
        yield client.get_executor()
