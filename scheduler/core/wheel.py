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
from scheduler.core.definition import FOREVER_MS, Cohort
from scheduler.core.draft import Draft, Due, end_of
from scheduler.core.instant import format_instant
from scheduler.core.layout import (
    COMMAND,
    DELAYED,
    MEMBER_HEAD,
    MEMBER_ID,
    ONE_SHOT,
    PURGE,
    cohort_key,
    command_key,
    decode_instant,
    decode_one_shot,
    decode_waiting,
    member_range,
    resume_key,
    unpack_member,
    wheel_key,
    wheel_position,
)
from scheduler.core.misfire import Outcome, is_last, outcome
from scheduler.core.placement import drop_delayed, place
from scheduler.core.records import Outgoing

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
        self._outcome = outcome(cohort, draft.now_ms - due, self._is_last(FOREVER_MS))
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
            if self._outcome is Outcome.SUPERSEDED and self._is_last(valid_to):
                due = Due(self._nominal, self._due, Outcome.MISFIRE.value)
                draft.send(job_id, self._cohort.queue, value[MEMBER_HEAD:], due)
            else:
                draft.miss(job_id, offset, self._nominal, self._outcome.value)

    def _is_last(self, valid_to: int) -> bool:
        return is_last(self._cohort, self._nominal, self._draft.now_ms, valid_to)


def _fire_one_shot(draft: Draft, plan: Walk, due: int, job_id: bytes, value: bytes) -> None:
    nominal, offset, digest, body = decode_one_shot(value)
    cohort = draft.cohort(digest)
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
    return place(draft.stage, draft.partition, cohort, decode_instant(value))
