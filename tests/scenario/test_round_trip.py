"""A valid scenario, written out with all its defaults and read again, is the same scenario."""

from __future__ import annotations

import math

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.protocols import PROTOCOLS
from simnet.scenario import load_scenario, parse_scenario, parse_yaml, python_document, scenario_data

# Random scenarios that are right, as plain data.
BANDWIDTHS = st.sampled_from(["100 Gbps", "12.5 GB/s", "1 GiB/s", "10Gb/s", "33.3 Mbps"])
SIZES = st.sampled_from(["25 MiB", "25 MB", "4096 B", "1.5 kB", "100 Mbit"])
DURATIONS = st.sampled_from(["1 us", "0 s", "2.5 ms", "333 ns", "1 \u00b5s"])
POSITIVE = st.floats(min_value=1e-3, max_value=1e3)
SHARES = st.floats(min_value=0, max_value=0.9)
WHOLE = st.integers(min_value=1, max_value=4)


def some(required: dict[str, st.SearchStrategy], **optional: st.SearchStrategy) -> st.SearchStrategy:
    """Return mappings with all of the required keys and some of the optional ones; None stands for a default."""
    return st.fixed_dictionaries(required, optional={key: value | st.none() for key, value in optional.items()})


CABLES = {
    "bandwidth": BANDWIDTHS,
    "latency": DURATIONS,
    "kind": st.sampled_from(["ethernet", "infiniband"]),
    "loss_probability": SHARES,
    "buffer": SIZES,
    "host": some(
        {}, gpus=st.integers(0, 2), nics=WHOLE, intra=st.sampled_from(["pcie", "nvlink"]), gpu_model=st.text(max_size=3)
    ),
}
TOPOLOGIES = st.one_of(
    some({"hosts": st.integers(4, 8)}, **CABLES).map(lambda options: {"star": options}),
    some({"hosts": st.integers(4, 8)}, **CABLES).map(lambda options: {"ring": options}),
    some({"dims": st.lists(WHOLE, min_size=1, max_size=3)}, **CABLES).map(lambda options: {"torus": options}),
    some({"k": st.sampled_from([2, 4])}, **CABLES).map(lambda options: {"fat_tree": options}),
    some({"leaves": WHOLE, "hosts_per_leaf": WHOLE, "spines": WHOLE}, oversubscription=POSITIVE, **CABLES).map(
        lambda options: {"leaf_spine": options}
    ),
    some({}, gpus=WHOLE).map(lambda options: {"nvlink_node": options}),
    st.just({"file": "x.gml", "defaults": {"bandwidth": "1 Gbps", "latency": "1 us", "kind": "wan"}}),
    st.just("some_file.json"),
)
OVERRIDES = some(
    {},
    mtu=st.sampled_from(["4096 B", "9000 B", "unlimited"]),
    header=SIZES,
    send_overhead=DURATIONS,
    send_overhead_per_byte=st.sampled_from(["0.09 ns/B", "1 us/KiB"]),
    connection_cap=BANDWIDTHS | st.just("unlimited"),
    copies_send=st.floats(0, 4),
    connection=st.sampled_from(["persistent", "per_message"]),
    divisible=st.booleans(),
    reliability=st.sampled_from(["go_back_n", "sack", "selective_repeat", "best_effort"]),
    congestion_control=st.sampled_from(["none", "cubic", "dcqcn", "dcqcn_vendor"]),
    initial_window=st.floats(1, 1e6) | st.just("unlimited"),
    deadline=st.sampled_from(["1 ms", "unlimited"]),
    loss_budget=st.floats(0, 1),
    increase_bytes=st.sampled_from(["150 kB", "unlimited"]),
    spraying=st.booleans(),
)
NAMES = st.sampled_from(PROTOCOLS)
TRANSPORTS = NAMES | st.builds(lambda name, overrides: {name: overrides}, NAMES, OVERRIDES)
WORKLOADS = st.builds(
    lambda what, batch, more: what | batch | more,
    st.sampled_from(
        [
            {"model": "resnet50", "gpu": "v100"},
            {"model": "bert_base", "samples_per_s": 100},
            {"file": "a.csv"},
            {"trace": "t.csv", "model": "resnet50"},
        ]
    ),
    st.sampled_from([{"batch_size": 64}, {"global_batch_size": 64}]),
    some({}, precision=st.sampled_from(["fp32", "amp"]), gradient_dtype=st.sampled_from(["fp16", "fp32"])),
)
ARCHITECTURES = st.sampled_from(
    [
        *("ring", "star", "tree", "butterfly", "mesh", "parameter_server"),
        *({"ring": None}, {"star": {"hub": 1}}, {"mesh": {"exchange": "full"}}, {"parameter_server": {"servers": 2}}),
    ]
)
JITTERS = st.one_of(
    some({"sigma": SHARES}, distribution=st.sampled_from(["lognormal", "normal"])),
    st.builds(lambda width: {"distribution": "uniform", "half_width": width}, SHARES),
    st.builds(lambda scale: {"distribution": "exponential", "scale": scale}, SHARES),
)
TRAININGS = some(
    {},
    workers=WHOLE,
    architecture=ARCHITECTURES,
    sync=st.sampled_from(["bsp", "one_shot", {"local_sgd": {"period": 3}}]),
    bucket_size=SIZES,
    overlap=st.booleans(),
    jitter=JITTERS,
    speed_factors=st.dictionaries(st.integers(0, 3), POSITIVE, max_size=3) | st.lists(POSITIVE, max_size=3),
)
RUNS = some({}, iterations=WHOLE | st.just(3.0), warmup=st.integers(0, 3), seed=st.integers(0, 2**53))
SCENARIOS = some(
    {"topology": TOPOLOGIES, "protocol": TRANSPORTS, "workload": WORKLOADS},
    name=st.sampled_from(["a", "resnet50_16gpu", "\u00fc-1.5+x"]),
    fidelity=st.just("flow"),
    training=TRAININGS,
    run=RUNS,
    baseline=st.builds(lambda rate: {"samples_per_s": rate}, POSITIVE),
)


