"""What goes wrong with a network, and when: plain data, and the process that lets it happen.

Faults may overlap: a link has the product of the factors of all that are active, and is down while one of them has the
factor 0. Whoever routes learns of a link that is down, or up again, some time later, unless it has changed meanwhile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import simpy

from simnet.engine.alarm import NORMAL, Tick, only_ticks
from simnet.fabric.interface import Fabric

__all__ = ["REROUTE_AFTER_S", "HostSlow", "LinkFault", "NetworkFault", "busy_until_s", "start_faults"]

REROUTE_AFTER_S = 10e-3
"""From a link going down, or coming up, until paths are computed anew [s]. A port without a signal is known within
milliseconds, and its own switch then leaves it out of its equal paths (P. Lapukhov et al., RFC 7938, section 7.1); what
only BFD finds takes three of its intervals, of 10 to 300 ms (RFC 5880). The order of magnitude, from memory."""

_ROUNDING = 1e-12


@dataclass(frozen=True)
class LinkFault:
    """Links that are down, slow or lossy for a while.

    Attributes
    ----------
    kind, what : for tables and messages: its kind, and what it happens to
    links : their indices, both directions
    begin_s, end_s : from and until when; infinite: for good [s]
    capacity_factor : what is left of their capacity; 0: nothing gets through
    loss : share of packets that they lose beside what they lose anyway
    down_s, up_s : where `up_s` is above 0, it lasts for `down_s`, is away for `up_s`, and so on [s]
    reroute_after_s : until routes are computed anew, after they went down or came up [s]
    """

    kind: str
    what: str
    links: tuple[int, ...]
    begin_s: float
    end_s: float = math.inf
    capacity_factor: float = 1.0
    loss: float = 0.0
    down_s: float = 0.0
    up_s: float = 0.0
    reroute_after_s: float = REROUTE_AFTER_S

    @property
    def is_for_good(self) -> bool:
        """Whether the links never come back."""
        return self.capacity_factor == 0.0 and math.isinf(self.end_s) and self.up_s == 0.0

    def changes(self) -> Iterator[tuple[float, bool]]:
        """Yield when it begins and ends to act, in order of time."""
        lasts_s = self.end_s - self.begin_s
        turn_s, period_s = (self.down_s, self.down_s + self.up_s) if self.up_s > 0.0 else (lasts_s, lasts_s)
        for number in itertools.count():
            # A turn that rounding alone leaves room for is none.
            after_s = number * period_s if number else 0.0
            if after_s >= lasts_s * (1.0 - _ROUNDING):
                return
            yield self.begin_s + after_s, True
            if after_s + turn_s < math.inf:
                yield self.begin_s + min(after_s + turn_s, lasts_s), False


@dataclass(frozen=True)
class HostSlow:
    """A host whose processors, memory and protocol stack are slow for a while.

    Attributes
    ----------
    kind, what : for tables and messages
    host : its node index
    factor : of its usual speed, above 0
    begin_s, end_s : from and until when [s]
    """

    kind: str
    what: str
    host: int
    factor: float
    begin_s: float
    end_s: float = math.inf

    def changes(self) -> Iterator[tuple[float, bool]]:
        """Yield when it begins and ends to act, in order of time."""
        yield self.begin_s, True
        if self.end_s < math.inf:
            yield self.end_s, False


NetworkFault = LinkFault | HostSlow


def busy_until_s(faults: Iterable[NetworkFault], host: int, begin_s: float, work_s: float) -> float:
    """Return when work on a host is done that takes so long where nothing is slow.

    Parameters
    ----------
    faults : iterable
        Those of hosts that are slow count.
    host : int
        Node index.
    begin_s, work_s : float
        [s]

    Examples
    --------
    >>> slow = HostSlow("host_slow", "h0", host=0, factor=0.5, begin_s=1.0, end_s=3.0)
    >>> busy_until_s([slow], 0, begin_s=0.0, work_s=3.0)
    4.0
    """
    own = [fault for fault in faults if isinstance(fault, HostSlow) and fault.host == host]
    now, left = begin_s, work_s
    for change_s in sorted({edge for fault in own for edge in (fault.begin_s, fault.end_s) if edge > begin_s}):
        speed = math.prod(fault.factor for fault in own if fault.begin_s <= now < fault.end_s)
        if left <= (change_s - now) * speed:
            return now + left / speed
        left -= (change_s - now) * speed
        now = change_s
    return now + left


def start_faults(env: simpy.Environment, fabric: Fabric, faults: Sequence[NetworkFault]) -> None:
    """Let faults happen, each at its time.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    faults : sequence
    """
    state = _State(env, fabric)
    for fault in faults:
        env.process(_happen(env, state, fault))


def _happen(env: simpy.Environment, state: _State, fault: NetworkFault) -> Generator[simpy.Event, object, None]:
    for time_s, acts in fault.changes():
        yield Tick(env).set(max(time_s - env.now, 0.0), NORMAL)
        if only_ticks(env):
            # Nobody is there any more whom it could concern.
            return
        state.change(fault, acts=acts)


class _State:
    """Which faults act, and what follows for links and hosts."""

    def __init__(self, env: simpy.Environment, fabric: Fabric) -> None:
        self._env = env
        self._conditions = fabric.conditions
        self._network = fabric.network
        # In the order in which they began.
        self._acting: list[NetworkFault] = []
        self._down: set[int] = set()
        self._known: set[int] = set()
        self._changed: dict[int, int] = {}

    def change(self, fault: NetworkFault, *, acts: bool) -> None:
        """Have a fault act from now on, or no more."""
        if acts:
            self._acting.append(fault)
        else:
            self._acting.remove(fault)
        if isinstance(fault, HostSlow):
            own = [one for one in self._acting if isinstance(one, HostSlow) and one.host == fault.host]
            self._conditions.set_host_speed(fault.host, math.prod(one.factor for one in own))
            return
        of_links = [one for one in self._acting if isinstance(one, LinkFault)]
        self._conditions.give_up({link for one in of_links if one.is_for_good for link in one.links})
        if fault.loss > 0.0:
            self._conditions.set_loss(self._losses(of_links))
        if fault.capacity_factor < 1.0:
            self._set_capacities(fault, of_links)

    def _set_capacities(self, fault: LinkFault, acting: Sequence[LinkFault]) -> None:
        for link in fault.links:
            factor = math.prod(one.capacity_factor for one in acting if link in one.links)
            self._conditions.set_capacity(link, factor * float(self._network.capacity[link]))
            if (factor == 0.0) != (link in self._down):
                self._down ^= {link}
                self._changed[link] = self._changed.get(link, 0) + 1
        if fault.capacity_factor == 0.0:
            self._env.process(self._find_out(fault))

    def _find_out(self, fault: LinkFault) -> Generator[simpy.Event, object, None]:
        """Have routes follow what has just become of links, if it is still so by then."""
        changed = {link: self._changed.get(link, 0) for link in fault.links}
        if fault.reroute_after_s > 0.0:
            yield Tick(self._env).set(fault.reroute_after_s, NORMAL)
        same = {link for link, number in changed.items() if self._changed.get(link, 0) == number}
        self._known = (self._known - same) | (same & self._down)
        self._conditions.route_around(self._known)

    def _losses(self, acting: Sequence[LinkFault]) -> dict[int, float]:
        """Return the share of packets that links lose where that is more than usual."""
        kept: dict[int, float] = {}
        for fault in acting:
            for link in fault.links if fault.loss > 0.0 else ():
                usual = 1.0 - float(self._network.compiled.link_loss_probability[link])
                kept[link] = kept.get(link, usual) * (1.0 - fault.loss)
        return {link: 1.0 - share for link, share in kept.items()}
