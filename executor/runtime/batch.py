"""One transaction in the making: decisions of several partitions, on top of one another.

Nothing is taken out of a queue and nothing is started while it is made; when it has committed,
`Batch.shares` says what to take, to apply and to start, and when it has not, it is dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import structlog

from executor import events
from executor.core.codec import encode_state
from executor.core.command import (
    CancelCommand,
    JobDeleted,
    RunCommand,
    UnknownKind,
    decode_command,
)
from executor.core.machine import (
    NOTHING,
    Context,
    Decision,
    Wait,
    decide_cancel,
    decide_command,
    decide_due,
    decide_job_deleted,
    decide_result,
)
from executor.core.partition import Draft
from executor.core.state import OpenRun, StateChange
from executor.runtime.held import Held
from scheduler.core.records import Incoming, Outgoing
from scheduler.errors import RequestError
from scheduler.kafka.transaction import OffsetCommit

log = structlog.get_logger("executor")

FORGET_MAX = 200
"""Tombstones of one partition in one transaction: old keys are in no hurry."""


@dataclass(slots=True)
class Share:
    """What a transaction does for one partition.

    Attributes:
        results, dues, commands: how many of each queue are decided.
        run_ids: the runs decided for, in that order.
    """

    held: Held
    draft: Draft
    results: int = 0
    dues: int = 0
    commands: int = 0
    forgotten: list[StateChange] = field(default_factory=list)
    records: list[Outgoing] = field(default_factory=list)
    starts: list[OpenRun] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """How many inputs were decided."""
        return self.results + self.dues + self.commands

    def add(self, decision: Decision) -> None:
        """Put a decision on top of the earlier ones."""
        self.draft.stage(decision.state)
        self.records.extend(decision.records)
        self.starts.extend(decision.starts)
        self.stops.extend(decision.stops)
        self.waits.extend(decision.waits)


@dataclass(slots=True)
class Batch:
    """All shares of one transaction. ``shares`` is empty when there is nothing to do."""

    runs_topic: str
    state_topic: str
    shares: list[Share] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """How many inputs were decided."""
        return sum(share.inputs for share in self.shares)

    def records(self) -> list[Outgoing]:
        """Everything to be produced, ``run-state`` included."""
        produced: list[Outgoing] = []
        for share in self.shares:
            produced.extend(share.records)
            produced.extend(self._state_record(share, change) for change in share.draft.changes())
        return produced

    def offsets(self) -> dict[tuple[str, int], OffsetCommit]:
        """One offset of ``runs`` for each partition: it is what fences the transaction."""
        return {(self.runs_topic, share.held.number): OffsetCommit(offset)
                for share in self.shares
                if (offset := share.held.offset_after(share.commands)) is not None}  # fmt: skip

    def _state_record(self, share: Share, change: StateChange) -> Outgoing:
        value = None if change.value is None else encode_state(change.value)
        return Outgoing(self.state_topic, share.held.number, change.key.encode(), value)


def build(live: Sequence[Held], ctx: Context, inputs_max: int, room: int) -> Batch:
    """Decide up to ``inputs_max`` inputs, shared evenly by the partitions that have some.

    Args:
        live: partitions in the order in which they are served.
        ctx: what all decisions share.
        inputs_max: bound of the transaction's size.
        room: attempts that may be started.
    """
    batch = Batch(ctx.routes.runs, ctx.routes.run_state)
    busy = [held for held in live if held.pending and held.offset_after(0) is not None]
    left = inputs_max
    for at, held in enumerate(busy):
        quota = -(-left // (len(busy) - at))
        share = _decide(held, ctx, quota, room)
        left -= share.inputs
        room -= len(share.starts)
        if share.inputs:
            batch.shares.append(share)
        if left <= 0:
            break
    for share in batch.shares:
        _forget(share, ctx.now_ms)
    return batch


def _decide(held: Held, ctx: Context, quota: int, room: int) -> Share:
    share = Share(held, Draft(held.state))
    for ended in islice(held.results, quota):
        share.results += 1
        share.run_ids.append(ended.run_id)
        share.add(decide_result(share.draft, (ended.run_id, ended.attempt), ended.result, ctx))
    for due in islice(held.dues, quota - share.results):
        if len(share.starts) >= room:
            break
        share.dues += 1
        share.run_ids.append(due.run_id)
        share.add(decide_due(share.draft, due.run_id, due.attempt, due.event, ctx))
    for record in islice(held.inbox, quota - share.results - share.dues):
        if len(share.starts) >= room:
            break
        share.commands += 1
        share.add(_decide_record(share, record, ctx))
    return share


def _decide_record(share: Share, record: Incoming, ctx: Context) -> Decision:
    try:
        command = decode_command(record.value)
    except RequestError as error:
        log.warning(events.RUN_REFUSED, partition=record.partition, offset=record.offset,
                    reason=str(error))  # fmt: skip
        return NOTHING
    match command:
        case RunCommand():
            share.run_ids.append(command.run_id)
            decision = decide_command(share.draft, command, ctx)
            if decision.note is not None:
                log.debug(events.RUN_DROPPED, run_id=command.run_id, attempt=command.attempt,
                          reason=decision.note)  # fmt: skip
            return decision
        case CancelCommand():
            return decide_cancel(share.draft, command, ctx)
        case JobDeleted():
            return decide_job_deleted(share.draft, command, ctx)
        case UnknownKind():
            return NOTHING


def _forget(share: Share, now_ms: int) -> None:
    """Add tombstones of what has been remembered long enough and was not just changed."""
    share.forgotten = share.held.state.forgettable(now_ms, FORGET_MAX)
    changed = {change.key for change in share.draft.changes()}
    share.draft.stage(change for change in share.forgotten if change.key not in changed)
