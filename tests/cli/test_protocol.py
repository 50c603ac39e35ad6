"""``simnet protocol``."""

from __future__ import annotations

import pytest

from simnet.protocols import FIELDS, PROTOCOLS, values


def test_every_protocol_is_listed_with_what_it_does(command):
    status, out, err = command("protocol", "list")
    assert (status, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == ["name", "reliability", "congestion", "control", "summary"]
    assert [line.split()[0] for line in lines] == list(PROTOCOLS)
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["dctcp"][:2] == ["sack", "dctcp"]
    assert rows["irn"][:2] == ["selective_repeat", "none"]
    assert rows["rdma"] == ["roce", "or", "infiniband"]
    assert rows["ipoib-datagram"] == ["ipoib"]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_value_is_shown_with_unit_and_source(command, name):
    status, out, err = command("protocol", "show", name)
    assert (status, err) == (0, "")
    _, head, *lines = out.splitlines()
    assert head.split() == ["key", "value", "source"]
    for line, value in zip(lines, values(name), strict=True):
        field = FIELDS[value.field]
        assert line.split()[0] == field.key
        assert f" {field.written(value.value)} " in line
        assert line.endswith(value.source)


def test_units_are_those_of_a_scenario(command):
    out = command("protocol", "show", "tcp").out
    for key, written in (("mtu", "1.5 kB"), ("minimum_timeout", "200 ms"), ("connection_cap", "42 Gbps")):
        assert [line for line in out.splitlines() if line.startswith(f"{key} ") and f" {written} " in line]


@pytest.mark.parametrize(("links", "name"), [("ethernet", "roce"), ("infiniband", "infiniband")])
def test_rdma_is_what_the_links_are(command, links, name):
    out = command("protocol", "show", "rdma", "--links", links).out
    assert out.startswith(f"{name}: ")
    assert out == command("protocol", "show", name).out


def test_an_unknown_name_is_refused_with_the_nearest(command):
    status, out, err = command("protocol", "show", "dctpc")
    assert (status, out) == (2, "")
    assert err == "there is no protocol 'dctpc', did you mean 'dctcp'?\n"


def test_other_links_are_refused(command):
    status, out, err = command("protocol", "show", "rdma", "--links", "wan")
    assert (status, out) == (2, "")
    assert "'ethernet'" in err
