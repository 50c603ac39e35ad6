"""How long each layer computes: the roofline, and the GPUs whose peaks it needs.

A layer takes the longer of its arithmetic at the GPU's peak and its traffic at the memory's bandwidth (S. Williams, A.
Waterman and D. Patterson, *Roofline*, CACM 52(4), 2009). Only the shares count where a total was measured.

Backward traffic follows from the tensors that the backward pass of each kind of operation reads and writes, relative to
the forward pass (`BACKWARD_TRAFFIC`). Two passes over a matrix product: the gradient of the input reads the gradient of
the output and the weights, that of the weights reads it and the input.

In fp32, 3x3 convolutions of stride 1 are done by minimal filtering (Winograd) where that is faster, as cuDNN's search
chooses: F(4x4, 3x3) needs 36 multiplications where the direct way needs 144 (A. Lavin and S. Gray, *Fast Algorithms for
Convolutional Neural Networks*, CVPR 2016), but non-fused it writes and reads tiles of 6x6 values for each 4x4 of input
and output. Tensor cores do not use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from simnet.errors import InputError, Problem, nearest
from simnet.shipped import shipped_folder
from simnet.workload.csv_table import read_table
from simnet.workload.model import DTYPE_BYTES, PRECISIONS, Floats, Layer

__all__ = ["BACKWARD_TRAFFIC", "Gpu", "find_gpu", "gpu_problems", "layer_times", "list_gpus", "matches_gpu"]

BACKWARD_TRAFFIC = {
    "conv": 2.0,
    "gemm": 2.0,
    "attn_matmul": 2.0,
    "norm": 5.0 / 3.0,
    "act": 1.5,
    "softmax": 1.5,
}
"""Bytes that the backward pass moves for each byte of the forward pass, by kind of operation; 1 where not given.

Batch normalisation reads its input twice and writes its output forward; backward it reads input and output gradient
twice and writes once. Activations and softmax read and write one tensor forward; backward they read two and write one.
"""

FILTERING_ARITHMETIC = 36.0 / 144.0
"""Multiplications of F(4x4, 3x3) for each one of the direct way."""

FILTERING_TRAFFIC = 1.0 + 2.0 * 36.0 / 16.0
"""Bytes that it moves for each byte of input and output: the byte itself, and its tiles written and read."""

_TABLE_BYTES = DTYPE_BYTES["fp32"]
_ACTIVATION_BYTES = {"fp32": DTYPE_BYTES["fp32"], "tf32": DTYPE_BYTES["fp32"], "amp": DTYPE_BYTES["fp16"]}


@dataclass(frozen=True)
class Gpu:
    """What a GPU can do at most.

    Parameters
    ----------
    name : str
    memory_bytes : float
        [bytes]
    memory_bandwidth_bytes_per_s : float
        [bytes/s]
    peak_flops_per_s : tuple of (str, float)
        Peak rate in each precision that it knows [1/s].
    source, url : str
        Data sheet.
    """

    name: str
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    peak_flops_per_s: tuple[tuple[str, float], ...]
    source: str
    url: str

    def peak(self, precision: str) -> float | None:
        """Return the peak rate in a precision [1/s], or None where it does not know it.

        Parameters
        ----------
        precision : str
            One of `PRECISIONS`.
        """
        return dict(self.peak_flops_per_s).get(precision)


@cache
def list_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that are known, the usual variant of each first."""
    peaks = [f"{precision}_flops_per_s" for precision in PRECISIONS]
    columns = ["gpu", "memory_bytes", "memory_bandwidth_bytes_per_s", *peaks, "source", "url"]
    return tuple(
        Gpu(
            row["gpu"],
            float(row["memory_bytes"]),
            float(row["memory_bandwidth_bytes_per_s"]),
            tuple(
                (precision, float(row[peak])) for precision, peak in zip(PRECISIONS, peaks, strict=True) if row[peak]
            ),
            row["source"],
            row["url"],
        )
        for row in read_table(shipped_folder("workloads") / "gpus.csv", columns)
    )


def matches_gpu(asked: str, name: str) -> bool:
    """Tell whether ``v100``, ``v100_sxm2``, … stands for the GPU of that full name."""
    return name == asked or name.startswith(f"{asked}_")


def find_gpu(asked: str) -> Gpu:
    """Return the GPU of that name, or the usual variant where the name stands for several.

    Raises
    ------
    InputError
        If there is none.
    """
    for gpu in list_gpus():
        if matches_gpu(asked, gpu.name):
            return gpu
    raise InputError(gpu_problems(asked, None))


def gpu_problems(asked: str, precision: str | None) -> list[Problem]:
    """Return what is wrong with the name of a GPU and one of `PRECISIONS`; nothing if it knows that precision."""
    found = [gpu for gpu in list_gpus() if matches_gpu(asked, gpu.name)]
    if not found:
        prefixes = {"_".join(gpu.name.split("_")[:n]) for gpu in list_gpus() for n in range(1, gpu.name.count("_") + 2)}
        hint = f"{nearest(asked, prefixes)}; or leave it out and give samples_per_s, the measured rate of one worker"
        return [Problem(f"unknown GPU {asked!r}", hint, path=("gpu",))]
    if precision is None:
        return []
    if found[0].peak(precision) is None:
        known = ", ".join(name for name, _ in found[0].peak_flops_per_s)
        return [Problem(f"{asked} does not compute in {precision}", f"it knows {known}", path=("precision",))]
    return []


def layer_times(layers: Sequence[Layer], gpu: Gpu, precision: str, batch_size: float) -> tuple[Floats, Floats]:
    """Return how long each layer computes by the roofline.

    Parameters
    ----------
    layers : sequence of Layer
    gpu : Gpu
    precision : str
        One of `PRECISIONS` that the GPU knows.
    batch_size : float
        Samples.

    Returns
    -------
    forward_s, backward_s : ndarray of float, shape (layers,)
        [s]

    Raises
    ------
    InputError
        The GPU has no peak rate in this precision.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, *Roofline*, CACM 52(4), 2009. Minimal filtering of 3x3 convolutions in fp32:
    A. Lavin, S. Gray, *Fast Algorithms for Convolutional Neural Networks*, CVPR 2016.
    """
    peak = gpu.peak(precision)
    if peak is None:
        raise InputError(gpu_problems(gpu.name, precision))
    scale = _ACTIVATION_BYTES[precision] / _TABLE_BYTES
    fixed = scale * np.array([layer.parameter_memory_bytes for layer in layers])
    varying = scale * batch_size * np.array([layer.memory_bytes - layer.parameter_memory_bytes for layer in layers])
    again = np.array([BACKWARD_TRAFFIC.get(layer.op_class, 1.0) for layer in layers])
    filtering = precision == "fp32"
    filtered = np.array([filtering and layer.kernel == "3x3" and layer.stride == 1 for layer in layers], dtype=bool)

    def times(flops: Floats, passes: Floats) -> Floats:
        def roof(arithmetic: Floats, traffic: Floats) -> Floats:
            return np.maximum(arithmetic / peak, passes * traffic / gpu.memory_bandwidth_bytes_per_s)

        direct = roof(flops, varying + fixed)
        by_filtering = roof(flops * FILTERING_ARITHMETIC, varying * FILTERING_TRAFFIC + fixed)
        return np.where(filtered, np.minimum(direct, by_filtering), direct)

    forward_flops = batch_size * np.array([layer.forward_flops for layer in layers])
    backward_flops = batch_size * np.array([layer.backward_flops for layer in layers])
    return times(forward_flops, np.ones(len(layers))), times(backward_flops, again)
