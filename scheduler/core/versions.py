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
from scheduler.core.draft import Draft, spell
from scheduler.core.guard import (
    GUARD_HEADER,
    Guard,
    Why,
    guard_headers,
    guard_of,
    if_offset_of,
)
from scheduler.core.layout import (
    DELAYED,
    ONE_SHOT,
    PURGE,
    UNKNOWN,
    Gone,
    JobEntry,
    Version,
    decode_waiting,
    decode_waiting_index,
    delayed_key,
    encode_member,
    encode_one_shot,
    member_key,
    waiting_id,
    waiting_range,
    wheel_key,
)
from scheduler.core.records import Incoming, Outgoing
from scheduler.core.reports import Fact, encode_fact, job_deleted_value
from scheduler.core.settle import (
    Cut,
    Ruling,
    Span,
    effective_ms,
    instants,
    one_shot_key,
    settle,
)
from scheduler.core.wheel import drop_delayed, fact_key, join_cohort
from scheduler.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class _Source:
    """A user's record, wherever it was first written."""

    offset: int
    appended_ms: int
    moved: bool = False


# ---- accepting (the owner, inside a transaction) ---------------------------------------------


def accept(draft: Draft, record: Incoming) -> None:
    """Take one record of ``jobs`` into force, or refuse it; never raises for bad input."""
    key = record.key or b""
    if _clears_bad_key(draft, record):
        return
    try:
        guard = guard_of(record.headers)
        job_id = draft.decoder.job_id(record.key)
        if draft.decoder.partition(key) != draft.partition:
            _move(draft, record, guard)
        elif guard is None:
            _accept_user(draft, record, job_id, _Source(record.offset, record.appended_ms))
        elif guard.why is Why.MOVED:
            _accept_moved(draft, record, job_id, guard)
        else:
            _accept_guarded(draft, record, guard)
    except DefinitionError as error:
        refuse(draft, record, error)
    except ValueError as error:
        refuse(draft, record, DefinitionError("headers", str(error)))


def _clears_bad_key(draft: Draft, record: Incoming) -> bool:
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


def _accept_user(draft: Draft, record: Incoming, job_id: str, source: _Source) -> None:
    key = record.key or b""
    entry = draft.entry(key)
    _check_condition(draft, key, entry, record)
    if record.value is None:
        _accept_deletion(draft, key, entry, source)
        return
    job = draft.decoder.job(job_id, record.value, source.offset)
    begin_ms = _begin(draft, entry, source)
    _settle_predecessor(draft, key, entry, begin_ms, Cut.EDIT)
    version = _version(job, source, begin_ms, record.value)
    new = JobEntry(version, source.offset, source.appended_ms, begin_ms, entry.deletion_offset)
    _exchange(draft, key, entry, new, job)
    draft.fresh.add(key)
    draft.accepted.add(key)
    _tell_accepted(draft, key, new, job, source)


def _accept_deletion(draft: Draft, key: bytes, entry: JobEntry, source: _Source) -> None:
    if entry is UNKNOWN or (entry.version is None and entry.gone is not Gone.DELETED):
        begin_ms = _begin(draft, entry, source)
    else:
        begin_ms = max(source.appended_ms, draft.before[0], entry.begin_ms)
    _settle_predecessor(draft, key, entry, begin_ms, Cut.DELETION)
    new = JobEntry(None, source.offset, source.appended_ms, begin_ms, source.offset, Gone.DELETED)
    _exchange(draft, key, entry, new, None)
    draft.fresh.discard(key)
    _void_waiting(draft, key)
    _remember(draft, key, begin_ms)
    draft.accepted.add(key)
    draft.deleted.add(key)
    if entry.version is not None:
        cohort = draft.cohort(entry.version.cohort)
        queue = "default" if cohort is None else cohort.queue
        draft.messages(queue).append((key, job_deleted_value(spell(key))))
    draft.status(key, "deleted", definition_offset=source.offset, effective_from_ms=begin_ms)


def _accept_moved(draft: Draft, record: Incoming, job_id: str, guard: Guard) -> None:
    """A record that was produced to a wrong partition: a user's, at its original append time."""
    key = record.key or b""
    if draft.entry(key).last_ms > guard.appended_ms:
        _write_again(draft, key, draft.entry(key))
        return
    _accept_user(draft, record, job_id, _Source(record.offset, guard.appended_ms, moved=True))


def _accept_guarded(draft: Draft, record: Incoming, guard: Guard) -> None:
    key = record.key or b""
    entry = draft.entry(key)
    if guard.acts_on < entry.last_offset:
        _write_again(draft, key, entry)
        return
    begin_ms = max(_recalled(draft, key, guard.source, guard.appended_ms), draft.before[0])
    _follow_guard(draft, record, guard, begin_ms)


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


