"""Who sends what to whom, and in which order: schedules, the functions that return them, and their checks."""

from __future__ import annotations

from simnet.traffic.all_reduce import (
    ALL_REDUCE,
    LEADER_PAIRS,
    SLICE_PAIRS,
    AllReduce,
    hierarchical_all_reduce,
    torus_all_reduce,
)
from simnet.traffic.check import goal_faults, prove
from simnet.traffic.collectives import COLLECTIVES, Algorithm, Collective
from simnet.traffic.composing import Phase, add_phases
from simnet.traffic.counting import Counts, Steps, count, message_steps
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.point_to_point import direct_all_to_all, pairwise_all_to_all, ring_send_recv
from simnet.traffic.flat_all_reduce import (
    butterfly_all_reduce,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_reduce,
    star_all_reduce,
    tree_all_reduce,
)
from simnet.traffic.goals import Goal, all_reduce_goal
from simnet.traffic.parameter_server import parameter_server_push_pull
from simnet.traffic.rooted import chain_broadcast, chain_reduce, tree_broadcast, tree_reduce
from simnet.traffic.scatter_gather import (
    direct_all_gather,
    direct_reduce_scatter,
    doubling_all_gather,
    halving_reduce_scatter,
    ring_all_gather,
    ring_reduce_scatter,
)
from simnet.traffic.schedule import Dependencies, Kind, Operations, Partition, Schedule, ScheduleBuilder, Until
from simnet.traffic.validation import describe_operation, validate_schedule

__all__ = [
    "ALL_REDUCE",
    "COLLECTIVES",
    "LEADER_PAIRS",
    "SLICE_PAIRS",
    "Algorithm",
    "AllReduce",
    "Collective",
    "Counts",
    "Dependencies",
    "Goal",
    "Kind",
    "Operations",
    "Partition",
    "Phase",
    "Schedule",
    "ScheduleBuilder",
    "Steps",
    "Until",
    "add_phases",
    "all_reduce_goal",
    "butterfly_all_reduce",
    "chain_broadcast",
    "chain_reduce",
    "check_deadlock",
    "count",
    "describe_operation",
    "direct_all_gather",
    "direct_all_to_all",
    "direct_reduce_scatter",
    "double_tree_all_reduce",
    "doubling_all_gather",
    "goal_faults",
    "halving_doubling_all_reduce",
    "halving_reduce_scatter",
    "hierarchical_all_reduce",
    "mesh_all_reduce",
    "message_steps",
    "pairwise_all_to_all",
    "parameter_server_push_pull",
    "prove",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "ring_send_recv",
    "star_all_reduce",
    "torus_all_reduce",
    "tree_all_reduce",
    "tree_broadcast",
    "tree_reduce",
    "validate_schedule",
]
