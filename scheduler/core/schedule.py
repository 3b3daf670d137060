"""When a job is due: the nominal instants of a schedule.

A schedule is a pure function of its spec (and of tzdata). It keeps no position: every question
names where to start, and a small memo makes the usual one ("after my own last instant") cheap.
Instants are epoch milliseconds, those of cron whole seconds.
"""

from functools import lru_cache
from typing import Final, Protocol

from scheduler.core.cron import CronError, CronFault, parse
from scheduler.core.definition import CronSpec, EverySpec
from scheduler.core.instant import MAX_MS
from scheduler.core.wall import DAY_S, WallClock
from scheduler.core.zone import SECOND_MAX, SECOND_MIN, SPAN_S, Piece, pieces
from scheduler.errors import invariant

_HORIZON_S: Final = 60 * 366 * DAY_S
"""Give up when 60 years of wall matches give no instant: every one falls into a gap that the
policy skips (``30 2 * 3 0#2`` in New York). Matches themselves are at most 40 years apart."""

_KEPT: Final = 32_768
"""Schedules kept: about three times the cohorts a worker is planned for; 2 KB each."""


class Schedule(Protocol):
    """The nominal instants of a schedule, epoch milliseconds, strictly increasing."""

    def next_after(self, after_ms: int) -> int | None:
        """Smallest instant greater than ``after_ms``; ``None`` where there is none.

        Cost: microseconds from the last instant returned, else tens of them.
        """
        ...

    def last_through(self, after_ms: int, upto_ms: int) -> int | None:
        """Greatest instant in (after_ms, upto_ms]; ``None`` for none.

        Cost: independent of how many instants the interval holds; where it holds none, that
        of one `next_after`.
        """
        ...

    def between(self, after_ms: int, upto_ms: int, limit: int) -> list[int]:
        """The first ``limit`` instants in (after_ms, upto_ms], ascending."""
        ...


@lru_cache(maxsize=_KEPT)
def schedule_of(spec: CronSpec | EverySpec) -> Schedule:
    """The schedule of a spec; equal specs share one while it is kept.

    Raises:
        CronError: the expression is not a normalised one.
    """
    return CronSchedule(spec) if isinstance(spec, CronSpec) else EverySchedule(spec)


