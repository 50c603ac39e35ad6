"""Names, values with sources, overrides, and warnings where a protocol meets strange links."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from simnet.errors import InputError
from simnet.protocols import FIELDS, PROTOCOLS, FlowProtocol, mismatch, resolve, values

NOT_SETTABLE = {"name", "summary", "link_kinds"}


def problems_of(name: str, overrides: dict | None = None) -> list[str]:
    with pytest.raises(InputError) as refused:
        resolve(name, overrides)
    return [f"{problem.message}, {problem.hint}" for problem in refused.value.problems]


def test_the_names_that_scenarios_use():
    assert set(PROTOCOLS) == {
        "ideal", "tcp", "dpdk", "ipoib", "ipoib-datagram", "ipoib-connected", "infiniband", "roce", "rdma",
    }  # fmt: skip


def test_ipoib_alone_means_datagram_mode():
    assert resolve("ipoib") == resolve("ipoib-datagram") != resolve("ipoib-connected")


def test_rdma_is_what_the_links_are():
    assert resolve("rdma", link_kinds=["pcie", "infiniband"]) == resolve("infiniband")
    assert resolve("rdma", link_kinds=["ethernet", "nvlink"]) == resolve("roce")
    assert resolve("rdma") == resolve("roce")


def test_every_field_is_described_once():
    assert {field.name for field in fields(FlowProtocol)} - NOT_SETTABLE == set(FIELDS)
    assert len({field.key for field in FIELDS.values()}) == len(FIELDS)
    for field in FIELDS.values():
        unit = {"size": "bytes", "duration": "s", "duration_per_byte": "s/byte", "bandwidth": "bytes/s"}
        assert field.unit == unit.get(field.quantity, "")
        assert field.meaning
        assert (field.quantity == "choice") == bool(field.choices)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_value_has_a_source(name):
    """All fields, in order, each as resolved and with something to say about where it is from."""
    protocol, shown = resolve(name), values(name)
    assert [value.field for value in shown] == list(FIELDS)
    for value in shown:
        assert value.value == getattr(protocol, value.field)
        assert value.unit == FIELDS[value.field].unit
        assert len(value.source) >= len("by definition")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_defaults_pass_their_own_checks(name):
    protocol = resolve(name)
    overrides = {field: getattr(protocol, field) for field in FIELDS}
    assert resolve(name, overrides) == protocol


def test_ideal_is_a_protocol_without_any_cost():
    ideal = resolve("ideal")
    assert {field: getattr(ideal, field) for field in FIELDS} == {
        field: getattr(FlowProtocol(), field) for field in FIELDS
    }


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
