"""Cron schedules against a brute-force oracle, and against other engines where they agree."""

import itertools
import os
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from scheduler.core.cron import CronError, CronFault, normalise
from scheduler.core.definition import CronSpec, DstGap, DstOverlap
from scheduler.core.schedule import schedule_of
from scheduler.core.zone import transitions, zone_names
from tests.property.cron.expressions import Meaning, meanings
from tests.property.cron.oracle import instants

LONG = int(os.environ.get("DUEWHEEL_TEST_CASES", "20000"))
EVERY_CALENDAR = (*range(1970, 1979), 1980, 1984, 1988, 1992, 1996)
"""Years of all 14 calendars: leap or not, first day on each weekday."""

ODD_ZONES = (
    "America/New_York", "Europe/Berlin", "Europe/Dublin", "Australia/Lord_Howe",
    "Africa/Casablanca", "America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Africa/Cairo",
    "Antarctica/Troll", "Antarctica/Casey", "Pacific/Apia", "Pacific/Kwajalein",
    "Asia/Pyongyang", "America/Caracas", "Europe/Volgograd", "America/St_Johns",
    "Asia/Kathmandu", "Pacific/Chatham", "America/Nuuk", "Africa/Juba", "Africa/Monrovia",
)  # fmt: skip
ZONES = tuple(sorted(zone_names()))


