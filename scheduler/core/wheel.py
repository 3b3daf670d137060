"""The wheel: from where the hand stands to where it may go.

Theory of operation. Keys sorted by due time are the timing wheel, the cursor is its hand. A
recurring cohort has exactly one entry, at its next effective instant after the cursor; when it
fires, every member whose valid range covers the nominal instant is dispatched and the entry
moves on. One-shots and delayed runs have an entry each. Positions are ``(due, key)`` with
``key = cohort + job id``: a transaction may stop between any two members, and the cursor then
names the last one decided.

Invariant: after a decision with cursor C', every recurring cohort's entry lies at its first
instant whose position is beyond C'. Entries behind the cursor are leftovers: one-shots that
wait for their garbage collection; nothing is ever dispatched from there.

Example. Members a, b, c of one cohort are due at 1000 and the budget is two: a and b are sent
and the cursor becomes (1000, cohort + b). The next decision starts at c.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.core.command import command_head, command_tail
from scheduler.core.cursor import Position
from scheduler.core.definition import FOREVER_MS, Cohort, OnceSpec
from scheduler.core.draft import Draft, Due, cohort_of, end_of
from scheduler.core.instant import format_instant
from scheduler.core.layout import (
    COMMAND,
    DELAYED,
    MEMBER_HEAD,
    MEMBER_ID,
    ONE_SHOT,
    PURGE,
    CohortEntry,
    Waiting,
    cohort_key,
    command_key,
    decode_cohort,
    decode_entry,
    decode_instant,
    decode_one_shot,
    decode_waiting,
    delayed_key,
    encode_cohort,
    encode_instant,
    encode_waiting,
    encode_waiting_index,
    job_key,
    member_range,
    offset_key,
    resume_key,
    unpack_member,
    waiting_key,
    wheel_key,
    wheel_position,
)
from scheduler.core.misfire import Outcome, outcome
from scheduler.core.records import Outgoing
from scheduler.core.schedule import Schedule, schedule_of
from scheduler.core.staging import Staging
from scheduler.errors import invariant

_CHUNK = 2_000
"""Members read from the store at a time: a list of about 1 MB."""

Held = Mapping[bytes, int]
"""Job id -> oldest nominal instant still waiting as a delayed run of ours."""


@dataclass(slots=True)
class Walk:
    """How the hand is to go.

    Attributes:
        target: the position it may reach.
        budget: runs (dispatched or recorded) this walk may decide, and entries it may visit.
        skip: keys with records in the same transaction; they are settled one by one.
        held: see `Held`.
        promise: whether ``settled_below`` may be promised at all.
    """

    target: Position
    budget: int
    skip: set[bytes]
    held: Held = field(default_factory=dict)
    promise: bool = True


def walk(draft: Draft, plan: Walk) -> Position:
    """Decide all that is due after ``draft.before``, up to the target or the budget.

    Returns:
        The position up to which everything is decided.

    Cost: one seek, one pass over the members of the cohorts that are due, one cron step and
    two writes a cohort; nothing is written per run.
    """
    if plan.target <= draft.before:
        return draft.before
    entries, unread = _load(draft, plan)
    reached = draft.before
    while entries and entries[0][:2] <= plan.target:
        due, key, value = entries[0]
        left = plan.budget - draft.runs
        draft.steps += 1
        if left <= 0 or draft.steps > plan.budget or (unread is not None and (due, key) >= unread):
            return reached
        heapq.heappop(entries)
        decided = draft.runs
        stopped = _decide_entry(draft, plan, due, key, value, left)
        if stopped is not None:
            return stopped
        reached = max(reached, end_of(due, key, whole=len(key) == 16))
        if len(key) == 16:
            following = _move_on(draft, due, key, value, draft.runs > decided)
            if following is not None:
                heapq.heappush(entries, following)
    return plan.target if unread is None else reached


def _load(draft: Draft, plan: Walk) -> tuple[list[tuple[int, bytes, bytes]], Position | None]:
    """The wheel entries up to the target as a heap, and the first one that was not loaded."""
    lower = resume_key(draft.partition, draft.before)
    upper = wheel_key(draft.partition, plan.target[0] + 1, b"")
    limit = max(plan.budget - draft.runs, 0) + 2
    found = draft.stage.scan(lower, upper, limit)
    unread = wheel_position(found.pop()[0]) if len(found) == limit else None
    entries = [(*wheel_position(key), value) for key, value in found]
    heapq.heapify(entries)
    return entries, unread


def _decide_entry(
    draft: Draft, plan: Walk, due: int, key: bytes, value: bytes, left: int
) -> Position | None:
    """Decide one wheel entry; a position if the budget ended within it, else ``None``."""
    kind, rest = key[:16], key[16:]
    if len(key) == 16:
        half_done = draft.before[0] == due and draft.before[1][:16] == key
        after = draft.before[1][16:] if half_done else b""
        return _fire_cohort(draft, plan, (due, key, decode_instant(value)), after, left)
    if (due, key) <= draft.before:
        return None
    if kind == ONE_SHOT and rest not in plan.skip:
        _fire_one_shot(draft, plan, due, rest, value)
    elif kind == DELAYED:
        _fire_delayed(draft, plan, due, int.from_bytes(rest, "big"), value)
    elif kind == PURGE and rest not in plan.skip:
        _purge(draft, due, rest)
    return None


def _fire_cohort(
    draft: Draft, plan: Walk, entry: tuple[int, bytes, int], after: bytes, left: int
) -> Position | None:
    due, digest, nominal = entry
    cohort = draft.cohort(digest)
    invariant(cohort is not None, f"cohort {digest.hex()} of partition {draft.partition} is gone")
    assert cohort is not None
    fire = _Fire(draft, plan, cohort, due, nominal)
    while True:
        lower, upper = member_range(draft.partition, digest, after)
        members = draft.stage.scan(lower, upper, min(left, _CHUNK))
        if not members:
            return None
        fire.members(members)
        after = members[-1][0][MEMBER_ID:]
        left -= len(members)
        if left <= 0:
            return (due, digest + after)


class _Fire:
    """One cohort at one instant."""

    def __init__(self, draft: Draft, plan: Walk, cohort: Cohort, due: int, nominal: int) -> None:
        self._draft, self._plan, self._cohort = draft, plan, cohort
        self._due, self._nominal = due, nominal
        self._schedule = schedule_of(cohort.schedule) if not isinstance(
            cohort.schedule, OnceSpec) else None  # fmt: skip
        self._outcome = outcome(cohort, draft.now_ms - due, self._is_last(cohort, None))
        text = format_instant(nominal)
        self._texts = (text, format_instant(due), self._outcome.value)
        self._head = command_head(*self._texts, text if plan.promise else None)
        self._tail = command_tail(text)

    def members(self, pairs: list[tuple[bytes, bytes]]) -> None:
        """Decide these members: the hot path of the whole system."""
        if not self._outcome.sends:
            self._miss(pairs)
            return
        nominal, skip, held = self._nominal, self._plan.skip, self._plan.held
        head, tail = self._head, self._tail
        out = self._draft.messages(self._cohort.queue)
        before = len(out)
        for key, value in pairs:
            valid_from, valid_to, _ = unpack_member(value)
            if valid_from < nominal <= valid_to:
                job_id = key[MEMBER_ID:]
                if job_id in skip:
                    continue
                if job_id in held:
                    out.append((job_id, self._held_head(held[job_id]) + value[MEMBER_HEAD:] + tail))
                else:
                    out.append((job_id, head + value[MEMBER_HEAD:] + tail))
        self._draft.runs += len(out) - before

    def _held_head(self, oldest_ms: int) -> bytes:
        settled = format_instant(min(self._nominal, oldest_ms)) if self._plan.promise else None
        return command_head(*self._texts, settled)

    def _miss(self, pairs: list[tuple[bytes, bytes]]) -> None:
        draft = self._draft
        for key, value in pairs:
            valid_from, valid_to, offset = unpack_member(value)
            job_id = key[MEMBER_ID:]
            if not valid_from < self._nominal <= valid_to or job_id in self._plan.skip:
                continue
            if self._outcome is Outcome.SUPERSEDED and self._is_last(self._cohort, valid_to):
                due = Due(self._nominal, self._due, Outcome.MISFIRE.value)
                draft.send(job_id, self._cohort.queue, value[MEMBER_HEAD:], due)
            else:
                draft.miss(job_id, offset, self._nominal, self._outcome.value)

    def _is_last(self, cohort: Cohort, valid_to: int | None) -> bool:
        """Whether no later instant (up to ``valid_to``) is a misfire by now as well."""
        line = self._draft.now_ms - cohort.grace_ms - 1 - cohort.jitter_ms
        upto = line if valid_to is None else min(line, valid_to)
        if self._schedule is None or upto <= self._nominal:
            return True
        return self._schedule.last_through(self._nominal, upto) is None


def _fire_one_shot(draft: Draft, plan: Walk, due: int, job_id: bytes, value: bytes) -> None:
    nominal, offset, digest, body = decode_one_shot(value)
    cohort = draft.cohort(digest)
    invariant(cohort is not None, f"policies of one-shot {job_id!r} are gone")
    assert cohort is not None
    result = outcome(cohort, draft.now_ms - due, last=True)
    if not result.sends:
        draft.miss(job_id, offset, nominal, result.value)
        return
    settled = min(nominal, plan.held.get(job_id, nominal)) if plan.promise else None
    draft.send(job_id, cohort.queue, body, Due(nominal, due, result.value, settled))


def _fire_delayed(draft: Draft, plan: Walk, due: int, offset: int, value: bytes) -> None:
    waiting = decode_waiting(value)
    if waiting.job_id in plan.skip:
        return
    dispatch_delayed(draft, due, offset, value)


def dispatch_delayed(draft: Draft, due: int, offset: int, value: bytes) -> None:
    """Send a delayed run and take it off the wheel."""
    waiting = decode_waiting(value)
    draft.to_runs(waiting.job_id, waiting.queue, waiting.command)
    drop_delayed(draft.stage, draft.partition, due, offset, waiting.job_id)
    if waiting.ours:
        draft.held.append((waiting.job_id, waiting.nominal_ms, -1))


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


def _purge(draft: Draft, due: int, job_id: bytes) -> None:
    """Forget a command, or a key deleted long enough ago and what `cursors` says of it."""
    draft.stage.delete(wheel_key(draft.partition, due, PURGE + job_id))
    if job_id[:1] == COMMAND:
        draft.stage.delete(command_key(draft.partition, job_id[1:].decode()))
        return
    entry = draft.entry(job_id)
    if entry.version is not None or entry.begin_ms + draft.setting.forget_ms > due:
        return
    draft.set_entry(job_id, None)
    routes = draft.setting.routes
    key = fact_key(draft.partition, job_id)
    draft.records.append(
        Outgoing(routes.cursors, draft.partition % routes.cursor_partitions, key, None)
    )


def fact_key(partition: int, job_id: bytes) -> bytes:
    """Key of a job's fact in ``cursors``."""
    return b"%d/%s" % (partition, job_id)