def require_instant(spec: CronSpec, after_ms: int = 0) -> None:
    """Refuse a cron schedule that fires at no instant after ``after_ms``.

    Raises:
        CronError: ``exhausted`` if its years have passed, ``impossible`` if each of its local
            times still to come falls into a gap that ``dst_gap`` skips.
    """
    if schedule_of(spec).next_after(after_ms) is not None:
        return
    if WallClock(parse(spec.expression)).next_after(after_ms // 1000) is None:
        raise CronError(CronFault.EXHAUSTED, "its last instant has passed; extend the year field")
    raise CronError(
        CronFault.IMPOSSIBLE,
        f"every local time it names is in a gap of {spec.zone}, and dst_gap skips those; "
        "use run_after or shift",
    )


class EverySchedule:
    """Instants ``anchor_ms + k * every_ms``; arithmetic alone."""

    __slots__ = ("_spec",)

    def __init__(self, spec: EverySpec) -> None:
        invariant(spec.every_ms > 0, f"interval of {spec.every_ms} ms")
        self._spec = spec

    def next_after(self, after_ms: int) -> int | None:
        """Smallest instant greater than ``after_ms``.

        >>> EverySchedule(EverySpec(60_000, 5_000, anchored=True)).next_after(-1_000_000)
        5000
        """
        spec = self._spec
        step = (after_ms - spec.anchor_ms) // spec.every_ms + 1
        if spec.anchored:
            step = max(step, 0)
        instant = spec.anchor_ms + step * spec.every_ms
        return instant if instant <= MAX_MS else None

    def last_through(self, after_ms: int, upto_ms: int) -> int | None:
        """Greatest instant in (after_ms, upto_ms]."""
        spec = self._spec
        upto_ms = min(upto_ms, MAX_MS)
        step = (upto_ms - spec.anchor_ms) // spec.every_ms
        instant = spec.anchor_ms + step * spec.every_ms
        if instant <= after_ms or (spec.anchored and step < 0):
            return None
        return instant

    def between(self, after_ms: int, upto_ms: int, limit: int) -> list[int]:
        """The first ``limit`` instants in (after_ms, upto_ms]."""
        first = self.next_after(after_ms)
        if first is None or limit <= 0:
            return []
        every_ms = self._spec.every_ms
        end = min(upto_ms, MAX_MS, first + (limit - 1) * every_ms)
        return list(range(first, end + 1, every_ms))


class CronSchedule:
    """A cron expression in a zone under its gap and overlap policies.

    The wall clock says what matches, the zone's pieces say where in UTC that is; see `zone`.
    """

    __slots__ = ("_here", "_spec", "_wall")

    def __init__(self, spec: CronSpec) -> None:
        self._spec = spec
        self._wall = WallClock(parse(spec.expression))
        self._here: Piece | None = None
        """Piece of the last instant found: the next one is most likely in it as well."""

    def next_after(self, after_ms: int) -> int | None:
        """Smallest instant greater than ``after_ms``; ``None`` where there is none."""
        second = max(after_ms // 1000, SECOND_MIN)
        here = self._here
        if here is not None and here.alone_s <= second < here.end_s:
            wall = self._wall.next_after(second + here.offset_s)
            if wall is not None and wall - here.offset_s < here.end_s:
                return (wall - here.offset_s) * 1000
        found = self._search(second)
        return None if found is None else found * 1000

    def last_through(self, after_ms: int, upto_ms: int) -> int | None:
        """Greatest instant in (after_ms, upto_ms].

        Looks for the last x with ``next_after(x) <= upto_ms``: first back from the end in
        doubling strides, then by halving. So it cannot disagree with `next_after`.
        """
        low = self.next_after(after_ms)
        if low is None or low > upto_ms:
            return None
        high, stride_ms = upto_ms, 1000
        while low < high:
            probe = max(low, high - stride_ms)
            later = self.next_after(probe)
            if later is not None and later <= upto_ms:
                low, stride_ms = later, (high - later) // 2
            else:
                high, stride_ms = probe, 2 * stride_ms
            stride_ms = max(stride_ms, 1)
        return low

    def between(self, after_ms: int, upto_ms: int, limit: int) -> list[int]:
        """The first ``limit`` instants in (after_ms, upto_ms]."""
        found: list[int] = []
        while len(found) < limit:
            following = self.next_after(after_ms)
            if following is None or following > upto_ms:
                break
            found.append(following)
            after_ms = following
        return found

    def _search(self, second: int) -> int | None:
        """Next instant from anywhere, span by span; spans without a wall match are left out."""
        spec = self._spec
        give_up: int | None = None
        while second <= SECOND_MAX:
            # No offset exceeds a day, so an instant after `second` has a wall time after this.
            wall = self._wall.next_after(second - DAY_S)
            if wall is None:
                return None
            give_up = give_up or wall + _HORIZON_S
            if wall > give_up:
                return None
            second = max(second, wall - DAY_S - 1)
            span = (second + 1) // SPAN_S
            found = self._first_in(pieces(spec.zone, spec.gap, spec.overlap, span), second)
            if found is not None:
                return found
            second = (span + 1) * SPAN_S - 1
        return None

    def _first_in(self, span: tuple[Piece, ...], second: int) -> int | None:
        """Smallest instant after ``second`` in the pieces of one span."""
        best: int | None = None
        for piece in span:
            if best is not None and piece.begin_s >= best:
                break
            if piece.end_s - 1 <= second:
                continue
            found = self._in_piece(piece, max(second, piece.begin_s - 1))
            if found is not None and (best is None or found < best):
                best, self._here = found, piece
        return best

    def _in_piece(self, piece: Piece, second: int) -> int | None:
        if piece.gap is not None:
            wall = self._wall.next_after(piece.gap[0] - 1)
            return piece.begin_s if wall is not None and wall < piece.gap[1] else None
        wall = self._wall.next_after(second + piece.offset_s)
        if wall is None or wall - piece.offset_s >= piece.end_s:
            return None
        return wall - piece.offset_s
