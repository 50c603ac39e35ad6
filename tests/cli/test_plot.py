"""``simnet plot`` and ``simnet report``."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from simnet.errors import OutputError
from simnet.experiment.plot import save_figure
from simnet.experiment.plot_kinds import PLOT_KINDS

SWEEP = """
scenario: resnet50_16gpu
set: {run.iterations: 1}
grid: {protocol: [tcp, rdma], training.workers: [1, 2]}
"""


@pytest.fixture
def folder(here, command):
    (here / "scan.yaml").write_text(SWEEP)
    command("sweep", "scan.yaml", "-o", "scan", "-q")
    return here


def test_a_picture_in_each_form(folder, command):
    begins = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for form, start in begins.items():
        output = command("plot", "scan", "--kind", "efficiency", "-o", f"pictures/e.{form}")
        assert (output.status, output.out, output.err) == (0, "", f"wrote pictures/e.{form}\n")
        assert (folder / f"pictures/e.{form}").read_bytes().startswith(start)
    command("plot", "scan")
    assert (folder / "curves.svg").exists()


def test_columns_are_chosen(folder, command):
    output = command("plot", "scan", "--x", "training.workers", "--y", "wire_bytes", "--by", "protocol")
    assert output.status == 0


def test_help_lists_the_kinds(command):
    said = " ".join(command("plot", "--help").out.replace("│", " ").split())
    for kind in PLOT_KINDS:
        assert f"{kind}:" in said


def test_a_report(folder, command):
    output = command("report", "scan")
    assert (output.status, output.err) == (0, "wrote scan/report.html\n")
    assert command("report", "scan", "-o", "other.html", "--no-point").err == "wrote other.html\n"
    assert command("report", "scan", "-o", "point.html", "--point", "0").status == 0
    # It is no obstacle for the sweep to go on.
    assert command("sweep", "scan.yaml", "-o", "scan").err.startswith("4 points: 4 were there")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plot", "nowhere"), "no sweep: sweep.json cannot be read"),
        (("report", "nowhere"), "no sweep: sweep.json cannot be read"),
        (("plot", "scan", "--kind", "pie"), "there is no kind 'pie'"),
        (("plot", "scan", "--y", "iteration_tim_s"), "there is no column 'iteration_tim_s', did you mean"),
        (("plot", "scan", "-o", "x.gif"), "a file that ends with .svg, .png, .pdf is wanted"),
        (("plot", "scan", "-o", "scan.yaml/x.svg"), "cannot be written"),
        (("report", "scan", "-o", "scan.yaml/x.html"), "cannot be written"),
        (("report", "scan", "-o", "scan"), "cannot be written"),
        (("report", "scan", "--point", "17"), "there is no point 17, numbers from 0 to 3 are there"),
        (("report", "scan", "--point", "1", "--no-point"), "exclude each other"),
    ],
)
def test_mistakes(folder, command, arguments, said):
    before = sorted(folder.rglob("*"))
    output = command(*arguments)
    assert output.status == 2
    assert said in output.err
    assert len(output.err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_a_full_disk_is_told_as_such(form):
    figure = Figure()
    figure.add_subplot().plot(range(10_000), [number % 7 for number in range(10_000)])
    with pytest.raises(OutputError, match="No space left"):
        save_figure(figure, "/dev/full", form=form)
