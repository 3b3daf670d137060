"""Cost of working out instants: `python -m tests.performance.cron_rate`.

Two figures, instants a second on one core:

* cold: the first instant of 10,000 distinct expressions in 20 zones, each schedule built anew;
* advance: the same schedules, each asked again and again for the instant after its own last.
"""

import random
import time
from collections.abc import Iterator

from scheduler.core.cron import normalise
from scheduler.core.definition import CronSpec, DstGap, DstOverlap
from scheduler.core.schedule import Schedule, schedule_of
from scheduler.core.zone import pieces, transitions

EXPRESSIONS = 10_000
ROUNDS = 20
START_MS = 1_772_900_000_000  # 2026-03-07, a day before New York's clocks change

ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Istanbul", "Europe/Lisbon",
    "America/New_York", "America/Chicago", "America/Los_Angeles", "America/Sao_Paulo",
    "America/Havana", "America/St_Johns", "Asia/Tokyo", "Asia/Kolkata", "Asia/Beirut",
    "Asia/Tehran", "Australia/Sydney", "Australia/Lord_Howe", "Africa/Casablanca",
    "Africa/Cairo", "Pacific/Chatham",
)  # fmt: skip

SHAPES = (
    "{m} * * * *", "{m}/15 * * * *", "{m} {h} * * *", "{m} {h} * * 1-5", "{m} */{s} * * *",
    "{m} {h} {d} * *", "{m} {h} 1,15 * {w}", "{m} {h} L * *", "{m} {h} * * {w}#3",
    "{m} {h} * * L{w}", "{m} {h} 15W * *", "{m} {h} {d} {n} *", "{s} {m} {h} * * *",
)  # fmt: skip


def specs(count: int, chance: random.Random) -> Iterator[CronSpec]:
    """Distinct expressions of the usual shapes, spread over the zones."""
    seen: set[str] = set()
    while len(seen) < count:
        text = chance.choice(SHAPES).format(
            m=chance.randrange(60), h=chance.randrange(24), d=chance.randint(1, 28),
            n=chance.randint(1, 12), w=chance.randrange(7), s=chance.randint(2, 12),
        )  # fmt: skip
        if text in seen:
            continue
        seen.add(text)
        zone = ZONES[len(seen) % len(ZONES)]
        plain = normalise(text)
        pair = (
            (DstGap.SKIP, DstOverlap.BOTH)
            if plain.wildcard
            else (DstGap.RUN_AFTER, DstOverlap.FIRST)
        )
        yield CronSpec(plain.expression, zone, *pair)


def cold_rate(found: list[CronSpec]) -> float:
    """First instants a second; nothing is known beforehand, zones included."""
    for cache in (schedule_of, pieces, transitions):
        cache.cache_clear()
    begin = time.perf_counter()
    for spec in found:
        schedule_of(spec).next_after(START_MS)
    return len(found) / (time.perf_counter() - begin)


def advance_rate(schedules: list[Schedule], rounds: int) -> float:
    """Instants a second, each schedule from its own last one."""
    last: list[int] = [START_MS] * len(schedules)
    begin = time.perf_counter()
    for _ in range(rounds):
        for index, schedule in enumerate(schedules):
            last[index] = schedule.next_after(last[index]) or last[index]
    return rounds * len(schedules) / (time.perf_counter() - begin)


def main() -> None:
    """Print both figures."""
    found = list(specs(EXPRESSIONS, random.Random(1)))
    print(f"cold:    {cold_rate(found):10,.0f} instants/s  ({EXPRESSIONS:,} expressions, "
          f"{len(ZONES)} zones)")  # fmt: skip
    schedules = [schedule_of(spec) for spec in found]
    print(f"advance: {advance_rate(schedules, ROUNDS):10,.0f} instants/s  ({ROUNDS} rounds)")


if __name__ == "__main__":
    main()
