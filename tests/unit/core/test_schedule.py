"""Schedules: questions about the same instants, asked in different ways."""

import pytest

from scheduler.core.cron import CronError, CronFault
from scheduler.core.definition import CronSpec, DstGap, DstOverlap, EverySpec
from scheduler.core.instant import MAX_MS, parse_instant
from scheduler.core.schedule import Schedule, require_instant, schedule_of


def cron(
    expression: str, zone: str = "UTC", gap: str = "run_after", overlap: str = "first"
) -> Schedule:
    return schedule_of(CronSpec(expression, zone, DstGap(gap), DstOverlap(overlap)))


SCHEDULES = {
    "every minute": cron("* * * * *", "Europe/Berlin", "skip", "both"),
    "daily": cron("30 2 * * *", "America/New_York"),
    "office hours": cron("*/5 9-17 * * 1-5", "Asia/Kolkata", "skip", "both"),
    "leap days": cron("0 0 29 2 *"),
    "interval": schedule_of(EverySpec(90_000, 17_000, anchored=False)),
    "anchored": schedule_of(EverySpec(7_000, 1_772_900_000_500, anchored=True)),
}
START_MS = parse_instant("2026-03-01T00:00:00Z")
DAY_MS = 86_400_000


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_between_is_next_again_and_again(schedule: Schedule) -> None:
    walked: list[int] = []
    at = schedule.next_after(START_MS)
    while at is not None and at <= START_MS + 30 * DAY_MS:
        walked.append(at)
        at = schedule.next_after(at)
    assert schedule.between(START_MS, START_MS + 30 * DAY_MS, 1 << 30) == walked
    assert schedule.between(START_MS, START_MS + 30 * DAY_MS, 3) == walked[:3]
    assert schedule.between(START_MS, START_MS + 30 * DAY_MS, 0) == []


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_last_through_is_the_last_of_between(schedule: Schedule) -> None:
    instants = schedule.between(START_MS, START_MS + 5 * DAY_MS, 400)
    ends = sorted({end + d for end in [START_MS, *instants] for d in (-1, 0, 1, 500)})
    for end in ends:
        expected = [instant for instant in instants if instant <= end]
        assert schedule.last_through(START_MS, end) == (expected[-1] if expected else None)
    if len(instants) > 2:
        assert schedule.last_through(instants[1], instants[1]) is None
        assert schedule.last_through(instants[1], instants[2]) == instants[2]


def test_both_ends_of_an_interval() -> None:
    minute = SCHEDULES["every minute"]
    assert minute.next_after(START_MS) == START_MS + 60_000
    assert minute.next_after(START_MS - 1) == START_MS
    assert minute.last_through(START_MS, START_MS) is None
    assert minute.last_through(START_MS - 1, START_MS) == START_MS


def test_an_interval_counts_from_its_anchor() -> None:
    anchored = schedule_of(EverySpec(60_000, 5_000, anchored=True))
    assert anchored.next_after(-(10**12)) == 5_000
    assert anchored.next_after(5_000) == 65_000
    assert anchored.last_through(-(10**12), 4_999) is None
    free = schedule_of(EverySpec(60_000, 5_000, anchored=False))
    assert free.next_after(-60_001) == -55_000


def test_nothing_comes_after_the_last_year_that_can_be_written() -> None:
    assert schedule_of(EverySpec(1_000, 0, anchored=False)).next_after(MAX_MS) is None
    assert cron("* * * * *").next_after(MAX_MS) is None
    assert cron("* * * * *", "Pacific/Kiritimati").next_after(1 << 62) is None


def test_starts_of_long_ago_are_answered() -> None:
    assert cron("0 0 1 1 *").next_after(-(1 << 62)) == parse_instant("1901-01-01T00:00:00Z")


def test_a_schedule_that_only_names_missing_times_is_impossible() -> None:
    spec = CronSpec("30 2 * 3 0#2", "America/New_York", DstGap.SKIP, DstOverlap.FIRST)
    with pytest.raises(CronError, match="dst_gap skips") as refusal:
        require_instant(spec, parse_instant("2026-01-01T00:00:00Z"))
    assert refusal.value.kind is CronFault.IMPOSSIBLE


def test_a_used_up_year_field_is_exhausted() -> None:
    spec = CronSpec("0 0 0 1 1 * 2020-2025", "UTC", DstGap.SKIP, DstOverlap.FIRST)
    with pytest.raises(CronError, match="extend the year") as refusal:
        require_instant(spec, START_MS)
    assert refusal.value.kind is CronFault.EXHAUSTED
    require_instant(spec)


def test_equal_specs_share_a_schedule() -> None:
    assert cron("1 2 3 4 *") is cron("1 2 3 4 *")
