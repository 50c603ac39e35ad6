"""Names, values with sources, overrides, and warnings where a protocol meets strange links."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from simnet.errors import InputError
from simnet.protocols import FIELDS, PROTOCOLS, FlowProtocol, Transport, mismatch, resolve, values
from simnet.protocols.congestion.dcqcn_parameters import PAPER, VENDOR
from simnet.units import GIGABIT_PER_S

NOT_SETTABLE = {"name", "summary", "link_kinds", "transport"}
COSTS = [name for name, field in FIELDS.items() if not field.of_transport]
DCQCN = {default.field for default in PAPER}


def problems_of(name: str, overrides: dict | None = None) -> list[str]:
    with pytest.raises(InputError) as refused:
        resolve(name, overrides)
    return [f"{problem.message}, {problem.hint}" for problem in refused.value.problems]


def test_the_names_that_scenarios_use():
    assert set(PROTOCOLS) == {
        "ideal", "tcp", "tcp-reno", "dctcp", "grpc", "dpdk", "ipoib", "ipoib-datagram", "ipoib-connected", "infiniband",
        "roce", "roce-lossy", "irn", "best-effort", "rdma",
    }  # fmt: skip


def test_ipoib_alone_means_datagram_mode():
    assert resolve("ipoib") == resolve("ipoib-datagram") != resolve("ipoib-connected")


def test_rdma_is_what_the_links_are():
    assert resolve("rdma", link_kinds=["pcie", "infiniband"]) == resolve("infiniband")
    assert resolve("rdma", link_kinds=["ethernet", "nvlink"]) == resolve("roce")
    assert resolve("rdma") == resolve("roce")


def test_every_field_is_described_once():
    described = {field.name for field in (*fields(FlowProtocol), *fields(Transport))}
    assert described - NOT_SETTABLE == set(FIELDS)
    assert {name for name, field in FIELDS.items() if field.of_transport} == {field.name for field in fields(Transport)}
    assert len({field.key for field in FIELDS.values()}) == len(FIELDS)
    for field in FIELDS.values():
        unit = {"size": "bytes", "duration": "s", "duration_per_byte": "s/byte", "bandwidth": "bytes/s"}
        assert field.unit == unit.get(field.quantity, "")
        assert field.meaning
        assert (field.quantity == "choice") == bool(field.choices)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_value_has_a_source(name):
    """All costs and all that has a meaning, in order, each as resolved, each with a source."""
    protocol, shown = resolve(name), values(name)
    named = [value.field for value in shown]
    assert named == [field for field in FIELDS if field in named]
    only_of_some = {"verb", "rendezvous_bytes", "inline_bytes", "fetch_s", "batch_packets", "batch_delay_s"}
    assert ({*COSTS} - only_of_some) | {"reliability", "congestion_control", "link_flow_control"} <= set(named)
    for value in shown:
        assert value.value == FIELDS[value.field].of(protocol)
        assert value.unit == FIELDS[value.field].unit
        assert len(value.source) >= len("by definition")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_defaults_pass_their_own_checks(name):
    protocol = resolve(name)
    overrides = {name: field.of(protocol) for name, field in FIELDS.items()}
    assert resolve(name, overrides) == protocol


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_has_no_meaning_is_left_out(name):
    """What is not shown is as in an ideal network: no DCQCN in TCP, no loss budget where what is lost is sent again."""
    transport, shown = resolve(name).transport, {value.field for value in values(name)}
    for field in fields(Transport):
        assert field.name in shown or getattr(transport, field.name) == getattr(Transport(), field.name)
    assert ("loss_budget" in shown) == (transport.reliability == "best_effort")
    assert ("few_packets" in shown) == (name == "irn")
    assert ("tail_loss_probe" in shown) == (transport.reliability == "sack")
    assert (shown >= DCQCN) == (transport.reliability != "sack" and "infiniband" not in name and name != "ideal")


def test_ideal_is_a_protocol_without_any_cost():
    ideal = resolve("ideal")
    assert {name: field.of(ideal) for name, field in FIELDS.items()} == {
        name: field.of(FlowProtocol()) for name, field in FIELDS.items()
    }
    assert ideal.transport == Transport()


@pytest.mark.parametrize(
    ("name", "mtu_bytes", "payload_bytes", "header_bytes"),
    [
        ("tcp", 9000, 8948, 90),
        ("dpdk", 1500, 1448, 90),
        ("ipoib", 2044, 1992, 90),
        ("ipoib-connected", 65520, 65468, 472),
        ("ipoib-connected", 4092, 4040, 82),
        ("infiniband", 2048, 2048, 26),
        ("roce", 1024, 1024, 82),
    ],
)
def test_payload_and_header_follow_the_mtu(name, mtu_bytes, payload_bytes, header_bytes):
    protocol = resolve(name, {"mtu_bytes": mtu_bytes})
    assert (protocol.payload_bytes, protocol.header_bytes) == (payload_bytes, header_bytes)


def test_payload_and_header_can_be_given_themselves():
    protocol = resolve("tcp", {"mtu_bytes": 9000, "header_bytes": 100})
    assert (protocol.payload_bytes, protocol.header_bytes) == (8948, 100)


def test_an_override_replaces_one_value():
    protocol = resolve("tcp", {"connection_cap_bytes_per_s": math.inf, "connection": "per_message", "divisible": True})
    assert protocol.connection_cap_bytes_per_s == math.inf
    assert protocol.connection == "per_message"
    assert protocol.divisible
    assert protocol.send_overhead_s == resolve("tcp").send_overhead_s


def test_an_override_reaches_the_transport():
    protocol = resolve("tcp", {"initial_window_packets": 20.0, "minimum_timeout_s": 0.005, "latency_s": 0.0})
    assert (protocol.transport.initial_window_packets, protocol.transport.minimum_timeout_s) == (20.0, 0.005)
    assert protocol.latency_s == 0
    assert protocol.transport.acknowledge_every == resolve("tcp").transport.acknowledge_every


def test_variants_differ_in_what_they_are_named_for():
    def differing(one: str, other: str) -> set[str]:
        return {name for name, field in FIELDS.items() if field.of(resolve(one)) != field.of(resolve(other))}

    assert differing("tcp", "tcp-reno") == {"congestion_control"}
    assert differing("tcp", "dctcp") == {"congestion_control", "mark_from_s", "mark_all_s"}
    assert differing("roce", "roce-lossy") == {"link_flow_control"}


def test_dctcp_marks_behind_65_packets_at_10_gbit_per_s():
    """80 us: more than 65 packets of 1538 B, less than 66."""
    mark_from_s = resolve("dctcp").transport.mark_from_s
    assert 65 < mark_from_s * 10 * GIGABIT_PER_S / 1538 < 66


def test_dcqcn_has_the_numbers_of_its_paper_unless_it_is_the_vendors():
    for default in PAPER:
        assert getattr(Transport(), default.field) == pytest.approx(default.value, rel=1e-12)
    paper = resolve("roce", {"congestion_control": "dcqcn"}).transport
    assert {default.field: getattr(paper, default.field) for default in PAPER} == {
        default.field: default.value for default in PAPER
    }
    for name in ("roce", "tcp"):
        vendor = resolve(name, {"congestion_control": "dcqcn_vendor", "recovery_steps": 3.0}).transport
        expected = {default.field: default.value for default in VENDOR} | {"recovery_steps": 3.0}
        assert {field: getattr(vendor, field) for field in expected} == expected
    assert [default.field for default in VENDOR] == [default.field for default in PAPER]


def test_an_unknown_name_is_refused_with_the_nearest():
    assert problems_of("ipib") == ["there is no protocol 'ipib', did you mean 'ipoib'?"]
    with pytest.raises(InputError, match="there is no protocol 'tpc', did you mean 'tcp'"):
        values("tpc")


def test_all_wrong_overrides_are_reported_at_once():
    wrong = {
        "latency": 1.0,
        "latency_s": -1.0,
        "header_bytes": math.nan,
        "send_overhead_s": math.inf,
        "connection_cap_bytes_per_s": 0,
        "connection": "sometimes",
        "divisible": 1,
        "copies_send": True,
        "most_marked": 1.5,
        "acknowledge_every": 0.0,
        "reliability": "some",
    }
    assert problems_of("tcp", wrong) == [
        "a protocol has no 'latency', did you mean 'latency_s'?",
        "latency cannot be -1.0, it is a number of at least 0 s",
        "header cannot be nan, it is a number of at least 0 bytes",
        "send_overhead cannot be inf, it is a number of at least 0 s",
        "connection_cap cannot be 0, it is a number above 0 bytes/s",
        "connection cannot be 'sometimes', it is one of persistent, per_message",
        "divisible cannot be 1, it is true or false",
        "copies_send cannot be True, it is a number of at least 0",
        "most_marked cannot be 1.5, it is a number of at least 0 and at most 1",
        "acknowledge_every cannot be 0.0, it is a number of at least 1",
        "reliability cannot be 'some', it is one of go_back_n, sack, selective_repeat, best_effort",
    ]


def test_an_mtu_that_headers_fill_is_refused():
    assert problems_of("tcp", {"mtu_bytes": 52}) == ["an MTU of 52 B leaves no payload, tcp has 90 B of headers"]


@pytest.mark.parametrize(
    ("name", "link_kinds", "strange"),
    [
        ("ipoib", ["ethernet", "pcie"], "ethernet"),
        ("ipoib-connected", ["ethernet", "infiniband", "wan"], "ethernet and wan"),
        ("tcp", ["infiniband"], "infiniband"),
        ("roce", ["infiniband"], "infiniband"),
        ("dpdk", ["wan"], "wan"),
    ],
)
def test_links_that_a_protocol_is_not_made_for_are_named(name, link_kinds, strange):
    protocol = resolve(name)
    assert f"runs here on {strange}:" in mismatch(protocol, link_kinds)
    assert mismatch(protocol, link_kinds).startswith(f"{name} is made for {protocol.link_kinds[0]}")


@pytest.mark.parametrize(
    ("name", "link_kinds"),
    [
        ("ideal", ["ethernet", "infiniband", "wan"]),
        ("tcp", ["ethernet", "wan", "pcie", "nvlink", "upi"]),
        ("ipoib", ["infiniband", "pcie", "other"]),
        ("infiniband", ["infiniband"]),
        ("roce", ["nvlink"]),
    ],
)
def test_links_that_fit_or_stay_in_a_host_are_not_mentioned(name, link_kinds):
    assert mismatch(resolve(name), link_kinds) is None


@pytest.mark.parametrize(
    ("name", "overrides", "said", "place"),
    [
        (
            "tcp",
            {"maximum_timeout_s": 1e-6},
            "minimum_timeout of 200 ms is above maximum_timeout of 1 us",
            "maximum_timeout_s",
        ),
        (
            "tcp",
            {"minimum_timeout_s": 1e4},
            "minimum_timeout of 10000 s is above maximum_timeout of",
            "minimum_timeout_s",
        ),
        ("dctcp", {"mark_from_s": 1.0}, "mark_from of 1 s is above mark_all of", "mark_from_s"),
    ],
)
def test_bounds_the_wrong_way_round(name, overrides, said, place):
    """Told at the one that was given."""
    with pytest.raises(InputError) as caught:
        resolve(name, overrides)
    [problem] = caught.value.problems
    assert problem.message.startswith(said)
    assert problem.path == (place,)
