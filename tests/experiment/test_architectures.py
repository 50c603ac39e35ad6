"""Ways to exchange gradients, through whole runs, against closed forms.

Hosts around one switch unless said otherwise; x = S/B for gradients of S bytes over links of B bytes/s, p the latency
of the two links between hosts, C the time that a worker computes. All gradients go in one bucket, after the backward
pass.
"""

from __future__ import annotations

from math import ceil, floor, log2

import numpy as np
import pytest

import simnet

from .building import B, C, P, S, X, layers, scenario, star, within


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return layers(tmp_path_factory.mktemp("workload"))


def run(file, workers, architecture, *, hosts=0, **training):
    training = {"workers": workers, "architecture": architecture, **training}
    return simnet.run(scenario(file, star(hosts or workers), training))


def exposed_s(result):
    return result.summary.exposed_communication_time_s[0]


def link_bytes(result):
    """Bytes that each link carries in an iteration."""
    return result.links.set_index("resource")["wire_bytes"] / result.summary.iterations[0]


# -- parameter servers -------------------------------------------------------------------------------------------------


def test_one_server_takes_longer_by_the_same_for_each_worker(file):
    """W workers and one server: 2(W x + p); its link is full from the second worker on, so that each adds 2x."""
    servers = {"parameter_server": {"servers": 1, "placement": "dedicated"}}
    times = [exposed_s(run(file, workers, servers, hosts=workers + 1)) for workers in (1, 2, 4, 6, 8)]
    assert times == within([2 * (workers * X + P) for workers in (1, 2, 4, 6, 8)])
    assert np.diff(times[1:]) == within([4 * X] * 3)


@pytest.mark.parametrize("servers", [1, 2, 3, 4, 6, 8])
def test_more_servers_share_the_load_until_the_workers_links_are_full(file, servers):
    """W = 6 workers and M servers with even shards: 2(max(W/M, 1) x + p)."""
    architecture = {"parameter_server": {"servers": servers, "placement": "dedicated"}}
    assert exposed_s(run(file, 6, architecture, hosts=6 + servers)) == within(2 * (max(6 / servers, 1) * X + P))


@pytest.mark.parametrize(("workers", "cores"), [(1, 1), (4, 1), (8, 1), (4, 4), (7, 3)])
def test_a_server_that_computes(file, workers, cores):
    """All pushes come at once and are added on c cores, then the update: 2(W x + p) + ceil(W/c) S/r + S/u."""
    options = {"aggregation_rate": "2 GB/s", "update_rate": "5 GB/s", "cores": cores, "placement": "dedicated"}
    result = run(file, workers, {"parameter_server": options}, hosts=workers + 1)
    computes_s = ceil(workers / cores) * S / 2e9 + S / 5e9
    assert exposed_s(result) == within(2 * (workers * X + P) + computes_s)


def test_a_server_that_computes_slowly_takes_longer_by_the_same_for_each_worker(file):
    """On links that are no limit (4 Tbit/s, no latency) each worker adds S/r: the processor is full."""
    options = {"aggregation_rate": "1 GB/s", "placement": "dedicated"}
    times = []
    for workers in (1, 2, 4, 8):
        topology = star(workers + 1, bandwidth="4000 Gbps", latency="0 s")
        training = {"workers": workers, "architecture": {"parameter_server": options}}
        times.append(exposed_s(simnet.run(scenario(file, topology, training))))
    wire_s = [2 * workers * S / 500e9 for workers in (1, 2, 4, 8)]
    assert times == within([workers * S / 1e9 + both for workers, both in zip((1, 2, 4, 8), wire_s, strict=True)])


@pytest.mark.parametrize("workers", [2, 4, 6])
def test_a_server_beside_each_worker_sends_what_a_ring_sends(file, workers):
    """As many co-located servers as workers, even shards: 2(W - 1)S over the links out of hosts, as in a ring, and
    2(W - 1)/W S over each; in the time of a ring without its latencies: 2((W - 1)/W x + p)."""
    beside = {"parameter_server": {"servers": workers, "placement": "colocated"}}
    servers, ring = run(file, workers, beside), run(file, workers, "ring")
    for result in (servers, ring):
        out = link_bytes(result).filter(regex="^host")
        assert out.to_numpy() == within([2 * (workers - 1) / workers * S] * workers)
        assert out.sum() == within(2 * (workers - 1) * S)
    assert exposed_s(servers) == within(2 * ((workers - 1) / workers * X + P))
    assert exposed_s(ring) == within(2 * (workers - 1) * (X / workers + P))


