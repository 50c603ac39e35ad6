"""Pictures: what is drawn is what is in the table; no warnings, no screen, the same bytes each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

import simnet
from simnet.experiment.columns import COLUMNS
from simnet.experiment.plot import bars, breakdown, curves, panels, save_figure

from .examples import star_scenario


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return a sweep over two parameters."""
    return simnet.sweep(star_scenario(8), {"protocol": ["ideal", "tcp", "ipoib"], "training.workers": [1, 2, 8]})


def _drawn(figure: Figure) -> list[list[float]]:
    [axes] = figure.axes
    return [[bar.get_width() for bar in container] for container in axes.containers]


def test_curves_are_the_columns(frame):
    figure = curves(frame)
    [axes] = figure.axes
    assert [line.get_label() for line in axes.lines] == ["ideal", "tcp", "ipoib"]
    for line, (_, group) in zip(axes.lines, frame.groupby("protocol", sort=False), strict=True):
        assert line.get_xdata().tolist() == [1, 2, 8]
        assert line.get_ydata().tolist() == group["scaling_efficiency"].tolist()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("workers", "scaling efficiency")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "8"]
    low, high = axes.get_ylim()
    assert low == 0
    assert high > 1


def test_curves_stand_in_the_order_of_their_x(frame):
    shuffled = frame.sample(frac=1, random_state=1)
    for line in curves(shuffled, x="training.workers").axes[0].lines:
        assert line.get_xdata().tolist() == [1, 2, 8]


def test_curves_are_told_apart_without_colour(frame):
    """Each has its own marker and line, so that it can be read in grey."""
    many = pd.concat([frame.assign(protocol=f"p{number}") for number in range(7)])
    styles = {(line.get_marker(), line.get_linestyle()) for line in curves(many).axes[0].lines}
    assert len(styles) == 7


def test_panels_are_curves_side_by_side(frame):
    """One for each value of a column, in the order of the frame, with the same axis and one legend for all."""
    both = pd.concat([frame.assign(place="near"), frame.assign(place="far", scaling_efficiency=0.5)])
    figure = panels(both, panel="place", title="two places")
    assert [axes.get_title() for axes in figure.axes] == ["near", "far"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == ["ideal", "tcp", "ipoib"]
    assert set(figure.axes[1].lines[0].get_ydata()) == {0.5}
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ideal", "tcp", "ipoib"]


def test_curves_over_text_keep_the_order_of_the_frame():
    frame = simnet.sweep(star_scenario(2), {"training.bucket_size": ["25 MiB", "1 MiB"]})
    axes = curves(frame, x="training.bucket_size").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["25 MiB", "1 MiB"]
    assert axes.get_xlabel() == "bucket size"


@pytest.mark.parametrize(
    ("column", "label"),
    [
        ("iteration_time_s", "iteration time [s]"),
        ("throughput_samples_per_s", "throughput [samples/s]"),
        ("wire_bytes", "wire bytes [bytes]"),
        ("speedup", "speedup"),
    ],
)
def test_axes_have_units(frame, column, label):
    assert curves(frame, y=column).axes[0].get_ylabel() == label
    assert bars(frame, column, ["protocol", "workers"]).axes[0].get_xlabel() == label


def test_parts_of_an_iteration_are_stacked(frame):
    figure = breakdown(frame, ["protocol", "workers"])
    compute, exposed, waiting = _drawn(figure)
    assert compute == frame["compute_time_s"].tolist()
    assert exposed == pytest.approx(frame["exposed_communication_time_s"].tolist(), rel=1e-9)
    assert waiting == pytest.approx(frame["waiting_time_s"].tolist(), abs=1e-12)
    last = figure.axes[0].containers[-1]
    ends = [bar.get_x() + bar.get_width() for bar in last]
    assert ends == pytest.approx(frame["iteration_time_s"].tolist(), rel=1e-12)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()][:2] == ["ideal, 1", "ideal, 2"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "compute time",
        "exposed communication time",
        "waiting time",
    ]


def test_a_breakdown_takes_any_index(frame):
    some = frame[frame["workers"] == 8]
    drawn = _drawn(breakdown(some))[1]
    assert drawn == pytest.approx(some["exposed_communication_time_s"].tolist(), rel=1e-9)


def test_bars_are_named_by_what_differs(frame):
    """By protocol and workers in all of the sweep, by protocol for one number of workers, by it alone for one row."""
    for some, first in ((frame, "ideal, 1"), (frame[frame["workers"] == 8], "ideal"), (frame[:1], "ideal")):
        for figure in (bars(some), breakdown(some)):
            assert figure.axes[0].get_yticklabels()[0].get_text() == first


def test_bars_carry_their_values(frame):
    some = frame[frame["workers"] == 8]
    figure = bars(some, "communication_time_s")
    assert _drawn(figure) == [some["communication_time_s"].tolist()]
    assert [text.get_text() for text in figure.axes[0].texts] == [f"{x:.4g}" for x in some["communication_time_s"]]


def test_zeros_can_be_drawn(frame):
    alone = frame[frame["workers"] == 1]
    for figure in (bars(alone, "communication_time_s"), curves(alone, y="communication_time_s")):
        figure.draw_without_rendering()


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
@pytest.mark.parametrize("draw", [curves, bars, breakdown], ids=lambda draw: draw.__name__)
def test_the_same_table_gives_the_same_bytes(frame, tmp_path, suffix, draw):
    for name in ("one", "two"):
        save_figure(draw(frame), tmp_path / "folder" / f"{name}.{suffix}")
    one, two = ((tmp_path / "folder" / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert len(one) > 1000


def test_in_another_process_too(frame, tmp_path):
    save_figure(curves(frame), tmp_path / "here.svg")
    frame.to_csv(tmp_path / "frame.csv")
    script = (
        "import sys, pandas\n"
        "from simnet.experiment.plot import curves, save_figure\n"
        "save_figure(curves(pandas.read_csv(sys.argv[1])), sys.argv[2])\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "random", "PYTHONPATH": str(Path(simnet.__file__).parents[1])}
    environment.pop("DISPLAY", None)
    command = [sys.executable, "-W", "error", "-c", script, tmp_path / "frame.csv", tmp_path / "there.svg"]
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert (tmp_path / "there.svg").read_bytes() == (tmp_path / "here.svg").read_bytes()


def test_every_column_has_a_label(frame):
    """No label shows a suffix that stands for a unit."""
    for column in COLUMNS["summary"]:
        if column.dtype != "str":
            label = bars(frame, column.name).axes[0].get_xlabel()
            assert "_" not in label
            assert label.endswith(f"[{column.unit}]") == bool(column.unit)
