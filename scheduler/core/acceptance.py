"""Accepting a record of ``jobs``: the owner takes it into force, or refuses it, in a transaction.

The rules are told in core/versions.py.
"""

from dataclasses import replace

from scheduler.core.definition import CompiledJob
from scheduler.core.draft import Draft, spell
from scheduler.core.guard import (
    Guard,
    Why,
    guard_headers,
    guard_of,
    if_offset_of,
)
from scheduler.core.layout import (
    DELAYED,
    ONE_SHOT,
    UNKNOWN,
    Gone,
    JobEntry,
    Version,
    decode_waiting,
    decode_waiting_index,
    delayed_key,
    waiting_id,
    waiting_range,
)
from scheduler.core.placement import drop_delayed
from scheduler.core.records import Incoming, Outgoing
from scheduler.core.reports import Fact, encode_fact, job_deleted_value
from scheduler.core.settle import (
    Cut,
    Ruling,
    Span,
    effective_ms,
    instants,
    settle,
)
from scheduler.core.versions import (
    Source,
    clears_bad_key,
    exchange,
    follow_guard,
    recalled,
    remember,
    version_of,
)
from scheduler.core.wheel import fact_key
from scheduler.errors import DefinitionError, present


def accept(draft: Draft, record: Incoming) -> None:
    """Take one record of ``jobs`` into force, or refuse it; never raises for bad input."""
    key = record.key or b""
    if clears_bad_key(draft, record):
        return
    try:
        guard = guard_of(record.headers)
        job_id = draft.decoder.job_id(record.key)
        if draft.decoder.partition(key) != draft.partition:
            _move(draft, record, guard)
        elif guard is None:
            _accept_user(draft, record, job_id, Source(record.offset, record.appended_ms))
        elif guard.why is Why.MOVED:
            _accept_moved(draft, record, job_id, guard)
        else:
            _accept_guarded(draft, record, guard)
    except DefinitionError as error:
        refuse(draft, record, error)
    except ValueError as error:
        refuse(draft, record, DefinitionError("headers", str(error)))


def _accept_user(draft: Draft, record: Incoming, job_id: str, source: Source) -> None:
    key = record.key or b""
    entry = draft.entry(key)
    _check_condition(draft, key, entry, record)
    if record.value is None:
        _accept_deletion(draft, key, entry, source)
        return
    job = draft.decoder.job(job_id, record.value, source.offset)
    begin_ms = _begin(draft, entry, source)
    _settle_predecessor(draft, key, entry, begin_ms, Cut.EDIT)
    version = version_of(job, source, begin_ms, record.value)
    new = JobEntry(version, source.offset, source.appended_ms, begin_ms, entry.deletion_offset)
    exchange(draft, key, entry, new, job)
    draft.fresh.add(key)
    draft.accepted.add(key)
    _tell_accepted(draft, key, new, job, source)


def _accept_deletion(draft: Draft, key: bytes, entry: JobEntry, source: Source) -> None:
    if entry is UNKNOWN or (entry.version is None and entry.gone is not Gone.DELETED):
        begin_ms = _begin(draft, entry, source)
    else:
        begin_ms = max(source.appended_ms, draft.before[0], entry.begin_ms)
    _settle_predecessor(draft, key, entry, begin_ms, Cut.DELETION)
    new = JobEntry(None, source.offset, source.appended_ms, begin_ms, source.offset, Gone.DELETED)
    exchange(draft, key, entry, new, None)
    draft.fresh.discard(key)
    _void_waiting(draft, key)
    remember(draft, key, begin_ms)
    draft.accepted.add(key)
    draft.deleted.add(key)
    if entry.version is not None:
        queue = _queue_of(draft, key, entry.version)
        draft.messages(queue).append((key, job_deleted_value(spell(key))))
    draft.status(key, "deleted", definition_offset=source.offset, effective_from_ms=begin_ms)


def _queue_of(draft: Draft, key: bytes, version: Version) -> str:
    """The queue of a version; its cohort may be gone if it was paused.

    A deletion holds, even of a definition that would be refused by now.
    """
    try:
        return draft.decoder.job(spell(key), version.value, version.offset).cohort.queue
    except DefinitionError:
        return "default"


def _accept_moved(draft: Draft, record: Incoming, job_id: str, guard: Guard) -> None:
    """A record that was produced to a wrong partition: a user's, at its original append time."""
    key = record.key or b""
    if draft.entry(key).last_ms > guard.appended_ms:
        _write_again(draft, key, draft.entry(key))
        return
    _accept_user(draft, record, job_id, Source(record.offset, guard.appended_ms, moved=True))


def _accept_guarded(draft: Draft, record: Incoming, guard: Guard) -> None:
    key = record.key or b""
    entry = draft.entry(key)
    if guard.acts_on < entry.last_offset:
        _write_again(draft, key, entry)
        return
    begin_ms = max(recalled(draft, key, guard.source, guard.appended_ms), draft.before[0])
    follow_guard(draft, record, guard, begin_ms)


def refuse(draft: Draft, record: Incoming, error: DefinitionError) -> None:
    """Leave the last good version in force, say why, and see that compaction keeps it."""
    key = record.key or b""
    entry = draft.entry(key)
    refused = replace(entry, last_offset=record.offset, last_ms=record.appended_ms)
    if entry.version is None and entry.gone is None:
        refused = replace(refused, gone=Gone.REFUSED)
    draft.set_entry(key, refused)
    _write_again(draft, key, refused)
    where = f"jobs[{record.partition}]@{record.offset}: "
    draft.status(key, "rejected", definition_offset=record.offset, error=where + error.reason,
                 path=error.path or None)  # fmt: skip


