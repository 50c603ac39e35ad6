"""Credits of links, as InfiniBand has them: a port sends only what its target is known to have room for; compiled.

InfiniBand Architecture Specification 1.3, volume 1, chapter 7.9. The target grants so many bytes for each class; what
leaves it again is known at the sender after a delay, which it looks up when it needs more; only one that has been
refused is woken up.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.packet.kernels.packets import DEPARTURE, give_back_release, new_release, schedule
from simnet.fabric.packet.kernels.records import CLASSES, NEVER, NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = ["credit_since", "return_credit", "use_credit"]


@called
def credit_since(tables: PacketTables, port_row: int, traffic_class: int, size: int, now: int) -> int:
    """Return since when a port may send so many bytes, `NEVER` if it may not yet; then it is woken up."""
    port = tables.ports[port_row]
    ingress = tables.ingresses[port_row * CLASSES + traffic_class]
    while ingress.outstanding + size > port.credit:
        row = ingress.first_return
        if row == NOWHERE:
            ingress.is_blocked = True
            return NEVER
        release = tables.releases[row]
        if release.finish > now:
            if not ingress.is_blocked:
                ingress.is_blocked = True
                schedule(tables, release.finish, DEPARTURE, port_row)
            return NEVER
        ingress.outstanding -= release.bytes
        ingress.credit_at = release.finish
        ingress.first_return = release.next
        if ingress.first_return == NOWHERE:
            ingress.last_return = NOWHERE
        give_back_release(tables, row)
    ingress.is_blocked = False
    return ingress.credit_at


@inlined
def use_credit(tables: PacketTables, port_row: int, traffic_class: int, size: int) -> None:
    """Count bytes that a port sends now."""
    tables.ingresses[port_row * CLASSES + traffic_class].outstanding += size


@called
def return_credit(tables: PacketTables, ingress_row: int, size: int, time: int) -> None:
    """Let the sender of what leaves at a time learn of it after the delay of its link."""
    ingress = tables.ingresses[ingress_row]
    port_row = ingress_row // CLASSES
    known_at = time + tables.ports[port_row].return_delay
    row = new_release(tables, known_at, size, NOWHERE)
    before = ingress.last_return
    if before == NOWHERE or tables.releases[before].finish <= known_at:
        if before == NOWHERE:
            ingress.first_return = row
        else:
            tables.releases[before].next = row
        ingress.last_return = row
    elif tables.releases[ingress.first_return].finish > known_at:
        tables.releases[row].next = ingress.first_return
        ingress.first_return = row
    else:
        before = ingress.first_return
        while tables.releases[tables.releases[before].next].finish <= known_at:
            before = tables.releases[before].next
        tables.releases[row].next = tables.releases[before].next
        tables.releases[before].next = row
    if ingress.is_blocked and ingress.first_return == row:
        schedule(tables, max(known_at, tables.clock[0].now), DEPARTURE, port_row)
