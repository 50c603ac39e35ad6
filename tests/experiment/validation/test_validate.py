"""Predictions beside measurements: made-up ones with closed forms, and those that ship."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.experiment.collective import run_collective
from simnet.experiment.validation import load_data_sets, read_measurements, validate
from simnet.scenario import load_collective
from simnet.shipped import shipped_folder

PARAMETERS = 25_557_032


def test_training_is_predicted_from_the_rate_of_one_gpu(folder):
    """At 100 Gbit/s all is hidden but the last bucket; without overlap 0.1 s and S/B = 0.818 s of a ring of two."""
    done = validate(folder, ["small"])
    rows = {row.row: row for row in done.table.itertuples()}
    assert rows[2].linear == rows[3].linear == 640
    assert 600 < rows[2].predicted < 640
    exchanged_s = 4 * PARAMETERS / 125e6
    assert rows[3].predicted == pytest.approx(64 / (0.1 + exchanged_s), rel=1e-3)
    assert rows[3].assumed == "nothing overlaps"


def test_what_is_not_predicted_is_told_with_why(folder):
    done = validate(folder)
    why = dict(zip(done.left_out.row, done.left_out.why, strict=True))
    assert why == {
        4: "the rate of one GPU was not measured",
        5: "nobody knows how",
        8: "no rule says what is simulated",
    }


def test_collectives_are_told_in_the_unit_that_was_measured(folder):
    """A ring of two at 1 GB/s sends S in 1 ms, and is called for 2 us: busbw is S/t for two ranks."""
    done = validate(folder, ["times"])
    predicted = dict(zip(done.table.row, done.table.predicted, strict=True))
    assert predicted[6] == pytest.approx(1002.0)
    assert predicted[7] == pytest.approx(1e6 / 1002e-6 / 1e9)
    assert done.table.error.abs().max() < 0.003


def test_one_use_can_be_chosen_and_processes_do_not_matter(folder):
    assert set(validate(folder, uses=["calibration"]).table.use) == {"calibration"}
    one, two = validate(folder), validate(folder, jobs=2)
    assert one.table.equals(two.table)


@pytest.fixture(scope="module")
def shipped():
    """Return what ships."""
    return read_measurements(shipped_folder("validation") / "measurements.csv")


def test_rows_that_ship_say_where_they_are_from(shipped):
    assert all(row.source and row.url.startswith("http") and row.how_read for row in shipped)


def test_only_single_messages_collectives_and_one_gpu_calibrate(shipped):
    """No rate of training on two or more GPUs is used for a parameter: all of them validate."""
    training = [row for row in shipped if row.metric.startswith("throughput")]
    assert {row.use for row in training if row.workers == 1} == {"input"}
    assert {row.use for row in training if row.workers != 1} == {"validation"}
    assert {row.use for row in shipped if not row.metric.startswith("throughput")} == {"calibration"}


def test_every_description_that_ships_has_rows_and_leaves_out_with_a_reason(shipped):
    for data_set in load_data_sets(shipped_folder("validation")):
        cases, left_out = data_set.cases(shipped)
        assert cases, data_set.name
        assert all(why for _, why in left_out)


@pytest.mark.parametrize("name", ["deepbench", "gloo", "nccl_pcie", "nccl_tests", "point_to_point"])
def test_calibration_rows_are_met(name):
    """Median error at most 10 %, 90th percentile at most 25 %, in each data set."""
    error = validate(data_sets=[name], uses=["calibration"]).table.error.abs()
    assert np.median(error) <= 0.10
    assert np.quantile(error, 0.9) <= 0.25


@pytest.mark.parametrize(
    ("hardware", "largest", "step_s", "rate"),
    [
        ("two processors", (0, np.inf), 2 * 1.97e-6, 4.99e9),
        ("one after the other", (0, 66766), 2 * 1.31e-6, 3.84e9),
        ("one after the other", (66766, np.inf), 2 * 2.75e-6, 11.38e9),
    ],
)
def test_rings_on_pcie_are_those_of_the_least_squares(shipped, hardware, largest, step_s, rate):
    """Six steps and 1.5 S / rate: what fits the rows best that it is used for, by the relative error."""
    sizes, times_s = np.array(
        [
            (row.size_bytes, row.value * 1e-6)
            for row in shipped
            if row.data_set == "nccl_pcie" and hardware in row.hardware and largest[0] <= row.size_bytes < largest[1]
        ]
    ).T
    found, *_ = np.linalg.lstsq(np.stack([6 / times_s, 1.5 * sizes / times_s], axis=1), np.ones(len(sizes)))
    assert (found[0], 1 / found[1]) == pytest.approx((step_s, rate), rel=2e-3)


@pytest.mark.parametrize("topology", ["v100_pcie_16x4_100g", "v100_pcie_16x4_10g"])
def test_hosts_of_hkbu_take_as_long_as_what_they_are_calibrated_on(topology):
    """Four GPUs on two processors: 23.64 us, and 1.5 S at 4.99 GB/s."""
    settings = load_collective("all_reduce", topology=topology, protocol="ideal", ranks=4, sizes="64B,1MB,64MB")
    for row in run_collective(settings).itertuples():
        assert row.time_us == pytest.approx(23.64 + 1.5 * row.size_bytes / 4.99e3, rel=1e-3)


@pytest.mark.slow
def test_all_calibration_rows_are_met():
    scores = validate(uses=["calibration"]).scores
    assert (scores.median_error <= 0.10).all()
    assert (scores.p90_error <= 0.25).all()
