"""``simnet sweep``, ``merge`` and ``table``."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import simnet

SWEEP = """
scenario: resnet50_16gpu
set: {run.iterations: 1}
grid:
  protocol: [tcp, rdma]
  training.workers: [1, 2]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scan.yaml").write_text(SWEEP)
    return tmp_path


def test_run_again_and_read(folder, command):
    """What is said goes to standard error; what was there is not run again."""
    output = command("sweep", "scan.yaml")
    assert (output.status, output.out) == (0, "")
    assert output.err.endswith("4 points: 0 were there, 4 done, 0 failed; wrote results/sweeps/scan\n")
    again = command("sweep", "scan.yaml")
    assert again.err.endswith("4 points: 4 were there, 0 done, 0 failed; wrote results/sweeps/scan\n")
    frame = simnet.load_sweep(folder / "results/sweeps/scan", index=True)
    assert frame.index.names == ["protocol", "training.workers"]
    assert frame.loc[("rdma", 2), "workers"] == 2
    assert sorted(file.name for file in (folder / "results/sweeps/scan").iterdir()) == [
        "points",
        "sweep.csv",
        "sweep.json",
        "sweep.parquet",
    ]


def test_a_dry_run_runs_nothing(folder, command):
    command("sweep", "scan.yaml", "--shard", "1/2", "-q")
    output = command("sweep", "scan.yaml", "--dry-run")
    lines = output.out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["point", "0", "1", "2", "3"]
    assert [line.split()[-1] for line in lines[1:5]] == ["there", "run", "there", "run"]
    assert lines[5].startswith("4 points, 2 to run: about ")
    assert len(list((folder / "results/sweeps/scan/points").glob("??/*.json"))) == 2


def test_shards_are_merged(folder, command):
    for number in (1, 2):
        command("sweep", "scan.yaml", "--shard", f"{number}/2", "-o", f"part{number}", "-q")
    output = command("merge", "part1", "part2", "--sweep", "scan.yaml", "-o", "whole")
    assert output.err == "4 of 4 points; wrote whole\n"
    assert len(simnet.load_sweep("whole")) == 4


@pytest.mark.parametrize("form", ["csv", "markdown", "latex", "json"])
def test_tables_for_papers(folder, command, form):
    command("sweep", "scan.yaml", "-q")
    output = command("table", "results/sweeps/scan", "--columns", "protocol,training.workers", "--format", form)
    assert output.status == 0
    expected = {
        "csv": "protocol,training.workers\ntcp,1\ntcp,2\nrdma,1\nrdma,2\n",
        "markdown": "| protocol | training.workers |\n| --- | --- |\n"
        "| tcp | 1 |\n| tcp | 2 |\n| rdma | 1 |\n| rdma | 2 |\n",
    }
    if form in expected:
        assert output.out == expected[form]
    elif form == "json":
        assert json.loads(output.out)[3] == {"protocol": "rdma", "training.workers": 2}
    else:
        assert r"protocol & training.workers \\" in output.out
        assert output.out.startswith(r"\begin{tabular}{lr}")


def test_a_parquet_file(folder, command):
    command("sweep", "scan.yaml", "-q")
    command("table", "results/sweeps/scan", "--format", "parquet", "-o", "t.parquet", "--columns", "iteration_time_s")
    pd.testing.assert_series_equal(
        pd.read_parquet("t.parquet")["iteration_time_s"],
        simnet.load_sweep("results/sweeps/scan")["iteration_time_s"],
    )


def test_first_failure_is_told(folder, command):
    output = command("sweep", "scan.yaml", "--set", "run.warmup=0", "--set", "workload.batch_size=7777")
    assert "4 failed; wrote" in output.err
    assert "4 of the points have failed, the first with:" in output.err
    assert "was measured around batch 7777" in output.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sweep", "none.yaml"), "there is no file 'none.yaml'"),
        (("sweep", "scan.yaml", "--shard", "3/2"), "--shard is '3/2', write it like 2/8"),
        (("sweep", "scan.yaml", "--set", "training.wrkers=2"), "unknown key 'wrkers' in training"),
        (("sweep", "scan.yaml", "-o", "scan.yaml"), "is a file"),
        (("sweep", "scan.yaml", "-o", "."), "the folder holds 'scan.yaml', which is of no sweep"),
        (("sweep", "scan.yaml", "--dask", "tcp://127.0.0.1:1"), "Dask"),
        (("table", "nowhere"), "no sweep: sweep.json cannot be read"),
        (("table", "nowhere", "--format", "word"), "--format is 'word'"),
        (("merge", "nowhere", "--sweep", "scan.yaml", "-o", "whole"), "no sweep"),
    ],
)
def test_mistakes(folder, command, arguments, said):
    output = command(*arguments)
    assert output.status == 2
    assert said in output.err


def test_columns_that_are_not_there(folder, command):
    command("sweep", "scan.yaml", "-q")
    output = command("table", "results/sweeps/scan", "--columns", "iteration_tme_s,bla")
    assert output.status == 2
    assert "there is no column 'iteration_tme_s', did you mean 'iteration_time_s'?" in output.err
    assert "there is no column 'bla'" in output.err


def test_nothing_is_said_to_be_finished_where_no_cluster_answers(folder, command):
    output = command("sweep", "scan.yaml", "--dask", "nowhere")
    assert output.status == 2
    assert "stopped" not in output.err


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"parameters": 3}'])
def test_a_folder_that_says_nothing_of_its_sweep(folder, command, text):
    (folder / "sweep.json").write_text(text)
    output = command("table", ".")
    assert output.status == 2
    assert output.err.startswith(".: no sweep: sweep.json cannot be read: it names no parameters")
