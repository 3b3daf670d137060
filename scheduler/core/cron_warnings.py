"""Warnings: places where common engines read the same text differently.

Each names the difference and what is done here. They look at the text as the user wrote it.
"""

import re

from scheduler.core.cron_days import DayRule

_EQUAL_RANGE = re.compile(r"(?:^|,)(\w+)-\1(?:$|[,/])")
_WEEKDAY_STEP = re.compile(r"(?:^|,)(?:[1-6]|[A-Z]{3})/\d+")
_RANGE = re.compile(r"(?:^|,)(\d+)-(\d+)(?:$|,)")
_STAR_STEP = re.compile(r"\*/(\d+)")


def warnings_of(texts: list[str], days: DayRule) -> tuple[str, ...]:
    """Warnings for an expression in the dialect.

    Args:
        texts: its fields in upper case, as written.
        days: its two day fields as read.
    """
    found = [*_of_days(days), *_of_steps(texts), *_of_ranges(texts)]
    weekday = texts[4] if len(texts) == 5 else texts[5]
    if _WEEKDAY_STEP.search(weekday):
        found.append(
            f"weekday {weekday}: counted up to Saturday, as croniter does; cronsim and Quartz "
            "count on to Sunday"
        )
    if len(texts) > 5:
        found.append(
            "the first of 6 or 7 fields is the second, as in Quartz; croniter by default reads "
            "the second last"
        )
        if re.search(r"\d", weekday.partition("#")[0]):
            found.append(
                f"weekday {weekday}: 0 and 7 are Sunday; Quartz counts from 1 for Sunday. "
                "Names mean the same everywhere"
            )
    return tuple(found)


def _of_days(days: DayRule) -> list[str]:
    day, weekday = days.days, days.weekdays
    restricted = day.text != "*" and weekday.text != "*"
    if not restricted:
        return []
    if days.both:
        return [
            "day of month and weekday must both match, because one begins with * (cronie's "
            "rule); croniter by default, robfig and croner take either"
        ]
    found = [
        "day of month or weekday: one of them is enough, as in cron; Quartz refuses this, "
        "Temporal and APScheduler want both"
    ]
    if day.special or weekday.special:
        found.append(
            "W, # and the last weekday beside another day field: one of them is enough here; "
            "croniter loses instants"
        )
    return found


def _of_steps(texts: list[str]) -> list[str]:
    """Steps that do not divide their unit: the count begins again with each unit."""
    clock = texts[:2] if len(texts) == 5 else texts[:3]
    units = ("minute", "hour") if len(texts) == 5 else ("second", "minute", "hour")
    found = []
    for text, unit in zip(clock, units, strict=True):
        match = _STAR_STEP.fullmatch(text)
        width = 24 if unit == "hour" else 60
        if match and width % int(match[1]):
            found.append(
                f"{unit} {text}: begins again at 0, so the last step is shorter; use `every` "
                "for a fixed interval"
            )
    return found


def _of_ranges(texts: list[str]) -> list[str]:
    found = []
    for text in texts:
        if _EQUAL_RANGE.search(text):
            found.append(f"{text}: a range of one value; croniter takes it for the whole field")
        if any(int(low) > int(high) for low, high in _RANGE.findall(text)):
            found.append(f"{text}: the range wraps; cronie and cronsim refuse it")
    return found
