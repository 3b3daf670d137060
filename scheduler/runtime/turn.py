"""A worker's turn: choose the shards that have something to do, decide, commit, apply.

A turn starts when something is due, at least the configured interval after the last one
started, with at most so many runs; none is open while idle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import structlog

from scheduler.core.ports import Clock, OrderedStore
from scheduler.core.records import Dispatch, Outgoing
from scheduler.core.shard import Decision, Shard
from scheduler.errors import FencedError, present
from scheduler.kafka.ownership import Ownership
from scheduler.kafka.transaction import (
    Aborted,
    Committed,
    OffsetCommit,
    TransactionalProducer,
    Uncertain,
)
from scheduler.runtime import events
from scheduler.runtime.broker_time import BrokerTime
from scheduler.runtime.partition import Partition

log = structlog.get_logger("scheduler")

SAMPLE_MS = 3_000
"""How old the newest sample of broker time may be."""

BACKUPS_MOST = 8
"""Backup records in one transaction."""

RECORDS_MOST = 500
"""Records of each log that one shard accepts in one transaction."""

HALVINGS_MOST = 12
"""After so many a transaction takes up one record, and no runs beside it."""


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """Pace and size of transactions.

    Attributes:
        interval_ms: from the start of one transaction to the next.
        runs_most: runs in one transaction.
        backup_ms: how often each live cursor is copied to ``cursors``.
        jobs_topic: full name of ``jobs``, whose offsets carry the cursors.
    """

    interval_ms: int = 20
    runs_most: int = 4_000
    backup_ms: int = 60_000
    jobs_topic: str = "jobs"


class Turn:
    """Makes transactions out of shards' decisions."""

    def __init__(
        self, config: TurnConfig, producer: TransactionalProducer, ownership: Ownership,
        store: OrderedStore,
    ) -> None:  # fmt: skip
        self._config = config
        self._producer, self._ownership, self._store = producer, ownership, store
        self._broker_time = BrokerTime()
        self._started_at = 0
        self._first = 0
        self._backed_up: dict[int, int] = {}
        self._halvings = 0
        self._successes = 0

    def wait_s(
        self, shards: Sequence[Shard], now_ms: int, monotonic_ms: int, most_s: float
    ) -> float:
        """How long nothing will be due."""
        paced = max(0, self._started_at + self._config.interval_ms - monotonic_ms)
        if any(shard.inbox for shard in shards):
            return min(paced / 1000, most_s)
        dues = [shard.next_due_ms for shard in shards if shard.next_due_ms is not None]
        until_due = min(dues, default=now_ms + int(most_s * 1000)) - now_ms
        return min(max(until_due, paced, 0) / 1000, most_s)

    def make(self, partitions: Sequence[Partition], clock: Clock) -> list[int]:
        """Make one transaction if there is something to do.

        Returns:
            Partitions whose accepted positions must be read again (the outcome is unknown,
            or it was aborted); empty when all is well.
        """
        monotonic = clock.monotonic_ms()
        if not partitions or monotonic - self._started_at < self._config.interval_ms:
            return []
        now = clock.now_ms()
        backups = self._due_backups(partitions, monotonic)
        hand = self._broker_time.hand_ms(now, monotonic)
        decisions = self._decide(partitions, now, hand, backups)
        if not decisions:
            return []
        self._started_at = monotonic
        return self._commit(decisions, backups, partitions, clock)

    # ---- deciding --------------------------------------------------------------------------

    def _decide(
        self, partitions: Sequence[Partition], now_ms: int, hand_ms: int | None, backups: set[int]
    ) -> list[Decision]:
        """Decisions of the shards that have something to do, in turn, within the budget."""
        decisions: list[Decision] = []
        left = self._config.runs_most >> self._halvings
        records_most = max(RECORDS_MOST >> self._halvings, 1)
        order = list(partitions[self._first :]) + list(partitions[: self._first])
        for count, partition in enumerate(order):
            shard = present(partition.shard, "only live partitions have a turn")
            hand = shard.cursor.due_ms if hand_ms is None else hand_ms
            if not shard.wants_turn(hand) and partition.number not in backups:
                continue
            decision = shard.decide(
                now_ms, hand, left, drained=partition.drained, most_records=records_most
            )
            decisions.append(decision)
            left -= decision.cost + sum(decision.taken)
            if left <= 0:
                self._first = (self._first + count + 1) % len(partitions)
                break
        return decisions

    def _due_backups(self, partitions: Sequence[Partition], monotonic_ms: int) -> set[int]:
        """Partitions whose cursor is to be copied now; one at least when broker time is old."""
        age = self._broker_time.age_ms(monotonic_ms)
        stale = age is None or age >= SAMPLE_MS
        old = sorted((self._backed_up.get(p.number, 0), p.number) for p in partitions)
        due = {number for at, number in old[:BACKUPS_MOST]
               if monotonic_ms - at >= self._config.backup_ms}  # fmt: skip
        return due or ({old[0][1]} if stale else set())

    # ---- committing ----------------------------------------------------------------------------

    def _commit(
        self, decisions: list[Decision], backups: set[int], partitions: Sequence[Partition],
        clock: Clock,
    ) -> list[int]:  # fmt: skip
        shards = {p.number: p.shard for p in partitions if p.shard is not None}
        copied = [d for d in decisions if d.partition in backups]
        records = list(_records(decisions)) + [shards[d.partition].backup(d) for d in copied]
        offsets = {d.partition: OffsetCommit(d.position, d.metadata) for d in decisions}
        topic = self._config.jobs_topic
        touched = sorted(offsets)
        try:
            with self._ownership.fence() as fence:
                outcome = self._producer.commit(
                    fence, records, {(topic, n): commit for n, commit in offsets.items()}
                )
        except FencedError as error:
            outcome = Aborted(str(error), fenced=True)
        match outcome:
            case Committed():
                self._applied(decisions, shards)
                self._observed(outcome, copied, clock)
                return []
            case Aborted():
                if outcome.refused:
                    self._isolate(decisions, partitions)
                log.warning(events.TRANSACTION_ABORTED, reason=outcome.reason,
                            fenced=outcome.fenced, partitions=len(touched))  # fmt: skip
                return touched
            case Uncertain():
                log.warning(events.TRANSACTION_UNCERTAIN, reason=outcome.reason,
                            partitions=len(touched))  # fmt: skip
                return [p.number for p in partitions]

    def _isolate(self, decisions: list[Decision], partitions: Sequence[Partition]) -> None:
        """Halve what a transaction holds until the record that the broker refuses is alone."""
        self._successes = 0
        alone = [d for d in decisions if sum(d.taken)]
        if self._halvings < HALVINGS_MOST or len(alone) != 1 or sum(alone[0].taken) != 1:
            self._halvings = min(self._halvings + 1, HALVINGS_MOST)
            return
        partition = next(p for p in partitions if p.number == alone[0].partition)
        place = partition.poison(alone[0])
        log.error(events.RECORD_POISONED, partition=partition.number, log=place[0],
                  offset=place[1])  # fmt: skip
        self._halvings = 0

    def _recover(self, partitions: int) -> None:
        """Back to whole batches once every partition has had its turn without a refusal.

        Not at the first success: the culprit's neighbours succeed between its failures.
        """
        self._successes += 1
        if self._successes > 2 * partitions:
            self._halvings = 0

    def _applied(self, decisions: list[Decision], shards: dict[int, Shard]) -> None:
        self._recover(len(shards))
        self._store.write(chain.from_iterable(decision.writes for decision in decisions))
        for decision in decisions:
            shards[decision.partition].apply(decision)

    def _observed(self, outcome: Committed, copied: list[Decision], clock: Clock) -> None:
        monotonic = clock.monotonic_ms()
        for decision in copied:
            self._backed_up[decision.partition] = monotonic
        if outcome.appended_ms is not None:
            self._broker_time.learn(outcome.appended_ms, monotonic)


def _records(decisions: list[Decision]) -> chain[Dispatch | Outgoing]:
    return chain.from_iterable(chain(d.dispatches, d.records) for d in decisions)
