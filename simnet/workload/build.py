"""A shipped model's workload: its measured time of an iteration, split over its layers."""

from __future__ import annotations

import math

from simnet.errors import InputError, Problem, nearest
from simnet.workload.model import PRECISIONS, Model, Workload
from simnet.workload.roofline import find_gpu, gpu_problems, layer_times
from simnet.workload.tables import load_model, model_entry, model_problems
from simnet.workload.throughput import iteration_time

__all__ = ["REFERENCE_GPU", "setting_problems", "split_over_layers", "table_workload"]

REFERENCE_GPU = "v100"
"""Its roofline splits a rate that somebody has measured on a GPU that is not named."""


def table_workload(
    *,
    model: str,
    gpu: str | None = None,
    batch_size: int,
    precision: str = "fp32",
    sequence_length: int | None = None,
    samples_per_s: float | None = None,
) -> Workload:
    """Return the workload of a shipped model.

    The time of an iteration is measured; it is split over the layers by a roofline, and between the forward and the
    backward pass as measured for the model, or by the roofline where nobody has measured that.

    Parameters
    ----------
    model : str
        One of `list_models`.
    gpu : str, optional
        ``v100``, or a variant such as ``v100_sxm2``; may be left out with `samples_per_s`.
    batch_size : int
        Samples per worker and iteration.
    precision : str
        One of `PRECISIONS`.
    sequence_length : int, optional
        Tokens per sample; the model's default when not given.
    samples_per_s : float, optional
        Rate of one worker without communication, instead of the table's [samples/s].

    Returns
    -------
    Workload

    Raises
    ------
    InputError
        With everything that is wrong; where nothing was measured, with a list of what was.
    """
    problems = [*model_problems(model, sequence_length), *setting_problems(batch_size, precision, samples_per_s)]
    if gpu is not None:
        problems += gpu_problems(gpu, precision if precision in PRECISIONS else None)
    elif samples_per_s is None:
        problems.append(Problem("gpu is missing", "name one, or give samples_per_s", path=("gpu",)))
    if problems:
        raise InputError(problems)
    network = load_model(model, sequence_length)
    if samples_per_s is not None:
        time_s, source = batch_size / samples_per_s, f"given: {samples_per_s:.6g} samples/s"
    else:
        assert gpu is not None
        measured = iteration_time(model, gpu, precision, batch_size, network.sequence_length)
        time_s, source = measured.iteration_time_s, measured.source
    entry = model_entry(model)
    backward_to_forward = None if not entry.forward_ms else (entry.backward_ms or 0.0) / entry.forward_ms
    return split_over_layers(network, gpu, precision, batch_size, time_s, source, backward_to_forward)


def setting_problems(batch_size: int, precision: str, samples_per_s: float | None) -> list[Problem]:
    """Return what is wrong with the settings that workloads of all kinds have in common."""
    problems = []
    if batch_size < 1:
        problems.append(Problem(f"batch size {batch_size} is not positive", path=("batch_size",)))
    if samples_per_s is not None and not 0.0 < samples_per_s < math.inf:
        problems.append(Problem(f"samples_per_s {samples_per_s} is not positive", path=("samples_per_s",)))
    if precision not in PRECISIONS:
        problems.append(
            Problem(f"unknown precision {precision!r}", nearest(precision, PRECISIONS), path=("precision",))
        )
    return problems


def split_over_layers(
    model: Model,
    gpu: str | None,
    precision: str,
    batch_size: int,
    iteration_time_s: float,
    source: str,
    backward_to_forward: float | None = None,
) -> Workload:
    """Split the time of an iteration over layers in the proportions of a roofline.

    Parameters
    ----------
    model : Model
    gpu : str or None
        Whose roofline; that of `REFERENCE_GPU` when None.
    precision : str
    batch_size : int
    iteration_time_s : float
        What all layers, forward and backward, add up to [s].
    source : str
    backward_to_forward : float, optional
        Ratio of the two passes; the roofline's when not given.
    """
    asked = REFERENCE_GPU if gpu is None else gpu
    # A precision that the reference GPU does not know still needs proportions: those of its tensor cores.
    known = precision if gpu is not None or find_gpu(asked).peak(precision) else "amp"
    forward_s, backward_s = layer_times(model.layers, find_gpu(asked), known, batch_size)
    forward_sum, backward_sum = float(forward_s.sum()), float(backward_s.sum())
    if backward_to_forward is None:
        forward_s, backward_s = (
            times * (iteration_time_s / (forward_sum + backward_sum)) for times in (forward_s, backward_s)
        )
    else:
        forward_time_s = iteration_time_s / (1.0 + backward_to_forward)
        forward_s = forward_s * (forward_time_s / forward_sum)
        backward_s = backward_s * ((iteration_time_s - forward_time_s) / backward_sum)
    return Workload(model, gpu or "", precision, batch_size, forward_s, backward_s, source)
