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
from simnet.traffic.collectives import BUS_FACTOR, COLLECTIVES, Algorithm, Collective, algorithm_names, algorithm_of
from simnet.traffic.composing import Phase, add_phases, repeated
from simnet.traffic.counting import Counts, Steps, count, message_steps
from simnet.traffic.dataflow import DataflowEdge, DataflowOperation, dataflow_step
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.flat_all_reduce import (
    butterfly_all_reduce,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_reduce,
    star_all_reduce,
    tree_all_reduce,
)
from simnet.traffic.formulas import FORMULAS, Formula, VolumeRow, volume_table
from simnet.traffic.goals import Goal, all_reduce_goal, broadcast_goal, reduce_goal
from simnet.traffic.grouped_servers import INSIDE_GROUPS, grouped_push_pull
from simnet.traffic.milestones import with_sent_milestones
from simnet.traffic.one_worker import (
    average_in_pair,
    gossip_round,
    neighbours_of,
    pull_from_servers,
    push_to_servers,
    send_to_all,
)
from simnet.traffic.parameter_server import PULL_REQUESTS, aggregator_count, parameter_server_push_pull, with_pulls
from simnet.traffic.parent_tree import broadcast_down, reduce_up, tree_of_parents_all_reduce
from simnet.traffic.pipeline import Segment, Stage, pipeline_step
from simnet.traffic.point_to_point import direct_all_to_all, pairwise_all_to_all, ring_send_recv
from simnet.traffic.rooted import (
    chain_broadcast,
    chain_reduce,
    star_broadcast,
    star_reduce,
    tree_broadcast,
    tree_reduce,
)
from simnet.traffic.scatter_gather import (
    direct_all_gather,
    direct_reduce_scatter,
    doubling_all_gather,
    halving_reduce_scatter,
    ring_all_gather,
    ring_reduce_scatter,
)
from simnet.traffic.schedule import Dependencies, Kind, Operations, Partition, Schedule, Turns, Until
from simnet.traffic.schedule_builder import ScheduleBuilder
from simnet.traffic.spark_map_reduce import (
    SPARK_BLOCK_BYTES,
    map_reduce,
    map_reduce_with_switches,
    tree_aggregate_rounds,
)
from simnet.traffic.step import Step
from simnet.traffic.validation import describe_operation, validate_schedule

__all__ = [
    "ALL_REDUCE",
    "BUS_FACTOR",
    "COLLECTIVES",
    "FORMULAS",
    "INSIDE_GROUPS",
    "LEADER_PAIRS",
    "PULL_REQUESTS",
    "SLICE_PAIRS",
    "SPARK_BLOCK_BYTES",
    "Algorithm",
    "AllReduce",
    "Collective",
    "Counts",
    "DataflowEdge",
    "DataflowOperation",
    "Dependencies",
    "Formula",
    "Goal",
    "Kind",
    "Operations",
    "Partition",
    "Phase",
    "Schedule",
    "ScheduleBuilder",
    "Segment",
    "Stage",
    "Step",
    "Steps",
    "Turns",
    "Until",
    "VolumeRow",
    "add_phases",
    "aggregator_count",
    "algorithm_names",
    "algorithm_of",
    "all_reduce_goal",
    "average_in_pair",
    "broadcast_down",
    "broadcast_goal",
    "butterfly_all_reduce",
    "chain_broadcast",
    "chain_reduce",
    "check_deadlock",
    "count",
    "dataflow_step",
    "describe_operation",
    "direct_all_gather",
    "direct_all_to_all",
    "direct_reduce_scatter",
    "double_tree_all_reduce",
    "doubling_all_gather",
    "goal_faults",
    "gossip_round",
    "grouped_push_pull",
    "halving_doubling_all_reduce",
    "halving_reduce_scatter",
    "hierarchical_all_reduce",
    "map_reduce",
    "map_reduce_with_switches",
    "mesh_all_reduce",
    "message_steps",
    "neighbours_of",
    "pairwise_all_to_all",
    "parameter_server_push_pull",
    "pipeline_step",
    "prove",
    "pull_from_servers",
    "push_to_servers",
    "reduce_goal",
    "reduce_up",
    "repeated",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "ring_send_recv",
    "send_to_all",
    "star_all_reduce",
    "star_broadcast",
    "star_reduce",
    "torus_all_reduce",
    "tree_aggregate_rounds",
    "tree_all_reduce",
    "tree_broadcast",
    "tree_of_parents_all_reduce",
    "tree_reduce",
    "validate_schedule",
    "volume_table",
    "with_pulls",
    "with_sent_milestones",
]
