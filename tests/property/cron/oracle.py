"""A slow and plain reading of the time rules, one wall time after the other.

For a wall time w let a be its instant under fold 0 and b under fold 1. They are equal on an
ordinary day; a < b where w occurs twice; b < a where it does not exist. It knows nothing of
pieces, spans, masks or memos.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from scheduler.core.definition import DstGap, DstOverlap
from tests.property.cron.expressions import Meaning

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instants(
    meaning: Meaning, zone: str, gap: DstGap, overlap: DstOverlap, begin_s: int, end_s: int
) -> list[int]:
    """Every instant (epoch seconds) in (begin_s, end_s], ascending."""
    low, high = _reach(zone, begin_s, end_s)
    first = (EPOCH + timedelta(seconds=begin_s + low)).replace(tzinfo=None)
    last = (EPOCH + timedelta(seconds=end_s + high)).replace(tzinfo=None)
    found = set[int]()
    for wall in meaning.walls(first, last):
        found |= resolve(wall, zone, gap, overlap)
    return sorted(second for second in found if begin_s < second <= end_s)


def _reach(zone: str, begin_s: int, end_s: int) -> tuple[int, int]:
    """Least and greatest offset within a day of the interval: no wall time lies further off."""
    info = ZoneInfo(zone)
    offsets = []
    for second in range(begin_s - 90_000, end_s + 90_000, 3_600):
        utc = EPOCH + timedelta(seconds=second)
        offsets.append(_utc(utc.astimezone(info).replace(tzinfo=UTC)) - second)
    return min(offsets) - 1, max(offsets) + 1


def resolve(wall: datetime, zone: str, gap: DstGap, overlap: DstOverlap) -> set[int]:
    """Instants of one wall time: none, one or two."""
    info = ZoneInfo(zone)
    a, b = (_utc(wall.replace(tzinfo=info, fold=fold)) for fold in (0, 1))
    if a == b:
        return {a}
    if a < b:
        return {DstOverlap.FIRST: {a}, DstOverlap.LAST: {b}, DstOverlap.BOTH: {a, b}}[overlap]
    match gap:
        case DstGap.SKIP:
            return set()
        case DstGap.SHIFT:
            return {a}
        case DstGap.RUN_AFTER:
            return {_first_with_offset_of(zone, b, a)}


def _utc(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds())


@lru_cache(maxsize=100_000)
def _first_with_offset_of(zone: str, before: int, after: int) -> int:
    """First second in (before, after] with the offset of ``after``."""
    info = ZoneInfo(zone)

    def offset(second: int) -> timedelta | None:
        return (EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()

    target = offset(after)
    while after - before > 1:
        middle = (before + after) // 2
        if offset(middle) == target:
            after = middle
        else:
            before = middle
    return after
