"""Workloads: what is trained, and how long one worker computes it."""

from __future__ import annotations

from simnet.workload.build import REFERENCE_GPU, table_workload
from simnet.workload.model import (
    DTYPE_BYTES,
    GRADIENT_DTYPES,
    PRECISIONS,
    GradientTensor,
    Layer,
    Model,
    Workload,
)
from simnet.workload.own import load_workload_csv, workload_from_rows
from simnet.workload.profile import from_profile
from simnet.workload.roofline import Gpu, layer_times, list_gpus
from simnet.workload.tables import ModelEntry, list_models, load_model, model_entry
from simnet.workload.throughput import Throughput, list_throughput, throughput_curve
from simnet.workload.trace import RecordedTrace, TraceRow, TraceStep, write_trace
from simnet.workload.trace_file import load_trace

__all__ = [
    "DTYPE_BYTES",
    "GRADIENT_DTYPES",
    "PRECISIONS",
    "REFERENCE_GPU",
    "Gpu",
    "GradientTensor",
    "Layer",
    "Model",
    "ModelEntry",
    "RecordedTrace",
    "Throughput",
    "TraceRow",
    "TraceStep",
    "Workload",
    "from_profile",
    "layer_times",
    "list_gpus",
    "list_models",
    "list_throughput",
    "load_model",
    "load_trace",
    "load_workload_csv",
    "model_entry",
    "table_workload",
    "throughput_curve",
    "workload_from_rows",
    "write_trace",
]
