"""What changes of a network while it is used: capacities, losses, ways around links that are down, slow hosts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.event_player import Stopped
from simnet.fabric.network import Condition, Network
from simnet.fabric.outages import Outages
from simnet.fabric.placement import Placement
from simnet.fabric.placements import Placements
from simnet.fabric.play import Play
from simnet.fabric.playing import Playing

__all__ = ["Conditions"]


class Conditions:
    """The condition that a network is in; each change holds for what is under way, too.

    Parameters
    ----------
    network : Network
    playing : Playing
        What is under way.
    placements : Placements

    Attributes
    ----------
    highest_capacity : ndarray, shape (resources,)
        That each resource has ever had [bytes/s].
    outages : Outages
        Flows that wait for their transport to try again.
    """

    def __init__(self, network: Network, playing: Playing, placements: Placements) -> None:
        self._network = network
        self._playing = playing
        self._placements = placements
        self.outages = Outages(playing.env, network.protocol, self._resume)
        self.highest_capacity: NDArray[np.float64] = network.capacity.copy()

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the capacity of a resource from now on.

        What comes to a resource without any waits; when there is some again it goes on as its transport says. Of
        packets, a link without any loses all that is on it, and comes to it; one that is leaving goes on as it began.
        """
        if not 0.0 <= bytes_per_s < math.inf:
            raise ValueError(f"a capacity is a finite number of at least 0 bytes/s: {bytes_per_s}")
        playing = self._playing
        playing.catch_up()
        playing.play_events_of(np.array([resource]), np.empty(0, np.int64))
        # What is alone on its resources with one capacity may not be with another.
        playing.foresight.forget_capacities()
        self.highest_capacity[resource] = max(self.highest_capacity[resource], bytes_per_s)
        stopped = playing.events.stopped() if bytes_per_s > 0.0 else []
        playing.events.set_capacity(resource, bytes_per_s)
        self._go_on_with(stopped)
        playing.wake_now()

    def set_loss(self, loss: Mapping[int, float]) -> None:
        """Have links lose other shares of packets than they usually do, from now on.

        Parameters
        ----------
        loss : mapping
            Share by link; links that are not in it are as the topology says. What is being sent goes on as it began.
        """
        self._change(Condition(self._network.condition.avoided, frozenset(loss.items())))

    def route_around(self, links: Collection[int]) -> None:
        """Have what needs some links take other paths from now on, and what did not any more its usual one.

        What has no other path waits for the links. What went over them starts again as its transport says; packets
        under way keep their paths.
        """
        self._change(Condition(frozenset(links), self._network.condition.loss))

    def give_up(self, links: Collection[int]) -> None:
        """Take note that some links are down for good, and no others: nobody needs to wait for these."""
        self._network.lost = frozenset(links)

    def set_host_speed(self, host: int, factor: float) -> None:
        """Have the protocol stack and the memory of a host work at a part of their speed from now on.

        Parameters
        ----------
        host : int
            Node index.
        factor : float
            Above 0.
        """
        for resource in self._network.resources_of(host):
            self.set_capacity(resource, factor * float(self._network.capacity[resource]))
        self._playing.catch_up()
        nodes = np.flatnonzero(self._network.compiled.host_of_node == host)
        self._playing.play_events_of(np.empty(0, np.int64), nodes)
        self._playing.events.slow_down(nodes, 1.0 / factor - 1.0)

    def _change(self, condition: Condition) -> None:
        """Let the network be in another condition, for what is under way as well."""
        if condition == self._network.condition:
            return
        playing = self._playing
        playing.catch_up()
        self._network.change(condition)
        for foreseen in list(playing.foresight.plays):
            before = foreseen.play.laid_out
            if not _goes_the_same_way(before, self._placements.as_of_now(before)):
                playing.play_events(foreseen.play)
        stopped = playing.events.stopped()
        for play in list(playing.events.plays):
            playing.events.relay(play, self._placements.as_of_now(play.laid_out))
        playing.events.follow(condition)
        playing.foresight.repeats.forget_all()
        self._go_on_with(stopped)
        playing.wake_now()

    def _go_on_with(self, stopped: Sequence[Stopped]) -> None:
        """Let flows that were stopped and have a path again go on when their transport tries again."""
        events = self._playing.events
        for flow in stopped:
            if events.is_open(flow.play, flow.operation):
                cap = events.cap_of(flow.play, flow.operation)
                if self.outages.hold(flow, self._playing.clock.base_s, cap):
                    events.set_flow_cap(flow.play, flow.operation, 0.0)

    def _resume(self, play: Play, operation: int, cap_bytes_per_s: float) -> bool:
        """Let a flow go on; tell whether it has a path, or is over."""
        playing = self._playing
        if not playing.events.is_playing(play):
            return True
        if not playing.events.is_open(play, operation):
            return False
        playing.catch_up()
        playing.events.set_flow_cap(play, operation, cap_bytes_per_s)
        playing.wake_now()
        return True


def _goes_the_same_way(one: Placement, other: Placement) -> bool:
    """Tell whether two layouts of a schedule differ in nothing that what is under way would notice."""
    if one is other:
        return True
    columns = ("latency", "forward_per_byte", "loss", "reliability")
    same = all(np.array_equal(one.operations[column], other.operations[column]) for column in columns)
    return same and one.paths == other.paths
