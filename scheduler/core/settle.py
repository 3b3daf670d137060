"""Settling one job's instants one by one: at an edit, a deletion, a first acceptance.

The wheel decides whole cohorts; this module decides single versions with the same rules of
lateness (core/misfire.py). It is the rare path and may look at every instant.
"""

from enum import StrEnum

from scheduler.core.command import run_command
from scheduler.core.cursor import Position
from scheduler.core.definition import Cohort, OnceSpec
from scheduler.core.draft import Draft
from scheduler.core.instant import format_instant
from scheduler.core.intake import DelayedRun
from scheduler.core.layout import ONE_SHOT, Version
from scheduler.core.misfire import Outcome, outcome
from scheduler.core.schedule import schedule_of
from scheduler.errors import invariant


class Cut(StrEnum):
    """Why a version ends: what becomes of instants that still wait for their jitter."""

    EDIT = "edit"
    DELETION = "deletion"


def instants(
    draft: Draft, key: bytes, version: Version, after: Position | None, upto: Position,
    bound_ms: int, limit: int = 1 << 30,
) -> list[int]:  # fmt: skip
    """Nominal instants of a version whose wheel position lies in (after, upto].

    Args:
        after: ``None`` for no lower end (the version's own beginning still holds).
        bound_ms: greatest nominal instant.
        limit: at most so many, the earliest.
    """
    if version.paused:
        return []
    if version.run_at_ms is not None:
        position = (effective_ms(draft, version, version.run_at_ms), ONE_SHOT + key)
        inside = (after is None or position > after) and position <= upto
        return [version.run_at_ms] if inside and version.run_at_ms <= bound_ms else []
    cohort = _cohort_of(draft, version)
    wheel_name = version.cohort + key
    low = version.valid_from_ms
    if after is not None:
        low = max(low, after[0] - cohort.jitter_ms - (wheel_name > after[1]))
    high = min(upto[0] - cohort.jitter_ms - (wheel_name > upto[1]), bound_ms, version.valid_to_ms)
    if high <= low or isinstance(cohort.schedule, OnceSpec):
        return []
    return schedule_of(cohort.schedule).between(low, high, limit)


def effective_ms(draft: Draft, version: Version, nominal_ms: int) -> int:
    """When a nominal instant is due. A one-shot in the past is due when it was appended."""
    effective = nominal_ms + _cohort_of(draft, version).jitter_ms
    return effective if version.run_at_ms is None else max(effective, version.appended_ms)


def settle(
    draft: Draft, key: bytes, version: Version, body: bytes, nominals: list[int],
    cut: Cut | None = None, bound_ms: int | None = None, settled_below_ms: int | None = None,
) -> None:  # fmt: skip
    """Decide instants of one version under its own policies.

    Args:
        cut: an edit or a deletion is being accepted; ``None`` for a version that stays.
        bound_ms: with ``cut``: the last nominal instant that is the version's.
        settled_below_ms: a cap for the promise made with each run; ``None`` makes none.
    """
    cohort = _cohort_of(draft, version)
    for nominal in nominals:
        effective = effective_ms(draft, version, nominal)
        late = draft.now_ms - effective
        if late < 0 and cut is Cut.EDIT:
            _delay(draft, key, version, cohort, body, nominal, effective)
        elif late < 0 or (cut is Cut.DELETION and late > cohort.grace_ms):
            draft.miss(key, version.offset, nominal, "deleted")
        else:
            last = _is_last(draft, version, cohort, nominal, bound_ms)
            result = outcome(cohort, late, last)
            if result.sends:
                settled = None if settled_below_ms is None else min(nominal, settled_below_ms)
                draft.send(key, cohort.queue, body, nominal, effective, result.value, settled)
            else:
                draft.miss(key, version.offset, nominal, result.value)


def _is_last(
    draft: Draft, version: Version, cohort: Cohort, nominal: int, bound_ms: int | None
) -> bool:
    """Whether no later instant of this version is a misfire by now as well."""
    if isinstance(cohort.schedule, OnceSpec):
        return True
    upto = min(draft.now_ms - cohort.grace_ms - 1 - cohort.jitter_ms, version.valid_to_ms)
    if bound_ms is not None:
        upto = min(upto, bound_ms)
    return upto <= nominal or schedule_of(cohort.schedule).last_through(nominal, upto) is None


def _delay(
    draft: Draft, key: bytes, version: Version, cohort: Cohort, body: bytes, nominal: int,
    effective: int,
) -> None:  # fmt: skip
    """An instant of a replaced version waits for its jitter in ``runs-retry``."""
    command = run_command(body, nominal, effective, Outcome.SCHEDULE.value, None)
    waits = f',"not_before":"{format_instant(effective)}","last_error":null,"attempts":[]}}'
    run = DelayedRun(key, nominal, effective, version.offset, True, cohort.queue, command)
    draft.delay(run, command[:-1] + waits.encode())


def _cohort_of(draft: Draft, version: Version) -> Cohort:
    cohort = draft.cohort(version.cohort)
    invariant(cohort is not None, f"cohort {version.cohort.hex()} is gone")
    assert cohort is not None
    return cohort

