"""Algorithms beside the basic ones on a star under `ideal`: what theory says, or between its bounds.

N hosts around one switch, S bytes, links of B bytes/s, p the latency of the two links of a path; x = S/B.
"""

from __future__ import annotations

import math
from math import floor, log2

import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import full_mesh, star, torus
from simnet.traffic import (
    Schedule,
    chain_broadcast,
    chain_reduce,
    double_tree_all_reduce,
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
    hierarchical_all_reduce,
    ring_all_reduce,
    torus_all_reduce,
    tree_all_reduce,
    tree_broadcast,
    tree_reduce,
)

from .reference import Path, Player, Reference

S, B, P = 25_690_112.0, 12.5e9, 2e-6
X = S / B
RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 16, 64]
GRIDS = [(n, g) for n in RANKS for g in range(1, n + 1) if n % g == 0]


def build(make, ranks: int, **options) -> Schedule:
    return make(ranks, int(S) // 4, 4.0, divisible=True, **options)


def time_s(schedule: Schedule, topology=None) -> float:
    """Play a schedule alone; return how long it takes."""
    topology = topology or star(hosts=schedule.ranks, bandwidth_bytes_per_s=B, latency_s=P / 2)
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol(divisible=True)))
    play = fabric.play(fabric.place(schedule, topology.compiled.rank_nodes[: schedule.ranks]), schedule.name)
    fabric.env.run()
    fabric.require_conservation()
    return play.duration_s


def reference_s(schedule: Schedule) -> float:
    """The same on the star by the independent simulator: host i's link out is resource i, its link in N + i."""
    ranks, ops = schedule.ranks, schedule.operations
    reference = Reference([B] * (2 * ranks), ranks)
    ends = zip(ops.source.tolist(), ops.target.tolist(), strict=True)
    paths = [Path([(a, 1.0), (ranks + b, 1.0)], P) if a != b else Path() for a, b in ends]
    ones, never = [1.0] * len(ops), [math.inf] * len(ops)
    nodes = list(range(ranks))
    number = reference.begin(Player(schedule, nodes, nodes, paths, ones, never), set(nodes))
    reference.run()
    return max(reference.durations[number])


def within(value: float):
    return pytest.approx(value, rel=1e-9)


# -- recursive halving and doubling ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", RANKS)
def test_halving_doubling(n):
    """q = floor(log2 N) rounds each way, with x/2, x/4 ... x/2^q; for the fold the whole buffer, before and after."""
    q = floor(log2(n))
    fold_s = 0 if n == 2**q else 2 * (X + P)
    assert time_s(build(halving_doubling_all_reduce, n)) == within(2 * q * P + 2 * X * (2**q - 1) / 2**q + fold_s)


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("make", [halving_reduce_scatter, doubling_all_gather])
def test_the_halves_of_it(make, n):
    """Powers of two: q p + x (N - 1)/N. With f = N - 2^q pairs folded, the first of them receives, or sends, all chunks
    in one step, one in another, and 2^i + min(2^i, f) in round i."""
    q = floor(log2(n))
    f = n - 2**q
    chunks = sum(2**i + min(2**i, f) for i in range(q)) + (n + 1 if f else 0)
    assert time_s(build(make, n)) == within(chunks * X / n + (q + 2 * (f > 0)) * P)
    if f:
        b = (f - 1).bit_length()
        assert chunks == 2**q - 1 + 2**b - 1 + (q - b) * f + n + 1


