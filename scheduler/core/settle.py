"""Settling one job's instants one by one: at an edit, a deletion, a first acceptance.

The wheel decides whole cohorts; this module decides single versions with the same rules of
lateness (core/misfire.py). It is the rare path and may look at every instant.
"""

from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.command import run_command
from scheduler.core.cursor import WHOLE, Position
from scheduler.core.definition import FOREVER_MS, OnceSpec
from scheduler.core.draft import Draft, Due
from scheduler.core.instant import format_instant
from scheduler.core.intake import DelayedRun
from scheduler.core.layout import (
    MEMBER_HEAD,
    ONE_SHOT,
    Version,
    decode_one_shot,
    member_key,
    wheel_key,
)
from scheduler.core.misfire import Outcome, is_last, outcome
from scheduler.core.schedule import schedule_of
from scheduler.errors import present


class Cut(StrEnum):
    """Why a version ends: what becomes of instants that still wait for their jitter."""

    EDIT = "edit"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True)
class Span:
    """Which instants of a version: wheel positions in (after, upto], nominal up to a bound.

    Attributes:
        after: ``None`` for no lower end (the version's own beginning still holds).
        bound_ms: greatest nominal instant.
    """

    after: Position | None
    upto: Position = (FOREVER_MS, WHOLE)
    bound_ms: int = FOREVER_MS


@dataclass(frozen=True, slots=True)
class Ruling:
    """Under which circumstances instants are settled.

    Attributes:
        cut: an edit or a deletion is being accepted; ``None`` for a version that stays.
        bound_ms: with ``cut``: the last nominal instant that is the version's.
        settled_below_ms: a cap for the promise made with each run; ``None`` makes none.
    """

    cut: Cut | None = None
    bound_ms: int | None = None
    settled_below_ms: int | None = None


def instants(
    draft: Draft, key: bytes, version: Version, span: Span, limit: int = 1 << 30
) -> list[int]:
    """Nominal instants of a version within a span, the earliest ``limit`` of them."""
    after, upto, bound_ms = span.after, span.upto, span.bound_ms
    if version.paused:
        return []
    if version.run_at_ms is not None:
        position = (effective_ms(draft, version, version.run_at_ms), ONE_SHOT + key)
        inside = (after is None or position > after) and position <= upto
        return [version.run_at_ms] if inside and version.run_at_ms <= bound_ms else []
    cohort = draft.cohort(version.cohort)
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
    effective = nominal_ms + draft.cohort(version.cohort).jitter_ms
    return effective if version.run_at_ms is None else max(effective, version.appended_ms)


def settle(draft: Draft, key: bytes, version: Version, nominals: list[int], ruling: Ruling) -> None:
    """Decide instants of one version under its own policies."""
    if not nominals:
        return
    cohort, cut = draft.cohort(version.cohort), ruling.cut
    body = body_of(draft, key, version)
    below = ruling.settled_below_ms
    upto = min(version.valid_to_ms, FOREVER_MS if ruling.bound_ms is None else ruling.bound_ms)
    for nominal in nominals:
        effective = effective_ms(draft, version, nominal)
        late = draft.now_ms - effective
        if late < 0 and cut is Cut.EDIT:
            _delay(draft, key, version, (cohort.queue, body), (nominal, effective))
        elif late < 0 or (cut is Cut.DELETION and late > cohort.grace_ms):
            draft.miss(key, version.offset, nominal, "deleted")
        else:
            last = is_last(cohort, nominal, draft.now_ms, upto)
            result = outcome(cohort, late, last=last)
            if result.sends:
                settled = None if below is None else min(nominal, below)
                due = Due(nominal, effective, result.value, settled)
                draft.send(key, cohort.queue, body, due)
            else:
                draft.miss(key, version.offset, nominal, result.value)


def _delay(
    draft: Draft, key: bytes, version: Version, run: tuple[str, bytes], when: tuple[int, int]
) -> None:
    """An instant of a replaced version waits for its jitter in ``runs-retry``."""
    (queue, body), (nominal, effective) = run, when
    command = run_command(body, nominal, effective, Outcome.SCHEDULE.value, None)
    waits = f',"not_before":"{format_instant(effective)}","last_error":null,"attempts":[]}}'
    delayed = DelayedRun(key, nominal, effective, version.offset, ours=True, queue=queue,
                         command=command)  # fmt: skip
    draft.delay(delayed, command[:-1] + waits.encode())


def one_shot_key(draft: Draft, key: bytes, version: Version) -> bytes:
    """Wheel key of a one-shot."""
    run_at_ms = present(version.run_at_ms, "a recurring job has no wheel entry of its own")
    due = effective_ms(draft, version, run_at_ms)
    return wheel_key(draft.partition, due, ONE_SHOT + key)


def body_of(draft: Draft, key: bytes, version: Version) -> bytes:
    """The run command body of a version on the wheel."""
    if version.run_at_ms is not None:
        value = draft.stage.get(one_shot_key(draft, key, version))
        return decode_one_shot(present(value, f"one-shot {key!r} is not on the wheel"))[3]
    value = draft.stage.get(member_key(draft.partition, version.cohort, key))
    return present(value, f"{key!r} is no member of its cohort")[MEMBER_HEAD:]
