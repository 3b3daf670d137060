"""Random cron expressions together with what they mean, so that no oracle has to parse them.

Each field is drawn as (text, predicate): the meaning is built beside the text, from the
rules in the documentation, and shares no code with the dialect under test.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from hypothesis import strategies as st

YEAR_MIN = 1970
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()  # noqa: SIM905
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()  # noqa: SIM905


@dataclass(frozen=True)
class Meaning:
    """A random expression and the wall times that match it.

    Attributes:
        text: as a user would write it.
        days: whether a date matches.
        hours, minutes, seconds: the times of day.
        plain: no form that common engines lack or read differently.
    """

    text: str
    days: Callable[[date], bool]
    hours: frozenset[int]
    minutes: frozenset[int]
    seconds: frozenset[int]
    plain: bool

    def walls(self, begin: datetime, end: datetime) -> list[datetime]:
        """Every matching wall time in [begin, end)."""
        found = []
        hour = begin.replace(minute=0, second=0)
        while hour < end:
            if hour.hour in self.hours and self.days(hour.date()):
                found += [
                    hour.replace(minute=minute, second=second)
                    for minute in sorted(self.minutes)
                    for second in sorted(self.seconds)
                ]
            hour += timedelta(hours=1)
        return [wall for wall in found if begin <= wall < end]


def _spell(draw: st.DrawFn, value: int, names: list[str], first: int) -> str:
    if names and first <= value < first + len(names) and draw(st.booleans()):
        name = names[value - first]
        return name.lower() if draw(st.booleans()) else name
    return f"{value:02d}" if draw(st.integers(0, 9)) == 0 else str(value)


@st.composite
def numbers(
    draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = (), sunday: bool = False
) -> tuple[str, frozenset[int], bool]:
    """One item: text, values, and whether all engines read it the same way."""
    top = 7 if sunday else high
    spelled = list(names)
    form = draw(st.sampled_from(["value", "value", "range", "step", "range step", "wrap", "open"]))
    step = draw(st.integers(1, max(2, (high - low) // 2)))
    one, two = sorted((draw(st.integers(low, top)), draw(st.integers(low, top))))
    plain = True
    match form:
        case "value":
            text, values = _spell(draw, one, spelled, low), [one]
        case "range":
            text = f"{_spell(draw, one, spelled, low)}-{_spell(draw, two, spelled, low)}"
            values, plain = list(range(one, two + 1)), one < two
        case "step":
            text, values = f"*/{step}", list(range(low, high + 1, step))
        case "range step":
            text, values, plain = f"{one}-{two}/{step}", list(range(one, two + 1, step)), one < two
        case "wrap" if one < two and not sunday and low != YEAR_MIN:
            text, plain = f"{two}-{one}", False
            values = [v for v in range(low, high + 1) if v >= two or v <= one]
        case "open" if one <= high:
            text, values, plain = f"{one}/{step}", list(range(one, high + 1, step)), not sunday
        case _:
            text, values = str(one), [one]
    return text, frozenset(v % 7 if sunday else v for v in values), plain


@st.composite
def field(
    draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = (), sunday: bool = False
) -> tuple[str, frozenset[int], bool]:
    """A whole field: ``*``, or a list of up to three items."""
    if draw(st.integers(0, 2)) == 0:
        return "*", frozenset(range(low, high + 1)), True
    items = draw(st.lists(numbers(low, high, names, sunday), min_size=1, max_size=3))
    return (
        ",".join(text for text, _, _ in items),
        frozenset().union(*(values for _, values, _ in items)),
        all(plain for _, _, plain in items),
    )


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _workday_nearest(day: date, wanted: int) -> bool:
    """Whether ``day`` is the Monday to Friday nearest to the ``wanted``-th of its month."""
    workdays = [n for n in range(1, _length(day) + 1) if day.replace(day=n).weekday() < 5]
    wanted = min(wanted, _length(day))
    # On a tie (there is none within a week) the earlier day would win.
    return day.day == min(workdays, key=lambda n: (abs(n - wanted), n))


@st.composite
def day_field(draw: st.DrawFn) -> tuple[str, Callable[[date], bool], bool]:
    """Day of month, special forms included."""
    form = draw(st.sampled_from(["numbers"] * 6 + ["L", "LW", "nW", "list with L", "?"]))
    text, values, plain = draw(field(1, 31))
    wanted = draw(st.integers(1, 28))
    match form:
        case "L":
            return "L", lambda day: day.day == _length(day), False
        case "LW":
            return "LW", lambda day: _workday_nearest(day, 31), False
        case "nW":
            return f"{wanted}W", lambda day: _workday_nearest(day, wanted), False
        case "list with L" if text != "*":
            return f"{text},L", lambda day: day.day in values or day.day == _length(day), False
        case "?":
            return "?", lambda day: True, False
        case _:
            return text, lambda day: day.day in values, plain


@st.composite
def weekday_field(draw: st.DrawFn) -> tuple[str, Callable[[date], bool], bool]:
    """Weekday, special forms included."""
    form = draw(st.sampled_from(["numbers"] * 6 + ["#", "L", "mixed", "?"]))
    text, values, plain = draw(field(0, 6, tuple(WEEKDAYS), sunday=True))
    weekday, nth = draw(st.integers(0, 6)), draw(st.integers(1, 5))

    def is_nth(day: date) -> bool:
        return day.isoweekday() % 7 == weekday and (day.day + 6) // 7 == nth

    def is_last(day: date) -> bool:
        return day.isoweekday() % 7 == weekday and day.day + 7 > _length(day)

    match form:
        case "#":
            return f"{_spell(draw, weekday, WEEKDAYS, 0)}#{nth}", is_nth, False
        case "L":
            return draw(st.sampled_from([f"{weekday}L", f"L{weekday}"])), is_last, False
        case "mixed" if text != "*":
            mixed = f"{text},{weekday}#{nth},{weekday}L"
            return (
                mixed,
                lambda day: day.isoweekday() % 7 in values or is_nth(day) or is_last(day),
                False,
            )
        case "?":
            return "?", lambda day: True, False
        case _:
            return text, lambda day: day.isoweekday() % 7 in values, plain


@st.composite
def meanings(draw: st.DrawFn) -> Meaning:
    """A random expression of 5, 6 or 7 fields."""
    count = draw(st.sampled_from([5, 5, 5, 6, 7]))
    second, seconds, plain_s = draw(field(0, 59))
    if count == 5:
        second, seconds, plain_s = "0", frozenset({0}), True
    minute, minutes, plain_m = draw(field(0, 59))
    hour, hours, plain_h = draw(field(0, 23))
    day, is_day, plain_d = draw(day_field())
    month, months, plain_n = draw(field(1, 12, tuple(MONTHS)))
    weekday, is_weekday, plain_w = draw(weekday_field())
    year, years, _ = draw(field(YEAR_MIN, 2099)) if count == 7 else ("*", frozenset[int](), True)
    starred = any(text.startswith(("*", "?")) for text in (day, weekday))

    def days(on: date) -> bool:
        if on.month not in months or (year != "*" and on.year not in years):
            return False
        if starred:
            return is_day(on) and is_weekday(on)
        return is_day(on) or is_weekday(on)

    texts = [second, minute, hour, day, month, weekday, year]
    return Meaning(
        text=" ".join(texts[1:6] if count == 5 else texts[:count]),
        days=days,
        hours=hours,
        minutes=minutes,
        seconds=seconds,
        plain=all((plain_s, plain_m, plain_h, plain_d, plain_n, plain_w)) and count < 7,
    )