# -- rings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("pipeline", [1, 2, 7, 60])
@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 16])
def test_ring_of_pieces(n, pipeline, channels):
    """With t = x/(N m): (2N - 3) max(m t, t + p) + m t + p, whether pieces or their latency take longer; on a star
    channels share the links."""
    t = X / (n * pipeline)
    expected_s = (2 * n - 3) * max(pipeline * t, t + P) + pipeline * t + P
    assert time_s(build(ring_all_reduce, n, pipeline=pipeline, channels=channels)) == within(expected_s)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_ring_of_pieces_that_are_short_against_the_latency(n):
    """S is 1,000 times smaller, so that a piece of 4 takes 0.26 us or less and p is 2 us: t + p a step."""
    t = X / 1000 / (n * 4)
    schedule = ring_all_reduce(n, int(S) // 4, 0.004, divisible=True, pipeline=4)
    assert 4 * t < t + P
    assert time_s(schedule) == within((2 * n - 3) * (t + P) + 4 * t + P)


@pytest.mark.parametrize("n", [3, 5, 7])
def test_strides_use_all_links_of_a_full_mesh(n):
    """N - 1 channels, N prime, each with links of its own: 2 (N - 1)(x/(N (N - 1)) + p/2), p/2 that of one cable."""
    mesh = full_mesh(hosts=n, bandwidth_bytes_per_s=B, latency_s=P / 2)
    schedule = build(ring_all_reduce, n, channels=n - 1, order="strides")
    assert time_s(schedule, mesh) == within(2 * (n - 1) * (X / (n * (n - 1)) + P / 2))


# -- trees and chains ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_complete_binary_tree(depth):
    """N = 2^(d+1) - 1: on each of d levels, up and down, two messages share a link: 4 d x + 2 d p."""
    schedule = build(tree_all_reduce, 2 ** (depth + 1) - 1, shape="binary")
    assert time_s(schedule) == within(4 * depth * X + 2 * depth * P)


def up_and_down_s(n: int) -> float:
    """A binary tree of any N, worked out rank by rank.

    Of two children ready at a <= b both have arrived when the link into the parent has carried both, without a pause
    between if b < a + x: at max(a + 2 x, b + x). Down, both children get theirs 2 x after the parent, an only child x.
    """

    def children(r: int) -> list[int]:
        return [child for child in (2 * r + 1, 2 * r + 2) if child < n]

    def summed_at(r: int) -> float:
        ready = sorted(summed_at(child) for child in children(r))
        return max((at + (len(ready) - i) * X for i, at in enumerate(ready)), default=-P) + P

    def spread(r: int) -> float:
        below = children(r)
        return max((len(below) * X + P + spread(child) for child in below), default=0.0)

    return summed_at(0) + spread(0)


@pytest.mark.parametrize("n", [*RANKS, 31])
def test_binary_tree_of_any_size(n):
    assert time_s(build(tree_all_reduce, n, shape="binary")) == within(up_and_down_s(n))


@pytest.mark.parametrize("chunks", [1, 2, 3, 8])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("make", [tree_broadcast, tree_reduce])
def test_chunks_one_way_along_a_complete_binary_tree(make, depth, chunks):
    """A chunk takes 2 x/m and p a level, and the others follow it: 2 (d + m - 1) x/m + d p."""
    schedule = build(make, 2 ** (depth + 1) - 1, shape="binary", chunks=chunks)
    assert time_s(schedule) == within(2 * (depth + chunks - 1) * X / chunks + depth * P)


@pytest.mark.parametrize("chunks", [1, 2, 8, 50])
@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("make", [chain_broadcast, chain_reduce])
def test_chain(make, n, chunks):
    """The first chunk takes N - 1 times x/m + p, and the others follow x/m apart: (N - 2 + m) x/m + (N - 1) p."""
    assert time_s(build(make, n, chunks=chunks)) == within((n - 2 + chunks) * X / chunks + (n - 1) * P)


CHUNKS = [1, 2, 4, 8, 16, 32, 64]


def tree_bounds_s(n: int, chunks: int) -> tuple[float, float]:
    """Least: 3 x where a rank has a parent and two children, and a chunk's way. Most: 3 messages share a link."""
    d = floor(log2(n))
    received = {2: 1, 3: 2, 4: 2}.get(n, 3)
    least = max(received * X, 2 * d * (X / chunks + P))
    return least, (2 * d + chunks - 1) * 3 * X / chunks + 2 * d * P


def double_tree_bounds_s(n: int, chunks: int) -> tuple[float, float]:
    """Least: 2 (N - 1)/N x, as of any all-reduce, and a chunk's way. Most: 4 messages of x/(2 m) share a link."""
    d = floor(log2(n))
    least = max(2 * (n - 1) / n * X, 2 * d * (X / (2 * chunks) + P))
    return least, (2 * d + chunks - 1) * 2 * X / chunks + 2 * d * P


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize(
    ("make", "options", "bounds_s"),
    [(tree_all_reduce, {"shape": "binary"}, tree_bounds_s), (double_tree_all_reduce, {}, double_tree_bounds_s)],
)
def test_more_chunks_are_faster_and_inside_the_bounds(make, options, bounds_s, n):
    found = [time_s(build(make, n, chunks=chunks, **options)) for chunks in CHUNKS]
    for chunks, took_s in zip(CHUNKS, found, strict=True):
        least_s, most_s = bounds_s(n, chunks)
        assert least_s * (1 - 1e-9) <= took_s <= most_s * (1 + 1e-9)
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


@pytest.mark.parametrize("n", [8, 9, 16, 64])
def test_a_double_tree_comes_close_to_twice_the_buffer_and_a_tree_to_thrice(n):
    """With 64 chunks within a tenth of 2 x, and of 3 x; a binomial tree of L levels stays above L x."""
    double, binary = build(double_tree_all_reduce, n, chunks=64), build(tree_all_reduce, n, shape="binary", chunks=64)
    assert time_s(double) == pytest.approx(2 * X, rel=0.1)
    assert time_s(binary) == pytest.approx(3 * X, rel=0.1)
    levels = (n - 1).bit_length()
    assert time_s(build(tree_all_reduce, n, chunks=64)) > levels * X + (levels + 1) * P


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 9, 16])
@pytest.mark.parametrize(
    ("make", "options"),
    [(tree_all_reduce, {}), (tree_all_reduce, {"shape": "binary"}), (double_tree_all_reduce, {})],
)
def test_trees_take_as_long_as_in_an_independent_simulation(make, options, n, chunks):
    schedule = build(make, n, chunks=chunks, **options)
    assert time_s(schedule) == within(reference_s(schedule))