@settings(max_examples=150, deadline=None)
@given(SCENARIOS)
def test_a_specification_comes_back_from_its_yaml(data):
    spec = parse_scenario(python_document(data, ""))
    text = yaml.safe_dump(scenario_data(spec), sort_keys=False, allow_unicode=True)
    again = parse_scenario(parse_yaml(text, "resolved.yaml").checked())
    assert again == spec
    assert scenario_data(again) == scenario_data(spec)


@settings(max_examples=30, deadline=None)
@given(
    SCENARIOS.filter(lambda data: not isinstance(data["topology"], str) and "file" not in data["topology"]), st.data()
)
def test_a_resolved_scenario_gives_the_same_scenario(data, draw):
    data = data | {"workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64}, "training": None}
    scenario = load_scenario(data)
    again = load_scenario(scenario.resolved)
    assert again.resolved == scenario.resolved
    assert again.protocol == scenario.protocol
    assert again.job.training == scenario.job.training
    assert again.job.workload.compute_time_s == scenario.job.workload.compute_time_s
    assert again.topology.compiled.link_bandwidth.tolist() == scenario.topology.compiled.link_bandwidth.tolist()


def test_what_is_resolved_has_every_default():
    scenario = load_scenario(
        {
            "topology": {"star": {"hosts": 2}},
            "protocol": "ideal",
            "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
        }
    )
    resolved = scenario.resolved
    sections = [
        "name",
        "topology",
        "protocol",
        "fidelity",
        "packet",
        "workload",
        "training",
        "reduction_rate",
        "run",
        "engine",
    ]
    assert list(resolved) == sections
    assert resolved["name"] == "scenario"
    assert resolved["protocol"]["ideal"]["connection_cap"] == "unlimited"
    assert resolved["training"] == {
        "workers": 2,
        "architecture": {"ring": {"channels": 1, "pipeline": 1, "order": "neighbours"}},
        "sync": "bsp",
        "bucket_size": "25 MiB",
        "overlap": True,
        "forward_overlap": False,
        "compression": "none",
        "speed_factors": {},
        "step_overhead": "0 s",
        "accumulation": 1,
        "placement": "in_order",
        "pipeline": {"micro_batches": 1, "order": "1f1b"},
        "scheduling": {"order": "first_ready", "fusion": "size", "negotiation": "0 s"},
        "tensor": {"all_reduces_per_layer": 1},
        "zero_stage": 0,
        "optimizer": "sgd_momentum",
        "allow_oversubscribed": False,
    }
    assert resolved["run"] == {"iterations": 10, "warmup": 1, "seed": 0, "record": "tables"}
    assert resolved["engine"] == {"recurrence": True, "skip_periods": True, "repeats": True, "local_repair": True}
    assert scenario.protocol.connection_cap_bytes_per_s == math.inf
