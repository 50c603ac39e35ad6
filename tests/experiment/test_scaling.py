"""Speed-up over the number of workers, through the simulator, against the laws."""

from __future__ import annotations

import numpy as np
import pytest

import simnet
from simnet.experiment.plot import save_figure
from simnet.experiment.scaling import scaling_curves
from simnet.training.laws.speedup import amdahl, communication_bound, gustafson, super_linear
from simnet.workload import MemoryHierarchy, MemoryLevel, matrix_product, memory_time_s

from .building import within

WORKERS = [1, 2, 4, 8, 16]
FREE = {"star": {"hosts": 16, "bandwidth": "100000 Gbps", "latency": "0 s"}}
"""A network that takes next to no time: 4 bytes at 12.5 TB/s."""


def job(tmp_path, *, topology=FREE, parameters=1, overlap=False, **workload):
    """Return a scenario in which one worker computes 1 s for the 1,600 samples of an iteration."""
    file = tmp_path / "layers.csv"
    file.write_text(f"layer,parameters,forward_s,backward_s\none,{parameters},1,1\n")
    return {
        "topology": topology,
        "protocol": {"ideal": {"divisible": True}},
        "workload": {"file": str(file), "samples_per_s": 1600, "global_batch_size": 1600, **workload},
        "training": {"workers": 1, "overlap": overlap, "bucket_size": "1 GB"},
        "run": {"iterations": 2, "warmup": 1},
    }


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.5])
def test_a_serial_part_gives_amdahls_curve_and_karp_flatt_the_part(tmp_path, fraction):
    """Each worker computes s, and its share of p: T(P) = s + p/P, f = s/(s + p)."""
    serial_s = fraction / (1 - fraction)
    frame = simnet.scaling(job(tmp_path, serial_time=f"{serial_s!r} s"), WORKERS, "strong")
    expected = amdahl(np.array(WORKERS, dtype=float), fraction)
    assert frame["speedup"].tolist() == within(expected.tolist())
    assert frame["karp_flatt_serial_fraction"][1:].tolist() == within([fraction] * 4, abs=1e-9)
    assert frame["amdahl_serial_fraction"].tolist() == within([fraction] * 5, abs=1e-9)
    assert frame["amdahl_speedup"].tolist() == within(expected.tolist())


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.5])
def test_a_serial_part_gives_gustafsons_curve_where_work_grows(tmp_path, fraction):
    """P workers take s + p, as one does, for s + P p: P - f (P - 1)."""
    serial_s = fraction / (1 - fraction)
    frame = simnet.scaling(job(tmp_path, serial_time=f"{serial_s!r} s"), WORKERS, "weak")
    expected = gustafson(np.array(WORKERS, dtype=float), fraction).tolist()
    assert frame["speedup"].tolist() == within(expected)
    assert frame["gustafson_serial_fraction"].tolist() == within([fraction] * 5, abs=1e-9)


@pytest.mark.parametrize("overlap", [False, True])
def test_compute_to_communication_of_one_to_one(tmp_path, overlap):
    """Computing 1 s for one worker; a switch-bound exchange through one parameter server in the network takes 1 s for
    any number of workers. Against T(1) = C + M strong scaling stays below 2, weak scaling is C/(C + M) = 1/2.

    In-network aggregation over one switch: up and down at once, S/B and latency, whatever P.
    """
    size = 1.25e9  # bytes, at 10 Gbit/s 1 s
    file = tmp_path / "even.csv"
    # With overlap the gradients are ready all along the backward pass, which is nearly all of the computing.
    layers = 200 if overlap else 1
    each = int(size / 4 / layers)
    rows = "".join(f"l{i},{each},{1e-9},{1 / layers}\n" for i in range(layers))
    file.write_text("layer,parameters,forward_s,backward_s\n" + rows)
    base = job(tmp_path, topology={"star": {"hosts": 16, "bandwidth": "10 Gbps", "latency": "0 s"}}, file=str(file))
    in_network = {"in_network": {"chunks": 128}}
    base["training"] |= {"overlap": overlap, "bucket_size": "1 B", "architecture": in_network}
    base["training"]["allow_oversubscribed"] = True
    base["reduction_rate"] = "unlimited"
    for kind in ("strong", "weak"):
        frame = simnet.scaling(base, [2, 4, 16], kind)
        bounds = [communication_bound(1.0, count, kind, overlap=overlap) for count in (2, 4, 16)]
        alone_s = 2.0 if kind == "strong" else 1.0  # of one worker that would communicate as well, or that would not
        work = np.array([1.0, 1.0, 1.0]) if kind == "strong" else np.array([2.0, 4.0, 16.0])
        speedups = work * alone_s / frame["iteration_time_s"].to_numpy()
        assert (speedups <= np.array(bounds) * (1 + 1e-9)).all()
        assert speedups.tolist() == pytest.approx(bounds, rel=0.02)
        if kind == "strong":
            assert (speedups < 2).all()