# -- levels and dimensions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "columns"), GRIDS)
def test_torus_on_a_star(n, columns):
    """2 (C - 1)(x/C + p) along the rows and 2 (R - 1)(x/N + p) along the columns."""
    rows = n // columns
    schedule = build(torus_all_reduce, n, rows=rows, columns=columns)
    assert time_s(schedule) == within(2 * (columns - 1) * (X / columns + P) + 2 * (rows - 1) * (X / n + P))


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 4), (4, 5)])
def test_torus_on_a_torus(rows, columns):
    """As on a star, with the latency p/2 of one cable."""
    grid = torus(dims=[rows, columns], bandwidth_bytes_per_s=B, latency_s=P / 2)
    schedule = build(torus_all_reduce, rows * columns, rows=rows, columns=columns)
    row_s, column_s = X / columns + P / 2, X / (rows * columns) + P / 2
    assert time_s(schedule, grid) == within(2 * (columns - 1) * row_s + 2 * (rows - 1) * column_s)


# Both ways inside a group of g, and the all-reduce of n, by what is sent; x is the time of the whole, or of a slice.
INSIDE_S = {
    "ring": lambda g: 2 * (g - 1) * (X / g + P),
    "direct": lambda g: 2 * ((g - 1) / g * X + P * (g > 1)),
    "tree": lambda g: 2 * (g - 1).bit_length() * (X + P),
    "chain": lambda g: 2 * ((g + 6) * X / 8 + (g - 1) * P) if g > 1 else 0.0,
}
ACROSS_S = {
    "ring": lambda n, x: 2 * (n - 1) * (x / n + P),
    "star": lambda n, x: 2 * ((n - 1) * x + P * (n > 1)),
    "tree": lambda n, x: 2 * (n - 1).bit_length() * (x + P),
    "mesh": lambda n, x: 2 * ((n - 1) / n * x + P * (n > 1)),
}


@pytest.mark.parametrize("across", ACROSS_S)
@pytest.mark.parametrize("inside", INSIDE_S)
@pytest.mark.parametrize(("n", "group"), [case for case in GRIDS if case[0] in (4, 6, 9, 16)])
def test_hierarchical_takes_its_phases_one_after_the_other(n, group, inside, across):
    """Slices of S/g across where a rank of a group has one, the whole buffer where it has a leader."""
    schedule = build(hierarchical_all_reduce, n, group=group, inside=inside, across=across)
    x = X / group if inside in ("ring", "direct") else X
    assert time_s(schedule) == within(INSIDE_S[inside](group) + ACROSS_S[across](n // group, x))


@pytest.mark.parametrize(("n", "group"), GRIDS)
def test_hierarchical_of_rings(n, group):
    """2 (g - 1)(x/g + p) + 2 (n - 1)(x/N + p)."""
    schedule = build(hierarchical_all_reduce, n, group=group)
    assert time_s(schedule) == within(2 * (group - 1) * (X / group + P) + 2 * (n // group - 1) * (X / n + P))


def test_halving_doubling_beats_the_ring_where_latency_counts():
    """N = 2^q: the volume is the same, 2 q p against 2 (N - 1) p."""
    for n in (2, 4, 8, 16, 64):
        gain_s = time_s(build(ring_all_reduce, n)) - time_s(build(halving_doubling_all_reduce, n))
        assert gain_s == pytest.approx(2 * (n - 1 - log2(n)) * P, rel=1e-6, abs=1e-12)
