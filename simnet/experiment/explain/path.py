"""The critical path of an iteration: what its end waited for, and what that waited for, back to its beginning.

The path is walked backwards through what workers did and what was exchanged. A worker that stands still waits for an
exchange; an exchange began when the one before it in its queue was over, or when its last member had announced it, who
computed before that. The stretches of the path follow each other without a gap.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from simnet.engine.recorder import Recorder
from simnet.training.job import Job
from simnet.training.records import IterationRow, PlayRow, SpanRow

__all__ = ["Stretch", "Window", "choose_window", "critical_path"]

_STANDS_STILL = ("exposed communication", "waiting")

_SAME = 1e-9
"""Instants that are so much of an iteration apart are the same one."""


@dataclass(frozen=True)
class Window:
    """The iterations that are explained: those of one worker, one after the other.

    Attributes
    ----------
    rank : the worker, the last of all to end the last of them
    first, last : their numbers, the warm-up counted
    begin_s, end_s : from when until when they last [s]
    """

    rank: int
    first: int
    last: int
    begin_s: float
    end_s: float

    @property
    def iterations(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class Stretch:
    """A stretch of a critical path.

    Attributes
    ----------
    begin_s, end_s : [s]
    rank : worker that computes or stands still; -1 of exchanges
    what : compute, exchange, step, input, checkpoint, negotiation, or waiting
    since_s : when it really began, where that was before the iteration [s]
    span : what the worker did
    play : what was exchanged
    over_for : the rank of the exchange that the path leaves it by; -1: the last one
    """

    begin_s: float
    end_s: float
    rank: int
    what: str
    since_s: float
    span: SpanRow | None = None
    play: PlayRow | None = None
    over_for: int = -1

    @property
    def duration_s(self) -> float:
        """From its beginning to its end [s]."""
        return self.end_s - self.begin_s


def choose_window(job: Job, recorder: Recorder, period: int) -> Window:
    """Return the measured iterations that are nearest the mean, of the worker that ends last.

    Parameters
    ----------
    job : Job
    recorder : Recorder
    period : int
        How many iterations belong together, as some of them differ from the others: there is an exchange, or a
        checkpoint, once in so many. At most those that are measured.
    """
    rows = [row for row in recorder.rows(IterationRow) if row.job == job.settings.name]
    measured = [row for row in rows if row.iteration >= job.course.first[row.rank]]
    by_worker: dict[int, dict[int, IterationRow]] = {}
    for row in measured:
        by_worker.setdefault(row.rank, {})[row.iteration] = row
    count = min(period, min(len(own) for own in by_worker.values()))
    # Iterations that an exchange ends with come last.
    windows = []
    for rank, own in by_worker.items():
        last_of_all = max(own)
        for last in own:
            first = last - count + 1
            if first in own and (last_of_all - last) % count == 0:
                end_s = own[last].start_s + own[last].iteration_time_s
                windows.append(Window(rank, first, last, own[first].start_s, end_s))
    if not job.settings.training.sync.waits_alone:
        # Of an iteration of workers in step that one counts that ends last.
        latest: dict[int, Window] = {}
        for window in windows:
            before = latest.get(window.last)
            if before is None or window.end_s > before.end_s:
                latest[window.last] = window
        windows = list(latest.values())
    mean_s = math.fsum(row.iteration_time_s for row in measured) / len(measured) * count

    def distance(window: Window) -> float:
        return round(abs(window.end_s - window.begin_s - mean_s) / mean_s, 9) if mean_s > 0.0 else 0.0

    return min(windows, key=distance)


def critical_path(job: Job, recorder: Recorder, window: Window) -> list[Stretch]:
    """Return the stretches from the beginning of a window to its end; together they are as long as it.

    Parameters
    ----------
    job : Job
    recorder : Recorder
        Of a run with ``records_plays``.
    window : Window
    """
    scheduling = job.settings.training.scheduling
    agrees = scheduling.negotiation_s > 0.0 or scheduling.fusion == "cycle"
    walk = _Walk(job.settings.name, recorder, window, scheduling.negotiation_s, agrees=agrees)
    return list(walk.back())[::-1]


class _Walk:
    """One way back through what was recorded."""

    def __init__(self, job: str, recorder: Recorder, window: Window, negotiation_s: float, *, agrees: bool) -> None:
        self._window = window
        self._before_it_begins = "negotiation" if agrees else "waiting"
        self._negotiation_s = negotiation_s
        lasts_s = window.end_s - window.begin_s
        self._near_s = max(lasts_s * _SAME, 64.0 * math.ulp(window.end_s))
        self._spans: dict[int, list[SpanRow]] = {}
        for span in recorder.rows(SpanRow):
            if span.job == job and span.start_s <= window.end_s and span.end_s >= window.begin_s - self._near_s:
                self._spans.setdefault(span.rank, []).append(span)
        self._starts = {rank: [span.start_s for span in spans] for rank, spans in self._spans.items()}
        self._plays = [
            row
            for row in recorder.rows(PlayRow)
            if row.job == job
            and row.start_s <= window.end_s + self._near_s
            and row.end_s >= window.begin_s - self._near_s
        ]
        self._by_worker: Mapping[int, Sequence[tuple[PlayRow, int]]] = self._index()
        self._seen: set[tuple[int, int]] = set()

    def _index(self) -> dict[int, list[tuple[PlayRow, int]]]:
        """Return for each worker what it takes part in, each with its rank there."""
        found: dict[int, list[tuple[PlayRow, int]]] = {}
        for row in self._plays:
            for number, rank in enumerate(row.members.tolist()):
                found.setdefault(rank, []).append((row, number))
        return found

    def back(self) -> Iterator[Stretch]:
        """Yield the stretches, the last one first."""
        now, begin = self._window.end_s, self._window.begin_s
        # A worker, or a play with the rank that the path leaves it by.
        at: int | tuple[PlayRow, int] = self._window.rank
        while now > begin:
            stretches, at = self._before_worker(at, now) if isinstance(at, int) else self._before_play(*at, now)
            for stretch in stretches:
                if stretch.begin_s < now:
                    # Instants that are the same but for rounding are made so.
                    since = min(stretch.begin_s, now)
                    end = now
                    now = max(since, begin)
                    if since - begin < self._near_s:
                        now = begin
                    yield Stretch(
                        now, end, stretch.rank, stretch.what, since, stretch.span, stretch.play, stretch.over_for
                    )
                if now <= begin:
                    return

    def _before_worker(self, rank: int, now: float) -> tuple[list[Stretch], int | tuple[PlayRow, int]]:
        """Return what a worker did just before an instant, and what that waited for."""
        spans = self._spans.get(rank, [])
        place = bisect_left(self._starts.get(rank, []), now - self._near_s) - 1
        if place < 0:
            return [self._untraced(self._window.begin_s, now, rank)], rank
        span = spans[place]
        if span.end_s < now - self._near_s:
            return [self._untraced(span.end_s, now, rank)], rank
        if span.what in _STANDS_STILL:
            found = self._play_over(rank, now)
            if found is not None:
                return [], found
            return [Stretch(span.start_s, now, rank, "waiting", span.start_s, span)], rank
        if span.what == "step":
            found = self._step_reached(rank, now)
            if found is not None:
                return [], found
            return [Stretch(span.start_s, now, rank, "waiting", span.start_s, span)], rank
        return [Stretch(span.start_s, now, rank, span.what, span.start_s, span)], rank

    def _untraced(self, since: float, now: float, rank: int) -> Stretch:
        """Return what is not known better than that somebody waited."""
        since = max(since, self._window.begin_s)
        return Stretch(since, now, rank, "waiting", since)

    def _play_over(self, rank: int, now: float) -> tuple[PlayRow, int] | None:
        """Return the exchange that is over for a worker at an instant: of several the one that began last."""
        over = [
            (row, member)
            for row, member in self._by_worker.get(rank, ())
            if row.what != "step" and abs(row.over_s(member) - now) <= self._near_s
        ]
        over = [(row, member) for row, member in over if (id(row.play), member) not in self._seen]
        return max(over, key=lambda one: one[0].start_s, default=None)

    def _step_reached(self, rank: int, now: float) -> tuple[PlayRow, int] | None:
        """Return the step that a worker is in at an instant, and the rank of it, or milestone, that is over then."""
        for row, member in self._by_worker.get(rank, ()):
            if row.what != "step" or not row.start_s - self._near_s <= now <= row.end_s + self._near_s:
                continue
            for over_for in (member, *range(len(row.members), len(row.play.rank_duration_s))):
                if abs(row.over_s(over_for) - now) <= self._near_s and (id(row.play), over_for) not in self._seen:
                    return row, over_for
        return None

    def _before_play(self, row: PlayRow, over_for: int, now: float) -> tuple[list[Stretch], int | tuple[PlayRow, int]]:
        """Return an exchange up to an instant, what it waited for before it began, and who was the last to be ready."""
        self._seen.add((id(row.play), over_for))
        began_s = row.start_s
        what = "step" if row.what == "step" else "exchange"
        if row.joins_late:
            began_s, member = max(
                (
                    (at_s, member)
                    for member, at_s in row.joined
                    if at_s < now - self._near_s and _waits_for(row, over_for, member)
                ),
                default=(row.start_s, row.joined[0][0]),
            )
            began_s = max(began_s, row.start_s)
            stretch = Stretch(began_s, now, -1, what, began_s, play=row, over_for=over_for)
            before = self._turn_of(row, member, began_s) if row.first_sent >= 0 else None
            return [stretch], before or int(row.members[member])
        stretch = Stretch(began_s, now, -1, what, began_s, play=row, over_for=over_for)
        if row.what == "pull":
            # A push allows it: its own, or that of a worker that was too far behind.
            return [stretch], self._allowed(row, began_s) or row.announced_by
        found = [stretch]
        if row.set_out_s + self._negotiation_s < began_s - self._near_s:
            before = self._over_before(row, began_s)
            if before is not None:
                return found, before
        if row.set_out_s < began_s - self._near_s:
            found.append(Stretch(row.set_out_s, began_s, row.announced_by, self._before_it_begins, row.set_out_s))
        if row.announced_s < row.set_out_s - self._near_s:
            before = self._over_before(row, row.set_out_s)
            if before is not None:
                return found, before
            found.append(self._untraced(row.announced_s, row.set_out_s, row.announced_by))
        return found, row.announced_by

    def _allowed(self, row: PlayRow, at_s: float) -> tuple[PlayRow, int] | None:
        """Return the push that was over when a pull began."""
        pushes = [one for one in self._plays if one.what == "push" and abs(one.end_s - at_s) <= self._near_s]
        own = [one for one in pushes if one.queue == row.queue and one.parts == row.parts]
        found = [one for one in own or pushes if (id(one.play), -1) not in self._seen]
        return (max(found, key=lambda one: one.start_s), -1) if found else None

    def _over_before(self, row: PlayRow, at_s: float) -> tuple[PlayRow, int] | None:
        """Return what was over when an exchange began, in its queue."""
        found = [
            one
            for one in self._plays
            if one.queue == row.queue and abs(one.end_s - at_s) <= self._near_s and one.play is not row.play
        ]
        found = [one for one in found if (id(one.play), -1) not in self._seen]
        return (max(found, key=lambda one: one.start_s), -1) if found else None

    def _turn_of(self, row: PlayRow, member: int, at_s: float) -> tuple[PlayRow, int] | None:
        """Return what a member had sent when its turn came, where it did not simply come with something ready."""
        worker = int(row.members[member])
        spans, starts = self._spans.get(worker, []), self._starts.get(worker, [])
        place = bisect_left(starts, at_s - self._near_s) - 1
        if place >= 0 and spans[place].what == "compute" and abs(spans[place].end_s - at_s) <= self._near_s:
            return None
        for one in self._plays:
            if one.queue == row.queue and one.first_sent >= 0 and one.play is not row.play:
                sent = one.first_sent + member
                if abs(one.over_s(sent) - at_s) <= self._near_s and (id(one.play), sent) not in self._seen:
                    return one, sent
        return None


def _waits_for(row: PlayRow, over_for: int, member: int) -> bool:
    """Tell whether a rank of an exchange is not over before a member has joined: of what a member sends, itself."""
    return not 0 <= row.first_sent <= over_for or over_for == row.first_sent + member
