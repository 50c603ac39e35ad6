"""Packages that are broken, or in each other's way: said to those who ask for them, and to nobody else."""

from __future__ import annotations

import pytest

from simnet.extensions import _RESERVED
from simnet.scenario.sections import Choice

CODE = """
import math
from dataclasses import replace
from simnet.protocols import FlowProtocol
from simnet.protocols.tcp import TCP
from simnet.topology import star
from simnet.traffic import ALL_REDUCE, Algorithm

PLAIN = FlowProtocol(mtu_bytes=1000.0, payload_bytes=960.0, header_bytes=60.0, latency_s=2e-6)
WRONG = FlowProtocol(mtu_bytes=1000.0, latency_s=-1.0)
NUMBER = 7

def failing(*, hosts: int, name: str = ""):
    return star(hosts=hosts // 0, name=name)

def nameless(*, hosts: int):
    return star(hosts=hosts)

def unclear(*, hosts, name: str = ""):
    return star(hosts=hosts)

def textual(*, hosts: int, name: str = ""):
    return "star"

def schedule(ranks, elements, element_bytes, *, divisible=False):
    return star(hosts=ranks)

def shapeless(number):
    return number

def nothing(ranks, elements, element_bytes, *, divisible=False):
    return None

def raising(ranks, elements, element_bytes, *, divisible=False):
    raise RuntimeError("not today")

def endless(ranks, elements, element_bytes, *, divisible=False):
    made = ALL_REDUCE["ring"](ranks, elements, element_bytes, divisible=divisible)
    return replace(made, operations=replace(made.operations, fixed_bytes=made.operations.fixed_bytes * math.nan))

def short(ranks, elements, element_bytes, *, divisible=False):
    made = ALL_REDUCE["ring"](ranks, elements, element_bytes, divisible=divisible)
    return replace(made, operations=replace(made.operations, repeat=made.operations.repeat[1:]))

unsized = Algorithm(nothing, lambda ranks: 0.5)
UNFRAMED = replace(TCP, framing=lambda mtu_bytes: None)

def backwards(*, hosts: int, name: str = ""):
    return star(hosts=hosts, name=name).__class__("odd", [("a", {"kind": "host"}), ("b", {"kind": "host"})],
        [("a", "b", {"kind": "ethernet", "bandwidth_bytes_per_s": -1.0, "latency_s": 0.0})])
"""
PROTOCOLS = {
    "plain": "odd:PLAIN",
    "wrong": "odd:WRONG",
    "number": "odd:NUMBER",
    "gone": "odd:GONE",
    "Loud": "odd:PLAIN",
    "unframed": "odd:UNFRAMED",
}
TOPOLOGIES = {name: f"odd:{name}" for name in ("failing", "nameless", "unclear", "textual", "backwards")}
COLLECTIVES = {"all_reduce.schedule": "odd:schedule", "all_gather.shapeless": "odd:shapeless"}
COLLECTIVES |= {f"all_reduce.{name}": f"odd:{name}" for name in ("nothing", "raising", "endless", "short", "unsized")}
BROADCAST, GATHER, REDUCE = (
    f"collective {name} --topology nvlink_node_8 --protocol ideal --algorithm"
    for name in ("broadcast", "all_gather", "all_reduce")
)

