"""Nominal instants of a schedule, worked out from the definition alone."""

from collections.abc import Sequence
from functools import lru_cache

from scheduler.core.definition import CronSpec, EverySpec, OnceSpec
from scheduler.core.schedule import Schedule, schedule_of


def instants(spec: CronSpec | EverySpec | OnceSpec, first_ms: int, last_ms: int) -> Sequence[int]:
    """Every nominal instant in ``[first_ms, last_ms]``, ascending.

    Intervals are computed here, apart from the code under test; cron instants come from the
    product's schedule, which has its own vectors and oracles.
    """
    match spec:
        case EverySpec():
            return _every(spec, first_ms, last_ms)
        case OnceSpec():
            raise ValueError("the instant of a one-shot lies with the job, not its schedule")
        case CronSpec():
            return _cron(spec, first_ms, last_ms)


@lru_cache(maxsize=1024)
def _compiled(spec: CronSpec) -> Schedule:
    return schedule_of(spec)


def _every(spec: EverySpec, first_ms: int, last_ms: int) -> Sequence[int]:
    if spec.anchored:
        first_ms = max(first_ms, spec.anchor_ms)
    return range(first_ms + (spec.anchor_ms - first_ms) % spec.every_ms, last_ms + 1, spec.every_ms)


def _cron(spec: CronSpec, first_ms: int, last_ms: int) -> Sequence[int]:
    schedule = _compiled(spec)
    found: list[int] = []
    following = schedule.next_after(first_ms - 1)
    while following is not None and following <= last_ms:
        found.append(following)
        following = schedule.next_after(following)
    return found
