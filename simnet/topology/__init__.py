"""Topologies: what a cluster is made of, where it is read from, and which way messages go."""

from __future__ import annotations

from simnet.topology.building import Cable, HostSpec
from simnet.topology.edge import edge_cloud
from simnet.topology.files import (
    TOPOLOGY_SUFFIXES,
    check_suffix,
    load_topology_file,
    save_topology,
    topology_from_graph,
)
from simnet.topology.generators import GENERATORS, generated, generator_function, generator_names
from simnet.topology.model import LINK_KINDS, NODE_KINDS, CompiledTopology, Topology, compile_topology
from simnet.topology.multicast import MulticastTree, multicast_tree
from simnet.topology.routing import Router, ecmp_hash
from simnet.topology.summary import bisection_bandwidth, oversubscription, summary_lines, topology_summary
from simnet.topology.switched import dragonfly, fat_tree, leaf_spine, rail_optimised, star
from simnet.topology.switchless import full_mesh, nvlink_node, ring, torus

__all__ = [
    "GENERATORS",
    "LINK_KINDS",
    "NODE_KINDS",
    "TOPOLOGY_SUFFIXES",
    "Cable",
    "CompiledTopology",
    "HostSpec",
    "MulticastTree",
    "Router",
    "Topology",
    "bisection_bandwidth",
    "check_suffix",
    "compile_topology",
    "dragonfly",
    "ecmp_hash",
    "edge_cloud",
    "fat_tree",
    "full_mesh",
    "generated",
    "generator_function",
    "generator_names",
    "leaf_spine",
    "load_topology_file",
    "multicast_tree",
    "nvlink_node",
    "oversubscription",
    "rail_optimised",
    "ring",
    "save_topology",
    "star",
    "summary_lines",
    "topology_from_graph",
    "topology_summary",
    "torus",
]
