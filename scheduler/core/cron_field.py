"""One field of a cron expression: text in, canonical text and matching values out.

Grammar of a field (upper case; lists are joined by commas):

    item   = ( "*" | value | value "-" value | "H" | "H(" value "-" value ")" ) [ "/" step ]
    value  = digits | name of a month or weekday
    day of month also:  "L" | "LW" | n "W"        (W alone in its field, n <= 28)
    weekday also:       d "#" n | d "L" | "L" d
    both day fields also: "?" alone in its field

A range that runs backwards wraps (``22-2``). Values are bits: bit v of a mask is value v.

Source: the dialect follows crontab(5) of cronie, ``H`` of Jenkins, and ``L W # ?`` of Quartz.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.core.cron_fault import CronError, CronFault

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_HASHED = re.compile(r"H(?:\((\d+)-(\d+)\))?")
_RANDOM = re.compile(r"R(\(.*)?")
_NEAREST = re.compile(r"(\d+)W|W(\d+)")
_LAST_WEEKDAY = re.compile(r"(\d+|[A-Z]{3})L|L(\d+|[A-Z]{3})")
_SPECIAL = re.compile(r"L|LW|WL|L-?\d+|\d+-?L|\d*W\d*|[A-Z]{3}L|L[A-Z]{3}")
_ECHO = 40
"""Characters of a faulty item that a message repeats."""


@dataclass(frozen=True, slots=True)
class FieldKind:
    """What a field may hold.

    Attributes:
        low: smallest value.
        high: largest value of ``*`` and of an open step (``5/10``).
        accepts: largest value that may be written; 7 for weekdays, where it is Sunday again.
        hash_high: largest value ``H`` may choose; 28 for days, so that each month has it.
        stride: divides the job's hash for this field, so that the fields' choices are
            independent of each other.
    """

    name: str
    low: int
    high: int
    accepts: int
    hash_high: int
    stride: int
    names: Mapping[str, int] = field(default_factory=dict)


MINUTE = FieldKind("minute", 0, 59, 59, 59, 1)
HOUR = FieldKind("hour", 0, 23, 23, 23, 60)
DAY = FieldKind("day of month", 1, 31, 31, 28, 60 * 24)
MONTH = FieldKind(
    "month", 1, 12, 12, 12, 60 * 24 * 28, {n: i for i, n in enumerate(_MONTHS, start=1)}
)
WEEKDAY = FieldKind(
    "weekday", 0, 6, 7, 6, 60 * 24 * 28 * 12, {n: i for i, n in enumerate(_WEEKDAYS)}
)
SECOND = FieldKind("second", 0, 59, 59, 59, 60 * 24 * 28 * 12 * 7)
YEAR = FieldKind("year", 1970, 2099, 2099, 2099, 1)


@dataclass(frozen=True, slots=True)
class FieldValues:
    """What a field says.

    Attributes:
        text: canonical text: numbers for names, ``H`` resolved, ``?`` as ``*``.
        mask: bit v is set where value v matches.
        last: the last day of the month matches.
        last_workday: the last Monday-to-Friday of the month matches.
        nearest: day whose nearest Monday-to-Friday in the month matches, 0 for none.
        nth: (weekday, n) whose n-th occurrence in the month matches.
        last_of: weekdays whose last occurrence in the month matches.
    """

    text: str
    mask: int = 0
    last: bool = False
    last_workday: bool = False
    nearest: int = 0
    nth: tuple[tuple[int, int], ...] = ()
    last_of: tuple[int, ...] = ()

    @property
    def starred(self) -> bool:
        """Whether the text begins with ``*``: what cronie's day rule and ``auto`` ask."""
        return self.text.startswith("*")

    @property
    def special(self) -> bool:
        """Whether days are named by their place in the month (``nW``, ``LW``, ``#``, ``dL``)."""
        return bool(self.last_workday or self.nearest or self.nth or self.last_of)


def read_field(kind: FieldKind, text: str, digest: int | None) -> FieldValues:
    """Read one field.

    Args:
        kind: which field it is.
        text: its text, upper case, without blanks.
        digest: hash of the job that chooses ``H``; ``None`` where no job is known.

    Raises:
        CronError: the text is not in the dialect.
    """
    if text == "?" and kind in (DAY, WEEKDAY):
        text = "*"
    items = text.split(",")
    if kind is DAY and any("W" in item for item in items):
        return _workday(text)
    found = [_read_item(kind, item, digest) for item in items]
    mask = 0
    for item in found:
        mask |= item.mask
    return FieldValues(
        text=",".join(item.text for item in found),
        mask=mask,
        last=any(item.last for item in found),
        nth=tuple(pair for item in found for pair in item.nth),
        last_of=tuple(day for item in found for day in item.last_of),
    )


def _read_item(kind: FieldKind, item: str, digest: int | None) -> FieldValues:
    head, slash, tail = item.partition("/")
    if _RANDOM.fullmatch(head):
        raise CronError(
            CronFault.POLICY,
            f"{kind.name}: R would choose anew at every reading; write H, which is "
            "chosen once for each job",
        )
    if not slash:
        special = _read_special(kind, item)
        if special is not None:
            return special
    step = _read_step(kind, item, head, tail) if slash else None
    if hashed := _HASHED.fullmatch(head):
        return _read_hashed(kind, hashed, step, digest)
    if head == "*":
        return _span(kind, "*", kind.low, kind.high, step or 1)
    low, dash, high = head.partition("-")
    if dash:
        return _read_range(kind, item, _value(kind, low), _value(kind, high), step)
    value = _value(kind, head)
    if step is None:
        value = value % 7 if kind is WEEKDAY else value
        return FieldValues(str(value), 1 << value)
    value = value % 7 if kind is WEEKDAY else value
    return _span(kind, str(value), value, kind.high, step, open_end=True)


