"""Messages of one connection go one after the other: who has its turn, and who waits for it; compiled.

A socket carries a stream of bytes, and a queue pair takes its work requests in order: a message that is handed over
while another one is being sent follows it (RFC 9293, section 3.7; IBTA specification 1.3, section 9.4). Inside of a
host the copies and kernels of one exchange go before those of the next, as in a stream of CUDA.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined
from simnet.fabric.kernels.records import LOCAL
from simnet.fabric.kernels.tables import Tables

__all__ = ["leave_turns", "pass_turn", "take_turn"]


@inlined
def take_turn(tables: Tables, row: int) -> bool:
    """Let a message have its turn, or have it wait behind those that came before; tell whether it has it."""
    operation = tables.operations[row]
    turn = tables.turns[operation.turn]
    if not turn.is_taken:
        turn.is_taken = True
        turn.holder = row
        return True
    before, after = -1, -1
    if turn.waiting > 0:
        before, after = turn.last, turn.first
        if operation.cost == LOCAL:
            before = _last_not_younger(tables, row)
    if before < 0:
        operation.next_turn = after
        turn.first = row
    else:
        operation.next_turn = tables.operations[before].next_turn
        tables.operations[before].next_turn = row
    if operation.next_turn < 0:
        turn.last = row
    turn.waiting += 1
    return False


@inlined
def _last_not_younger(tables: Tables, row: int) -> int:
    """Return who waits last of those whose play began no later than that of a message, -1 if nobody does."""
    turn = tables.turns[tables.operations[row].turn]
    found, waiting = -1, turn.first
    while waiting >= 0 and tables.operations[waiting].stamp <= tables.operations[row].stamp:
        found, waiting = waiting, tables.operations[waiting].next_turn
    return found


@inlined
def pass_turn(tables: Tables, row: int) -> int:
    """Let the message that waits longest have the turn of one that is sent; return its row, -1 if none waits."""
    turn = tables.turns[tables.operations[row].turn]
    if turn.waiting == 0:
        turn.is_taken = False
        return -1
    turn.holder = turn.first
    turn.first = tables.operations[turn.first].next_turn
    turn.waiting -= 1
    return turn.holder


@inlined
def leave_turns(tables: Tables, row: int) -> int:
    """Take a message that is given up out of those of its connection; return who has its turn now, -1 if nobody new."""
    turn = tables.turns[tables.operations[row].turn]
    if turn.is_taken and turn.holder == row:
        return pass_turn(tables, row)
    before, waiting = -1, turn.first
    for _ in range(turn.waiting):
        after = tables.operations[waiting].next_turn
        if waiting == row:
            if before < 0:
                turn.first = after
            else:
                tables.operations[before].next_turn = after
            if turn.last == row:
                turn.last = before
            turn.waiting -= 1
            break
        before, waiting = waiting, after
    return -1