@pytest.mark.parametrize(("fan_in", "top", "aggregators"), [(4, 4, 4), (2, 2, 14), (8, 2, 2)])
def test_a_tree_of_servers_relieves_the_root(file, fan_in, top, aggregators):
    """16 workers, one root: its links carry 16 S each way; with a fan-in of F only k S, k = the aggregators on top.

    With L levels 2((L F + k) x + (L + 1) p) instead of 2(16 x + p).
    """
    flat = run(file, 16, {"parameter_server": {"placement": "dedicated"}}, hosts=17)
    options = {"placement": "dedicated", "fan_in": fan_in}
    tree = run(file, 16, {"parameter_server": options}, hosts=17 + aggregators)
    for way in ("host16->switch", "switch->host16"):
        assert link_bytes(flat)[way] == within(16 * S)
        assert link_bytes(tree)[way] == within(top * S)
    levels = round(log2(16 / top) / log2(fan_in))
    assert exposed_s(flat) == within(2 * (16 * X + P))
    assert exposed_s(tree) == within(2 * ((levels * fan_in + top) * X + (levels + 1) * P))
    assert exposed_s(tree) < exposed_s(flat)


def test_all_variables_of_a_server_share_its_link(tmp_path):
    """TensorFlow: tensors of 3, 1 and 1 parts go to 2 servers in turn, so that the first server has 4 parts of 5.

    All are pushed at once by W workers; its link takes 4 W parts. When the large tensor has come, the small one has
    been pulled already, the other way: the large one takes 3 W parts more. With p for each way (4 + 3) W part/B + 2p.
    """
    sizes = [{"parameters": parts * 60_000} for parts in (1, 1, 3)]
    architecture = {"parameter_server": {"servers": 2, "placement": "dedicated", "shards": "round_robin"}}
    result = run(layers(tmp_path, sizes), 3, architecture, hosts=5, bucket_size="1 B")
    part = 4 * 60_000
    assert exposed_s(result) == within((4 + 3) * 3 * part / B + 2 * P)
    out = link_bytes(result)
    assert out["host3->switch"] == within(4 * 3 * part)
    assert out["host4->switch"] == within(1 * 3 * part)


def test_workers_push_before_a_straggler_is_ready(file):
    """W workers in step, one at half speed: the others' pushes are over when it is ready, so that it has the link of
    the server alone: an iteration takes 2C + (x + p) + (W x + p), not 2C + 2(W x + p)."""
    training = {"workers": 4, "architecture": {"parameter_server": {"placement": "dedicated"}}}
    result = simnet.run(scenario(file, star(5), {**training, "speed_factors": {2: 0.5}}))
    assert result.summary.iteration_time_s[0] == within(2 * C + X + P + 4 * X + P)
    assert result.workers["iteration_time_s"].to_numpy() == within([2 * C + 5 * X + 2 * P] * 4)
    # A ring cannot begin without it.
    ring = simnet.run(scenario(file, star(4), {"workers": 4, "speed_factors": {2: 0.5}}))
    assert ring.summary.iteration_time_s[0] == within(2 * C + 2 * 3 * (X / 4 + P))


# -- what switches and receivers do ------------------------------------------------------------------------------------


def test_switches_add_up_and_replicate_with_one_copy_a_link(file):
    """In the tree that joins all workers each link carries S up and S down in an iteration, all others nothing."""
    topology = {"leaf_spine": {"leaves": 3, "hosts_per_leaf": 2, "spines": 2, "bandwidth": "10 Gbps"}}
    result = simnet.run(scenario(file, topology, {"workers": 6, "architecture": "in_network"}))
    carried = link_bytes(result)
    used = carried[carried > 0]
    assert used.to_numpy() == within([S] * len(used))
    assert used.filter(regex="host").index.size == 2 * 6
    [spine] = {name.split("->")[1] for name in used.filter(regex="^leaf.->spine").index}
    assert sorted(used.filter(regex="spine").index) == sorted(
        [f"leaf{leaf}->{spine}" for leaf in range(3)] + [f"{spine}->leaf{leaf}" for leaf in range(3)]
    )
    assert result.summary.bytes_sent_per_worker[0] == within(S)


def test_a_driver_whose_switches_replicate_sends_one_copy(file):
    """mapreduce with multicast: the link out of the driver carries S, not W S, each link to an executor S."""
    for broadcast, copies in (("multicast", 1), ("star", 4)):
        architecture = {"mapreduce": {"reduce": "star", "broadcast": broadcast}}
        carried = link_bytes(run(file, 4, architecture, hosts=5))
        assert carried["host4->switch"] == within(copies * S)
        assert carried.filter(regex="^switch->host[0-3]").to_numpy() == within([S] * 4)
        assert carried["switch->host4"] == within(4 * S)


@pytest.mark.parametrize(("reduce", "into"), [("tree", 3), ("star", 3), ("in_network", 1)])
def test_a_driver_beside_a_worker_is_no_node_of_its_own(file, reduce, into):
    """4 workers on 4 hosts: the driver is on the first, whose link to the switch carries one copy for all three others.

    Into it come the gradients of the three, one by one or added up; into each other host one copy.
    """
    architecture = {"mapreduce": {"reduce": reduce, "broadcast": "multicast"}}
    carried = link_bytes(run(file, 4, architecture))
    assert carried.filter(regex="->switch$").to_numpy() == within([S] * 4)
    assert carried.filter(regex="^switch->").to_numpy() == within([into * S, S, S, S])