def _begin(draft: Draft, entry: JobEntry, source: _Source) -> int:
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
    draft: Draft, key: bytes, entry: JobEntry, job: CompiledJob, source: _Source
) -> None:
    version = entry.version
    assert version is not None
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


# ---- absorbing (a store below the accepted position) -----------------------------------------


def absorb(draft: Draft, record: Incoming) -> None:
    """Apply a record that was accepted already, perhaps elsewhere; sends nothing.

    Only ``draft.stage`` changes. The outcome is the same state that the accepting worker
    holds, as far as anything after the cursor depends on it.
    """
    key = record.key or b""
    if _clears_bad_key(draft, record):
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
            begin = _recalled(draft, key, guard.source, guard.appended_ms)
            _follow_guard(draft, record, guard, begin)
    except (DefinitionError, ValueError):
        entry = draft.entry(key)
        gone = Gone.REFUSED if entry.version is None and entry.gone is None else entry.gone
        draft.set_entry(key, replace(entry, last_offset=record.offset,
                                     last_ms=record.appended_ms, gone=gone))  # fmt: skip


def _absorb_user(
    draft: Draft, record: Incoming, job_id: str, entry: JobEntry, guard: Guard | None
) -> None:
    key = record.key or b""
    source = _Source(record.offset, record.appended_ms if guard is None else guard.appended_ms)
    if guard is not None and entry.last_ms > guard.appended_ms:
        return
    if _condition_failed(entry, record):
        raise DefinitionError("", "condition failed")
    begin_ms = _recalled(draft, key, source.offset, source.appended_ms)
    if record.value is None:
        new = JobEntry(None, source.offset, source.appended_ms, begin_ms, source.offset,
                       Gone.DELETED)  # fmt: skip
        _exchange(draft, key, entry, new, None)
        _drop_void(draft, key, source.offset)
        _remember(draft, key, begin_ms)
        return
    job = draft.decoder.job(job_id, record.value, source.offset)
    version = _version(job, source, begin_ms, record.value)
    new = JobEntry(version, source.offset, source.appended_ms, begin_ms, entry.deletion_offset)
    _exchange(draft, key, entry, new, job)


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


# ---- shared by both --------------------------------------------------------------------------


def _follow_guard(draft: Draft, record: Incoming, guard: Guard, begin_ms: int) -> None:
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
        version = _version(job, _Source(guard.source, guard.appended_ms), begin_ms, record.value)
        new = JobEntry(version, last, max(entry.last_ms, guard.appended_ms), begin_ms,
                       entry.deletion_offset)  # fmt: skip
        _exchange(draft, key, entry, new, job)


def _follow_tombstone(draft: Draft, key: bytes, entry: JobEntry, guard: Guard, last: int) -> None:
    deletion = entry.deletion_offset
    if guard.why is Why.DELETED:
        deletion = max(deletion, guard.source)
        new = replace(entry, version=None, last_offset=last, deletion_offset=deletion,
                      begin_ms=max(entry.begin_ms, guard.appended_ms),
                      gone=Gone.DELETED)  # fmt: skip
        _exchange(draft, key, entry, new, None)
    elif deletion >= 0 and _remember(draft, key, guard.appended_ms):
        new = replace(entry, version=None, last_offset=last, gone=Gone.DELETED)
        _exchange(draft, key, entry, new, None)
    else:
        _exchange(draft, key, entry, None, None)


def _remember(draft: Draft, key: bytes, since_ms: int) -> bool:
    """Plan to forget a key that has a deletion on record; whether it is to be kept until then."""
    due = since_ms + draft.setting.forget_ms
    if due <= draft.before[0]:
        return False
    draft.stage.put(wheel_key(draft.partition, due, PURGE + key), b"")
    return True


def _recalled(draft: Draft, key: bytes, offset: int, appended_ms: int) -> int:
    """E as the accepting transaction decided it, where it had to be kept; else T."""
    fact = draft.facts(key)
    if fact is not None and fact.definition_offset == offset:
        return fact.begin_ms
    return appended_ms


def _version(job: CompiledJob, source: _Source, begin_ms: int, value: bytes) -> Version:
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


def _exchange(
    draft: Draft, key: bytes, old: JobEntry, new: JobEntry | None, job: CompiledJob | None
) -> None:
    """Take the old version off the wheel and put the new one on it."""
    if old.version is not None:
        _take_off(draft, key, old.version)
    if new is not None and new.version is not None:
        assert job is not None
        _put_on(draft, key, new.version, job)
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
