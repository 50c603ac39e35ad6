"""Alarms: at which time, and in which order within an instant."""

from __future__ import annotations

import simpy

from simnet.engine.alarm import LATE, NORMAL, URGENT, Alarm


def note(alarm: Alarm, log: list, name: str) -> Alarm:
    alarm.callbacks.append(lambda event: log.append((alarm.env.now, name, event.value)))
    return alarm


def test_it_happens_when_it_was_set_for_with_its_value():
    env, log = simpy.Environment(10.0), []
    note(Alarm(env), log, "one").set(2.5, NORMAL, "value")
    note(Alarm(env), log, "other").set(0.0, NORMAL)
    env.run()
    assert log == [(10.0, "other", None), (12.5, "one", "value")]


def test_urgent_before_normal_before_late_whatever_the_order_of_setting():
    """And in the order of setting within each of them; SimPy's timeouts are normal."""
    env, log = simpy.Environment(), []
    for priority, name in [(LATE, "late"), (NORMAL, "normal"), (URGENT, "urgent")]:
        for number in (1, 2):
            note(Alarm(env), log, f"{name} {number}").set(1.0, priority)
    env.timeout(1.0).callbacks.append(lambda _: log.append((1.0, "timeout", None)))
    env.run()
    names = [name for _, name, _ in log]
    assert names == ["urgent 1", "urgent 2", "normal 1", "normal 2", "timeout", "late 1", "late 2"]


def test_late_comes_after_all_that_actors_do_at_that_instant():
    """Also after what they begin at it, one after the other."""
    env, log = simpy.Environment(), []
    note(Alarm(env), log, "late").set(1.0, LATE)

    def actor(number):
        yield env.timeout(1.0)
        for step in range(3):
            log.append((env.now, f"actor {number} step {step}", None))
            yield env.timeout(0.0)

    for number in range(2):
        env.process(actor(number))
    env.run()
    assert log[-1] == (1.0, "late", None)
    assert len(log) == 7


def test_a_process_can_wait_for_it_also_when_it_has_happened():
    env = simpy.Environment()
    alarm = Alarm(env)

    def actor():
        first = yield alarm
        second = yield alarm
        return first, second, env.now

    alarm.set(3.0, URGENT, "x")
    assert env.run(env.process(actor())) == ("x", "x", 3.0)