@pytest.mark.parametrize("workers", [2, 3, 5, 8])
def test_adding_takes_time_on_the_receiver(file, workers):
    """A ring adds up in each of its first N - 1 steps a chunk of S/N bytes: (N - 1) S/(N r) longer at r bytes/s."""
    plain = scenario(file, star(workers), {"workers": workers})
    slower = exposed_s(simnet.run({**plain, "reduction_rate": "2 GB/s"})) - exposed_s(simnet.run(plain))
    assert slower == within((workers - 1) * S / (workers * 2e9))


# -- when it is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0.5, 0.9, 1.5, 4.0])
def test_with_forward_overlap_an_iteration_takes_the_longer_of_computing_and_communicating(tmp_path, part):
    """The last layer has all parameters and takes no time: it is needed at the end of the forward pass and ready at the
    beginning of the backward one, so that the ring has a whole iteration: max(C, ring); without, C + ring."""
    elements = round(part * C * B / 4 / 1.5) // 4 * 4
    rows = [{"parameters": 0}, {"parameters": elements, "forward_s": 0.0, "backward_s": 0.0}]
    file = layers(tmp_path, rows)
    ring_s = 2 * 3 * (4 * elements / (4 * B) + P)
    overlapped = run(file, 4, "ring", overlap=True, forward_overlap=True).summary
    assert overlapped.iteration_time_s[0] == within(max(C, ring_s))
    assert run(file, 4, "ring").summary.iteration_time_s[0] == within(C + ring_s)


@pytest.mark.parametrize("architecture", ["ring", "tree", {"parameter_server": {"servers": 2}}])
@pytest.mark.parametrize("overlap", [True, False])
def test_forward_overlap_never_costs(architecture, overlap):
    """In the steady state, of ResNet-50 on 10 Gbit/s, where communication is longer than it can hide."""
    plain = {
        "topology": star(6),
        "protocol": "ideal",
        "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
        "training": {"workers": 4, "architecture": architecture, "overlap": overlap},
        "run": {"iterations": 3, "warmup": 2},
    }
    without, with_it = (simnet.run(plain, {"training.forward_overlap": flag}).summary for flag in (False, True))
    assert with_it.iteration_time_s[0] <= without.iteration_time_s[0] * (1 + 1e-9)
    assert with_it.bytes_sent_per_worker[0] == without.bytes_sent_per_worker[0]


@pytest.mark.parametrize(("stage", "collectives"), [(0, 2), (1, 2), (2, 2), (3, 3)])
@pytest.mark.parametrize("workers", [2, 4, 5])
def test_sharded_training(file, stage, collectives, workers):
    """Stages 1 and 2 send 2(N - 1)/N S a worker, as an all-reduce does; stage 3 gathers once more: 3(N - 1)/N S.

    Without overlap each of these takes (N - 1)(x/N + p) more than computing.
    """
    result = run(file, workers, "ring", zero_stage=stage)
    summary = result.summary.iloc[0]
    assert summary.bytes_sent_per_worker == within(collectives * (workers - 1) / workers * S)
    assert summary.iteration_time_s == within(C + collectives * (workers - 1) * (X / workers + P))
    what = result.collectives[result.collectives["iteration"] == 0]["what"].tolist()
    assert what == {0: ["all_reduce"], 3: ["all_gather", "all_gather", "reduce_scatter"]}.get(
        stage, ["reduce_scatter", "all_gather"]
    )


# -- which one is faster -----------------------------------------------------------------------------------------------

RINGS_AND_OTHERS = {
    "ring": lambda n, x: 2 * (n - 1) * (x / n + P),
    "tree": lambda n, x: 2 * ceil(log2(n)) * (x + P),
    "halving_doubling": lambda n, x: (
        2 * floor(log2(n)) * P + 2 * x * (1 - 2 ** -floor(log2(n))) + (2 * (x + P) if n & (n - 1) else 0)
    ),
}
"""Time on a star of n workers for a link that takes x [s]."""


@pytest.mark.parametrize(("other", "workers"), [("tree", 8), ("tree", 12), ("halving_doubling", 12)])
def test_small_messages_suit_the_other_one_and_large_ones_the_ring(tmp_path, other, workers):
    """The ring has the fewest bytes and the most steps: both are equally fast for x where the two formulas are."""
    [ring, another] = [RINGS_AND_OTHERS[name] for name in ("ring", other)]
    at_zero = another(workers, 0.0) - ring(workers, 0.0)
    slope = another(workers, 1.0) - ring(workers, 1.0) - at_zero
    crossing = -at_zero / slope
    gains = []
    for part in (0.5, 0.98, 1.02, 2.0):
        elements = round(part * crossing * B / 4)
        file = layers(tmp_path, [{"parameters": elements}])
        times = [run(file, workers, name).collectives["duration_s"].iloc[0] for name in ("ring", other)]
        assert times == within([RINGS_AND_OTHERS[name](workers, 4 * elements / B) for name in ("ring", other)])
        gains.append(times[0] - times[1])
    assert [gain > 0 for gain in gains] == [True, True, False, False]
