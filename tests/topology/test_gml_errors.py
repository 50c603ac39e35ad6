"""What is wrong with GML is said at once, and at its place; § marks it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .marked_texts import DEFAULTS, expect, problems


def test_values_in_gml(tmp_path: Path) -> None:
    text = """graph [
  node [ id 0 label "a" kind "host" ]
  node [ id §0 label "b" kind "host" ]
  node [ id 1 label "c" kind §"hosst" ]
  node §[ id 2 ]
  node §[ label "d" ]
  node §7
  edge §[ source 0 target 1 latency "1 us" kind "wan" ]
  edge [ source 0 target §9 bandwidth §"1 GB" latency "1 us" kind "wan" ]
  edge [ source 0 target 1 bandwidth "1 GB/s" latency §1.5 kind "wan" loss_probability §+INF ]
  edge §[ source 0 ]
]"""
    expect(
        problems(tmp_path, ".gml", text),
        "two nodes have the id '0'",
        "node 'c': unknown kind of node 'hosst'",
        "node '2' has no kind",
        "node 4 has no id",
        "node 5 is no list; expected node [ … ]",
        "link 'a' -> 'c' has no bandwidth",
        "link 'a' -> '9': there is no node '9'",
        "'1 GB' is a size, not a bandwidth",
        "latency: 1.5 has no unit",
        "loss_probability is inf",
        "edge 3 has no target; a node's id is wanted",
    )


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("§", "there is no 'graph [ … ]'"),
        ("§graph [ ]\ngraph [ ]", "there are 2 graphs"),
        ("graph §[\n  node [ id 0 kind \"host\" ]\n", "this '[' is never closed"),
        ("graph [ ]\n  §]", "nothing is open that ']' could close"),
        ("graph [\n  node [ id §] ]", "'id' has no value"),
        ("graph [\n  directed §node [ id 0 ] ]", "'directed' has no value"),
        ("graph [\n  directed 0 §1 ]", "a key is expected before a value"),
        ('graph [\n  directed 0 §"x" ]', "a key is expected before a value"),
        ("graph [\n  label §\"x ]", "this text is never closed"),
        ("graph [\n  label §x? ]", "'x?' is not expected"),
        ("graph [ ] §label", "'label' is not expected"),
        ('graph [ defaults §"x" node [ id 0 kind "host" ] ]', "defaults is no list"),
        ('graph §[ directed 0 ]', "there are no ranks"),
        ('graph [ directed §"yes" node [ id 0 kind "host" ] ]', "directed is 'yes'; 0 or 1 is wanted"),
        ('graph [ multigraph §[ ] node [ id 0 kind "host" ] ]', "multigraph is a list; 0 or 1 is wanted"),
        ("graph [ x §" + "9" * 5000 + " ]", "a number of 5000 digits is too long"),
        ("graph [ x §\u0663 ]", "'\u0663' is not expected"),
        ("graph [ " + "x [ " * 99 + "x §[ " + "x [ " * 5000, "more than 100 lists inside each other"),
    ],
)  # fmt: skip
def test_gml_that_is_no_topology(text: str, fragment: str, tmp_path: Path) -> None:
    expect(problems(tmp_path, ".gml", text), fragment)


def test_repeated_labels_that_clash_with_another_name(tmp_path: Path) -> None:
    text = """graph [ node [ id 0 label "x" kind "host" ] node [ id 1 label "x" kind "host" ]
      node [ id 2 label §"x#1" kind "host" ] ]"""
    expect(problems(tmp_path, ".gml", text, **DEFAULTS), "two nodes have the name 'x#1'")


def test_a_long_number_is_refused_in_a_time_in_proportion_to_it(tmp_path: Path) -> None:
    """Some nanoseconds a character, and not for each pair of them: 300,000 squared would be minutes."""
    began_s = time.process_time()
    assert problems(tmp_path, ".gml", f"graph [ directed §{'9' * 300_000}x ]")
    assert time.process_time() - began_s < 5.0