def cases(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def starts(draw: st.DrawFn) -> tuple[str, int]:
    """A zone and a second near one of its clock changes, where it has any."""
    zone = draw(st.sampled_from(ODD_ZONES) | st.sampled_from(ZONES))
    year_s = draw(st.integers(0, 66)) * 31_556_952
    changes = transitions(zone, year_s, year_s + 31_556_952) or transitions(zone, 0, 1 << 31)
    base = draw(st.sampled_from(changes)).at_s if changes else year_s
    near = st.integers(-7_300, 7_300) | st.integers(-180_000, 180_000)
    return zone, base + draw(near)


def spec_of(meaning: Meaning, zone: str, gap: DstGap, overlap: DstOverlap) -> CronSpec:
    """The spec; an expression refused as impossible must match no date at all."""
    try:
        text = normalise(meaning.text)
    except CronError as error:
        check_impossible(meaning, error)
        reject()
    return CronSpec(text.expression, zone, gap, overlap)


def check_impossible(meaning: Meaning, error: CronError) -> None:
    assert error.kind is CronFault.IMPOSSIBLE, (meaning.text, error)
    years = range(1970, 2100) if len(meaning.text.split()) == 7 else EVERY_CALENDAR
    for year in years:
        for number in range(366):
            assert not meaning.days(date(year, 1, 1) + timedelta(days=number)), meaning.text


def check_oracle(
    meaning: Meaning, start: tuple[str, int], gap: DstGap, overlap: DstOverlap
) -> None:
    zone, begin_s = start
    spec = spec_of(meaning, zone, gap, overlap)
    schedule = schedule_of.__wrapped__(spec)  # a new one: no memo of another start
    daily = len(meaning.seconds) * len(meaning.minutes) * len(meaning.hours)
    end_s = begin_s + min(3 * 86_400, max(9_000, 30_000_000 // daily))
    expected = [second * 1000 for second in instants(meaning, zone, gap, overlap, begin_s, end_s)]

    begin_ms, end_ms = begin_s * 1000, end_s * 1000
    assert schedule.between(begin_ms, end_ms, 1 << 30) == expected, spec
    last = expected[-1] if expected else None
    assert schedule.last_through(begin_ms, end_ms) == last, spec
    for middle in expected[:: max(1, len(expected) // 5)]:  # from anywhere, memo or not
        assert schedule.next_after(middle - 1) == middle, spec
        assert schedule_of.__wrapped__(spec).next_after(middle - 1) == middle, spec


ORACLE = given(meanings(), starts(), st.sampled_from(DstGap), st.sampled_from(DstOverlap))


@cases(400)
@ORACLE
def test_equals_the_oracle(
    meaning: Meaning, start: tuple[str, int], gap: DstGap, overlap: DstOverlap
) -> None:
    check_oracle(meaning, start, gap, overlap)


@pytest.mark.long
@cases(LONG)
@ORACLE
def test_equals_the_oracle_at_length(
    meaning: Meaning, start: tuple[str, int], gap: DstGap, overlap: DstOverlap
) -> None:
    check_oracle(meaning, start, gap, overlap)


def check_engines(meaning: Meaning, begin: datetime) -> None:
    """Both cronsim and croniter on the naive wall clock, where they know the dialect."""
    assume(meaning.plain)
    spec = spec_of(meaning, "UTC", DstGap.SKIP, DstOverlap.BOTH)
    begin_ms = round(begin.timestamp()) * 1000
    begin = begin.replace(tzinfo=None)
    found = schedule_of(spec).between(begin_ms, 1 << 62, 5)
    wanted = [datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None) for ms in found]

    assert list(itertools.islice(CronSim(meaning.text, begin), 5)) == wanted
    week = meaning.text.split()[-1]
    if "," in week or "-" in week:
        return  # croniter 7 takes a list of all seven weekdays for a star
    other: Any = croniter(
        meaning.text, begin, implement_cron_bug=True, second_at_beginning=True
    )  # fmt: skip
    assert [other.get_next(datetime) for _ in range(5)] == wanted


ENGINES = given(
    meanings(),
    st.integers(31_536_000, 2_114_380_800).map(lambda s: datetime.fromtimestamp(s, UTC)),
)


@cases(400)
@ENGINES
def test_equals_other_engines_on_the_wall_clock(meaning: Meaning, begin: datetime) -> None:
    check_engines(meaning, begin)


@pytest.mark.long
@cases(LONG)
@ENGINES
def test_equals_other_engines_at_length(meaning: Meaning, begin: datetime) -> None:
    check_engines(meaning, begin)


@cases(200)
@given(
    meanings(),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Beirut"]),
    st.integers(2008, 2036),
)
def test_auto_is_what_debians_cron_does(meaning: Meaning, zone: str, year: int) -> None:
    """As cronsim, which follows Debian's cron (with 5 fields; with 6 it has no fixed times)."""
    assume(meaning.plain and len(meaning.text.split()) == 5)
    expression = spec_of(meaning, zone, DstGap.SKIP, DstOverlap.BOTH).expression
    schedule = schedule_of(CronSpec(expression, zone, *normalise(expression).auto))
    begin_s = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    for change in transitions(zone, begin_s, begin_s + 31_536_000):
        begin = datetime.fromtimestamp(change.at_s - 90_000, UTC).astimezone(ZoneInfo(zone))
        other = itertools.islice(CronSim(meaning.text, begin), 12)
        wanted = [round(moment.timestamp()) * 1000 for moment in other]
        assert schedule.between((change.at_s - 90_000) * 1000, 1 << 62, 12) == wanted


def check_increasing(zone: str, expression: str, begin_s: int) -> None:
    for gap, overlap in itertools.product(DstGap, DstOverlap):
        schedule = schedule_of(CronSpec(expression, zone, gap, overlap))
        at = begin_s * 1000
        for _ in range(40):
            following = schedule.next_after(at)
            assert following is not None
            assert following > at, (zone, expression, gap, overlap, begin_s)
            at = following


@pytest.mark.parametrize("expression", ["*/20 * * * *", "30 0-3 * * *", "*/7 59 23,0,1 * * *"])
def test_instants_only_ever_increase(expression: str) -> None:
    for zone in ODD_ZONES:
        for change in transitions(zone, 946_684_800, 1_900_000_000)[::4]:
            check_increasing(zone, expression, change.at_s - 7_300)


@pytest.mark.long
def test_instants_only_ever_increase_in_every_zone() -> None:
    for zone in ZONES:
        for change in transitions(zone, 0, 2_200_000_000)[-60::3]:
            check_increasing(zone, "*/20 * * * *", change.at_s - 7_300)
            check_increasing(zone, "30 0-3 * * *", change.at_s - 7_300)
