"""Matching on the naive wall clock: no zone, no UTC, no daylight saving.

A *wall second* is what a local clock shows, counted as seconds since 1970-01-01T00:00:00 as if
every day had 86,400 of them. Sets of values are bit masks, so that "the next value" is one
shift; the days of a month are kept for each of its 28 shapes.
"""

from dataclasses import dataclass
from datetime import date
from typing import Final

from scheduler.core.cron_days import DayRule, month_length

DAY_S: Final = 86_400
YEAR_MAX: Final = 9998
"""One year below what `datetime` can show, so that every offset can still be applied."""

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_THURSDAY: Final = 4
"""Weekday of 1970-01-01, Sunday = 0."""
_MONTHS_TRIED_MAX: Final = 60 * 12
"""Longest real pause: 40 years, a 29 February on a given weekday across 2100. Only an expression
that matches nothing (which `normalise` refuses) gets so far."""


@dataclass(frozen=True, slots=True)
class CronFields:
    """An expression as sets. Bit v of a mask is value v.

    Attributes:
        years: ascending; ``None`` for every year.
    """

    seconds: int
    minutes: int
    hours: int
    months: int
    days: DayRule
    years: tuple[int, ...] | None


class WallClock:
    """The wall seconds that match an expression.

    Example: for ``0 9 * * 1-5`` the second after Friday 09:00 is Monday 09:00.
    """

    __slots__ = ("_fields", "_first", "_month", "_shapes")

    def __init__(self, fields: CronFields) -> None:
        self._fields = fields
        self._first = (
            3600 * _lowest(fields.hours) + 60 * _lowest(fields.minutes) + _lowest(fields.seconds)
        )
        self._shapes: dict[tuple[int, int], int] = {}
        self._month = (0, 0, 0)
        """Last month met: its first day, the day after its last, and its mask of days."""

    def next_after(self, wall_s: int) -> int | None:
        """Smallest matching wall second greater than ``wall_s``.

        Returns:
            ``None`` where nothing does: the year field is used up, or the calendar is.
        """
        day, second = divmod(wall_s, DAY_S)
        if self._fires_on(day) and (later := self._later_on_day(second)) is not None:
            return day * DAY_S + later
        next_day = self._day_after(day)
        return None if next_day is None else next_day * DAY_S + self._first

    def ever(self) -> bool:
        """Whether any date of the calendar matches. Exact, in at most 84 looks at a month.

        Without a year field every month meets every first weekday (in 28 years within a
        century), so the shapes are all there is to know.
        """
        years = self._fields.years
        months = [m for m in range(1, 13) if self._fields.months >> m & 1]
        if years is None:
            shapes = {(month_length(y, m), w) for m in months for y in (2000, 2001)
                      for w in range(7)}  # fmt: skip
        else:
            shapes = {_shape(y, m) for m in months for y in years}
        return any(self._mask(shape) for shape in shapes)

    def _fires_on(self, day: int) -> bool:
        begin, end, mask = self._month
        if not begin <= day < end:
            at = date.fromordinal(_EPOCH_ORDINAL + day)
            begin, end, mask = self._enter(at.year, at.month)
        return bool(mask >> (day - begin + 1) & 1)

    def _enter(self, year: int, month: int) -> tuple[int, int, int]:
        """Make a month the current one; its mask is empty where month or year do not match."""
        begin = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
        length = month_length(year, month)
        fields = self._fields
        fires = fields.months >> month & 1 and (fields.years is None or year in fields.years)
        mask = self._mask((length, (begin + _THURSDAY) % 7)) if fires else 0
        self._month = (begin, begin + length, mask)
        return self._month

    def _mask(self, shape: tuple[int, int]) -> int:
        mask = self._shapes.get(shape)
        if mask is None:
            mask = self._shapes[shape] = self._fields.days.mask(*shape)
        return mask

    def _later_on_day(self, second_of_day: int) -> int | None:
        """Smallest matching second of the day greater than ``second_of_day``."""
        fields = self._fields
        minute_of_day, second = divmod(second_of_day, 60)
        hour, minute = divmod(minute_of_day, 60)
        if fields.hours >> hour & 1:
            if fields.minutes >> minute & 1 and (later := fields.seconds >> second + 1):
                return second_of_day + _lowest(later) + 1
            if later := fields.minutes >> minute + 1:
                return 3600 * hour + 60 * (minute + 1 + _lowest(later)) + self._first % 60
        if later := fields.hours >> hour + 1:
            return 3600 * (hour + 1 + _lowest(later)) + self._first % 3600
        return None

    def _day_after(self, day: int) -> int | None:
        """Smallest matching day greater than ``day``."""
        begin, end, mask = self._month
        if begin <= day < end:
            later = mask >> (day - begin + 2)
            if later:
                return day + 1 + _lowest(later)
        at = date.fromordinal(_EPOCH_ORDINAL + day)
        months = self._fields.months
        year, month = at.year, at.month
        for _ in range(_MONTHS_TRIED_MAX):
            later = months >> month + 1
            if later:
                month += 1 + _lowest(later)
            else:
                following = self._next_year(year)
                if following is None:
                    return None
                year, month = following, _lowest(months)
            begin, _, mask = self._enter(year, month)
            if mask:
                return begin + _lowest(mask) - 1
        return None

    def _next_year(self, year: int) -> int | None:
        years = self._fields.years
        if years is None:
            return year + 1 if year < YEAR_MAX else None
        return next((y for y in years if y > year), None)


def _lowest(mask: int) -> int:
    """Position of the lowest set bit."""
    return (mask & -mask).bit_length() - 1


def _shape(year: int, month: int) -> tuple[int, int]:
    first = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
    return month_length(year, month), (first + _THURSDAY) % 7
