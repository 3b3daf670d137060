"""One transactional producer and the one error routine.

    begin → produce all → send offsets → commit      Committed
        the error says *requires abort*               abort → Aborted
        the error says *retriable*                    the SAME call again, until a deadline
        anything else, or the deadline has passed     a new producer, same id → Uncertain

After an indefinite end (a commit that was repeated, slow, or disturbed by the connection) the
producer's epoch is not used again, even when it succeeded: a late EndTxn still in the network
could end a *later* transaction of the same epoch (KIP-890 is missing in the client). A new
producer with the same ``transactional.id`` has a new epoch, which fences what is late.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from scheduler.core.records import Dispatch, Outgoing
from scheduler.errors import invariant
from scheduler.kafka.client import (
    LOGGER,
    ErrorLog,
    Options,
    client_options,
    error_of,
)
from scheduler.kafka.ownership import Fence
from scheduler.kafka.watchdog import WATCHDOG, Watchdog, run_bounded

RECORD_BYTES_MAX = 2_097_152
"""Above the largest record of any topic of ours (1 MiB, with room for the batch around it)."""

_PAUSE_S = 0.05


class Phase(StrEnum):
    """The calls of a transaction, in order."""

    BEGIN = "begin"
    PRODUCE = "produce"
    OFFSETS = "offsets"
    COMMIT = "commit"
    ABORT = "abort"


class Verdict(StrEnum):
    """What is to be done about an error."""

    RETRY = "retry"
    """Call the same function again."""
    ABORT = "abort"
    """Abort; the producer stays."""
    FENCED = "fenced"
    """Abort; the membership that the transaction rested on is over."""
    REPLACE = "replace"
    """A new producer with the same id; what became of the transaction is not known."""


_MEMBERSHIP_OVER = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)


_BEYOND_REPAIR = frozenset({KafkaError._FATAL, KafkaError._FENCED})

_REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        KafkaError.POLICY_VIOLATION,
    }
)
"""What the records of a transaction are refused for, however often they are sent."""


def classify(error: KafkaError, phase: Phase) -> Verdict:
    """Return what an error of one call of a transaction asks for; pure.

    Source: research by injection on librdkafka 2.16; its INTRODUCTION.md, "Transactional
    producer API": what is neither retriable nor abortable is fatal.
    """
    if error.fatal() or error.code() in _BEYOND_REPAIR:
        return Verdict.REPLACE
    if phase is Phase.PRODUCE:
        return Verdict.ABORT  # local: the record is too large, or an error is waiting already
    if error.txn_requires_abort():
        if phase is Phase.ABORT:
            return Verdict.REPLACE
        return Verdict.FENCED if error.code() in _MEMBERSHIP_OVER else Verdict.ABORT
    # _CONFLICT calls itself retriable, but means that another call has to be finished first.
    if error.retriable() and error.code() != KafkaError._CONFLICT:
        return Verdict.RETRY
    return Verdict.REPLACE


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """A transactional producer.

    Attributes:
        transactional_id: stable per instance: a new process ends what its predecessor left.
        transaction_timeout_ms: after which the broker aborts; under the group's session, so
            that a take-over need not wait for a dead owner.
        retry_backoff_ms: small: after a commit the next transaction meets
            CONCURRENT_TRANSACTIONS until the markers are written, and waits this long.
        queue_records: above the largest transaction, so that producing never waits for the
            network.
        retry_s: how long one call is repeated before the producer is replaced.
        call_deadline_s: a client call that takes longer ends the process.
        extra: further librdkafka options.
    """

    bootstrap_servers: str
    transactional_id: str
    transaction_timeout_ms: int = 3_000
    retry_backoff_ms: int = 5
    queue_records: int = 500_000
    retry_s: float = 10.0
    call_deadline_s: float = 30.0
    extra: Options = field(default_factory=dict, repr=False)

    @property
    def call_s(self) -> float:
        """One call's own timeout: it is called again at least twice before the deadline."""
        return self.retry_s / 3

    @property
    def slow_s(self) -> float:
        """An end that took longer than half a request's time may have been sent twice."""
        return self.transaction_timeout_ms / 1000 / 2


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A position to commit, with text that travels along (ASCII, under 4 KB)."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """All of it will be seen.

    Attributes:
        appended_ms: broker's append time of the last observed record, epoch milliseconds;
            ``None`` when none was observed.
        replaced: the producer was replaced because the end was indefinite though successful.
    """

    appended_ms: int | None = None
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Aborted:
    """Nothing of it will ever be seen.

    Attributes:
        fenced: the membership is over; poll the ownership before anything else.
        refused: the broker refuses something in it, and would again.
    """

    reason: str
    fenced: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Uncertain:
    """Whether it will be seen is not known: read the committed positions before going on."""

    reason: str


Outcome = Committed | Aborted | Uncertain


class _Failure(Exception):
    """A call of a transaction failed for good."""

    def __init__(self, phase: Phase, error: KafkaError, verdict: Verdict) -> None:
        super().__init__(f"{phase}: {error.name()}: {error.str()}")
        self.error = error
        self.verdict = verdict


class TransactionalProducer:
    """Makes transactions one after another. Everything here belongs to one thread.

    `connect` at start; `commit` connects by itself where that is missing.
    """

    def __init__(self, config: ProducerConfig, watchdog: Watchdog = WATCHDOG) -> None:
        self._config, self._watchdog = config, watchdog
        self._errors = ErrorLog("producer")
        self._producer: Producer | None = None
        self._known: set[str] = set()
        self._appended_ms: int | None = None
        self._indefinite = False
        self._pause = threading.Event()

    def connect(self, deadline_s: float = 30.0) -> bool:
        """Take over the transactional id, ending what a predecessor left open.

        Returns:
            Whether that was done within ``deadline_s`` seconds.
        """
        until = time.monotonic() + deadline_s
        while self._producer is None and time.monotonic() < until:
            self._errors = ErrorLog("producer")
            producer = Producer({**_options(self._config), "error_cb": self._errors})
            if self._init(producer, until):
                self._producer = producer
            else:
                self._discard(producer)
        return self._producer is not None

    def knows(self, topic: str) -> bool:
        """Return whether a topic exists; "yes" is remembered, "no" is asked again.

        One record for an unknown topic aborts its whole transaction after some ten seconds.
        """
        if topic in self._known:
            return True
        if not self.connect() or self._producer is None:
            return False
        try:
            with self._watchdog.guard("metadata", self._config.call_deadline_s):
                found = self._producer.list_topics(topic, timeout=self._config.retry_s)
        except KafkaException as failure:
            LOGGER.warning("producer: metadata of %s: %s", topic, error_of(failure).str())
            return False
        metadata = found.topics.get(topic)
        if metadata is not None and metadata.error is None and metadata.partitions:
            self._known.add(topic)
        return topic in self._known

    def commit(
        self,
        fence: Fence,
        records: Iterable[Outgoing | Dispatch],
        offsets: Mapping[tuple[str, int], OffsetCommit],
    ) -> Outcome:
        """Make one transaction of ``records`` and ``offsets``, or nothing of it.

        Args:
            fence: open; taken after the last poll of the ownership.
            records: produced in this order.
            offsets: at least one at or above 0: without one a broker checks no membership.
        """
        invariant(fence.is_open, "a transaction needs an open fence")
        invariant(any(each.offset >= 0 for each in offsets.values()), "no valid offset to commit")
        if not self.connect():
            return Aborted("no producer: the cluster does not answer")
        self._appended_ms, self._indefinite, self._errors.disturbed = None, False, False
        try:
            self._transact(fence, records, offsets)
        except _Failure as failure:
            return self._resolve(failure)
        replaced = self._indefinite
        if replaced:
            self._replace("its last commit was slow, repeated or disturbed")
        return Committed(self._appended_ms, replaced)

    def close(self, deadline_s: float) -> None:
        """Close the client, waiting at most ``deadline_s`` seconds."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        if not run_bounded("close producer", lambda: _close(producer), deadline_s):
            LOGGER.warning("producer did not close within %g s", deadline_s)

    # ---- the calls of a transaction ---------------------------------------------------------

    def _transact(
        self,
        fence: Fence,
        records: Iterable[Outgoing | Dispatch],
        offsets: Mapping[tuple[str, int], OffsetCommit],
    ) -> None:
        producer = self._current()
        positions = [
            TopicPartition(topic, number, each.offset, each.metadata)
            for (topic, number), each in offsets.items()
        ]
        timeout_s = self._config.call_s
        self._call(Phase.BEGIN, producer.begin_transaction)
        self._call(Phase.PRODUCE, lambda: self._produce(producer, records))
        self._call(
            Phase.OFFSETS,
            lambda: producer.send_offsets_to_transaction(positions, fence.metadata, timeout_s),
        )
        self._end(Phase.COMMIT, lambda: producer.commit_transaction(timeout_s))

    def _current(self) -> Producer:
        invariant(self._producer is not None, "no producer")
        return self._producer  # type: ignore[return-value]

    def _call(self, phase: Phase, call: Callable[[], object]) -> int:
        """Call, and repeat what says it is retriable; return how often it was repeated."""
        until = time.monotonic() + self._config.retry_s
        repeated = 0
        while True:
            try:
                with self._watchdog.guard(f"transaction {phase}", self._config.call_deadline_s):
                    call()
            except KafkaException as failure:
                error = error_of(failure)
                verdict = classify(error, phase)
                if verdict is not Verdict.RETRY:
                    raise _Failure(phase, error, verdict) from failure
                if time.monotonic() > until:
                    raise _Failure(phase, error, Verdict.REPLACE) from failure
                repeated += 1
                self._pause.wait(_PAUSE_S)
            else:
                return repeated

    def _end(self, phase: Phase, call: Callable[[], object]) -> None:
        """Commit or abort; notes whether the end is indefinite even where it succeeds."""
        self._errors.disturbed = False
        started = time.monotonic()
        repeated = self._call(phase, call)
        slow = time.monotonic() - started > self._config.slow_s
        self._indefinite = bool(repeated) or slow or self._errors.disturbed

    def _produce(self, producer: Producer, records: Iterable[Outgoing | Dispatch]) -> None:
        produce = producer.produce
        for record in records:
            topic, partition = record.topic, record.partition
            if isinstance(record, Dispatch):
                for key, value in record.messages:
                    try:
                        produce(topic, value, key, partition)
                    except BufferError:
                        self._when_room(producer, topic, value, key, partition)
            else:
                self._produce_one(producer, record)

    def _produce_one(self, producer: Producer, record: Outgoing) -> None:
        options: dict[str, Any] = {}
        if record.headers:
            options["headers"] = list(record.headers)
        if record.observe:
            options["on_delivery"] = self._observed
        place = (record.topic, record.value, record.key, record.partition)
        try:
            producer.produce(*place, **options)
        except BufferError:
            self._when_room(producer, *place, **options)

    def _when_room(self, producer: Producer, *place: Any, **options: Any) -> None:
        """The queue is full: let it drain and produce the same record."""
        until = time.monotonic() + self._config.retry_s
        while True:
            producer.poll(0.01)
            try:
                producer.produce(*place, **options)
            except BufferError:
                if time.monotonic() > until:
                    raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from None
            else:
                return

    def _observed(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._appended_ms = message.timestamp()[1]

    # ---- the one error routine ---------------------------------------------------------------

    def _resolve(self, failure: _Failure) -> Outcome:
        reason = str(failure)
        if failure.verdict is Verdict.REPLACE:
            self._replace(reason)
            return Uncertain(reason)
        producer = self._current()
        try:
            self._end(Phase.ABORT, lambda: producer.abort_transaction(self._config.call_s))
        except _Failure as second:
            self._replace(str(second))
            return Uncertain(f"{reason}; then {second}")
        if self._indefinite:
            self._replace("its last abort was slow, repeated or disturbed")
        fenced = failure.verdict is Verdict.FENCED
        return Aborted(reason, fenced, refused=failure.error.code() in _REFUSED)

    def _replace(self, reason: str) -> None:
        LOGGER.warning("producer %s is replaced: %s", self._config.transactional_id, reason)
        old, self._producer = self._producer, None
        if old is not None:
            self._discard(old)
            del old
        self.connect(self._config.retry_s)

    def _discard(self, producer: Producer) -> None:
        """Close in the background: it may wait for what is in flight, or hang."""
        threading.Thread(
            target=_close, args=(producer,), name="close old producer", daemon=True
        ).start()

    def _init(self, producer: Producer, until: float) -> bool:
        """Take over the transactional id; the same call again while it says retriable."""
        while True:
            left = max(1.0, min(self._config.retry_s, until - time.monotonic()))
            try:
                with self._watchdog.guard("init transactions", self._config.call_deadline_s):
                    producer.init_transactions(left)
            except KafkaException as failure:
                error = error_of(failure)
                LOGGER.warning("producer: init: %s: %s", error.name(), error.str())
                if not error.retriable() or error.fatal() or time.monotonic() > until:
                    self._pause.wait(_PAUSE_S)
                    return False
            else:
                return True


def _close(producer: Producer) -> None:
    try:
        producer.purge()
        producer.close()
    except KafkaException as failure:  # a fatal error is said once more at the end
        LOGGER.info("producer: close: %s", error_of(failure).str())


def _options(config: ProducerConfig) -> dict[str, Any]:
    own: dict[str, str | int | float | bool] = {
        "transactional.id": config.transactional_id,
        "transaction.timeout.ms": config.transaction_timeout_ms,
        "socket.timeout.ms": config.transaction_timeout_ms,  # no more is allowed
        "message.timeout.ms": config.transaction_timeout_ms,
        "enable.idempotence": True,
        "acks": "all",
        "max.in.flight.requests.per.connection": 5,
        "retry.backoff.ms": config.retry_backoff_ms,
        "retry.backoff.max.ms": 1_000,
        "linger.ms": 5,
        "compression.type": "lz4",
        "batch.num.messages": 10_000,
        "batch.size": 1_000_000,
        "queue.buffering.max.messages": config.queue_records,
        "queue.buffering.max.kbytes": 1_048_576,
        "message.max.bytes": RECORD_BYTES_MAX,
        "allow.auto.create.topics": False,
    }
    return client_options(config.bootstrap_servers, config.extra, own)
