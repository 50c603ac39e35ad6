"""Conditions: a small part of Python's expressions, against Python itself, and nothing beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.scenario.sweep.conditions import Condition

POINT = {"training.workers": 8, "protocol": "tcp", "topology.star.bandwidth": "25 Gbps", "a.b": None, "overlap": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training.workers <= 8", True),
        ("training.workers * 2 > 16", False),
        ("4 < training.workers < 9", True),
        ("protocol == 'tcp' and training.workers == 8", True),
        ("protocol in ['rdma', 'dpdk'] or not overlap", False),
        ("protocol not in ('rdma', 'dpdk')", True),
        ("topology.star.bandwidth >= '10 Gbps'", True),
        ("topology.star.bandwidth >= '4 GB/s'", False),  # 25 Gbit/s are 3.125 GB/s
        ("a.b == -1", False),
        ("training.workers % 3 == 2", True),
    ],
)
def test_what_it_says(text, expected):
    assert Condition(text, POINT).holds(POINT) is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training.worker <= 8", "no point has 'training.worker', did you mean 'training.workers'?"),
        ("training.workers <=", "is no condition"),
        ("", "is no condition"),
        ("__import__('os').system('true')", "cannot stand in a condition"),
        ("(lambda: 1)()", "cannot stand in a condition"),
        ("protocol.__class__", "no point has 'protocol.__class__'"),
        ("[x for x in (1,)]", "cannot stand in a condition"),
        ("training.workers ** 9", "cannot stand in a condition"),
        ("f'{protocol}'", "cannot stand in a condition"),
        ("not " * 40 + "overlap", "is too long"),
        ("(" * 300 + "1" + ")" * 300, "is no condition"),
    ],
)
def test_what_is_refused(text, said):
    with pytest.raises(InputError) as caught:
        Condition(text, POINT)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["protocol < 5", "training.workers / 0 > 1", "a.b < 3"])
def test_what_cannot_be_told(text):
    with pytest.raises(InputError, match="cannot be told"):
        Condition(text, POINT).holds(POINT)


_NUMBERS = st.recursive(
    st.one_of(st.integers(0, 20).map(str), st.sampled_from(["x", "y"])),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=6,
)
_TESTS = st.recursive(
    st.tuples(_NUMBERS, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), _NUMBERS).map(" ".join),
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=4,
)


@given(_TESTS, st.integers(-20, 20), st.integers(-20, 20))
def test_it_says_what_python_says(text, x, y):
    point = {"x": x, "y": y}
    assert Condition(text, point).holds(point) == eval(text, {}, dict(point))
