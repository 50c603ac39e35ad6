"""Congestion controls without a network: each against its theory, then what holds whatever happens."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.protocols import resolve
from simnet.protocols.congestion import CONTROLS, Control
from simnet.protocols.congestion.dcqcn_parameters import VENDOR
from simnet.protocols.transport import CongestionControl

LINE_RATE = 5e9  # 40 Gbit/s


def begun(name: str, **state: float) -> Control:
    """Return a connection that has sent nothing yet."""
    control = CONTROLS[name]()
    for attribute, value in state.items():
        assert hasattr(control, attribute)
        setattr(control, attribute, value)
    return control


def acknowledge_a_window(control: Control, now: float, round_trip: float, marked: bool = False) -> int:
    """Send a window and have it acknowledged packet by packet, evenly over a round trip; return its packets."""
    packets = math.floor(control.window)
    control.next += packets
    for index in range(packets):
        control.acknowledged += 1
        control.on_acknowledged(1, int(marked), now + round_trip * (index + 1) / packets, round_trip)
    return packets


def mean_window(name: str, packets_between_losses: int, round_trip: float) -> float:
    """Return the mean over round trips, each of which delivers a window, where one packet in so many is lost."""
    control, windows, left = begun(name, window=10.0, threshold=10.0), [], packets_between_losses
    for step in range(4_000):
        windows.append(control.window)
        left -= acknowledge_a_window(control, step * round_trip, round_trip)
        if left <= 0:
            left += packets_between_losses
            control.on_loss((step + 1) * round_trip)
    return sum(windows[1_000:]) / len(windows[1_000:])


def test_there_is_one_for_each_name():
    assert set(CONTROLS) == set(get_args(CongestionControl))


# -- Reno ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [1e-2, 1e-3, 1e-4])
def test_reno_follows_the_square_root(loss):
    """A saw from W/2 to W delivers 3/8 W^2 = 1/p packets, so that the mean 3/4 W is sqrt(3/2)/sqrt(p)."""
    assert mean_window("reno", round(1 / loss), 1e-4) == pytest.approx(math.sqrt(1.5 / loss), rel=0.05)


@pytest.mark.parametrize("name", ["reno", "cubic", "dctcp"])
@pytest.mark.parametrize("packets", [1, 2, 7])
def test_slow_start_adds_what_arrives_up_to_the_threshold(name, packets):
    """From 10 packets at a threshold of 30: 10 + n after n; beyond it n/window for each n."""
    control = begun(name, window=10.0, threshold=30.0)
    control.next = 1000
    control.on_acknowledged(packets, 0, 0.0, 1e-4)
    assert control.window == 10.0 + packets
    control.window = 29.5
    control.on_acknowledged(1, 0, 0.0, 1e-4)
    assert 30 < control.window <= 30 + 0.5 / 30


def test_reno_adds_a_packet_a_round_trip():
    control = begun("reno", window=100.0, threshold=50.0)
    acknowledge_a_window(control, 0.0, 1e-4)
    assert control.window == pytest.approx(101, abs=0.01)


def test_reno_halves_at_a_loss_and_begins_again_at_a_timeout():
    control = begun("reno", window=40.0)
    control.on_loss(0.0)
    assert (control.window, control.threshold) == (20.0, 20.0)
    control.on_timeout(0.0)
    assert (control.window, control.threshold) == (1.0, 10.0)
    control.on_timeout(0.0)
    assert (control.window, control.threshold) == (1.0, 10.0)


@pytest.mark.parametrize("name", ["reno", "cubic", "dctcp"])
def test_after_a_pause_it_begins_with_the_first_window(name):
    """And goes fast up to three quarters of what it had (RFC 2861)."""
    control = begun(name, window=100.0, threshold=50.0, first_window=10.0)
    control.on_idle(1.0)
    assert (control.window, control.threshold) == (10.0, 75.0)


# -- CUBIC -----------------------------------------------------------------------------------------------------------


def test_cubic_follows_its_curve():
    """Loss at 1000 packets, round trip 100 ms: 700, then 0.4 (t - K)^3 + 1000 with K = cbrt(300/0.4) = 9.09 s."""
    round_trip, plateau_after = 0.1, (300 / 0.4) ** (1 / 3)
    control = begun("cubic", window=1000.0)
    control.on_loss(0.0)
    assert control.window == pytest.approx(700)
    for step in range(150):
        acknowledge_a_window(control, step * round_trip, round_trip)
        since = (step + 1) * round_trip - plateau_after
        assert control.window == pytest.approx(0.4 * since**3 + 1000, rel=0.01)


@pytest.mark.parametrize("loss", [1e-2, 1e-3])
def test_cubic_is_reno_in_a_data_centre(loss):
    """0.529 packets a round trip and 0.7 of the window come to the same mean, sqrt(3/2)/sqrt(p)."""
    assert mean_window("cubic", round(1 / loss), 1e-4) == pytest.approx(math.sqrt(1.5 / loss), rel=0.08)


def test_cubic_has_more_than_reno_on_long_paths():
    """1.054 (RTT/p)^(3/4) packets (RFC 9438, section 5.1): 334 at 100 ms and 4.6e-5, where Reno has 181."""
    loss, round_trip = 4.6e-5, 0.1
    expected = 1.054 * (round_trip / loss) ** 0.75
    assert mean_window("cubic", round(1 / loss), round_trip) == pytest.approx(expected, rel=0.1)
    assert expected > 1.8 * math.sqrt(1.5 / loss)


def test_cubic_makes_room_when_it_has_less_than_before():
    """Losses at 1000 and then at 800 packets: the plateau is at 0.85 of 800."""
    control = begun("cubic", window=1000.0)
    control.on_loss(0.0)
    assert control.plateau == 1000
    control.window = 800.0
    control.on_loss(1.0)
    assert control.plateau == pytest.approx(680)


def test_cubic_never_aims_at_more_than_half_as_much_again():
    """A thousand seconds later the curve is far above: a window of acknowledgements adds half a window, no more."""
    control = begun("cubic", window=100.0)
    control.on_loss(0.0)
    control.on_acknowledged(1, 0, 0.0, 0.1)
    before = control.window
    acknowledge_a_window(control, 1000.0, 0.1)
    assert control.window == pytest.approx(before + 0.5 * math.floor(before))


# -- DCTCP -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", [False, True])
def test_dctcp_averages_marks_over_windows(marked):
    """alpha_k = F + (1 - F) (15/16)^k with F = 0 or 1, from 1 on, once for each window."""
    control = begun("dctcp", window=10.0, threshold=10.0)
    for window in range(1, 40):
        control.window = 10.0
        acknowledge_a_window(control, 0.0, 1e-4, marked)
        assert control.alpha == pytest.approx(1.0 if marked else (15 / 16) ** window)


def test_dctcp_cuts_once_a_window_by_half_of_alpha():
    """alpha 0.5, 100 packets: at the first mark alpha is 0.5 + (1 - 0.5)/16, so 73.4 are left.

    So they are until all that was under way then is acknowledged; the mark after that counts again.
    """
    control = begun("dctcp", window=100.0, threshold=50.0, alpha=0.5)
    control.next = 100
    for packets in (1, 1, 98):
        control.acknowledged += packets
        control.on_acknowledged(packets, packets, 0.0, 1e-4)
        assert control.window == pytest.approx(100 * (1 - (0.5 + 0.5 / 16) / 2))
    control.acknowledged += 1
    control.on_acknowledged(1, 1, 0.0, 1e-4)
    assert control.window < 60


def test_dctcp_swings_by_the_square_root():
    """Marks where the window is above W* = 100: alpha is about sqrt(2/W*) (SIGCOMM 2010, section 3.3)."""
    control, alphas, marked = begun("dctcp", window=50.0, threshold=50.0), [], False
    for _ in range(3000):
        acknowledge_a_window(control, 0.0, 1e-4, marked)
        marked = control.window > 100
        alphas.append(control.alpha)
    assert sum(alphas[1000:]) / 2000 == pytest.approx(math.sqrt(2 / 100), rel=0.3)


def test_dctcp_without_marks_is_reno():
    reno, dctcp = begun("reno", window=10.0, threshold=20.0), begun("dctcp", window=10.0, threshold=20.0)
    for step in range(50):
        for control in (reno, dctcp):
            acknowledge_a_window(control, step * 1e-4, 1e-4)
            if step % 20 == 19:
                control.on_loss(step * 1e-4)
    assert dctcp.window == reno.window


# -- DCQCN -----------------------------------------------------------------------------------------------------------


def test_dcqcn_halves_at_the_first_notification_and_climbs_back():
    """alpha is 1: half the rate. Then half of what is missing each 55 us: 3/4, 7/8, ... of the line."""
    control = begun("dcqcn", line_rate=LINE_RATE)
    control.on_notified(1.0)
    assert control.pace == LINE_RATE / 2
    assert control.timer_at == pytest.approx(1.0 + 55e-6)
    assert control.bytes_at == 10e6
    for step in range(1, 10):
        control.on_timer(control.timer_at)
        assert control.pace == pytest.approx(LINE_RATE * (1 - 0.5 ** (step + 1)))


def test_dcqcn_raises_the_old_rate_after_five_steps():
    """Two cuts at once, to a half and to a quarter; the old rate is a half: five steps below it, then 5 MB/s each.

    Where there were more than five of each kind, 25 MB/s.
    """
    control = begun("dcqcn", line_rate=LINE_RATE)
    control.on_notified(0.0)
    control.on_notified(0.0)
    assert (control.pace, control.target_rate) == (LINE_RATE / 4, LINE_RATE / 2)
    for _ in range(5):
        control.on_timer(control.timer_at)
        assert control.target_rate == LINE_RATE / 2
    for steps in range(1, 4):
        control.on_timer(control.timer_at)
        assert control.target_rate == pytest.approx(LINE_RATE / 2 + steps * 5e6)
    for _ in range(6):
        control.on_bytes(control.bytes_at)
    assert control.target_rate == pytest.approx(LINE_RATE / 2 + 9 * 5e6)
    control.on_bytes(control.bytes_at)
    assert control.target_rate == pytest.approx(LINE_RATE / 2 + 9 * 5e6 + 25e6)


def test_dcqcn_forgets_congestion_by_the_period():
    """Ten and a half periods of 55 us after the first: alpha is (255/256)^10, and the cut half of that."""
    control = begun("dcqcn", line_rate=LINE_RATE)
    control.on_notified(0.0)
    control.pace = 4e9
    control.on_notified(10.5 * 55e-6)
    alpha = (255 / 256) ** 10
    assert control.pace == pytest.approx(4e9 * (1 - alpha / 2))
    assert control.alpha == pytest.approx(alpha + (1 - alpha) / 256)


def test_dcqcn_comes_back_to_the_rate_of_the_link_and_rests():
    control = begun("dcqcn", line_rate=LINE_RATE)
    control.on_notified(0.0)
    steps = 0
    while control.timer_at < math.inf:
        control.on_timer(control.timer_at)
        steps += 1
    assert (control.pace, control.bytes_at) == (LINE_RATE, math.inf)
    assert steps <= 40


def test_the_vendors_dcqcn_cuts_once_in_4_us():
    control = begun(
        "dcqcn_vendor", line_rate=LINE_RATE, **{one.field: one.value for one in VENDOR if one.field in PARAMETERS}
    )
    control.on_notified(1.0)
    control.on_notified(1.000002)
    assert control.pace == LINE_RATE / 2
    control.on_notified(1.000005)
    assert control.pace < LINE_RATE / 3.9


def test_dcqcn_stays_above_its_lowest_rate():
    control = begun("dcqcn", line_rate=LINE_RATE)
    for step in range(1000):
        control.on_notified(step * 1e-6)
    assert control.pace == 10e6 / 8


PARAMETERS = [name for name in CONTROLS["dcqcn"].__annotations__ if hasattr(resolve("roce").transport, name)]


def test_the_parameters_of_dcqcn_are_those_of_the_transport():
    """The same names, and the same values to begin with; the receiver has the others."""
    transport = resolve("roce").transport
    assert {name: getattr(CONTROLS["dcqcn"], name) for name in PARAMETERS} == pytest.approx(
        {name: getattr(transport, name) for name in PARAMETERS}
    )
    assert {one.field for one in VENDOR} - set(PARAMETERS) == {
        "loss_notification",
        "notification_interval_s",
        "notification_delay_s",
    }


# -- All -------------------------------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["acknowledged", "acknowledged", "marked", "loss", "timeout", "notified", "timer", "bytes", "idle"]
        ),
        st.integers(1, 50),
        st.floats(0, 1e-2),
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", CONTROLS)
@given(events=EVENTS, first_window=st.floats(2, 1000), line_rate=st.floats(1e5, 1e11))
def test_whatever_happens_window_and_pace_stay_within_bounds(name, events, first_window, line_rate):
    """The window is at least the least, after a timeout 1; the pace between the lowest rate and that of the link."""
    control = begun(name, window=first_window, first_window=first_window, line_rate=line_rate)
    now, timed_out = 0.0, False
    happen: dict[str, Callable[[int], None]] = {
        "acknowledged": lambda packets: control.on_acknowledged(packets, 0, now, 1e-4),
        "marked": lambda packets: control.on_acknowledged(packets, packets, now, 1e-4),
        "loss": lambda _: control.on_loss(now),
        "timeout": lambda _: control.on_timeout(now),
        "notified": lambda _: control.on_notified(now),
        "timer": lambda _: control.on_timer(now) if control.timer_at < math.inf else None,
        "bytes": lambda _: control.on_bytes(now) if control.bytes_at < math.inf else None,
        "idle": lambda _: control.on_idle(now),
    }
    for event, packets, later in events:
        now += later
        control.next += packets
        control.sent_bytes += 1000 * packets
        control.acknowledged += packets if event in ("acknowledged", "marked") else 0
        timed_out |= event == "timeout"
        happen[event](packets)
        assert control.least_window <= control.window < math.inf or (timed_out and control.window >= 1)
        assert control.threshold >= control.least_window
        lowest = min(getattr(control, "minimum_rate_bytes_per_s", 0.0), line_rate)
        assert control.pace == 0 or lowest <= control.pace <= line_rate
        assert control.timer_at >= now or event != "timer"


@pytest.mark.parametrize("name", CONTROLS)
def test_they_keep_to_what_can_be_compiled(name):
    """Methods use attributes that a class declares, parameters, numbers, `min`, `max`, `abs` and `math`, no more."""
    classes = [one for one in CONTROLS[name].__mro__ if one is not object]
    declared = {attribute for one in classes for attribute in one.__annotations__}
    for one in classes:
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one)))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id == "math" or (node.value.id == "self" and node.attr in declared)
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called in ("min", "max", "abs") or called.startswith("math.")


def test_what_has_one_name_means_the_same():
    """Attributes of all controls are columns of one table: the same type and the same value to begin with."""
    seen: dict[str, tuple[str, float]] = {}
    for one in {one for control in CONTROLS.values() for one in control.__mro__ if one is not object}:
        for attribute, kind in one.__annotations__.items():
            value = (kind, getattr(one, attribute))
            assert seen.setdefault(attribute, value) == value
