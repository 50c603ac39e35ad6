"""A result on disk: it comes back as it was, and is there whole or not at all."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pandas as pd
import pytest

import simnet
from simnet.errors import InputError, OutputError
from simnet.experiment.result import Result, check_folder, load_result

from .examples import star_scenario

FILES = {
    "summary.csv",
    "iterations.parquet",
    "workers.parquet",
    "collectives.parquet",
    "links.parquet",
    "scenario.yaml",
    "run.json",
}
TABLES = ("summary", "iterations", "workers", "collectives", "links")


@pytest.fixture(scope="module")
def result() -> Result:
    """Return a result with odd numbers in it."""
    return simnet.run(star_scenario(3, jitter={"sigma": 0.1}) | {"protocol": "ipoib"})


def _equal(one: Result, other: Result) -> None:
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table), check_exact=True)
    assert (one.scenario, one.about, one.warnings) == (other.scenario, other.about, other.warnings)


def test_it_comes_back_as_it_was(result, tmp_path):
    folder = tmp_path / "deep" / "er"
    assert result.save(folder) == folder
    assert {file.name for file in folder.iterdir()} == FILES
    _equal(load_result(folder), result)
    _equal(simnet.load_result(str(folder)), result)


def test_without_exchanges_too(tmp_path):
    alone = simnet.run(star_scenario(1))
    _equal(load_result(alone.save(tmp_path / "alone")), alone)


@pytest.mark.parametrize("name", ["NA", "null", "1e3", "007", "True"])
def test_names_that_look_like_something_else_stay_text(result, tmp_path, name):
    odd = replace(result, summary=result.summary.assign(scenario=name, bottleneck='a,"b"\nc'))
    _equal(load_result(odd.save(tmp_path / "odd")), odd)


@pytest.mark.parametrize("number", [math.inf, math.nan, 5e-324, 0.1 + 0.2, 1 / 3])
def test_numbers_keep_every_digit(result, tmp_path, number):
    odd = replace(result, summary=result.summary.assign(speedup=number))
    _equal(load_result(odd.save(tmp_path / "odd")), odd)


def test_as_json_is_the_row(result):
    row = json.loads(result.as_json())
    assert list(row) == list(result.summary.columns)
    assert row == result.summary.to_dict(orient="records")[0]


def test_as_json_of_several_jobs(result):
    several = replace(result, summary=pd.concat([result.summary, result.summary], ignore_index=True))
    assert list(json.loads(several.as_json())) == ["jobs"]
    assert len(json.loads(several.as_json())["jobs"]) == 2


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_as_json_has_null_for_what_json_has_no_number_for(result, number):
    odd = replace(result, summary=result.summary.assign(speedup=number))
    assert json.loads(odd.as_json())["speedup"] is None


def test_run_json_says_what_was_run(result, tmp_path):
    about = json.loads((result.save(tmp_path / "r") / "run.json").read_text())
    assert about["seed"] == 0
    assert about["messages"] == result.summary.messages[0]
    assert about["warnings"] == list(result.warnings) != []
    assert {"python", "numpy", "numba", "simpy", "networkx", "pandas", "simnet-cluster"} == set(about["versions"])


def test_an_earlier_result_is_replaced_as_a_whole(result, tmp_path):
    folder = tmp_path / "r"
    other = simnet.run(star_scenario(2))
    other.save(folder)
    result.save(folder)
    _equal(load_result(folder), result)
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_an_empty_folder_may_be_given(result, tmp_path):
    (tmp_path / "r").mkdir()
    _equal(load_result(result.save(tmp_path / "r")), result)


def test_a_link_to_a_folder_stays_a_link(result, tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "link").symlink_to("r")
    result.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    _equal(load_result(tmp_path / "r"), result)


@pytest.mark.parametrize(
    "there",
    [
        ["notes.txt"],
        ["run.json"],  # somebody else's
        ["summary.csv"],
        [*FILES, "notes.txt"],
    ],
)
def test_a_folder_that_holds_something_else_is_left_alone(result, tmp_path, there):
    folder = tmp_path / "r"
    folder.mkdir()
    for name in there:
        (folder / name).write_text("mine")
    for refuse in (result.save, check_folder):
        with pytest.raises(InputError, match="the folder holds files that are no result"):
            refuse(folder)
    assert {file.name: file.read_text() for file in folder.iterdir()} == dict.fromkeys(there, "mine")
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_a_file_is_not_replaced(result, tmp_path):
    (tmp_path / "r").write_text("mine")
    with pytest.raises(InputError, match="is a file, a folder is wanted"):
        result.save(tmp_path / "r")
    assert (tmp_path / "r").read_text() == "mine"


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_the_working_directory_is_not_replaced(result, tmp_path, monkeypatch, folder):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="the folder that you are in cannot be replaced"):
        result.save(folder)


def test_a_folder_below_a_file_cannot_be_made(result, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written: Not a directory, choose another place with -o"):
        result.save(tmp_path / "file" / "r")


def test_links_in_a_circle(result, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="cannot be written"):
        result.save(tmp_path / "a")


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("half way"), KeyboardInterrupt()]
)
def test_where_writing_fails_half_way_the_earlier_result_stays(result, tmp_path, monkeypatch, error):
    earlier = simnet.run(star_scenario(2))
    earlier.save(tmp_path / "r")
    written = []

    def fail(frame, path, **options):
        if written:
            raise error
        written.append(path)
        path.write(b"half")

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", fail)
        with pytest.raises((OutputError, RuntimeError, KeyboardInterrupt)) as caught:
            result.save(tmp_path / "r")
    assert written
    if isinstance(error, OSError):
        assert "cannot be written: No space left on device" in str(caught.value)
    _equal(load_result(tmp_path / "r"), earlier)
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_where_writing_fails_half_way_nothing_is_there(result, tmp_path, monkeypatch):
    monkeypatch.setattr(pd.DataFrame, "to_parquet", lambda *_, **__: (_ for _ in ()).throw(OSError(5, "broken")))
    with pytest.raises(OutputError):
        result.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_the_earlier_result(result, tmp_path):
    """Killed while it writes: the folder holds the earlier result, whole."""
    result.save(tmp_path / "r")
    script = (
        "import sys, time, pandas\n"
        "from simnet.experiment.result import load_result\n"
        "result = load_result(sys.argv[1])\n"
        "def halt(*_, **__):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(600)\n"
        "pandas.DataFrame.to_parquet = halt\n"
        "result.save(sys.argv[1])\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(simnet.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "r"], env=environment, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    _equal(load_result(tmp_path / "r"), result)


def _save_often(source: str, folder: str, together: Barrier) -> None:
    result = load_result(source)
    together.wait(60)
    for _ in range(6):
        result.save(folder)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pandas has threads, which do nothing here
def test_eight_processes_may_save_into_one_folder(result, tmp_path):
    """None fails, and at the end one result is there, whole."""
    source, folder = str(result.save(tmp_path / "source")), str(tmp_path / "r")
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    together = context.Barrier(8)
    writers = [context.Process(target=_save_often, args=(source, folder, together)) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * 8
    _equal(load_result(folder), result)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r", "source"]


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_folder_without_one_of_the_files_is_no_result(result, tmp_path, name):
    (result.save(tmp_path / "r") / name).unlink()
    with pytest.raises(InputError, match=f"no result: {name} is missing, the folder that `simnet run` wrote is wanted"):
        load_result(tmp_path / "r")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_damaged_file_is_said_in_words(result, tmp_path, name):
    (result.save(tmp_path / "r") / name).write_bytes(b"{[")
    with pytest.raises(InputError):
        load_result(tmp_path / "r")


def test_no_folder_at_all(tmp_path):
    with pytest.raises(InputError, match="no result"):
        load_result(tmp_path / "nothing")