def _move(draft: Draft, record: Incoming, guard: Guard | None) -> None:
    """Send a misplaced record to its own partition and clear it here."""
    key, routes = record.key or b"", draft.setting.routes
    if guard is not None:
        return
    mark = guard_headers(Guard(record.offset, record.offset, record.appended_ms, Why.MOVED))
    conditions = tuple(h for h in record.headers if h[0] != "duewheel-guard")
    target = draft.decoder.partition(key)
    draft.records.append(Outgoing(routes.jobs, target, key, record.value, conditions + mark))
    draft.records.append(Outgoing(routes.jobs, draft.partition, key, None, mark))


def _check_condition(draft: Draft, key: bytes, entry: JobEntry, record: Incoming) -> None:
    wanted = if_offset_of(record.headers)
    if wanted is None:
        return
    version = entry.version
    if version is None or version.offset != wanted:
        current = "none" if version is None else str(version.offset)
        raise DefinitionError("", f"condition failed: the version in force is {current}, "
                              f"not {wanted}")  # fmt: skip
    if version.run_at_ms is not None:
        due = (effective_ms(draft, version, version.run_at_ms), ONE_SHOT + key)
        if due <= draft.before:
            raise DefinitionError("", "condition failed: the run was already dispatched")


def _begin(draft: Draft, entry: JobEntry, source: Source) -> int:
    """E of a version or deletion accepted now."""
    known = entry.version is not None or entry.gone in (Gone.DELETED, Gone.FINISHED)
    if known:
        return max(source.appended_ms, draft.before[0], entry.begin_ms)
    if source.appended_ms < draft.before[0] - 2 * draft.setting.outage_ms:
        return draft.before[0]  # so late that compaction may have taken its predecessor
    return source.appended_ms


def _settle_predecessor(draft: Draft, key: bytes, entry: JobEntry, begin_ms: int, cut: Cut) -> None:
    version = entry.version
    if version is None:
        return
    after = None if key in draft.fresh else draft.before
    nominals = instants(draft, key, version, Span(after, bound_ms=begin_ms))
    settle(draft, key, version, nominals, Ruling(cut, begin_ms))


def _void_waiting(draft: Draft, key: bytes) -> None:
    """A deletion ends what waits: delayed runs of any earlier definition are dropped."""
    lower, upper = waiting_range(draft.partition, key)
    for index, value in draft.stage.scan(lower, upper, 1 << 30):
        job_id, offset = waiting_id(index)
        due, nominal, _, ours = decode_waiting_index(value)
        stored = draft.stage.get(delayed_key(draft.partition, due, offset))
        drop_delayed(draft.stage, draft.partition, due, offset, job_id)
        if stored is None or (due, DELAYED + offset.to_bytes(8, "big")) <= draft.before:
            continue
        draft.miss_delayed(decode_waiting(stored))
        if ours:
            draft.held.append((job_id, nominal, -1))


def _write_again(draft: Draft, key: bytes, entry: JobEntry) -> None:
    """The key's last record is not its effective one: write that again, guarded."""
    version = entry.version
    if version is not None:
        guard = Guard(entry.last_offset, version.offset, version.appended_ms, Why.KEPT)
        value: bytes | None = version.value
    elif entry.gone is Gone.DELETED:
        guard = Guard(entry.last_offset, entry.deletion_offset, entry.begin_ms, Why.DELETED)
        value = None
    else:
        why = Why.FINISHED if entry.gone is Gone.FINISHED else Why.REFUSED
        guard = Guard(entry.last_offset, entry.last_offset, entry.last_ms, why)
        value = None
    jobs = draft.setting.routes.jobs
    draft.records.append(Outgoing(jobs, draft.partition, key, value, guard_headers(guard)))


def write_facts(draft: Draft) -> None:
    """Make those facts durable that a rebuild could not work out again.

    A beginning is needed only while an instant at or before it may still be pending; a user's
    deletion always (compaction may take its tombstone before the delayed runs it voids).
    """
    routes = draft.setting.routes
    partition = draft.partition % routes.cursor_partitions
    for key in sorted(draft.accepted):
        entry = draft.entry(key)
        version = entry.version
        if version is not None and _beginning_needed(draft, key, version):
            fact = Fact(version.offset, version.begin_ms, entry.deletion_offset)
        elif key in draft.deleted:
            fact = Fact(-1, 0, entry.deletion_offset)
        else:
            continue
        name = fact_key(draft.partition, key)
        draft.records.append(Outgoing(routes.cursors, partition, name, encode_fact(fact)))


def _beginning_needed(draft: Draft, key: bytes, version: Version) -> bool:
    if version.begin_ms <= version.appended_ms:
        return False
    if version.begin_ms > draft.until[0]:
        return True
    unbound = replace(version, valid_from_ms=version.appended_ms)
    span = Span(draft.until, bound_ms=version.begin_ms)
    return bool(instants(draft, key, unbound, span, limit=1))


def _tell_accepted(
    draft: Draft, key: bytes, entry: JobEntry, job: CompiledJob, source: Source
) -> None:
    version = present(entry.version, "an accepted definition has a version")
    after = None if version.run_at_ms is not None else draft.until
    pending = instants(draft, key, version, Span(after), limit=1)
    warnings = list(job.warnings)
    if source.moved:
        warnings.append("was produced to another partition than murmur2 of its key and was moved")
    if not pending and not version.paused and version.run_at_ms is None:
        warnings.append("its schedule has no further instant: it will never run")
    draft.status(
        key,
        "paused" if version.paused else "active",
        definition_offset=version.offset,
        effective_from_ms=version.begin_ms,
        next_run_ms=effective_ms(draft, version, pending[0]) if pending else None,
        warnings=warnings,
    )
