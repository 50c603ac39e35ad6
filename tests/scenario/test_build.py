"""What a scenario says becomes objects and SI numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from simnet.errors import InputError
from simnet.protocols import resolve
from simnet.scenario import load_scenario
from simnet.topology import save_topology, star
from simnet.workload import RecordedTrace, TraceRow, write_trace

STAR = {"star": {"hosts": 16, "bandwidth": "100 Gbps", "latency": "1 us"}}
RESNET = {"model": "resnet50", "gpu": "v100", "batch_size": 64}


def loaded(**sections):
    """Return a scenario that has these sections, and else what is right."""
    return load_scenario({"topology": STAR, "protocol": "tcp", "workload": RESNET} | sections)


def test_quantities_are_si_inside():
    scenario = loaded(protocol={"tcp": {"mtu": "9000 B", "connection_cap": "42 Gbps", "send_overhead": "1 us"}})
    assert set(scenario.topology.compiled.link_bandwidth) == {12.5e9}
    assert set(scenario.topology.compiled.link_latency) == {1e-6}
    assert scenario.protocol.mtu_bytes == 9000
    assert scenario.protocol.connection_cap_bytes_per_s == 5.25e9
    assert scenario.protocol.send_overhead_s == 1e-6
    assert scenario.job.training.bucket_bytes == 25 * 2**20


def test_defaults():
    scenario = loaded()
    training, run = scenario.job.training, scenario.run
    assert (scenario.name, scenario.fidelity, scenario.baseline_samples_per_s) == ("scenario", "flow", None)
    architecture = training.architecture
    assert (training.workers, architecture.name, training.sync.name) == (16, "ring", "bsp")
    assert architecture.options == {"channels": 1, "pipeline": 1, "order": "neighbours"}
    assert (training.overlap, training.jitter, training.gradient_element_bytes) == (True, None, 4.0)
    assert training.speed_factors == (1.0,) * 16
    assert (run.iterations, run.warmup, run.seed) == (10, 1, 0)


SERVERS = {
    "servers": 1,
    "placement": "free_hosts",
    "shards": "even",
    "fan_in": None,
    "group": 1,
    "inside": "ring",
    "pull_requests": "never",
    "cores": 1,
    "memory_accesses": 3.0,
    "aggregate_s_per_byte": 0.0,
    "update_s_per_byte": 0.0,
}


@pytest.mark.parametrize(
    ("architecture", "name", "options", "workers"),
    [
        ("tree", "tree", {"shape": "binomial", "chunks": 1}, 16),
        ({"ring": {"channels": 2, "pipeline": 4}}, "ring", {"channels": 2, "pipeline": 4, "order": "neighbours"}, 16),
        ({"tree": {"shape": "binary", "chunks": 8}}, "tree", {"shape": "binary", "chunks": 8}, 16),
        ("double_tree", "double_tree", {"chunks": 8}, 16),
        ("halving_doubling", "halving_doubling", {}, 16),
        ({"hierarchical": {"group": 4}}, "hierarchical", {"group": 4, "inside": "ring", "across": "ring"}, 16),
        ({"torus": {"rows": 2}}, "torus", {"rows": 2, "columns": None}, 16),
        ("mesh", "mesh", {"exchange": "scatter"}, 16),
        ({"mesh": {"exchange": "full"}}, "mesh", {"exchange": "full"}, 16),
        ({"star": {"hub": 3}}, "star", {"hub": 3}, 16),
        ({"star": None}, "star", {"hub": 0}, 16),
        # where hosts are the ranks, servers take some of them
        ("parameter_server", "parameter_server", SERVERS, 15),
        ({"parameter_server": {"servers": 4}}, "parameter_server", SERVERS | {"servers": 4}, 12),
        (
            {"parameter_server": {"placement": "colocated", "update_rate": "2 GB/s"}},
            "parameter_server",
            SERVERS | {"placement": "colocated", "update_s_per_byte": 0.5e-9},
            16,
        ),
        ("in_network", "in_network", {"chunks": 8}, 16),
        ("mapreduce", "mapreduce", {"reduce": "tree", "depth": 2, "broadcast": "torrent"}, 15),
    ],
)
def test_architectures(architecture, name, options, workers):
    training = loaded(training={"architecture": architecture}).job.training
    made = training.architecture
    assert (made.name, made.options, training.workers) == (name, options, workers)


@pytest.mark.parametrize(
    ("topology", "workers", "group"),
    [
        ("v100_8x4_100g", 32, 4),
        ("v100_8x4_100g", 30, None),  # the last host has two of them
        ("v100_8x4_100g", 4, 4),
        ("nvlink_node_8", 6, 6),
        ({"star": {"hosts": 6}}, 6, None),  # one a host
    ],
)
def test_groups_are_the_gpus_of_a_host_where_all_have_as_many(topology, workers, group):
    training = {"workers": workers, "architecture": "hierarchical"}
    made = loaded(topology=topology, training=training).job.training.architecture
    assert made.options["group"] == group


@pytest.mark.parametrize(
    ("jitter", "distribution", "parameter"),
    [
        ({"sigma": 0.1}, "lognormal", 0.1),
        ({"distribution": "normal", "sigma": 0.2}, "normal", 0.2),
        ({"distribution": "uniform", "half_width": 0.3}, "uniform", 0.3),
        ({"distribution": "exponential", "scale": 1}, "exponential", 1.0),
        ({"distribution": "pareto", "shape": 2.5}, "pareto", 2.5),
    ],
)
def test_jitter(jitter, distribution, parameter):
    made = loaded(training={"jitter": jitter}).job.training.jitter
    assert (made.distribution, made.parameter) == (distribution, parameter)


@pytest.mark.parametrize("speeds", [{1: 0.5, "3": 2}, [1, 0.5, 1, 2], {3: 2, 1: 0.5}])
def test_speed_factors_are_one_a_worker(speeds):
    assert loaded(training={"workers": 4, "speed_factors": speeds}).job.training.speed_factors == (1.0, 0.5, 1.0, 2.0)


def test_a_global_batch_is_shared_by_the_workers():
    workload = {"model": "resnet50", "gpu": "v100", "global_batch_size": 1024}
    assert loaded(workload=workload).job.workload.batch_size == 64
    assert loaded(workload=workload, training={"workers": 8}).job.workload.batch_size == 128


def test_a_measured_rate_overrides_the_table():
    workload = {"model": "resnet50", "batch_size": 64, "samples_per_s": 253.1}
    assert loaded(workload=workload).job.workload.compute_time_s == pytest.approx(64 / 253.1, rel=1e-12)


def test_the_gradient_type_sets_the_bytes_on_the_wire():
    assert loaded(workload=RESNET | {"gradient_dtype": "fp16"}).job.training.gradient_element_bytes == 2.0
    assert loaded(workload=RESNET | {"precision": "amp", "batch_size": 192}).job.training.gradient_element_bytes == 4.0


def test_an_own_baseline():
    assert loaded(baseline={"samples_per_s": 300}).baseline_samples_per_s == 300.0


@pytest.mark.parametrize(("kind", "name"), [("infiniband", "infiniband"), ("ethernet", "roce")])
def test_rdma_is_what_the_links_are(kind, name):
    scenario = loaded(topology={"star": {"hosts": 4, "kind": kind}}, protocol="rdma")
    assert scenario.protocol.name == name
    assert list(scenario.resolved["protocol"]) == ["rdma"]


def test_unlimited_is_infinite():
    protocol = loaded(protocol={"tcp": {"connection_cap": "unlimited", "initial_window": "unlimited"}}).protocol
    assert protocol.connection_cap_bytes_per_s == protocol.transport.initial_window_packets == math.inf


def test_overrides_reach_the_transport():
    scenario = loaded(protocol={"tcp": {"initial_window": 20, "minimum_timeout": "5 ms", "congestion_control": "reno"}})
    transport = scenario.protocol.transport
    assert transport == replace(
        resolve("tcp").transport, initial_window_packets=20.0, minimum_timeout_s=0.005, congestion_control="reno"
    )
    options = scenario.resolved["protocol"]["tcp"]
    assert (options["initial_window"], options["minimum_timeout"], options["loss_budget"]) == (20, "5 ms", 0)
    assert options["cached_connections"] == "unlimited"
    assert loaded(protocol=scenario.resolved["protocol"]).protocol == scenario.protocol


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("most_marked", 2, "a number of at least 0 and at most 1 is wanted"),
        ("initial_window", "all", "a number of at least 1 and at most 1e+06 is wanted, or 'unlimited'"),
        ("minimum_timeout", "0 s", "a duration above 0 is wanted"),
        ("minimum_timeout", "unlimited", "write it like '1 us', '2.5 ms' or '3 s'"),
        ("reliability", "sick", "did you mean 'sack'?"),
    ],
)
def test_what_makes_no_sense_for_a_transport_is_refused(key, value, message):
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        loaded(protocol={"tcp": {key: value}})
    assert [problem.path for problem in refused.value.problems] == [("protocol", "tcp", key)]


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".gml"])
def test_topology_files_are_found_beside_the_scenario(tmp_path, monkeypatch, suffix):
    save_topology(star(hosts=3, bandwidth_bytes_per_s=1e9), tmp_path / f"cluster{suffix}")
    (tmp_path / "s.yaml").write_text(f"topology: cluster{suffix}\nprotocol: tcp\nworkload: {RESNET}\n")
    scenario = load_scenario(tmp_path / "s.yaml")
    assert len(scenario.topology.compiled.ranks) == 3
    # resolved, it is found from anywhere
    monkeypatch.chdir("/")
    assert len(load_scenario(scenario.resolved).topology.compiled.ranks) == 3


def test_a_topology_file_with_a_generator(tmp_path):
    (tmp_path / "cluster.yaml").write_text("torus: {dims: [2, 3], bandwidth: 10 Gbps}\n")
    (tmp_path / "s.yaml").write_text(f"topology: cluster.yaml\nprotocol: tcp\nworkload: {RESNET}\n")
    topology = load_scenario(tmp_path / "s.yaml").topology
    assert (topology.name, len(topology.compiled.ranks)) == ("cluster", 6)
    (tmp_path / "s.yaml").write_text(
        f"topology: {{file: cluster.yaml, defaults: {{latency: 1 us}}}}\nprotocol: tcp\nworkload: {RESNET}\n"
    )
    with pytest.raises(InputError, match=r"s.yaml:1:42: cluster.yaml holds a generator, whose links lack nothing"):
        load_scenario(tmp_path / "s.yaml")


def test_defaults_for_the_links_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = '[{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"}]'
    (tmp_path / "two.json").write_text(f'{{"nodes": {nodes}, "edges": [{{"source": "a", "target": "b"}}]}}')
    with pytest.raises(InputError, match=r"two.json:1:\d+: .*bandwidth"):
        loaded(topology="two.json")
    defaults = {"bandwidth": "1 Gbps", "latency": "2 us", "kind": "ethernet"}
    compiled = loaded(topology={"file": "two.json", "defaults": defaults}).topology.compiled
    assert compiled.link_bandwidth.tolist() == [1.25e8, 1.25e8]
    assert compiled.link_latency.tolist() == [2e-6, 2e-6]


ROWS = "layer,parameters,forward_s,backward_s\na,10,0.1,0.2\nb,0,0.2,0.3\n"
LAYERS = "layers:\n- {layer: a, parameters: 10, forward_s: 1e-1, backward_s: 0.2}\n- {layer: b, parameters: 0, forward_s: 0.2, backward_s: 0.3}\n"  # noqa: E501


@pytest.mark.parametrize(
    ("name", "text"), [("own.csv", ROWS), ("own.yaml", LAYERS), ("own.yaml", LAYERS.removeprefix("layers:\n"))]
)
def test_an_own_workload(tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    workload = loaded(workload={"file": name, "batch_size": 8}).job.workload
    assert workload.model.name == "own"
    assert workload.compute_time_s == pytest.approx(0.8, rel=1e-12)
    assert workload.tensor_elements.tolist() == [10]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {layer: a, parameters: 10, forward_s: x, backward_s: 1}\n", "own.yaml:1:41: forward_s is 'x'"),
        ("- {layer: a, parameter: 10}\n", "own.yaml:1:14: unknown key 'parameter'"),
        ("layers: [3]\n", "own.yaml:1:10: layer 0 is not a mapping"),
        ("layers: 3\n", "own.yaml:1:9: layers is 3, and no list of layers"),
        ("{layers: [], name: x}\n", "own.yaml:1:14: unknown key 'name', known: layers"),
        ("hello\n", "own.yaml:1:1: the document is 'hello', and no list of layers"),
    ],
)
def test_mistakes_in_an_own_workload_are_told_with_its_file(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        loaded(workload={"file": "own.yaml", "batch_size": 8})
    assert any(said in str(problem) for problem in caught.value.problems), str(caught.value)


def test_a_recorded_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [TraceRow(0, 0, "a", "forward", 0.0, 0.1, 10), TraceRow(0, 0, "a", "backward", 0.1, 0.2, 10)]
    write_trace(tmp_path / "t.csv", rows)
    trace = loaded(workload={"trace": "t.csv", "batch_size": 8}).job.workload
    assert isinstance(trace, RecordedTrace)
    assert float(trace.iteration_time_s[0, 0]) == pytest.approx(0.3, rel=1e-12)


def test_what_is_built_cannot_be_changed():
    scenario = loaded()
    for part in (scenario, scenario.job.training, scenario.run, scenario.protocol):
        with pytest.raises(AttributeError):
            part.name = "x"
    with pytest.raises(TypeError):
        scenario.job.training.architecture.options["hub"] = 1


def test_links_too_long_for_packets_are_refused():
    """The clock of the packet level counts picoseconds, of which 2^63 are 9.2 million seconds."""
    long = {"topology": {"star": {"hosts": 2, "latency": "2 h"}}, "fidelity": "packet", "training.workers": 2}
    with pytest.raises(InputError, match=r"a link with a latency of 2 h is too long for packets, .* at most 1 h"):
        load_scenario("resnet50_16gpu", long)
    assert load_scenario("resnet50_16gpu", long | {"fidelity": "flow"}).packet is None
