"""Everything that can be wrong with a topology file of any format is said at once, and at its place; § marks it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.topology import HostSpec, load_topology_file, save_topology, star, topology_from_graph
from simnet.topology.document import MOST_PROBLEMS

from .marked_texts import DEFAULTS, expect, problems


def test_slips_beside_what_is_meant(tmp_path: Path) -> None:
    """Other attributes are kept, also such as hold a known name whole; hardly a letter off, they are a slip."""
    link = '{"source": "a", "target": "b", "bandwidth": "1 Gbps", "latency": "1 s", "kind": "wan", '
    text = f"""{{"nodes": [{{"id": "a", "kind": "host", "knd": 1}}, {{"id": "b", "kind": "host", "kinds": "x"}}],
      "edges": [
      {link}"bandwith": §"9 Gbps"}},
      {link}"latncy": §"1 us"}},
      {link}"Latency": §"1 us"}},
      {link}"label": "x", "latency_ms": 3, "bandwidths": [1], "weight": 2, "width": 1, "color": "red"}}
      ]}}"""
    expect(
        problems(tmp_path, ".json", text.replace('"knd": 1', '"knd": §1')),
        "node 'a': unknown attribute 'knd'; did you mean 'kind'?",
        "unknown attribute 'bandwith'; did you mean 'bandwidth'?",
        "unknown attribute 'latncy'; did you mean 'latency'?",
        "unknown attribute 'Latency'; did you mean 'latency'?",
    )


def test_a_slip_in_a_name_with_a_unit(tmp_path: Path) -> None:
    text = """{"nodes": [{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"}], "edges": [
      {"source": "a", "target": "b", "bandwidth_bytes_per_s": 1, "latency_s": 1, "bandwith_bytes_per_s": §2}]}"""
    expect(
        problems(tmp_path, ".json", text, kind="wan"), "'bandwith_bytes_per_s'; did you mean 'bandwidth_bytes_per_s'?"
    )


def test_defaults_of_a_file(tmp_path: Path) -> None:
    text = """{"graph": {"defaults": {"bandwidth": §"100 Gb", "latncy": §"1 us", "kind": §"ethernt",
      "node_kind": §"hosts", "colour": §"blue"}}, "nodes": [{"id": "a", "kind": "host"}], "edges": []}"""
    expect(
        problems(tmp_path, ".json", text),
        "bandwidth: '100 Gb' is an amount, not a bandwidth; did you mean 'Gb/s'?",
        "unknown attribute 'latncy'; did you mean 'latency'?",
        "unknown kind of link 'ethernt'; did you mean 'ethernet'?",
        "unknown kind of node 'hosts'; did you mean 'host'?",
        "unknown default 'colour'; known: bandwidth, latency, kind, buffer, loss_probability, node_kind",
    )


def test_defaults_of_the_caller_have_their_own_path(tmp_path: Path) -> None:
    text = '{"nodes": [{"id": "a", "kind": §"x"}], "edges": []}'
    found = problems(tmp_path, ".json", text, bandwidth="fast")
    assert found[1].path == ("defaults", "bandwidth")
    assert (found[1].source, found[1].line) == ("", 0)
    expect(found, "unknown kind of node", "'fast' is not a bandwidth")
    found = problems(tmp_path, ".json", '{"nodes": [{"id": "a", "kind": "host"}], "edges": []}', latency="1 MB")
    expect(found, "'1 MB' is a size, not a duration")


def test_slips_of_the_pen(tmp_path: Path) -> None:
    text = """{"nodes": [{"id": "a", "knd": §"host", "colour": 1}, {"id": "b", "kind": "host", "hosts": §"a"}],
      "edges": [
      §{"source": "a", "target": "b", "bandwidth": "1 Gbps", "latancy": §"1 us", "kind": "wan", "label": "x"},
      {"source": "a", "target": "b", "bandwidth": "1 Gbps", "bandwidth_bytes_per_s": §1, "latency": "1 s"}
      ]}"""
    expect(
        problems(tmp_path, ".json", text, node_kind="host", kind="wan"),
        "node 'a': unknown attribute 'knd'; did you mean 'kind'?",
        "node 'b': unknown attribute 'hosts'; did you mean 'host'?",
        "link 'a' -> 'b' has no latency",
        "unknown attribute 'latancy'; did you mean 'latency'?",
        "bandwidth and bandwidth_bytes_per_s are both given",
    )


DISCONNECTED = """{"directed": %s, "nodes": [{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"},
  §{"id": "c", "kind": "host"}, {"id": "d", "kind": "host"}, {"id": "s", "kind": "switch"}],
 "edges": [%s]}"""


def links(*pairs: str) -> str:
    return ", ".join(f'{{"source": "{source}", "target": "{target}"}}' for source, target in pairs)


def test_disconnected_ranks(tmp_path: Path) -> None:
    text = DISCONNECTED % ("false", links("ab", "cs", "sd"))
    found = problems(tmp_path, ".json", text, **DEFAULTS)
    expect(found, "there is no way from 'a' to 2 of 4 ranks: c, d; every rank must reach every other")


def test_ranks_that_hear_but_cannot_answer(tmp_path: Path) -> None:
    text = DISCONNECTED % ("true", links("ab", "ba", "as", "sc", "sd", "cd", "dc"))
    expect(problems(tmp_path, ".json", text, **DEFAULTS), "there is no way to 'a' from 2 of 4 ranks: c, d")


def test_disconnection_and_values_are_said_together(tmp_path: Path) -> None:
    text = '{"nodes": [{"id": 1, "kind": "host", "memory_bandwidth": §"0 B/s"}, §{"id": 2, "kind": "host"},\n'
    text += '{"id": 3, "kind": "switch"}],'
    text += '"edges": [{"source": 1, "target": 3, "bandwidth": §"0 bps"}]}'
    found = problems(tmp_path, ".json", text, latency="1 us", kind="wan")
    expect(found, "memory_bandwidth is '0 B/s'", "no way from '1'", "bandwidth is '0 bps'")


def test_switches_may_be_left_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"nodes": [{"id": 1, "kind": "host"}, {"id": 2, "kind": "switch"}], "edges": []}')
    assert load_topology_file(tmp_path / "a.json").compiled.ranks == ("1",)


def test_a_long_list_is_cut_off(tmp_path: Path) -> None:
    nodes = ", ".join(f'{{"id": {number}}}' for number in range(1000))
    (tmp_path / "a.json").write_text(f'{{"nodes": [{nodes}], "edges": []}}')
    with pytest.raises(InputError) as caught:
        load_topology_file(tmp_path / "a.json")
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert caught.value.problems[-1].message == f"and {1000 - MOST_PROBLEMS} more problems"


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".gml"])
def test_bytes_that_are_not_utf8(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes('{"é":\n "x'.encode() + b'\xe9"}')
    with pytest.raises(InputError) as caught:
        load_topology_file(path)
    [problem] = caught.value.problems
    assert (problem.line, problem.column) == (2, 4)
    assert problem.message == "is not UTF-8 text (byte 0xe9)"


def test_errors_read_well(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"nodes": [\n  {"id": "a", "kind": "hosst"}], "edges": []}')
    with pytest.raises(InputError) as caught:
        load_topology_file(path)
    assert str(caught.value) == (
        f"{path}:2:23: node 'a': unknown kind of node 'hosst', did you mean 'host'?\n"
        '      {"id": "a", "kind": "hosst"}], "edges": []}\n'
        "                          ^"
    )


def test_graphs_are_checked_like_files() -> None:
    graph = nx.Graph()
    graph.add_node("a", kind="hosst")
    graph.add_edge("a", "b", bandwidth="0 bps")
    with pytest.raises(InputError) as caught:
        topology_from_graph(graph, defaults={"latency": "fast"})
    expect(
        list(caught.value.problems),
        "unknown kind of node 'hosst'",
        "node 'b' has no kind",
        "bandwidth is '0 bps'",
        "has no kind",
        "'fast' is not a duration",
    )


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, int, str]]:
    """Where, as a part of the length; how many characters to cut out; what to put there."""
    pieces = st.sampled_from([*'"[]{}<>&,0é', "", "-1", "null", "id", "NaN", "\x00", "\ud800"])
    return draw(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), pieces), min_size=1, max_size=4))


@given(damage=damages())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("suffix", [".json", ".graphml", ".gml"])
def test_damaged_files_are_read_or_refused(
    suffix: str, damage: list[tuple[float, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / f"cluster{suffix}"
    save_topology(star(hosts=2, host=HostSpec(gpus=1)), path)
    text = path.read_text(encoding="utf-8")
    for part, cut, piece in damage:
        at = int(part * len(text))
        text = text[:at] + piece + text[at + cut :]
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(InputError):
        load_topology_file(path)
