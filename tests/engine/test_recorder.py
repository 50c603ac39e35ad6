"""Records of what happened, by kind."""

from __future__ import annotations

from typing import NamedTuple

from simnet.engine.recorder import Recorder


class Sent(NamedTuple):
    size: int


class Received(NamedTuple):
    size: int


def test_rows_come_back_by_kind_in_the_order_they_went_in():
    """Two kinds with the same fields are kept apart."""
    recorder = Recorder()
    for row in (Sent(3), Received(3), Sent(1), Sent(2)):
        recorder.add(row)
    assert recorder.rows(Sent) == [Sent(3), Sent(1), Sent(2)]
    assert recorder.rows(Received) == [Received(3)]


def test_what_never_happened_is_an_empty_table():
    assert Recorder().rows(Sent) == []


def test_what_is_returned_is_a_copy():
    recorder = Recorder()
    recorder.add(Sent(1))
    recorder.rows(Sent).append(Sent(2))
    assert recorder.rows(Sent) == [Sent(1)]