LEVELS = [("1 MB", "1000 GB/s", 1e6, 1e12), ("8 MB", "200 GB/s", 8e6, 2e11), ("16 GB", "50 GB/s", 16e9, 5e10)]


@pytest.mark.parametrize("serial_s", [0.0, 0.01, 0.05])
def test_speedup_is_super_linear_exactly_where_the_condition_holds(tmp_path, serial_s):
    """A product of matrices of 800 x 800 in 8 bytes, 15.36 MB: memory up to P = 1, the large cache from P = 2 on, the
    small one from P = 16 on. What every worker does besides is overhead."""
    size = 800
    _, bytes_per_sample, uses = matrix_product(size, 8.0)
    hierarchy = {
        "levels": [{"size": text, "bandwidth": rate} for text, rate, _, _ in LEVELS],
        "bytes_per_sample": f"{bytes_per_sample:.0f} B",
        "uses": uses,
    }
    counts = [1, 2, 4, 8, 16]
    options = {"memory_hierarchy": hierarchy, "global_batch_size": size, "samples_per_s": size / 0.05}
    serial = {"serial_time": f"{serial_s!r} s"} if serial_s else {}
    frame = simnet.scaling(job(tmp_path, **options, **serial), counts, "strong")
    model = MemoryHierarchy(tuple(MemoryLevel(a, b) for _, _, a, b in LEVELS), bytes_per_sample, uses)
    memory_of_one = memory_time_s(model, size)
    found = []
    for count, speedup in zip(counts, frame["speedup"], strict=True):
        memory, compute = memory_time_s(model, size / count), serial_s + 0.05 / count
        overhead = (count - 1) * serial_s / compute
        expected = (serial_s + 0.05 + memory_of_one) / (compute + memory)
        assert speedup == within(expected)
        holds = super_linear(memory_of_one, memory, compute, count, overhead)
        assert (speedup > count * (1 + 1e-9)) == holds
        found.append(holds)
    assert found[0] is False
    assert any(found)


def test_without_a_cache_that_it_fits_into_there_is_no_super_linear_speedup(tmp_path):
    hierarchy = {"levels": [{"size": "1 GB", "bandwidth": "10 GB/s"}], "bytes_per_sample": "1 kB", "uses": 1000}
    frame = simnet.scaling(job(tmp_path, memory_hierarchy=hierarchy), WORKERS, "strong")
    assert frame["speedup"].tolist() == within([float(count) for count in WORKERS])


def test_the_curves_are_drawn(tmp_path):
    frame = simnet.scaling(job(tmp_path, serial_time="100 ms"), [1, 2, 4], "strong")
    figure = scaling_curves(frame)
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert [*labels[:2], labels[3]] == ["simulated", "Amdahl, f = 0.0909", "linear"]
    save_figure(figure, tmp_path / "curves.svg")


def test_what_cannot_be_scaled_is_refused(tmp_path):
    with pytest.raises(simnet.InputError, match="cannot share evenly"):
        simnet.scaling(job(tmp_path), [1, 7], "strong")
    with pytest.raises(simnet.InputError, match="scaling is 'medium'"):
        simnet.scaling(job(tmp_path), [1], "medium")
    with pytest.raises(simnet.InputError, match="workers are 2,2"):
        simnet.scaling(job(tmp_path), [2, 2])
