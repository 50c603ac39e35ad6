"""Who sends what to whom, and in which order: schedules, the functions that return them, and their checks."""

from __future__ import annotations

from simnet.traffic.all_reduce import (
    ALL_REDUCE,
    AllReduce,
    butterfly_all_reduce,
    mesh_all_reduce,
    ring_all_reduce,
    star_all_reduce,
    tree_all_reduce,
)
from simnet.traffic.check import all_reduce_faults, prove_all_reduce
from simnet.traffic.counting import Counts, Steps, count, message_steps
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.parameter_server import parameter_server_push_pull
from simnet.traffic.schedule import Dependencies, Kind, Operations, Partition, Schedule, ScheduleBuilder, Until
from simnet.traffic.validation import describe_operation, validate_schedule

__all__ = [
    "ALL_REDUCE",
    "AllReduce",
    "Counts",
    "Dependencies",
    "Kind",
    "Operations",
    "Partition",
    "Schedule",
    "ScheduleBuilder",
    "Steps",
    "Until",
    "all_reduce_faults",
    "butterfly_all_reduce",
    "check_deadlock",
    "count",
    "describe_operation",
    "mesh_all_reduce",
    "message_steps",
    "parameter_server_push_pull",
    "prove_all_reduce",
    "ring_all_reduce",
    "star_all_reduce",
    "tree_all_reduce",
    "validate_schedule",
]
