"""What a schedule means, shown before anybody relies on it.

`preview` lists the next instants with their local time and a note wherever the clocks change;
`evaluate_case` answers one line of ``duewheel next --batch``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from scheduler.core.cron import CronError, normalise, parse
from scheduler.core.definition import CronSpec, DstGap, DstOverlap
from scheduler.core.instant import parse_instant
from scheduler.core.schedule import schedule_of
from scheduler.core.wall import DAY_S, WallClock
from scheduler.core.zone import SHIFT_S_MAX, Transition, offset_at, transitions, zone_names
from scheduler.errors import DefinitionError, RequestError

COUNT_DEFAULT: Final = 5
COUNT_MAX: Final = 10_000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One instant of a schedule.

    Attributes:
        instant_ms: epoch milliseconds.
        local: RFC 3339 in the schedule's zone, with its offset.
        note: what the clocks do to it; ``None`` on an ordinary day.
    """

    instant_ms: int
    local: str
    note: str | None

    @property
    def utc(self) -> str:
        """RFC 3339, UTC, whole seconds."""
        return _utc(self.instant_ms)


def preview(spec: CronSpec, after_ms: int, count: int) -> list[Upcoming]:
    """The next ``count`` instants after ``after_ms``, fewer where the schedule ends.

    >>> from scheduler.core.definition import CronSpec, DstGap, DstOverlap
    >>> spec = CronSpec("30 2 * * *", "Europe/Berlin", DstGap.RUN_AFTER, DstOverlap.FIRST)
    >>> first = preview(spec, 1_774_720_000_000, 1)[0]
    >>> print(first.utc, first.local, first.note, sep="; ")
    2026-03-29T01:00:00Z; 2026-03-29T03:00:00+02:00; 02:30:00 does not exist; runs after the gap
    """
    wall = WallClock(parse(spec.expression))
    schedule = schedule_of(spec)
    found: list[Upcoming] = []
    while len(found) < count:
        following = schedule.next_after(after_ms)
        if following is None:
            break
        offset_s = offset_at(spec.zone, following // 1000)
        note = _note(spec, wall, after_ms // 1000, following // 1000)
        found.append(Upcoming(following, _local(following, offset_s), note))
        after_ms = following
    return found


def evaluate_case(fields: Mapping[str, object]) -> dict[str, object]:
    """Instants of one case of ``duewheel next --batch``.

    Args:
        fields: ``expr`` and ``after``; optional ``id``, ``tz`` (UTC), ``gap_policy`` and
            ``overlap_policy`` (auto), ``count`` (5), ``job_id`` (chooses ``H``). Others are
            left alone.

    Returns:
        ``{"id", "instants": [...]}`` or ``{"id", "error": {"class", "message"}}``. The class is
        a `CronFault`, or ``request`` where the case itself is at fault.
    """
    answer: dict[str, object] = {"id": fields.get("id")}
    try:
        answer["instants"] = _instants(fields)
    except CronError as error:
        answer["error"] = {"class": error.kind.value, "message": error.reason}
    except RequestError as error:
        answer["error"] = {"class": "request", "message": str(error)}
    return answer


def spec_of(
    expression: str, zone: str, gap: str = "auto", overlap: str = "auto", job_id: str | None = None
) -> CronSpec:
    """The spec that a user's words stand for; ``second`` is another word for ``last``.

    Raises:
        CronError: the expression is refused.
        DefinitionError: an unknown zone or policy.
    """
    text = normalise(expression, job_id)
    if zone not in zone_names():
        raise DefinitionError("tz", f"{zone[:60]!r} is not a zone of the IANA database")
    gap_auto, overlap_auto = text.auto
    overlap = "last" if overlap == "second" else overlap
    try:
        return CronSpec(
            text.expression,
            zone,
            gap_auto if gap == "auto" else DstGap(gap),
            overlap_auto if overlap == "auto" else DstOverlap(overlap),
        )
    except ValueError as error:
        raise DefinitionError("gap_policy or overlap_policy", str(error)) from None


def _instants(fields: Mapping[str, object]) -> list[str]:
    job_id = fields.get("job_id")
    spec = spec_of(
        _text(fields, "expr"),
        _text(fields, "tz", "UTC"),
        _text(fields, "gap_policy", "auto"),
        _text(fields, "overlap_policy", "auto"),
        None if job_id is None else _text(fields, "job_id"),
    )
    try:
        after_ms = parse_instant(_text(fields, "after"))
    except ValueError as error:
        raise DefinitionError("after", str(error)) from None
    count = fields.get("count", COUNT_DEFAULT)
    if not isinstance(count, int) or not 0 <= count <= COUNT_MAX:
        raise DefinitionError("count", f"must be a number from 0 to {COUNT_MAX}")
    return [_utc(ms) for ms in schedule_of(spec).between(after_ms, 1 << 62, count)]


def _text(fields: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise DefinitionError(name, "must be given, as text")
    return value


def _utc(ms: int) -> str:
    return f"{_EPOCH + timedelta(milliseconds=ms):%Y-%m-%dT%H:%M:%S}Z"


def _local(ms: int, offset_s: int) -> str:
    zone = timezone(timedelta(seconds=offset_s))
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone).isoformat()


def _note(spec: CronSpec, wall: WallClock, previous: int, second: int) -> str | None:
    """What the clock changes between the previous instant and this one do to it."""
    low = max(previous, second - 366 * DAY_S)  # a rare schedule's gaps of long ago are no news
    notes = [
        _overlap_note(change, second)
        if change.step_s < 0
        else _gap_note(spec.gap, wall, change, low, second)
        for change in transitions(spec.zone, low - SHIFT_S_MAX, second + SHIFT_S_MAX + 1)
    ]
    return "; ".join(note for note in notes if note) or None


def _overlap_note(change: Transition, second: int) -> str | None:
    back = -change.step_s
    if change.at_s - back <= second < change.at_s:
        return "this local time occurs twice; this is the first"
    if change.at_s <= second < change.at_s + back:
        return "this local time occurs twice; this is the second"
    return None


def _gap_note(
    gap: DstGap, wall: WallClock, change: Transition, low: int, second: int
) -> str | None:
    begin = change.at_s + change.before_s
    end = begin + change.step_s
    if gap is DstGap.SHIFT:
        missing = second + change.before_s
        if begin <= missing < end and wall.next_after(missing - 1) == missing:
            return f"{_clock(missing)} does not exist; moved by the length of the gap"
        return None
    first = wall.next_after(begin - 1)
    if first is None or first >= end or not low < change.at_s <= second:
        return None
    if gap is DstGap.SKIP:
        return f"{_clock(first)} of {_EPOCH + timedelta(seconds=first):%Y-%m-%d} is skipped"
    return f"{_clock(first)} does not exist; runs after the gap"


def _clock(wall_s: int) -> str:
    return f"{_EPOCH + timedelta(seconds=wall_s):%H:%M:%S}"
