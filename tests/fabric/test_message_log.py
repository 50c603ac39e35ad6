"""Records of single messages: each with its times, whatever comes between and however small the log."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from simnet.fabric import event_player
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.messages import Messages
from simnet.fabric.network import Network
from simnet.fabric.play import Play
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import ring_all_reduce

from .building import begin, sends


def recording(hosts: int, *, start_s: float = 0.0, **protocol: float) -> tuple[FluidFabric, list[Messages]]:
    """A fabric on a star with links of 1 byte/s and paths of 1 s, and the batches that it hands on."""
    batches: list[Messages] = []
    network = Network(star(hosts=hosts, bandwidth_bytes_per_s=1.0, latency_s=0.5), FlowProtocol(**protocol))
    return FluidFabric(simpy.Environment(start_s), network, record=batches.append), batches


def begin_as(fabric: FluidFabric, name: str, source: int, target: int, size_bytes: float) -> Play:
    """Play one send between hosts under a name."""
    nodes = fabric.network.compiled.rank_nodes[[source, target]]
    return fabric.play(fabric.place(sends((0, 1, size_bytes)), nodes), name)


def column(batches: list[Messages], name: str) -> np.ndarray:
    return np.concatenate([getattr(batch, name) for batch in batches])


@pytest.mark.parametrize("log_rows", [2, 7, 1 << 17])
@pytest.mark.parametrize("start_s", [0.0, 1e3])
def test_a_ring_message_by_message(monkeypatch, log_rows, start_s):
    """3 ranks, chunks of 2 bytes: firing k begins at 3k, flows at once for 2 s and is delivered 1 s later."""
    monkeypatch.setattr(event_player, "LOG_ROWS", log_rows)
    fabric, batches = recording(3, start_s=start_s)
    begin(fabric, ring_all_reduce(3, 6, 1.0))
    fabric.env.run()
    fabric.close()
    firing = column(batches, "firing")
    assert len(firing) == fabric.counts.messages == 12
    assert sorted(zip(column(batches, "operation"), firing, strict=True)) == [
        (op, k) for op in range(3) for k in range(4)
    ]
    assert (column(batches, "target") == (column(batches, "source") + 1) % 3).all()
    assert (column(batches, "size_bytes") == 2.0).all()
    for name, after in (("start_s", 0.0), ("flow_start_s", 0.0), ("drained_s", 2.0), ("delivered_s", 3.0)):
        assert column(batches, name) == pytest.approx(start_s + 3.0 * firing + after, rel=1e-12)
    delivered = column(batches, "delivered_s")
    assert (np.diff(delivered) >= 0.0).all()


def test_overheads_and_set_up_come_before_the_flow():
    """5 bytes, 2 s of the sender, 4 s of set-up, 3 s of the receiver: start 0, flow 6, drained 11, delivered 15 s."""
    fabric, batches = recording(2, send_overhead_s=2.0, receive_overhead_s=3.0, connection_setup_s=4.0)
    begin_as(fabric, "one", 0, 1, 5.0)
    fabric.env.run()
    fabric.close()
    times = [column(batches, name)[0] for name in ("start_s", "flow_start_s", "drained_s", "delivered_s")]
    assert times == pytest.approx([0.0, 6.0, 11.0, 15.0], rel=1e-12)
    assert column(batches, "play").tolist() == ["one"]


def test_what_was_cancelled_on_the_way_is_never_delivered():
    """One of two messages has drained at 1 s, when the play is cancelled; the other had not: it leaves no record."""
    fabric, batches = recording(4)
    play = begin(fabric, sends((0, 1, 1.0), (2, 3, 9.0)))
    fabric.env.run(until=1.5)
    fabric.cancel(play)
    fabric.close()
    assert column(batches, "drained_s").tolist() == [1.0]
    assert np.isnan(column(batches, "delivered_s")).all()


def test_plays_that_are_over_are_forgotten(monkeypatch):
    """200 plays one after the other, two at a time; the log knows few at any time."""
    monkeypatch.setattr(event_player, "LOG_ROWS", 16)
    fabric, batches = recording(4)
    known = []

    def actor(first):
        for number in range(100):
            yield begin_as(fabric, f"{first}.{number}", first, first + 1, 1.0).complete
            known.append(len(fabric._events._log._plays))

    for first in (0, 2):
        fabric.env.process(actor(first))
    fabric.env.run()
    fabric.close()
    assert max(known) < 40
    assert len(set(column(batches, "play").tolist())) == 200
