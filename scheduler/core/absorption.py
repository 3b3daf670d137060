"""Absorbing a record of ``jobs`` that was accepted already: a store follows, or is rebuilt.

The rules are told in core/versions.py.
"""

from dataclasses import replace

from scheduler.core.draft import Draft
from scheduler.core.guard import (
    Guard,
    Why,
    guard_of,
    if_offset_of,
)
from scheduler.core.layout import (
    Gone,
    JobEntry,
    decode_waiting_index,
    waiting_id,
    waiting_range,
)
from scheduler.core.placement import drop_delayed
from scheduler.core.records import Incoming
from scheduler.core.versions import (
    Source,
    clears_bad_key,
    exchange,
    follow_guard,
    recalled,
    remember,
    version_of,
)
from scheduler.errors import DefinitionError


def absorb(draft: Draft, record: Incoming) -> None:
    """Apply a record that was accepted already, perhaps elsewhere; sends nothing.

    Only ``draft.stage`` changes. The outcome is the same state that the accepting worker
    holds, as far as anything after the cursor depends on it.
    """
    key = record.key or b""
    if clears_bad_key(draft, record):
        return
    try:
        guard = guard_of(record.headers)
        job_id = draft.decoder.job_id(record.key)
        if draft.decoder.partition(key) != draft.partition:
            return
        entry = draft.entry(key)
        if guard is None or guard.why is Why.MOVED:
            _absorb_user(draft, record, job_id, entry, guard)
        elif guard.acts_on >= entry.last_offset:
            begin = recalled(draft, key, guard.source, guard.appended_ms)
            follow_guard(draft, record, guard, begin)
    except (DefinitionError, ValueError):
        entry = draft.entry(key)
        gone = Gone.REFUSED if entry.version is None and entry.gone is None else entry.gone
        draft.set_entry(key, replace(entry, last_offset=record.offset,
                                     last_ms=record.appended_ms, gone=gone))  # fmt: skip


def _absorb_user(
    draft: Draft, record: Incoming, job_id: str, entry: JobEntry, guard: Guard | None
) -> None:
    key = record.key or b""
    source = Source(record.offset, record.appended_ms if guard is None else guard.appended_ms)
    if guard is not None and entry.last_ms > guard.appended_ms:
        return
    if _condition_failed(entry, record):
        raise DefinitionError("", "condition failed")
    begin_ms = recalled(draft, key, source.offset, source.appended_ms)
    if record.value is None:
        new = JobEntry(None, source.offset, source.appended_ms, begin_ms, source.offset,
                       Gone.DELETED)  # fmt: skip
        exchange(draft, key, entry, new, None)
        _drop_void(draft, key, source.offset)
        remember(draft, key, begin_ms)
        return
    job = draft.decoder.job(job_id, record.value, source.offset)
    version = version_of(job, source, begin_ms, record.value)
    new = JobEntry(version, source.offset, source.appended_ms, begin_ms, entry.deletion_offset)
    exchange(draft, key, entry, new, job)


def _drop_void(draft: Draft, key: bytes, deletion_offset: int) -> None:
    """What an accepted deletion made void; whoever accepted it has recorded that."""
    lower, upper = waiting_range(draft.partition, key)
    for index, value in draft.stage.scan(lower, upper, 1 << 30):
        job_id, offset = waiting_id(index)
        due, _, definition_offset, _ = decode_waiting_index(value)
        if definition_offset < deletion_offset:
            drop_delayed(draft.stage, draft.partition, due, offset, job_id)


def _condition_failed(entry: JobEntry, record: Incoming) -> bool:
    """Whether a conditional edit was refused because another version was in force.

    Whether a one-shot had been sent cannot be seen here any more: then a guarded copy of the
    kept one follows it.
    """
    wanted = if_offset_of(record.headers)
    return wanted is not None and (entry.version is None or entry.version.offset != wanted)
