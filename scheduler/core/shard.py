"""A shard: the state machine of one partition.

Theory of operation. The state is ``f(jobs, job-commands, runs-retry, calendars up to their
accepted positions, cursor)``. `decide` looks at the store, the cursor and the records that were
read, and returns a `Decision`: what one transaction is to produce, the position and the cursor
it is to commit, and the writes to the store. Nothing changes until the transaction has
committed; then the writes are applied and `apply` moves the shard.

**One rule of acceptance.** A record is accepted in the transaction that commits its position,
once. Let C be the cursor before and C' the one committed. For records accepted earlier the
transaction sends what lies in (C, C']; for a record accepted now, whatever of it lies at or
before C' (and after the version's own beginning). Everything else is pending: due after C'. A
taker rebuilds the same by reading: below the position, pending is what is due after the
cursor; at or above it, new.

**Reading goes first.** A cursor that is behind by more than `Setting.catch_up_ms` does not move
before everything readable has been accepted; else a misfire policy could pick an instant of a
version that was replaced long ago.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.core.acceptance import accept, refuse, write_facts
from scheduler.core.collect import collect
from scheduler.core.cursor import WHOLE, Cursor, Position, encode_cursor
from scheduler.core.draft import Context, Draft
from scheduler.core.layout import (
    DELAYED,
    PartitionMeta,
    decode_waiting_index,
    delayed_key,
    encode_meta,
    meta_key,
    offset_key,
    offset_of,
    partition_range,
    resume_key,
    waiting_id,
    waiting_range,
    wheel_position,
)
from scheduler.core.ports import Write
from scheduler.core.records import Dispatch, Incoming, Outgoing
from scheduler.core.reports import backup_value
from scheduler.core.settle import Ruling, Span, instants, settle
from scheduler.core.takeup import accept_command, accept_delayed, refuse_record
from scheduler.core.wheel import Walk, dispatch_delayed, walk
from scheduler.errors import DefinitionError, RequestError, invariant

_POISON = "the broker refuses what taking it up would write; it was set aside"

_RECORDS_PER_TURN = 500
"""Records of one log accepted in one transaction: bounds its size when a flood comes in."""


@dataclass(slots=True)
class Inbox:
    """Records read at or beyond the accepted positions, in the order of their logs."""

    jobs: deque[Incoming] = field(default_factory=deque)
    commands: deque[Incoming] = field(default_factory=deque)
    retries: deque[Incoming] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.jobs or self.commands or self.retries)


@dataclass(frozen=True, slots=True)
class Decision:
    """One partition's share of one transaction.

    Attributes:
        position: offset of ``jobs[p]`` to commit, with ``cursor`` as its metadata.
        cost: runs dispatched or recorded as not dispatched, or wheel entries visited.
        taken: records consumed from the inbox: jobs, commands, retries.
        held: (job id, nominal, +1 or -1): delayed runs of ours that begin or end to wait.
        collected: finished one-shots up to here have their tombstones.
    """

    partition: int
    position: int
    cursor: Cursor
    dispatches: list[Dispatch]
    records: list[Outgoing]
    writes: list[Write]
    cost: int
    taken: tuple[int, int, int]
    held: list[tuple[bytes, int, int]]
    collected: Position

    @property
    def metadata(self) -> str:
        """Offset metadata of the commit."""
        return encode_cursor(self.cursor)


class Shard:
    """One live partition. Not thread-safe; owned by the worker's core thread."""

    def __init__(self, context: Context, position: int, cursor: Cursor, retry_end: int) -> None:
        """Take over at what is accepted.

        Args:
            context: what the partition's decisions stand on; its store is up to the positions.
            position: accepted position in ``jobs[p]``.
            cursor: accepted cursor.
            retry_end: end of ``runs-retry[p]`` (read uncommitted) seen at the take-over; until
                it is accepted, ``settled_below`` is not promised.
        """
        self.partition = context.partition
        self.position = position
        self.cursor = cursor
        self.inbox = Inbox()
        self._context, self._store, self._setting = context, context.store, context.setting
        self._retry_end = retry_end
        self.poisoned: set[tuple[str, int]] = set()
        self._held: dict[bytes, list[int]] = {}
        self._next_due: int | None = None
        self._collected: Position = (0, b"")
        self._load_held()
        self._find_next_due()

    # ---- looking ---------------------------------------------------------------------------

    @property
    def next_due_ms(self) -> int | None:
        """Due instant of the first wheel entry beyond the cursor; ``None`` for an empty wheel."""
        return self._next_due

    def wants_turn(self, hand_ms: int) -> bool:
        """Whether a transaction now would do something."""
        due = self._next_due
        return bool(self.inbox) or (due is not None and due <= hand_ms)

    # ---- deciding --------------------------------------------------------------------------

    def decide(self, now_ms: int, hand_ms: int, budget: int, drained: bool,
               most_records: int = _RECORDS_PER_TURN) -> Decision:  # fmt: skip
        """Decide this partition's share of a transaction. Changes nothing.

        Args:
            now_ms: wall time of this step.
            hand_ms: how far the cursor may go (never beyond broker time + 1 s).
            budget: runs to decide at most; one record's own acceptance may exceed it.
            drained: everything readable in the four logs is in the inbox.
            most_records: records of each log to accept at most.
        """
        draft = Draft(self._context, self.cursor, now_ms)
        jobs, retries, commands = self._next_records(most_records)
        all_taken = drained and len(jobs) == len(self.inbox.jobs)
        touched = {record.key for record in jobs if record.key is not None}
        promise = self.cursor.retries >= self._retry_end
        target = self._target(now_ms, hand_ms, all_taken=all_taken)
        draft.until = walk(draft, Walk(target, budget, touched, self._oldest_held(), promise))
        draft.look_up(touched)
        for record in jobs:
            if ("jobs", record.offset) in self.poisoned:
                refuse(draft, record, DefinitionError("", _POISON))
            else:
                accept(draft, record)
        for take, log, records in ((accept_delayed, "retries", retries),
                                   (accept_command, "commands", commands)):  # fmt: skip
            for record in records:
                if (log, record.offset) in self.poisoned:
                    refuse_record(draft, record, RequestError(_POISON), None)
                else:
                    take(draft, record)
        for key in sorted(touched):
            self._settle_touched(draft, key, promise=promise)
        write_facts(draft)
        collected = collect(draft, self._collected, touched)
        return self._conclude(draft, (jobs, commands, retries), collected)

    def _next_records(self, most: int) -> tuple[list[Incoming], list[Incoming], list[Incoming]]:
        """Records of ``jobs``, ``runs-retry`` and ``job-commands`` to accept; with ``most`` 1
        one in all, so that a record the broker refuses can be found alone.
        """
        logs = (self.inbox.jobs, self.inbox.retries, self.inbox.commands)
        if most > 1:
            jobs, retries, commands = (_first(log, most) for log in logs)
            return jobs, retries, commands
        first = next((log for log in logs if log), None)
        jobs, retries, commands = (_first(log, 1) if log is first else [] for log in logs)
        return jobs, retries, commands

    def _target(self, now_ms: int, hand_ms: int, *, all_taken: bool) -> Position:
        behind = now_ms - self.cursor.due_ms > self._setting.catch_up_ms
        if behind and not all_taken:
            return self.cursor.position
        return max(self.cursor.position, (hand_ms, WHOLE))

    def _settle_touched(self, draft: Draft, key: bytes, *, promise: bool) -> None:
        """What the walk left out: keys with records in this transaction."""
        lower, upper = waiting_range(self.partition, key)
        for index, value in draft.stage.scan(lower, upper, 1 << 30):
            _, offset = waiting_id(index)
            due = decode_waiting_index(value)[0]
            rest = DELAYED + offset.to_bytes(8, "big")
            if draft.before < (due, rest) <= draft.until:
                stored = draft.stage.get(delayed_key(self.partition, due, offset))
                invariant(stored is not None, f"delayed run {offset} has an index only")
                dispatch_delayed(draft, due, offset, stored or b"")
        version = draft.entry(key).version
        if version is None:
            return
        after = None if key in draft.fresh else draft.before
        nominals = instants(draft, key, version, Span(after, draft.until))
        cap = min([n for job, n, change in draft.held if job == key and change > 0]
                  + self._held.get(key, []), default=1 << 62)  # fmt: skip
        settle(draft, key, version, nominals, Ruling(settled_below_ms=cap if promise else None))

    def _conclude(
        self, draft: Draft, inputs: tuple[list[Incoming], ...], collected: Position
    ) -> Decision:
        jobs, commands, retries = inputs
        position = jobs[-1].offset + 1 if jobs else self.position
        due, resume = draft.until
        taken_retries = retries[-1].offset + 1 if retries else self.cursor.retries
        cursor = replace(
            self.cursor,
            due_ms=due,
            resume=resume,
            commands=commands[-1].offset + 1 if commands else self.cursor.commands,
            retries=taken_retries,
            oldest_retry=self._oldest_retry(draft, taken_retries),
            sequence=self.cursor.sequence + 1,
        )
        meta = PartitionMeta(position, cursor, draft.now_ms)
        draft.stage.put(meta_key(self.partition), encode_meta(meta))
        return Decision(
            partition=self.partition,
            position=position,
            cursor=cursor,
            dispatches=draft.dispatches(),
            records=draft.history() + draft.records,
            writes=draft.stage.writes(),
            cost=max(draft.runs, draft.steps),
            taken=(len(jobs), len(commands), len(retries)),
            held=draft.held,
            collected=collected,
        )

    def _oldest_retry(self, draft: Draft, taken: int) -> int:
        """Offset of the oldest delayed run still waiting, ``taken`` if none does."""
        lower = offset_key(self.partition, self.cursor.oldest_retry)
        upper = offset_key(self.partition, taken)
        while stored := self._store.scan(lower, upper, 1_000):
            for key, _ in stored:
                if draft.stage.get(key) is not None:
                    return offset_of(key)
            lower = stored[-1][0] + b"\x00"
        return min(draft.waiting_offsets, default=taken)

    def backup(self, decision: Decision) -> Outgoing:
        """The backup record of a decided cursor; also observed for the broker's time."""
        routes = self._setting.routes
        value = backup_value(decision.position, decision.metadata)
        return Outgoing(routes.cursors, self.partition % routes.cursor_partitions,
                        str(self.partition).encode(), value, observe=True)  # fmt: skip

    # ---- applying ----------------------------------------------------------------------------

    def apply(self, decision: Decision) -> None:
        """Move to what was committed; the decision's writes are in the store already."""
        invariant(decision.partition == self.partition, "a decision of another partition")
        self.position = decision.position
        self.cursor = decision.cursor
        self._collected = decision.collected
        for log, count in zip((self.inbox.jobs, self.inbox.commands, self.inbox.retries),
                              decision.taken, strict=True):  # fmt: skip
            for _ in range(count):
                log.popleft()
        for job_id, nominal, change in decision.held:
            self._hold(job_id, nominal, change)
        self._find_next_due()

    def _hold(self, job_id: bytes, nominal: int, change: int) -> None:
        waiting = self._held.setdefault(job_id, [])
        if change > 0:
            waiting.append(nominal)
        elif nominal in waiting:
            waiting.remove(nominal)
        if not waiting:
            del self._held[job_id]

    def _oldest_held(self) -> Mapping[bytes, int]:
        return {job_id: min(nominals) for job_id, nominals in self._held.items()}

    def _load_held(self) -> None:
        """Delayed runs of ours that were accepted before this shard was taken over."""
        lower, upper = partition_range(b"r", self.partition)
        for key, value in self._store.scan(lower, upper, 1 << 30):
            _, nominal, _, ours = decode_waiting_index(value)
            if ours:
                self._held.setdefault(waiting_id(key)[0], []).append(nominal)

    def _find_next_due(self) -> None:
        lower = resume_key(self.partition, self.cursor.position)
        upper = partition_range(b"w", self.partition)[1]
        half_done = (self.cursor.due_ms, self.cursor.resume[:16])
        for key, _ in self._store.scan(lower, upper, 2):
            position = wheel_position(key)
            if position > self.cursor.position or position == half_done:
                self._next_due = position[0]
                return
        self._next_due = None


def _first(records: deque[Incoming], most: int) -> list[Incoming]:
    return [records[i] for i in range(min(most, len(records)))]
