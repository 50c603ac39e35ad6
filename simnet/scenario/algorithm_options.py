"""Options of the algorithms that ranks communicate by: as keys, and against the number of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Annotated, Any, Literal

from pydantic import Field

from simnet.scenario.fields import Quantity, Real, Whole, Word
from simnet.scenario.natural import made_on_demand, si_arguments
from simnet.scenario.sections import Section
from simnet.topology import CompiledTopology
from simnet.topology.model import nodes_of_each_host
from simnet.traffic import (
    ALL_REDUCE,
    COLLECTIVES,
    INSIDE_GROUPS,
    LEADER_PAIRS,
    PULL_REQUESTS,
    SLICE_PAIRS,
    Schedule,
    algorithm_of,
)
from simnet.traffic.collectives import EXTENSIONS

__all__ = [
    "MOST_WORKERS",
    "ChainSpec",
    "DoubleTreeSpec",
    "GossipSpec",
    "HierarchicalSpec",
    "InNetworkSpec",
    "MapReduceSpec",
    "MeshSpec",
    "NoOptions",
    "ParameterServerSpec",
    "RingSpec",
    "RootedTreeSpec",
    "StarSpec",
    "TorusSpec",
    "TreeSpec",
    "added_options",
    "fitted",
    "misfits",
    "option_arguments",
    "unusual",
]

_OF_THE_BUFFER = ("ranks", "elements", "element_bytes", "divisible")
MOST_WORKERS = 1_000_000
MOST_CHANNELS, MOST_CHUNKS = 64, 4096


class NoOptions(Section):
    """An architecture without options."""


class RingSpec(Section):
    """Chunks go around a ring of all ranks, once to be added up and once to be spread."""

    channels: Annotated[int, Whole(1, MOST_CHANNELS)] = Field(
        1, description="Rings side by side, each with its share of the buffer."
    )
    pipeline: Annotated[int, Whole(1, MOST_CHUNKS)] = Field(
        1, description="Pieces that each chunk is cut into, which travel one behind the other."
    )
    order: Annotated[str, Word(("neighbours", "strides"))] = Field(
        "neighbours",
        description="Where channels go: forwards and backwards along neighbours, or with a stride of their own.",
    )


class TreeSpec(Section):
    """The sum gathers along a tree, and is spread along it."""

    shape: Annotated[str, Word(("binomial", "binary"))] = Field(
        "binomial", description="binomial: in ceil(log2 N) rounds; binary: a complete binary tree."
    )
    chunks: Annotated[int, Whole(1, MOST_CHUNKS)] = Field(
        1, description="Pieces of the buffer, which travel one behind the other."
    )


class DoubleTreeSpec(Section):
    """Two trees with half of the buffer each, so that no rank is inside both."""

    chunks: Annotated[int, Whole(1, MOST_CHUNKS)] = Field(
        8, description="Pieces of each half, which travel one behind the other."
    )


class HierarchicalSpec(Section):
    """Within groups, across groups, and within groups again."""

    group: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        None,
        description="Ranks in a group, a divisor of the workers. Where not given, the GPUs of a host, if they divide "
        "the workers; else the largest divisor that is not above the root of the workers.",
    )
    inside: Annotated[str, Word((*SLICE_PAIRS, *LEADER_PAIRS))] = Field(
        "ring",
        description="ring, direct and halving_doubling: each rank of a group takes a slice across; tree and chain: "
        "the first takes all of it.",
    )
    across: Annotated[str, Word(tuple(ALL_REDUCE))] = Field("ring", description="All-reduce across groups.")


class TorusSpec(Section):
    """Rings along the rows and columns of a grid of ranks."""

    rows: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        None, description="Rows; as near to the number of columns as the workers allow where neither is given."
    )
    columns: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        None, description="Columns; rows times columns are the workers."
    )


class StarSpec(Section):
    """All gradients go to one rank, that adds them up and sends the sum back."""

    hub: Annotated[int, Whole(0, MOST_WORKERS)] = Field(0, description="Rank that all others send to.")


class MeshSpec(Section):
    """Every rank exchanges with every other."""

    exchange: Annotated[str, Word(("scatter", "full"))] = Field(
        "scatter",
        description="scatter: each rank reduces its share and hands it out; full: all send everything to all.",
    )


class RootedTreeSpec(TreeSpec):
    """One rank gives to all or gets from all, along a tree."""

    root: Annotated[int, Whole(0, MOST_WORKERS)] = Field(
        0, description="The rank that has the buffer, or gets the sum."
    )


class ChainSpec(Section):
    """One rank gives to all or gets from all, from one to the next."""

    root: Annotated[int, Whole(0, MOST_WORKERS)] = Field(
        0, description="The rank that has the buffer, or gets the sum."
    )
    chunks: Annotated[int, Whole(1, MOST_CHUNKS)] = Field(
        8, description="Pieces of the buffer, which travel one behind the other."
    )


class ParameterServerSpec(Section):
    """Workers push gradients to servers and pull parameters back."""

    servers: Annotated[int, Whole(1, MOST_WORKERS)] = Field(
        1, description="Number of servers that hold parameters; see shards."
    )
    placement: Annotated[str, Word(("free_hosts", "dedicated", "colocated"))] = Field(
        "free_hosts",
        description="free_hosts: on hosts that no worker is on, and where there are not enough of those, the rest on "
        "the workers' hosts in turn; dedicated: only on such hosts; colocated: on the workers' hosts in turn.",
    )
    shards: Annotated[str, Word(("even", "by_size", "round_robin"))] = Field(
        "even",
        description="even: each bucket is cut among all servers; by_size: each goes to the server that has least so "
        "far (what BytePS' hash of keys comes to, with scheduling: {partition: 4096000 B}); round_robin: to one server "
        "after the other (TensorFlow's variables, with bucket_size: 1 B).",
    )
    fan_in: Annotated[int, Whole(2, MOST_WORKERS)] | None = Field(
        None,
        description="A tree of servers: so many workers push to one aggregator, so many of these to another, and the "
        "last ones to the servers. Where not given, workers push to the servers themselves.",
    )
    group: Annotated[int, Whole(1, MOST_WORKERS)] = Field(
        1,
        description="So many workers each, as the GPUs of a host, add up among themselves, push and pull as one, and "
        "pass it on among themselves (BytePS).",
    )
    inside: Annotated[str, Word(INSIDE_GROUPS)] = Field(
        "ring",
        description="How a group adds up: ring, each has a slice of it, and pushes that; star, the first has all of it "
        "(MXNet's kvstore).",
    )
    aggregation_rate: Annotated[float, Quantity("bandwidth", positive=True, limit=True)] = Field(
        math.inf, description="Rate at which one core of a server adds up what it is sent."
    )
    update_rate: Annotated[float, Quantity("bandwidth", positive=True, limit=True)] = Field(
        math.inf, description="Rate at which one core of a server updates parameters."
    )
    cores: Annotated[int, Whole(1, 1024)] = Field(1, description="Cores of a server that do that, each for a share.")
    memory_accesses: Annotated[float, Real(minimum=0, maximum=100)] = Field(
        3.0,
        description="How often each byte goes over the memory of the server's host when it is added up: read, sum "
        "read, sum written. Counts where the topology says what the memory of hosts can do.",
    )
    pull_requests: Annotated[str, Word(PULL_REQUESTS)] = Field(
        "never",
        description="When workers ask for what they pull, with a message behind all that they have pushed: never, "
        "servers answer unasked; after_push, when a push has been received (BytePS); after_update, when the parameters "
        "have been updated with it (MXNet's KVStore).",
    )


class GossipSpec(Section):
    """Workers average with their neighbours in a graph."""

    graph: Annotated[Literal["ring", "mesh"], Word(("ring", "mesh"))] = Field(
        "ring", description="Who is a neighbour: ring, the one before and the one behind; mesh, all others."
    )
    partners: Annotated[Literal["all", "one"], Word(("all", "one"))] = Field(
        "all",
        description="all: each sends to all neighbours in each iteration (D-PSGD); one: each averages with one of "
        "them, drawn at random (AD-PSGD), under sync asp or ssp.",
    )


class MapReduceSpec(Section):
    """A driver gathers what executors have mapped, and broadcasts the new model."""

    reduce: Annotated[Literal["tree", "star", "in_network"], Word(("tree", "star", "in_network"))] = Field(
        "tree",
        description="tree: by executors in between, as Spark's treeAggregate; star: all send to the driver; "
        "in_network: switches add up on the way (with broadcast: multicast).",
    )
    depth: Annotated[int, Whole(1, 20)] = Field(2, description="Depth of that tree.")
    broadcast: Annotated[
        Literal["torrent", "tree", "star", "multicast"], Word(("torrent", "tree", "star", "multicast"))
    ] = Field(
        "torrent",
        description="torrent: executors pass blocks on to each other; tree: binomial; star: driver to all; multicast: "
        "switches replicate, one copy a link.",
    )


class InNetworkSpec(Section):
    """Switches add up what comes from below and replicate what comes from above."""

    chunks: Annotated[int, Whole(1, MOST_CHUNKS)] = Field(
        8, description="Pieces of the buffer, which travel one behind the other."
    )


class NcclSpec(Section):
    """Ring or tree, by the size of what is exchanged."""

    channels: Annotated[int, Whole(1, 1024)] = Field(
        1, description="Rings side by side, each with its share of the buffer."
    )


def added_options(collective: str, algorithm: str) -> Any:
    """Return the annotation of the options of an algorithm that a package adds: its parameters behind the buffer's."""
    return made_on_demand(
        f"{collective}.{algorithm}",
        lambda: algorithm_of(collective, algorithm).make,
        EXTENSIONS,
        leave_out=_OF_THE_BUFFER,
    )


