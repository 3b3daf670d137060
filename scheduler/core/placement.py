"""Putting things on the wheel, taking them off, and bringing a wheel up to another's hand.

Where a recurring cohort's one entry lies is told in core/wheel.py.
"""

from scheduler.core.cursor import Position
from scheduler.core.definition import FOREVER_MS, Cohort, OnceSpec
from scheduler.core.draft import cohort_of
from scheduler.core.layout import (
    COMMAND,
    DELAYED,
    PURGE,
    CohortEntry,
    Waiting,
    cohort_key,
    command_key,
    decode_cohort,
    decode_entry,
    decode_waiting,
    delayed_key,
    encode_cohort,
    encode_instant,
    encode_waiting,
    encode_waiting_index,
    job_key,
    offset_key,
    waiting_key,
    wheel_key,
    wheel_position,
)
from scheduler.core.schedule import Schedule, schedule_of
from scheduler.core.staging import Staging
from scheduler.errors import InvariantViolation


def hold_delayed(stage: Staging, partition: int, due: int, offset: int, run: Waiting) -> None:
    """Put a delayed run on the wheel."""
    stage.put(delayed_key(partition, due, offset), encode_waiting(run))
    stage.put(waiting_key(partition, run.job_id, offset), encode_waiting_index(due, run))
    stage.put(offset_key(partition, offset), b"")


def drop_delayed(stage: Staging, partition: int, due: int, offset: int, job_id: bytes) -> None:
    """Take a delayed run off the wheel."""
    stage.delete(delayed_key(partition, due, offset))
    stage.delete(waiting_key(partition, job_id, offset))
    stage.delete(offset_key(partition, offset))


def place(
    stage: Staging, partition: int, cohort: Cohort, since_ms: int
) -> tuple[int, bytes, bytes] | None:
    """Put a cohort's entry at its first nominal instant after ``since_ms``.

    Returns:
        (due, digest, value) of the entry, ``None`` where the schedule ends.
    """
    nominal = _recurring(cohort).next_after(since_ms)
    following = FOREVER_MS if nominal is None else nominal
    entry = CohortEntry(since_ms, following, cohort.encoded)
    stage.put(cohort_key(partition, cohort.digest), encode_cohort(entry))
    if nominal is None:
        return None
    due, value = nominal + cohort.jitter_ms, encode_instant(nominal)
    stage.put(wheel_key(partition, due, cohort.digest), value)
    return due, cohort.digest, value


def _beyond(cohort: Cohort, position: Position) -> int:
    """The greatest nominal instant that is decided at ``position`` for all members."""
    due, resume = position
    nominal = due - cohort.jitter_ms
    key = cohort.digest + b"\xff"
    return nominal if key <= resume else nominal - 1


def join_cohort(
    stage: Staging, partition: int, cohort: Cohort, position: Position, valid_from_ms: int
) -> None:
    """Make sure that a cohort's entry is not later than a new member's first instant.

    The entry lies beyond ``position`` and beyond what any member is valid from: a cohort whose
    members are all new is not walked through a past in which it had none.
    """
    key = cohort_key(partition, cohort.digest)
    value = stage.get(key)
    if isinstance(cohort.schedule, OnceSpec):
        if value is None:
            stage.put(key, encode_cohort(CohortEntry(0, FOREVER_MS, cohort.encoded)))
        return
    since = max(_beyond(cohort, position), valid_from_ms)
    if value is None:
        place(stage, partition, cohort, since)
        return
    entry = decode_cohort(value)
    if since < entry.since_ms:
        stage.delete(wheel_key(partition, entry.next_ms + cohort.jitter_ms, cohort.digest))
        place(stage, partition, cohort, since)


def advance(stage: Staging, partition: int, position: Position, limit: int) -> bool:
    """Bring entries left behind by another owner's hand up to ``position``.

    Cohorts move to their first instant beyond it, delayed runs that were sent go away,
    one-shots stay (they wait for their garbage collection).

    Returns:
        Whether all are done; else call again after applying the writes.
    """
    lower, upper = wheel_key(partition, 0, b""), wheel_key(partition, position[0] + 1, b"")
    moved = 0
    for key, value in stage.scan(lower, upper, 1 << 30):
        due, rest = wheel_position(key)
        if len(rest) == 16:
            if (due, rest + b"\xff") <= position:
                _advance_cohort(stage, partition, key, rest, position)
                moved += 1
        elif (due, rest) <= position and rest[:16] == DELAYED:
            offset = int.from_bytes(rest[16:], "big")
            drop_delayed(stage, partition, due, offset, decode_waiting(value).job_id)
            moved += 1
        elif (due, rest) <= position and rest[:16] == PURGE:
            _purge_behind(stage, partition, key, rest[16:])
            moved += 1
        if moved >= limit:
            return False
    return True


def _purge_behind(stage: Staging, partition: int, key: bytes, name: bytes) -> None:
    """Forget what another owner's hand has passed (a key only if it is still gone)."""
    stage.delete(key)
    if name[:1] == COMMAND:
        stage.delete(command_key(partition, name[1:].decode()))
    elif decode_entry(stage.get(job_key(partition, name))).version is None:
        stage.delete(job_key(partition, name))


def _advance_cohort(
    stage: Staging, partition: int, key: bytes, digest: bytes, position: Position
) -> None:
    stage.delete(key)
    value = stage.get(cohort_key(partition, digest))
    if value is None:
        return
    entry = decode_cohort(value)
    cohort = cohort_of(entry.cohort)
    place(stage, partition, cohort, max(_beyond(cohort, position), entry.since_ms))


def _recurring(cohort: Cohort) -> Schedule:
    spec = cohort.schedule
    if isinstance(spec, OnceSpec):
        raise InvariantViolation("a one-shot's cohort has no schedule")
    return schedule_of(spec)
