"""What becomes of an instant by how late it is."""

from enum import StrEnum

from scheduler.core.definition import Cohort, MisfirePolicy, OnceSpec
from scheduler.core.schedule import schedule_of


class Outcome(StrEnum):
    """The first two are triggers of a dispatched run, the others reasons of a missed one."""

    SCHEDULE = "schedule"
    MISFIRE = "misfire"
    WINDOW = "window"
    SKIPPED = "misfire_skip"
    SUPERSEDED = "superseded"

    @property
    def sends(self) -> bool:
        """Whether the instant is dispatched."""
        return self in (Outcome.SCHEDULE, Outcome.MISFIRE)


def outcome(cohort: Cohort, late_ms: int, last: bool) -> Outcome:
    """Decide one instant.

    Args:
        late_ms: now minus the effective instant.
        last: no later instant of the job is a misfire by now (only ``run_once`` asks).
    """
    if late_ms <= cohort.grace_ms:
        return Outcome.SCHEDULE
    if late_ms > cohort.window_ms:
        return Outcome.WINDOW
    match cohort.misfire:
        case MisfirePolicy.SKIP:
            return Outcome.SKIPPED
        case MisfirePolicy.RUN_ONCE:
            return Outcome.MISFIRE if last else Outcome.SUPERSEDED
        case MisfirePolicy.RUN_ALL:
            return Outcome.MISFIRE


def is_last(cohort: Cohort, nominal_ms: int, now_ms: int, upto_ms: int) -> bool:
    """Whether no later instant, up to a nominal one, is a misfire by now as well.

    Args:
        upto_ms: the job's last nominal instant (its end, or where a successor begins).
    """
    if isinstance(cohort.schedule, OnceSpec):
        return True
    missed_ms = now_ms - cohort.grace_ms - 1 - cohort.jitter_ms
    upto_ms = min(upto_ms, missed_ms)
    return upto_ms <= nominal_ms or (
        schedule_of(cohort.schedule).last_through(nominal_ms, upto_ms) is None
    )
