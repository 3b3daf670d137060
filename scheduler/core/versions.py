"""Versions of a definition: what one record of ``jobs`` does to what is known of its key.

Theory of operation. A record is *accepted* in the transaction that commits its position, once
(`accept`), or *absorbed* by a store that follows what was accepted elsewhere or rebuilds it
(`absorb`). Versions divide nominal time: a version begins at E; nominal instants at or before
E belong to its predecessor and are settled under the predecessor's policies when the new
version is accepted. So an edit never fires into the past, nothing falls between two versions,
and no run key is sent by both.

    E = T                            for a new job (T: append time of its record)
    E = max(T, cursor's due, E')     where a predecessor (or a deletion) with E' is known

The cursor's due instant counts as wholly decided, whatever its resume key; E is never below the
predecessor's (append times can step back). Where a rebuild could not work E out again, it is
written to ``cursors`` in the same transaction (a `Fact`).

Our own guarded records repeat an effective definition (or deletion) so that compaction cannot
lose it. They never fire anything into the past, and are void once a later record of a user
exists; then the effective one is written again.

Worked example. Version A fires every 10 s, cursor 100. B (every 7 s) is appended at 103 and
accepted when the cursor is 100: E = 103. Accepting B settles A's instants in (100, 103]: none.
Had B been appended at 112, A's instant 110 would be sent by A, and B's 105 never.
"""

from dataclasses import dataclass, replace

from scheduler.core.definition import FOREVER_MS, CompiledJob
from scheduler.core.draft import Draft
from scheduler.core.guard import (
    GUARD_HEADER,
    Guard,
    Why,
)
from scheduler.core.layout import (
    PURGE,
    Gone,
    JobEntry,
    Version,
    encode_member,
    encode_one_shot,
    member_key,
    wheel_key,
)
from scheduler.core.placement import join_cohort
from scheduler.core.records import Incoming
from scheduler.core.settle import (
    one_shot_key,
)
from scheduler.errors import DefinitionError, present


@dataclass(frozen=True, slots=True)
class Source:
    """A user's record, wherever it was first written."""

    offset: int
    appended_ms: int
    moved: bool = False


def clears_bad_key(draft: Draft, record: Incoming) -> bool:
    """Our own tombstone behind a key that is no job id: forget the key, answer nothing.

    Refusing it like a user's record would write the next one, and so on for ever.
    """
    if record.value is not None or all(name != GUARD_HEADER for name, _ in record.headers):
        return False
    try:
        draft.decoder.job_id(record.key)
    except DefinitionError:
        draft.set_entry(record.key or b"", None)
        return True
    return False


def follow_guard(draft: Draft, record: Incoming, guard: Guard, begin_ms: int) -> None:
    """A guarded record that holds: it brings or confirms the effective definition."""
    key = record.key or b""
    entry = draft.entry(key)
    last = max(entry.last_offset, guard.acts_on)
    if record.value is None:
        _follow_tombstone(draft, key, entry, guard, last)
    elif entry.version is not None and entry.version.offset == guard.source:
        draft.set_entry(key, replace(entry, last_offset=last))
    else:
        job_id = draft.decoder.job_id(key)
        job = draft.decoder.job(job_id, record.value, guard.source)
        version = version_of(job, Source(guard.source, guard.appended_ms), begin_ms, record.value)
        new = JobEntry(version, last, max(entry.last_ms, guard.appended_ms), begin_ms,
                       entry.deletion_offset)  # fmt: skip
        exchange(draft, key, entry, new, job)


def _follow_tombstone(draft: Draft, key: bytes, entry: JobEntry, guard: Guard, last: int) -> None:
    deletion = entry.deletion_offset
    if guard.why is Why.DELETED:
        deletion = max(deletion, guard.source)
        new = replace(entry, version=None, last_offset=last, deletion_offset=deletion,
                      begin_ms=max(entry.begin_ms, guard.appended_ms),
                      gone=Gone.DELETED)  # fmt: skip
        exchange(draft, key, entry, new, None)
    elif deletion >= 0 and remember(draft, key, guard.appended_ms):
        new = replace(entry, version=None, last_offset=last, gone=Gone.DELETED)
        exchange(draft, key, entry, new, None)
    else:
        exchange(draft, key, entry, None, None)


def remember(draft: Draft, key: bytes, since_ms: int) -> bool:
    """Plan to forget a key that has a deletion on record; whether it is to be kept until then."""
    due = since_ms + draft.setting.forget_ms
    if due <= draft.before[0]:
        return False
    draft.stage.put(wheel_key(draft.partition, due, PURGE + key), b"")
    return True


def recalled(draft: Draft, key: bytes, offset: int, appended_ms: int) -> int:
    """E as the accepting transaction decided it, where it had to be kept; else T."""
    fact = draft.facts(key)
    if fact is not None and fact.definition_offset == offset:
        return fact.begin_ms
    return appended_ms


def version_of(job: CompiledJob, source: Source, begin_ms: int, value: bytes) -> Version:
    """The version a compiled definition is from ``begin_ms`` on."""
    valid_from = begin_ms if job.start_ms is None else max(begin_ms, job.start_ms - 1)
    return Version(
        offset=source.offset,
        appended_ms=source.appended_ms,
        begin_ms=begin_ms,
        cohort=job.cohort.digest,
        run_at_ms=job.run_at_ms,
        valid_from_ms=valid_from,
        valid_to_ms=FOREVER_MS if job.end_ms is None else job.end_ms,
        paused=job.paused,
        value=value,
    )


def exchange(
    draft: Draft, key: bytes, old: JobEntry, new: JobEntry | None, job: CompiledJob | None
) -> None:
    """Take the old version off the wheel and put the new one on it."""
    if old.version is not None:
        _take_off(draft, key, old.version)
    if new is not None and new.version is not None:
        _put_on(draft, key, new.version, present(job, "a version is put on with its job"))
    draft.set_entry(key, new)


def _put_on(draft: Draft, key: bytes, version: Version, job: CompiledJob) -> None:
    partition, stage = draft.partition, draft.stage
    if draft.joined.get(version.cohort, FOREVER_MS) > version.valid_from_ms:
        join_cohort(stage, partition, job.cohort, draft.until, version.valid_from_ms)
        draft.joined[version.cohort] = version.valid_from_ms
    if version.paused:
        return
    if version.run_at_ms is not None:
        value = encode_one_shot(version.run_at_ms, version.offset, version.cohort, job.body)
        stage.put(one_shot_key(draft, key, version), value)
    else:
        value = encode_member(version.valid_from_ms, version.valid_to_ms, version.offset, job.body)
        stage.put(member_key(partition, version.cohort, key), value)


def _take_off(draft: Draft, key: bytes, version: Version) -> None:
    if version.run_at_ms is not None:
        draft.stage.delete(one_shot_key(draft, key, version))
    else:
        draft.stage.delete(member_key(draft.partition, version.cohort, key))
