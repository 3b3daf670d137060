"""Which days of a month an expression fires on.

A month matters only by its shape, (length, weekday of the 1st): 28 shapes in all. So the days
are worked out once for each shape, and "does any date match at all" is a bounded question.
"""

from dataclasses import dataclass

from scheduler.core.cron_field import FieldValues

_SATURDAY = 6
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Gregorian leap year."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    """Number of days of a month (1 to 12)."""
    return 29 if month == 2 and is_leap(year) else _MONTH_LENGTHS[month]


@dataclass(frozen=True, slots=True)
class DayRule:
    """The two day fields together.

    Day of month and weekday must *both* match where either begins with ``*``; where both are
    restricted, *one* of them is enough.

    Source: cronie's rule (DOM_STAR, DOW_STAR), which looks at the text and not at the set:
    ``*/2`` begins with a star.
    """

    days: FieldValues
    weekdays: FieldValues

    @property
    def both(self) -> bool:
        """Whether both fields must match."""
        return self.days.starred or self.weekdays.starred

    def mask(self, length: int, first: int) -> int:
        """Days on which it fires, bit d for day d.

        Args:
            length: days in the month.
            first: weekday of the 1st, Sunday = 0.
        """
        by_day = _by_day(self.days, length, first)
        by_weekday = _by_weekday(self.weekdays, length, first)
        return by_day & by_weekday if self.both else by_day | by_weekday


def _by_day(days: FieldValues, length: int, first: int) -> int:
    mask = days.mask & ((2 << length) - 2)
    if days.last:
        mask |= 1 << length
    if days.last_workday:
        mask |= 1 << _nearest_workday(length, length, first)
    if days.nearest:
        mask |= 1 << _nearest_workday(days.nearest, length, first)
    return mask


def _by_weekday(weekdays: FieldValues, length: int, first: int) -> int:
    mask = 0
    for day in range(1, length + 1):
        mask |= (weekdays.mask >> (first + day - 1) % 7 & 1) << day
    for weekday, nth in weekdays.nth:
        day = 1 + (weekday - first) % 7 + 7 * (nth - 1)
        if day <= length:
            mask |= 1 << day
    for weekday in weekdays.last_of:
        mask |= 1 << length - (first + length - 1 - weekday) % 7
    return mask


def _nearest_workday(day: int, length: int, first: int) -> int:
    """Monday to Friday nearest to ``day`` without leaving the month (Quartz's rule)."""
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else 3
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