# ---- cohorts ------------------------------------------------------------------------------


def _move_on(
    draft: Draft, due: int, digest: bytes, value: bytes, had_members: bool
) -> tuple[int, bytes, bytes] | None:
    """Move a fired cohort's entry to its next instant; drop a cohort without members."""
    draft.stage.delete(wheel_key(draft.partition, due, digest))
    lower, upper = member_range(draft.partition, digest, b"")
    if not had_members and not draft.stage.scan(lower, upper, 1):
        draft.stage.delete(cohort_key(draft.partition, digest))
        return None
    cohort = draft.cohort(digest)
    assert cohort is not None
    return place(draft.stage, draft.partition, cohort, decode_instant(value))


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


def beyond(cohort: Cohort, position: Position, job_id: bytes | None = None) -> int:
    """The greatest nominal instant that is decided at ``position``.

    For one member, or for the whole cohort: there an instant counts as decided only once all
    members are.
    """
    due, resume = position
    nominal = due - cohort.jitter_ms
    key = cohort.digest + (b"\xff" if job_id is None else job_id)
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
    since = max(beyond(cohort, position), valid_from_ms)
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
    place(stage, partition, cohort, max(beyond(cohort, position), entry.since_ms))


def _recurring(cohort: Cohort) -> Schedule:
    spec = cohort.schedule
    invariant(not isinstance(spec, OnceSpec), "a one-shot's cohort has no schedule")
    assert not isinstance(spec, OnceSpec)
    return schedule_of(spec)
