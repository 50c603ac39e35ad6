"""Pictures of a sweep: what is over what follows from what varies, and values are those of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import simnet
from simnet.errors import InputError
from simnet.experiment.plot.laws import efficiency
from simnet.experiment.plot.of_sweep import KINDS, plot
from simnet.experiment.plot_kinds import PLOT_KINDS
from simnet.experiment.scaling import fitted_laws
from simnet.training.laws.speedup import amdahl, gustafson

from .examples import star_scenario


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    parameters = {
        "protocol": ["tcp", "ipoib"],
        "training.workers": [1, 2, 4, 8],
        "training.architecture": ["ring", "tree"],
    }
    return simnet.sweep(star_scenario(8), parameters, {"run.iterations": 1})


def _titles(figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes]


def test_each_kind_has_a_line_that_says_what_it_is():
    assert list(KINDS) == list(PLOT_KINDS)


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_can_be_drawn(frame, kind):
    plot(frame, kind).draw_without_rendering()


def test_protocols_are_curves_and_architectures_panels(frame):
    figure = plot(frame, "curves", y="iteration_time_s")
    assert _titles(figure) == ["ring", "tree"]
    for axes, architecture in zip(figure.axes, ["ring", "tree"], strict=True):
        for line, protocol in zip(axes.lines, ["tcp", "ipoib"], strict=True):
            own = frame[(frame["protocol"] == protocol) & (frame["training.architecture"] == architecture)]
            assert line.get_label() == protocol
            assert line.get_ydata().tolist() == own["iteration_time_s"].tolist()


def test_what_goes_along_with_workers_has_no_panels(frame):
    """A cluster that grows with its workers: one curve a protocol, as long as the cluster gets."""
    grown = frame[frame["training.architecture"] == "ring"].drop(columns="training.architecture")
    grown = grown.rename(columns={"training.workers": "topology.star.hosts"})
    for kind in ("curves", "scaling", "efficiency", "ratio"):
        figure = plot(grown, kind)
        [axes] = figure.axes
        assert "along with workers: hosts" in (axes.get_title(), figure.get_suptitle())
        assert [len(line.get_ydata()) for line in axes.lines][:2] in ([4, 4], [4, 60])


def test_numbers_in_legends_say_of_what_they_are(frame):
    figure = plot(frame[frame["protocol"] == "tcp"], "curves", x="training.architecture", by="training.workers")
    assert [line.get_label() for line in figure.axes[0].lines] == ["workers 1", "workers 2", "workers 4", "workers 8"]


def test_a_curve_looks_the_same_where_another_is_missing(frame):
    """All points of TCP over a ring have failed: IPoIB keeps its colour there."""
    holes = frame[~((frame["protocol"] == "tcp") & (frame["training.architecture"] == "ring"))]
    panels = {axes.get_title(): axes for axes in plot(holes).axes}
    [alone] = panels["ring"].lines
    looks = {line.get_label(): line.get_color() for line in panels["tree"].lines}
    assert alone.get_color() == looks["ipoib"]


def test_a_heat_map_has_the_numbers_of_the_table(frame):
    ring = frame[frame["training.architecture"] == "ring"]
    figure = plot(ring, "heatmap", x="training.workers", by="protocol", y="throughput_samples_per_s")
    [mesh] = figure.axes[0].collections
    drawn = np.asarray(mesh.get_array())
    expected = [group["throughput_samples_per_s"].tolist() for _, group in ring.groupby("protocol", sort=False)]
    assert drawn.tolist() == expected
    assert figure.axes[1].get_ylabel() == "throughput [samples/s]"


def test_of_three_parameters_the_third_has_its_first_value_and_that_is_said(frame):
    figure = plot(frame, "heatmap", x="training.workers", by="protocol")
    assert figure.axes[0].get_title() == "architecture ring"


def test_a_point_that_failed_is_a_hole_that_is_seen():
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "status": ["ok", "ok", "ok", "failed"]})
    frame = frame.assign(error="", job="train", workers=1, iteration_time_s=[1.0, 2.0, 3.0, np.nan])
    figure = plot(frame, "heatmap", x="a", by="b")
    [mesh] = figure.axes[0].collections
    assert np.ma.getmaskarray(mesh.get_array()).tolist() == [[False, False], [False, True]]
    assert "none" in [text.get_text() for text in figure.axes[0].texts]


def test_bars_of_a_large_sweep_are_those_with_most_workers():
    parameters = {"protocol": ["tcp", "ipoib"], "training.workers": [1, 2], "run.iterations": [1]}
    few = simnet.sweep(star_scenario(2), parameters)
    frame = pd.concat([few.assign(**{"training.workers": few["workers"] + 2 * n}) for n in range(7)], ignore_index=True)
    frame["workers"] = frame["training.workers"]
    figure = plot(frame, "breakdown")
    assert _titles(figure) == ["14 workers"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["tcp", "ipoib"]


def test_many_quantities_are_an_axis_of_numbers():
    """More than a dozen bandwidths stand where their numbers are, not side by side."""
    values = [f"{rate} Gbps" for rate in (1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 80)]
    frame = simnet.sweep(star_scenario(2), {"topology.star.bandwidth": values}, {"run.iterations": 1})
    axes = plot(frame, "curves", y="iteration_time_s").axes[0]
    assert axes.get_xscale() == "log"
    assert axes.lines[0].get_xdata()[-1] == 80e9 / 8
    assert {text.get_text() for text in axes.get_xticklabels()} <= set(values)


@pytest.mark.parametrize("fraction", [0.0, 0.02, 0.3])
def test_laws_are_found_again(fraction):
    """From speed-ups of Amdahl's law its f, and R² = 1; from those of Gustafson's the same."""
    workers = pd.Series([1, 2, 4, 8, 16, 64])
    numbers = workers.to_numpy(dtype=float)
    for name, law in (("amdahl", amdahl), ("gustafson", gustafson)):
        found = fitted_laws(workers, pd.Series(law(numbers, fraction)))
        assert found[f"{name}_serial_fraction"] == pytest.approx(fraction, abs=1e-12)
        assert found[f"{name}_r_squared"] == pytest.approx(1.0, abs=1e-12)


def test_fits_are_drawn_beside_what_was_simulated(frame):
    """The curve of a law ends at law(P) / P."""
    ring = frame[(frame["training.architecture"] == "ring") & (frame["protocol"] == "tcp")]
    lines = plot(ring, "efficiency", by="protocol").axes[0].lines
    found = fitted_laws(ring["training.workers"], ring["speedup"])
    ends = {line.get_gid(): float(line.get_ydata()[-1]) for line in lines if line.get_gid()}
    assert ends == {
        "amdahl tcp": pytest.approx(amdahl(8.0, found["amdahl_serial_fraction"]) / 8, rel=1e-9),
        "gustafson tcp": pytest.approx(gustafson(8.0, found["gustafson_serial_fraction"]) / 8, rel=1e-9),
    }


@pytest.mark.parametrize(
    ("kind", "chosen", "said"),
    [
        ("effect", {}, "there is no kind 'effect', did you mean 'effects'?"),
        ("curves", {"y": "iteration_tme_s"}, "there is no column 'iteration_tme_s', did you mean 'iteration_time_s'?"),
        ("curves", {"y": "bottleneck"}, "bottleneck is no number"),
        ("effects", {"x": "protocol"}, "effects takes no --x, of these it takes none"),
        ("heatmap", {"y": "bottleneck"}, "bottleneck is no number"),
    ],
)
def test_what_cannot_be_drawn_is_said(frame, kind, chosen, said):
    with pytest.raises(InputError) as caught:
        plot(frame, kind, **chosen)
    assert said in str(caught.value)


@pytest.mark.parametrize("kind", ["heatmap", "effects", "scaling", "efficiency"])
def test_one_point_is_too_few(kind):
    with pytest.raises(InputError):
        plot(simnet.sweep(star_scenario(2), {}), kind)


def test_values_that_are_drawn_at_random_are_points_and_no_curves():
    """Of a sample each value comes once: it has no panel, points are not joined, and there is no map."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"training.workers": random.integers(1, 9, 20), "a": random.random(20), "b": random.random(20)}
    )
    frame = frame.assign(status="ok", error="", job="train", workers=frame["training.workers"])
    frame["throughput_samples_per_s"] = random.random(20)
    [axes] = plot(frame, "curves").axes
    assert [line.get_linestyle() for line in axes.lines] == ["None"]
    assert len(axes.lines[0].get_xdata()) == 20
    assert axes.get_title() == "at any a and b"
    with pytest.raises(InputError, match="drawn at random"):
        plot(frame.assign(iteration_time_s=1.0), "heatmap")


def test_mappings_are_named_in_few_words():
    servers = {"parameter_server": {"servers": 1, "placement": "colocated"}}
    frame = simnet.sweep(star_scenario(2), {"training.architecture": ["ring", servers]}, {"run.iterations": 1})
    labels = [text.get_text() for text in plot(frame, "breakdown").axes[0].get_yticklabels()]
    assert labels == ["ring", "parameter_server, servers 1,\nplacement colocated"]


def test_fits_that_explain_little_are_not_drawn():
    """A speed-up that rises and falls is no law's: R² is below 0.9."""
    frame = pd.DataFrame({"workers": [1, 2, 4, 8, 16], "speedup": [1.0, 1.9, 1.0, 2.5, 0.5], "protocol": "tcp"})
    frame["scaling_efficiency"] = frame["speedup"] / frame["workers"]
    found = fitted_laws(frame["workers"], frame["speedup"])
    assert max(found["amdahl_r_squared"], found["gustafson_r_squared"]) < 0.9
    assert not [line for line in efficiency(frame).axes[0].lines if line.get_gid()]
