"""The closed forms in the docstrings, against a small and obvious fluid simulation of a star.

N hosts around one switch; each has a link in and a link out of bandwidth B. Active messages share the links max-min
fairly (progressive filling); a message is delivered p after it has drained; nothing else takes time.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from math import ceil, floor, log2

import pytest

from simnet.traffic import (
    Kind,
    Schedule,
    Until,
    butterfly_all_reduce,
    chain_broadcast,
    chain_reduce,
    direct_all_gather,
    direct_all_to_all,
    direct_reduce_scatter,
    halving_doubling_all_reduce,
    hierarchical_all_reduce,
    mesh_all_reduce,
    pairwise_all_to_all,
    parameter_server_push_pull,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    ring_send_recv,
    star_all_reduce,
    torus_all_reduce,
    tree_all_reduce,
    tree_broadcast,
    tree_reduce,
)

S, B, P = 100e6, 12.5e9, 2e-6
RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 16]


def fair_rates(flows: dict[int, tuple]) -> dict[int, float]:
    """Max-min fair rates of flows over links of bandwidth B by progressive filling."""
    rates: dict[int, float] = {}
    while len(rates) < len(flows):
        left: dict[tuple, list] = defaultdict(lambda: [B, 0])
        for flow, links in flows.items():
            for link in links:
                if flow in rates:
                    left[link][0] -= rates[flow]
                else:
                    left[link][1] += 1
        rate = min(room / users for room, users in left.values() if users)
        tightest = {link for link, (room, users) in left.items() if users and room / users <= rate * (1 + 1e-12)}
        for flow, links in flows.items():
            if flow not in rates and not tightest.isdisjoint(links):
                rates[flow] = rate
    return rates


def time_on_star(schedule: Schedule) -> float:
    """Play a schedule; return when the last message is delivered [s]."""
    ops, deps = schedule.operations, schedule.dependencies
    over = {until: [0] * len(ops) for until in Until}
    begun, flows, left, deliveries, now = [0] * len(ops), {}, {}, [], 0.0
    repeat, waits = ops.repeat.tolist(), [[] for _ in range(len(ops))]
    for before, after, offset, until in zip(deps.before, deps.after, deps.offset.tolist(), deps.until, strict=True):
        waits[after].append((over[until], before, offset, repeat[before] - 1))

    def may_begin(op: int) -> bool:
        k = begun[op]
        if k >= repeat[op] or over[Until.DRAINED][op] < k:
            return False
        return all(k < offset or done[before] > min(k - offset, last) for done, before, offset, last in waits[op])

    while True:
        ready = [op for op in range(len(ops)) if may_begin(op)]
        for op in ready:
            if ops.kind[op] == Kind.CALC:
                over[Until.DRAINED][op] += 1
                over[Until.DELIVERED][op] += 1
            else:
                flows[op] = (("out", int(ops.source[op])), ("in", int(ops.target[op])))
                left[op] = schedule.firing_bytes(op, begun[op])
            begun[op] += 1
        if ready:
            continue
        if not flows and not deliveries:
            assert begun == ops.repeat.tolist()
            return now
        rates = fair_rates(flows)
        ends = [now + left[op] / rates[op] for op in flows] + [at for at, _ in deliveries]
        step = min(ends) - now
        now = min(ends)
        for op in list(flows):
            left[op] -= rates[op] * step
            if left[op] <= 1e-9 * S:
                del flows[op]
                over[Until.DRAINED][op] += 1
                deliveries.append((now + P, op))
        for arrival in [arrival for arrival in deliveries if arrival[0] <= now * (1 + 1e-12)]:
            deliveries.remove(arrival)
            over[Until.DELIVERED][arrival[1]] += 1


def halving_s(n: int) -> float:
    """2 q p + 2 x (2^q - 1)/2^q, and 2 (x + p) for the fold."""
    q = floor(log2(n))
    return 2 * q * P + 2 * S / B * (2**q - 1) / 2**q + (0 if n == 2**q else 2 * (S / B + P))


def half_s(n: int) -> float:
    """2^i + min(2^i, f) chunks in round i, and N + 1 for the fold of f pairs."""
    q = floor(log2(n))
    f = n - 2**q
    chunks = sum(2**i + min(2**i, f) for i in range(q)) + (n + 1 if f else 0)
    return chunks * S / (n * B) + (q + (2 if f else 0)) * P


def grid_s(n: int) -> float:
    """2 (C - 1)(x/C + p) + 2 (R - 1)(x/N + p), for the grid that is most nearly square."""
    rows = {4: 2, 6: 2, 8: 2, 9: 3, 16: 4}.get(n, 1)
    columns = n // rows
    return 2 * (columns - 1) * (S / (columns * B) + P) + 2 * (rows - 1) * (S / (n * B) + P)


@cache
def closed_forms(n: int) -> dict[str, tuple[Schedule, float]]:
    whole = {"elements": int(S / 4), "element_bytes": 4, "divisible": True}
    exact = n & (n - 1) == 0
    return {
        "ring": (ring_all_reduce(n, **whole), 2 * (n - 1) * (S / (n * B) + P)),
        "star": (star_all_reduce(n, **whole), 2 * ((n - 1) * S / B + P)),
        "tree": (tree_all_reduce(n, **whole), 2 * ceil(log2(n)) * (S / B + P)),
        "butterfly": (butterfly_all_reduce(n, **whole), (floor(log2(n)) + (0 if exact else 2)) * (S / B + P)),
        "mesh": (mesh_all_reduce(n, **whole), 2 * ((n - 1) * S / (n * B) + P)),
        "mesh, full": (mesh_all_reduce(n, **whole, exchange="full"), (n - 1) * S / B + P),
        "one server": (parameter_server_push_pull(n, 1, **whole), 2 * (n * S / B + P)),
        "two servers": (parameter_server_push_pull(n, 2, **whole), 2 * (max(n / 2, 1) * S / B + P)),
        "ring reduce-scatter": (ring_reduce_scatter(n, **whole), (n - 1) * (S / (n * B) + P)),
        "ring all-gather": (ring_all_gather(n, **whole), (n - 1) * (S / (n * B) + P)),
        "mesh, reduce-scatter": (direct_reduce_scatter(n, **whole), (n - 1) * S / (n * B) + P),
        "mesh, all-gather": (direct_all_gather(n, **whole), (n - 1) * S / (n * B) + P),
        "mesh, all-to-all": (direct_all_to_all(n, **whole), (n - 1) * S / (n * B) + P),
        "mesh, all-to-all in rounds": (pairwise_all_to_all(n, **whole), (n - 1) * (S / (n * B) + P)),
        "broadcast": (tree_broadcast(n, **whole), ceil(log2(n)) * (S / B + P)),
        "broadcast from the last": (tree_broadcast(n, **whole, root=n - 1), ceil(log2(n)) * (S / B + P)),
        "reduce": (tree_reduce(n, **whole), ceil(log2(n)) * (S / B + P)),
        "halving-doubling": (halving_doubling_all_reduce(n, **whole), halving_s(n)),
        "halving reduce-scatter, doubling all-gather": (
            hierarchical_all_reduce(n, **whole, group=n, inside="halving_doubling"),
            2 * half_s(n),
        ),
        "chain broadcast": (chain_broadcast(n, **whole, chunks=3), (n + 1) * S / (3 * B) + (n - 1) * P),
        "chain reduce": (chain_reduce(n, **whole, chunks=3), (n + 1) * S / (3 * B) + (n - 1) * P),
        "torus": (torus_all_reduce(n, **whole), grid_s(n)),
        "send-receive": (ring_send_recv(n, **whole), S / B + P),
    }


# The obvious simulation takes too long for rings and meshes of 9 and 16; the fabric is tested with these.
CASES = [
    (name, n)
    for n in RANKS
    for name in closed_forms(2)
    if n < 9 or not name.startswith(("mesh", "ring", "torus", "half"))
]


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_time_on_a_star_is_the_closed_form(name, ranks):
    schedule, expected_s = closed_forms(ranks)[name]
    assert time_on_star(schedule) == pytest.approx(expected_s, rel=1e-9)
