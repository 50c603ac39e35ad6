"""Workloads: what is trained, and how long one worker computes it."""

from __future__ import annotations

from simnet.workload.build import REFERENCE_GPU, table_workload
from simnet.workload.dataflow import DataflowGraph, DataflowOperation, DataflowTransfer
from simnet.workload.dataflow_file import load_dataflow_json
from simnet.workload.dataflow_reading import dataflow_from_data
from simnet.workload.dataflow_workload import DataflowWorkload
from simnet.workload.grouped import AnyWorkload, GroupedWorkload, parts_of
from simnet.workload.memory import (
    OPTIMIZERS,
    MemoryUse,
    gpu_memory_bytes,
    kept_activation_bytes,
    training_memory,
)
from simnet.workload.memory_hierarchy import (
    MemoryHierarchy,
    MemoryLevel,
    matrix_product,
    memory_level,
    memory_time_s,
    with_memory_time,
    with_serial_time,
    working_set_bytes,
)
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
from simnet.workload.split import (
    Stage,
    describe_stages,
    matrix_layers,
    output_bytes_per_sample,
    split_into_stages,
)
from simnet.workload.tables import ModelEntry, list_models, load_model, model_entry
from simnet.workload.throughput import Throughput, list_throughput, throughput_curve
from simnet.workload.trace import RecordedTrace, TraceRow, TraceStep, write_trace
from simnet.workload.trace_file import load_trace

__all__ = [
    "DTYPE_BYTES",
    "GRADIENT_DTYPES",
    "OPTIMIZERS",
    "PRECISIONS",
    "REFERENCE_GPU",
    "AnyWorkload",
    "DataflowGraph",
    "DataflowOperation",
    "DataflowTransfer",
    "DataflowWorkload",
    "Gpu",
    "GradientTensor",
    "GroupedWorkload",
    "Layer",
    "MemoryHierarchy",
    "MemoryLevel",
    "MemoryUse",
    "Model",
    "ModelEntry",
    "RecordedTrace",
    "Stage",
    "Throughput",
    "TraceRow",
    "TraceStep",
    "Workload",
    "dataflow_from_data",
    "describe_stages",
    "from_profile",
    "gpu_memory_bytes",
    "kept_activation_bytes",
    "layer_times",
    "list_gpus",
    "list_models",
    "list_throughput",
    "load_dataflow_json",
    "load_model",
    "load_trace",
    "load_workload_csv",
    "matrix_layers",
    "matrix_product",
    "memory_level",
    "memory_time_s",
    "model_entry",
    "output_bytes_per_sample",
    "parts_of",
    "split_into_stages",
    "table_workload",
    "throughput_curve",
    "training_memory",
    "with_memory_time",
    "with_serial_time",
    "working_set_bytes",
    "workload_from_rows",
    "write_trace",
]