def option_arguments(collective: str, algorithm: str, options: Any) -> dict[str, Any]:
    """Return the options of an algorithm by the names of its parameters, in SI units."""
    if algorithm in COLLECTIVES[collective].algorithms:
        return dict(options)
    return si_arguments(algorithm_of(collective, algorithm).make, options)


def misfits(options: Any, ranks: int) -> Iterator[tuple[str, str, str]]:
    """Yield which options do not fit a number of ranks: the key, what is wrong, and what would be right.

    Parameters
    ----------
    options : Section
        Of an algorithm.
    ranks : int
    """
    for role in ("hub", "root"):
        number = getattr(options, role, 0)
        if number >= ranks:
            yield role, f"{role} {number} is not one of the {ranks} ranks", f"a rank from 0 to {ranks - 1} is wanted"
    if getattr(options, "reduce", "") == "in_network" and getattr(options, "broadcast", "") != "multicast":
        yield "reduce", "reduce is in_network, and broadcast no multicast", "switches that add up also replicate"
    if getattr(options, "reduce", "tree") != "tree" and getattr(options, "depth", 2) != 2:
        yield "depth", "depth has no effect where the reduce is no tree", "leave it out"
    divisors = f"divisors of {ranks} are {_divisors(ranks)}"
    rows, columns = getattr(options, "rows", None), getattr(options, "columns", None)
    if rows is not None and columns is not None and rows * columns != ranks:
        yield "rows", f"{rows} rows of {columns} are not the {ranks} ranks", f"leave one of them out; {divisors}"
        return
    for key in ("group", "rows", "columns"):
        number = getattr(options, key, None)
        if number is not None and ranks % number:
            yield (
                key,
                f"{ranks} ranks cannot be cut into groups of {number}"
                if key == "group"
                else (f"{ranks} ranks do not stand in {number} {key}"),
                divisors,
            )


def fitted(options: Mapping[str, Any], compiled: CompiledTopology, ranks: int) -> dict[str, Any]:
    """Return options in which a group that is not given is the ranks of a host, where all hosts have as many."""
    if "group" not in options or options["group"] is not None:
        return dict(options)
    group = nodes_of_each_host(compiled.host_of_node[compiled.rank_nodes[:ranks]])
    return {**options, "group": group if group != 1 else None}


def unusual(options: Mapping[str, Any], make: Callable[..., Schedule]) -> list[str]:
    """Return the options that are not what they would be anyway, each as its key and value, for people to read."""
    usual = signature(make).parameters
    return [f"{key} {value}" for key, value in options.items() if key not in usual or value != usual[key].default]


def _divisors(number: int) -> str:
    found = [str(divisor) for divisor in range(1, number + 1) if number % divisor == 0]
    return ", ".join(found if len(found) <= 12 else [*found[:6], "...", *found[-5:]])
