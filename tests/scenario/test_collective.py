"""From what is given for a collective to its settings; what is wrong is said all at once. The command line has more."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.scenario import load_collective
from simnet.traffic import COLLECTIVES

RING = {"channels": 1, "pipeline": 1, "order": "neighbours"}
STAR = {"star": {"hosts": 4, "bandwidth": "100 Gbps", "latency": "1 us"}}


def test_defaults():
    settings = load_collective("all_reduce", topology=STAR, protocol="ideal")
    assert (settings.algorithm, settings.options, settings.dtype, settings.seed) == ("ring", RING, "fp32", 0)
    assert settings.nodes.tolist() == settings.topology.compiled.rank_nodes.tolist()
    assert len(settings.sizes_bytes) == 28


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_algorithm_can_be_named_and_the_first_is_the_usual_one(name):
    algorithms = COLLECTIVES[name].algorithms
    for algorithm in algorithms:
        assert load_collective(name, topology=STAR, protocol="ideal", algorithm=algorithm).algorithm == algorithm
    assert load_collective(name, topology=STAR, protocol="ideal").algorithm == next(iter(algorithms))


@pytest.mark.parametrize(
    ("name", "algorithm", "options"),
    [
        ("all_reduce", "{star: {hub: 3}}", {"hub": 3}),
        ("all_reduce", {"mesh": {"exchange": "full"}}, {"exchange": "full"}),
        ("broadcast", "{tree: {root: 2}}", {"root": 2, "shape": "binomial", "chunks": 1}),
        ("reduce", "chain", {"root": 0, "chunks": 8}),
        ("reduce", "{tree: }", {"root": 0, "shape": "binomial", "chunks": 1}),
        ("all_reduce", "{torus: {columns: 2}}", {"rows": None, "columns": 2}),
        (
            "all_reduce",
            "{hierarchical: {across: double_tree}}",
            {"group": None, "inside": "ring", "across": "double_tree"},
        ),
    ],
)
def test_options_are_those_of_the_function_that_makes_the_schedule(name, algorithm, options):
    settings = load_collective(name, topology=STAR, protocol="ideal", algorithm=algorithm)
    assert settings.options == options
    COLLECTIVES[name].algorithms[settings.algorithm].make(4, 8, 4, **settings.options)


def test_rdma_means_what_the_links_are():
    for kind, name in (("infiniband", "infiniband"), ("ethernet", "roce")):
        settings = load_collective("reduce", topology={"star": {"hosts": 2, "kind": kind}}, protocol="rdma")
        assert settings.protocol.name == name


def test_values_and_texts_mean_the_same():
    for ranks, protocol in ((3, {"tcp": {"mtu": "9000 B"}}), ("3", "{tcp: {mtu: 9000 B}}")):
        settings = load_collective("reduce", topology=STAR, protocol=protocol, ranks=ranks)
        assert (len(settings.nodes), settings.protocol.mtu_bytes) == (3, 9000)


def test_problems_of_values_name_the_key_instead_of_a_place():
    with pytest.raises(InputError) as caught:
        load_collective("reduce", topology=STAR, protocol={"tcp": {"mtu": 9000}}, ranks=5, dtype="int3")
    assert [str(problem).split(",")[0] for problem in caught.value.problems] == [
        "protocol.tcp.mtu: mtu: 9000 has no unit",
        "dtype:1:1: dtype is 'int3'",
        "ranks: 5 ranks are more than topology star has",
    ]


def test_a_text_that_cannot_be_read_is_no_text_that_is_missing():
    with pytest.raises(InputError) as caught:
        load_collective("reduce", topology="{star: ", protocol="ideal")
    [problem] = caught.value.problems
    assert problem.source == "topology"


def test_a_key_given_twice_is_refused():
    with pytest.raises(InputError, match="given twice"):
        load_collective("reduce", topology=STAR, protocol="{tcp: {mtu: 1500 B, mtu: 9000 B}}")