ASKED = {
    "check resnet50_16gpu --set protocol=tcp": "protocol 'tcp' of package rival 1.0 has the name of one that comes",
    "check resnet50_16gpu --set 'topology={torus: {dims: [16]}}'": "'torus' of package rival 1.0 has the name",
    "check resnet50_16gpu --set training.architecture=gossip": "'all_reduce.gossip' of package rival 1.0 has the name",
    f"{BROADCAST} tree": "'broadcast.tree' of package rival 1.0 has the name",
    "check resnet50_16gpu --set protocol=twice": "'twice' of package odd 1.0 and rival 1.0 is there more than once",
    "check resnet50_16gpu --set protocol=dead": "'dead' of package dead 1.0 cannot be loaded: RuntimeError: not today",
    "check resnet50_16gpu --set protocol=absent": "package dead 1.0 cannot be loaded: ModuleNotFoundError",
    "check resnet50_16gpu --set protocol=gone": "protocol 'gone' of package odd 1.0 cannot be loaded: AttributeError: ",
    "check resnet50_16gpu --set protocol=number": "'number' of package odd 1.0 is a int, a simnet.protocols",
    "check resnet50_16gpu --set protocol=wrong": "'wrong' of package odd 1.0 is no protocol: latency cannot be -1.0",
    "check resnet50_16gpu --set protocol.rdma.congestion_control=plain": "that protocol has none of its own",
    "topology show '{failing: {hosts: 3}}'": "topology 'failing' of package odd 1.0 failed: ZeroDivisionError",
    "topology show '{nameless: {hosts: 3}}'": "'nameless' of package odd 1.0 is no generator: TypeError",
    "topology show '{unclear: {hosts: 3}}'": "'unclear' of package odd 1.0 has a parameter that cannot be a key",
    "topology show '{textual: {hosts: 3}}'": "failed: TypeError: it returned a str, and no simnet.topology.Topology",
    "run resnet50_16gpu --set training.architecture=schedule": "'all_reduce.schedule' of package odd 1.0 failed",
    f"{GATHER} shapeless": "odd 1.0 is no algorithm",
    f"{REDUCE} nothing": "'all_reduce.nothing' of package odd 1.0 failed: TypeError: it returned a NoneType",
    f"{REDUCE} raising": "'all_reduce.raising' of package odd 1.0 failed: RuntimeError: not today",
    f"{REDUCE} endless": "'all_reduce.endless' of package odd 1.0 made a wrong schedule: operation 0: fixed_bytes nan",
    f"{REDUCE} short": "'all_reduce.short' of package odd 1.0 made a wrong schedule: operations have ",
    f"{REDUCE} unsized": "odd 1.0 failed: TypeError: its steps are 0.5, and no whole number",
    "protocol show unframed": "'unframed' of package odd 1.0 is no protocol: TypeError: its framing returned None",
    "topology show '{backwards: {hosts: 3}}'": "odd 1.0 made a wrong topology: link 'a' -> 'b': bandwidth_bytes_per_s",
}
NOT_ASKED = {
    "run resnet50_16gpu --set run.iterations=1": "iteration_time_s",
    "collective all_reduce --topology nvlink_node_8 --protocol ideal --sizes 1MB": "busbw",
    "protocol show plain": "60 B",
    "explain resnet50_16gpu --set run.iterations=1": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, add_package):
    folder = tmp_path_factory.mktemp("broken")
    add_package(
        folder,
        "odd",
        {
            "simnet.protocols": PROTOCOLS | {"twice": "odd:PLAIN"},
            "simnet.topologies": TOPOLOGIES,
            "simnet.collectives": COLLECTIVES,
        },
        CODE,
    )
    claims = {"simnet.protocols": {"tcp": "rival:X", "twice": "rival:X"}, "simnet.topologies": {"torus": "rival:X"}}
    claims |= {"simnet.collectives": {"all_reduce.gossip": "rival:X", "broadcast.tree": "rival:X"}}
    add_package(folder, "rival", claims)
    dead = {"dead": "dead:X", "absent": "not_there:X"}
    add_package(folder, "dead", {"simnet.protocols": dead}, "raise RuntimeError('not today')")
    return folder


@pytest.fixture(scope="module")
def asked(commands, folder):
    return dict(zip(ASKED, commands([folder], list(ASKED), folder).done, strict=True))


@pytest.fixture(scope="module")
def others(commands, folder):
    return commands([folder], [*NOT_ASKED, "protocol list"], folder)


@pytest.mark.parametrize("command", ASKED)
def test_who_asks_is_told_which_package_it_is(asked, command):
    status, _, errors = asked[command]
    assert ASKED[command] in errors
    assert status == 2
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", NOT_ASKED)
def test_who_does_not_ask_is_not_disturbed(others, command):
    done = dict(zip(NOT_ASKED, others.done, strict=False))[command]
    assert done.status == 0, done.err
    assert NOT_ASKED[command] in done.out


def test_nothing_is_imported_that_nobody_asked_for(others):
    """One of them is asked for by name, the others would have been listed at the end."""
    assert "odd" in others.modules
    assert "rival" not in others.modules


def test_a_list_has_what_works_and_then_what_does_not(others):
    """All that can be used is listed; each of the others is a problem."""
    listed = others.done[-1]
    names = [line.split()[0] for line in listed.out.splitlines()]
    assert "plain" in names
    assert "roce" in names
    assert not {"tcp", "twice", "dead", "absent", "gone", "number", "wrong", "Loud"} & {*names}
    assert listed.status == 2
    for name in ("tcp", "twice", "dead", "absent", "gone", "number", "wrong", "Loud"):
        assert f"protocol '{name}' of package" in listed.err


def test_words_of_models_are_no_names():
    """A model's field cannot be called as a method of all models; those that begin with model_ are refused as such."""
    words = {name for name in dir(Choice) if not name.startswith(("_", "model_"))}
    assert words <= _RESERVED