def _read_range(
    kind: FieldKind, item: str, low: int, high: int, step: int | None
) -> FieldValues:  # fmt: skip
    if low <= high:
        return _span(kind, f"{low}-{high}", low, high, step or 1)
    if kind is YEAR:
        raise CronError(CronFault.RANGE, f"year: {_echo(item)} runs backwards; years do not wrap")
    if step is not None:
        raise CronError(
            CronFault.POLICY,
            f"{kind.name}: {_echo(item)} wraps and has a step, which engines count "
            "differently; list the values",
        )
    upper = _span(kind, "", low, max(low, kind.high), 1).mask
    return FieldValues(f"{low}-{high}", upper | _span(kind, "", kind.low, high, 1).mask)


def _span(
    kind: FieldKind, text: str, low: int, high: int, step: int, *, open_end: bool = False
) -> FieldValues:
    """Every ``step``-th value from ``low`` to ``high``."""
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << (value % 7 if kind is WEEKDAY else value)
    if low == high:
        return FieldValues(str(low % 7 if kind is WEEKDAY else low), mask)
    if step == 1 and not open_end:
        return FieldValues(text, mask)
    return FieldValues(f"{text}/{step}", mask)


def _read_step(kind: FieldKind, item: str, head: str, tail: str) -> int:
    if not head or not tail.isdigit() or int(tail) == 0:
        raise CronError(
            CronFault.STEP,
            f"{kind.name}: the step of {_echo(item)} must be one whole number from 1 "
            "after a value, a range or *",
        )
    return int(tail)


def _read_hashed(
    kind: FieldKind, hashed: re.Match[str], step: int | None, digest: int | None
) -> FieldValues:
    if digest is None:
        raise CronError(
            CronFault.POLICY, f"{kind.name}: H is chosen by the job id, and none is given here"
        )
    if kind is YEAR:
        raise CronError(CronFault.POLICY, "year: H would choose one year for ever; write a year")
    low, high = kind.low, kind.hash_high
    if hashed[1] is not None:
        low, high = _value(kind, hashed[1]), _value(kind, hashed[2])
        if low > high:
            raise CronError(CronFault.RANGE, f"{kind.name}: {hashed[0]} runs backwards")
    width = high - low + 1
    choice = digest // kind.stride
    if step is None:
        return _span(kind, "", *(2 * (low + choice % width,)), 1)
    if step > width:
        raise CronError(
            CronFault.STEP, f"{kind.name}: a step of {step} is wider than the {width} values of H"
        )
    first = low + choice % step
    return _span(kind, f"{first}-{high}", first, high, step)


def _read_special(kind: FieldKind, item: str) -> FieldValues | None:
    """An item with ``L`` or ``#``; ``None`` where the item is none of these."""
    if kind is DAY and item == "L":
        return FieldValues("L", last=True)
    if kind is WEEKDAY and "#" in item:
        return _nth(item)
    if kind is WEEKDAY and (match := _LAST_WEEKDAY.fullmatch(item)):
        day = _value(kind, match[1] or match[2]) % 7
        return FieldValues(f"L{day}", last_of=(day,))
    if "#" in item or _SPECIAL.fullmatch(item):
        raise CronError(
            CronFault.SPECIAL,
            f"{kind.name}: {_echo(item)} has no meaning here; known are L, LW and 15W for "
            "days, 5L (last Friday) and 1#2 (second Monday) for weekdays",
        )
    return None


def _nth(item: str) -> FieldValues:
    weekday, _, nth = item.partition("#")
    if nth not in ("1", "2", "3", "4", "5") or "-" in weekday:
        raise CronError(
            CronFault.SPECIAL, f"weekday: {_echo(item)} must be one weekday, # and 1 to 5"
        )
    day = _value(WEEKDAY, weekday) % 7
    return FieldValues(f"{day}#{nth}", nth=((day, int(nth)),))


def _workday(text: str) -> FieldValues:
    if text in ("LW", "WL"):
        return FieldValues("LW", last_workday=True)
    match = _NEAREST.fullmatch(text)
    if match is None:
        if "," in text:
            raise CronError(
                CronFault.POLICY, "day of month: W must stand alone; use one job for each day"
            )
        raise CronError(
            CronFault.SPECIAL, f"day of month: {_echo(text)} must be LW or a day and W, e.g. 15W"
        )
    day = _value(DAY, match[1] or match[2])
    if day > 28:
        raise CronError(
            CronFault.POLICY,
            f"day of month: not every month has a day {day}, and engines differ on {day}W; "
            "use LW or a day up to 28",
        )
    return FieldValues(f"{day}W", nearest=day)


def _value(kind: FieldKind, text: str) -> int:
    if text in kind.names:
        return kind.names[text]
    if not text.isdigit():
        hint = f" or {'/'.join(list(kind.names)[:2])}..." if kind.names else ""
        raise CronError(
            CronFault.SYNTAX,
            f"{kind.name}: {_echo(text)} is not a value; write {kind.low} to {kind.high}{hint}",
        )
    value = int(text)
    if not kind.low <= value <= kind.accepts:
        raise CronError(
            CronFault.RANGE,
            f"{kind.name}: {_echo(text)} is outside {kind.low} to {kind.accepts}",
        )
    return value


def _echo(text: str) -> str:
    return repr(text if len(text) <= _ECHO else text[:_ECHO] + "...")
