"""A scheduler worker: one step after another, each bounded, each from one clock reading.

Theory of operation. A step (1) lets the group give and take partitions, (2) reads a batch of the
logs, (3) learns accepted positions, (4) applies what is accepted and takes partitions over, and
(5) makes at most one transaction. The ownership consumer is polled in (1) only, never between
the first produce of a transaction and its end. Nothing of the local store changes before the
transaction that decided it has committed.

The worker keeps every partition's definitions warm (``warm = all``): those it does not own are
applied only up to their owners' accepted positions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import structlog

from scheduler.core.cursor import Cursor, decode_cursor
from scheduler.core.draft import Context, Setting
from scheduler.core.ports import Clock, Decoder, OrderedStore
from scheduler.core.records import Incoming
from scheduler.core.reports import Fact
from scheduler.core.shard import Shard
from scheduler.errors import TzdataError
from scheduler.kafka.ownership import Ownership
from scheduler.kafka.positions import Position, Positions
from scheduler.kafka.reader import START, LogReader
from scheduler.kafka.transaction import TransactionalProducer
from scheduler.runtime import events
from scheduler.runtime.cursors import CursorLog
from scheduler.runtime.partition import Feed, Partition, State, fresh_cursor
from scheduler.runtime.turn import Turn, TurnConfig

log = structlog.get_logger("scheduler")

READ_MOST = 2_000
"""Records read in one step: about 10 ms of work."""

IDLE_WAIT_S = 0.05
"""Longest wait of an idle step: how late a rebalance may be noticed."""

CURSOR_WAIT_S = 0.005
"""While a take-over waits for the end of ``cursors``."""

WORK_MOST = 16
"""Partitions worked on in one step while others fire (each up to 1,000 records)."""

BUFFER_MOST = 4_000
"""Records of one log of a partition read ahead; beyond, it is not read for a while."""

TOUCH_MS = 600_000
"""How often the store notes that it is caught up; trust needs days."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker has to know beside its edges.

    Attributes:
        trust_ms: a store not caught up for longer is rebuilt (half of delete.retention).
        lost_cursor_limit_ms: how far back to begin when a cursor is lost everywhere.
        warm_all: keep the partitions of other owners as well.
        topic_id: id of ``jobs``; a cursor of another topic is no cursor.
        tzdata: version of the time zone data in use.
        allow_older_tzdata: go on although the cursor was written with newer data.
    """

    setting: Setting
    turn: TurnConfig = field(default_factory=TurnConfig)
    trust_ms: int = 302_400_000
    lost_cursor_limit_ms: int = 86_400_000
    warm_all: bool = True
    topic_id: bytes = bytes(16)
    tzdata: str = ""
    allow_older_tzdata: bool = False


@dataclass(frozen=True, slots=True)
class Edges:
    """The real things a worker stands on.

    Attributes:
        reader: of the logs of every partition; an idle broker holds its fetches for long.
        cursor_reader: of ``cursors``, which a take-over waits for: few partitions, short fetches.
    """

    ownership: Ownership
    reader: LogReader
    cursor_reader: LogReader
    producer: TransactionalProducer
    positions: Positions
    store: OrderedStore
    clock: Clock


class Worker:
    """See the module. `step` is all there is to call, from one thread."""

    def __init__(self, config: WorkerConfig, edges: Edges, decoder: Decoder) -> None:
        self._config, self._edges = config, edges
        self._routes = config.setting.routes
        self.cursors = CursorLog()
        self.partitions = [self._partition(number, decoder)
                           for number in range(self._routes.job_partitions)]  # fmt: skip
        self._turn = Turn(config.turn, edges.producer, edges.ownership, edges.store)
        self._cursor_ends: dict[int, int] = {}
        self._parked: set[tuple[str, int]] = set()
        self._taken_since: dict[int, int] = {}
        self._touched_at = edges.clock.monotonic_ms()
        self._waiting: dict[int, Position] = {}

    def _partition(self, number: int, decoder: Decoder) -> Partition:
        def facts(job_id: bytes) -> Fact | None:
            return self.cursors.fact(number, job_id)

        setting = self._config.setting
        return Partition(Context(number, self._edges.store, decoder, facts, setting))

    # ---- lifecycle ------------------------------------------------------------------------

    def start(self) -> None:
        """Take up the local store and begin to read."""
        now = self._edges.clock.now_ms()
        trusted = sum(p.restore(now - self._config.trust_ms) for p in self.partitions)
        log.info(events.WORKER_STARTED, partitions=len(self.partitions), trusted=trusted)
        routes = self._routes
        self._edges.cursor_reader.add(
            {(routes.cursors, p): START for p in range(routes.cursor_partitions)}
        )
        if self._config.warm_all:
            places: dict[tuple[str, int], int] = {}
            for partition in self.partitions:
                places.update(self._places(partition))
            self._edges.positions.watch(range(routes.job_partitions))
            self._edges.reader.add(places)

    def _places(self, partition: Partition) -> dict[tuple[str, int], int]:
        """Where to read a partition's logs from.

        ``jobs`` from 0, for compaction never moves its beginning: the client need not ask for
        it, and its first fetch finds something (else a broker holds it, and all others with it).
        """
        routes, number = self._routes, partition.number
        return {
            (routes.jobs, number): partition.jobs.read_to,
            (routes.commands, number): partition.commands.read_to or START,
            (routes.retries, number): partition.retries.read_to or START,
        }

    @property
    def live(self) -> list[Shard]:
        """Shards that fire, by partition."""
        return [p.shard for p in self.partitions if p.shard is not None]

    # ---- one step ----------------------------------------------------------------------------

    def step(self) -> None:
        """One bounded round; waits at most until something is due or comes in."""
        self._serve_ownership()
        self._read()
        self._learn_positions()
        now = self._edges.clock.now_ms()
        self._work(now)
        self._transact()
        self._touch(now)

    def _serve_ownership(self) -> None:
        change = self._edges.ownership.poll(0.0)
        gone = change.revoked | change.lost
        if gone:
            log.info(events.PARTITIONS_REVOKED, partitions=len(gone), lost=len(change.lost))
        for number in sorted(gone):
            self._let_go(number)
        if change.assigned:
            log.info(events.PARTITIONS_ASSIGNED, partitions=len(change.assigned))
            self._take(change.assigned)
        if gone or change.assigned:
            self._watch_others()

    def _let_go(self, number: int) -> None:
        partition = self.partitions[number]
        partition.revoked()
        self._waiting.pop(number, None)
        self._taken_since.pop(number, None)
        if not self._config.warm_all:
            places = self._places(partition)
            self._parked -= places.keys()
            self._edges.reader.remove(places)

    def _take(self, numbers: Iterable[int]) -> None:
        now = self._edges.clock.monotonic_ms()
        taken = sorted(numbers)
        for number in taken:
            self.partitions[number].assigned()
            self._taken_since[number] = now
            if not self._config.warm_all:
                self._edges.reader.add(self._places(self.partitions[number]))
        self._edges.positions.request(taken)

    def _watch_others(self) -> None:
        if self._config.warm_all:
            others = [p.number for p in self.partitions if p.state is State.FOLLOWING]
            self._edges.positions.watch(others)

    # ---- reading ---------------------------------------------------------------------------

    def _read(self) -> None:
        self._read_cursors()
        batch = self._edges.reader.poll(READ_MOST, self._wait_s())
        full = {(each.topic, each.partition) for each in batch.records if self._offer(each)}
        for (topic, number), end in batch.ends.items():
            self._feed(topic, number).reached(end)
        for topic, number in batch.lost:
            self._recover_log(topic, number)
        self._park(full)

    def _read_cursors(self) -> None:
        batch = self._edges.cursor_reader.poll(READ_MOST, CURSOR_WAIT_S if self._waiting else 0.0)
        for record in batch.records:
            self.cursors.apply(record)
            self._cursor_ends[record.partition] = record.offset + 1
        for (_, number), end in batch.ends.items():
            self._cursor_ends[number] = max(end, self._cursor_ends.get(number, 0))
        for topic, number in batch.lost:
            log.error(events.LOG_LOST, topic=topic, partition=number)
            self._edges.cursor_reader.seek(topic, number, START)

    def _offer(self, record: Incoming) -> bool:
        """Hand a record to its partition; whether that has read its log far enough ahead."""
        feed = self._feed(record.topic, record.partition)
        feed.offer(record)
        return len(feed.records) >= BUFFER_MOST

    def _feed(self, topic: str, number: int) -> Feed:
        partition = self.partitions[number]
        if topic == self._routes.jobs:
            return partition.jobs
        return partition.commands if topic == self._routes.commands else partition.retries

    def _wait_s(self) -> float:
        """How long reading may wait: until something is due, shortly while there is work."""
        clock = self._edges.clock
        if self._waiting or any(p.has_work for p in self.partitions):
            return 0.0
        return self._turn.wait_s(self.live, clock.now_ms(), clock.monotonic_ms(), IDLE_WAIT_S)

    def _park(self, full: set[tuple[str, int]]) -> None:
        """Stop reading logs whose buffer is full, go on with those worked off.

        Each log by itself: a take-over may wait for one while another is flooded.
        """
        for place in full - self._parked:
            self._edges.reader.remove([place])
            self._parked.add(place)
        for place in list(self._parked):
            feed = self._feed(*place)
            if len(feed.records) < BUFFER_MOST // 2:
                self._parked.discard(place)
                self._edges.reader.add({place: feed.read_to or START})

    def _recover_log(self, topic: str, number: int) -> None:
        """The position lies outside the log (retention, or the topic was made anew)."""
        log.error(events.LOG_LOST, topic=topic, partition=number)
        partition = self.partitions[number]
        if topic != self._routes.jobs:
            self._edges.reader.seek(topic, number, START)
            return
        owned = partition.state is not State.FOLLOWING
        partition.drop()
        self._read_again(partition, {(topic, number): START})
        if owned:
            partition.retake()
            self._edges.positions.request([number])

    def _read_again(
        self, partition: Partition, others: Mapping[tuple[str, int], int] = MappingProxyType({})
    ) -> None:
        """Read a partition's logs from where its feeds stand, or ``others`` say."""
        places = {**self._places(partition), **others}
        self._parked -= places.keys()
        self._edges.reader.remove(places)
        self._edges.reader.add(places)

    # ---- accepted positions -------------------------------------------------------------------

    def _learn_positions(self) -> None:
        for position in self._edges.positions.drain():
            partition = self.partitions[position.partition]
            if position.stable and partition.state is State.TAKING:
                self._waiting[position.partition] = position
            elif not position.stable and partition.state is State.FOLLOWING:
                cursor = decode_cursor(position.metadata)
                if position.offset is not None and cursor is not None:
                    self._accept(partition, position.offset, cursor, None)
        for number in list(self._waiting):
            if self._cursors_read(self._waiting[number]):
                self._know(self._waiting.pop(number))

    def _cursors_read(self, position: Position) -> bool:
        """Whether ``cursors`` has been read to the end seen after the stable answer."""
        wanted = position.log_ends.get(self._routes.cursors, 0)
        place = position.partition % self._routes.cursor_partitions
        return self._cursor_ends.get(place, 0) >= wanted

    def _know(self, position: Position) -> None:
        """The accepted positions of a partition that is being taken over are certain."""
        offset, found = self._begin_from(position)
        self._check_tzdata(found.tzdata)
        cursor = replace(found, tzdata=self._config.tzdata)
        retry_end = position.log_ends.get(self._routes.retries, 0)
        self._accept(self.partitions[position.partition], offset, cursor, retry_end)

    def _check_tzdata(self, cursor_version: str) -> None:
        config = self._config
        if cursor_version > config.tzdata and not config.allow_older_tzdata:
            raise TzdataError(cursor_version, config.tzdata)

    def _begin_from(self, position: Position) -> tuple[int, Cursor]:
        config, number = self._config, position.partition
        cursor = decode_cursor(position.metadata)
        if position.offset is not None and cursor and cursor.topic_id == config.topic_id:
            return position.offset, cursor
        backup = self.cursors.backup(number)
        if backup is not None and backup[1].topic_id == config.topic_id:
            log.warning(events.CURSOR_FROM_BACKUP, partition=number, position=backup[0])
            return backup
        now = self._edges.clock.now_ms()
        if position.offset is not None:
            log.error(events.CURSOR_LOST, partition=number)
        cursor = fresh_cursor(now, config.lost_cursor_limit_ms, config.topic_id, config.tzdata)
        return 0, cursor

    def _accept(
        self, partition: Partition, offset: int, cursor: Cursor, retry_end: int | None
    ) -> None:
        if not partition.accepted(offset, cursor, retry_end):
            log.warning(events.STORE_REBUILDS, partition=partition.number, reason="ahead")
            self._read_again(partition)

    # ---- applying and taking over --------------------------------------------------------------

    def _work(self, now_ms: int) -> None:
        busy = [p for p in self.partitions if p.has_work]
        busy.sort(key=lambda p: p.state is not State.TAKING)
        most = WORK_MOST if self.live else len(busy)
        for partition in busy[:most]:
            if partition.work(now_ms):
                self._go_live(partition)

    def _go_live(self, partition: Partition) -> None:
        shard = partition.go_live()
        since = self._taken_since.pop(partition.number, None)
        took = None if since is None else self._edges.clock.monotonic_ms() - since
        log.debug(events.SHARD_LIVE, partition=partition.number, position=shard.position,
                  took_ms=took)  # fmt: skip
        if not self._taken_since and took is not None:
            log.info(events.TAKEOVER_FINISHED, live=len(self.live), took_ms=took)

    # ---- the transaction -------------------------------------------------------------------------

    def _transact(self) -> None:
        clock = self._edges.clock
        ready = [p for p in self.partitions if p.shard is not None]
        uncertain = self._turn.make(ready, clock)
        if uncertain:
            for number in uncertain:
                self.partitions[number].retake()
            self._edges.positions.request(uncertain)

    def _touch(self, now_ms: int) -> None:
        clock = self._edges.clock
        if clock.monotonic_ms() - self._touched_at < TOUCH_MS:
            return
        self._touched_at = clock.monotonic_ms()
        for partition in self.partitions:
            partition.touch(now_ms)
