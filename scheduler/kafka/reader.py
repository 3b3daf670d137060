"""Data apart from ownership: an ``assign()``ed consumer with positions of its own.

It never commits and never subscribes: where to read from is what the local store has applied.
Only what is committed is read; a user's open transaction holds back the records behind it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from scheduler.core.records import Headers, Incoming
from scheduler.errors import ClientFatalError, invariant
from scheduler.kafka.client import LOGGER, ErrorLog, Options, client_options
from scheduler.kafka.watchdog import WATCHDOG, Watchdog, run_bounded

START: int = OFFSET_BEGINNING
"""As a position: from the oldest record there is."""

Place = tuple[str, int]
"""Topic and partition."""

_OUTSIDE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """A reader of any number of partitions.

    Attributes:
        group: only because the client asks for one; nothing is ever committed under it.
        fetch_wait_ms: how long a broker may hold a fetch that finds nothing.
        queued_kbytes: records fetched and not read yet, all partitions together; bounds memory.
        call_deadline_s: a client call that takes longer ends the process.
        extra: further librdkafka options.
    """

    bootstrap_servers: str
    group: str
    fetch_wait_ms: int = 100
    queued_kbytes: int = 16_384
    call_deadline_s: float = 30.0
    extra: Options = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class Batch:
    """What one poll gave.

    Attributes:
        records: in the order of their offsets within a partition.
        ends: "read up to this offset, and nothing readable was left then": the last stable
            offset, which lies behind markers, aborted records and what compaction removed.
        lost: the position lies outside the log: the partition is not read any further until
            it is removed and added again (or `LogReader.seek` places it).
    """

    records: list[Incoming] = field(default_factory=list)
    ends: dict[Place, int] = field(default_factory=dict)
    lost: list[Place] = field(default_factory=list)


class LogReader:
    """Reads partitions from explicit positions. Everything here belongs to one thread."""

    def __init__(self, config: ReaderConfig, watchdog: Watchdog = WATCHDOG) -> None:
        self._config, self._watchdog = config, watchdog
        self._errors = ErrorLog("log reader")
        self._places: set[Place] = set()
        self._ends: dict[Place, int] = {}
        self._consumer = Consumer({**_options(config), "error_cb": self._errors})

    def add(self, positions: Mapping[Place, int]) -> None:
        """Begin to read partitions at positions (offsets, or `START`)."""
        invariant(not self._places & positions.keys(), "a partition is read already")
        if positions:
            self._consumer.incremental_assign(
                [TopicPartition(topic, number, at) for (topic, number), at in positions.items()]
            )
        self._places |= positions.keys()

    def remove(self, partitions: Iterable[Place]) -> None:
        """Stop reading partitions; those that are not read are left out silently."""
        known = [place for place in partitions if place in self._places]
        if known:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in known])
        self._places.difference_update(known)
        for place in known:
            self._ends.pop(place, None)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on reading a partition at ``offset``; nothing fetched before comes any more."""
        self.remove([(topic, partition)])
        self.add({(topic, partition): offset})

    def end(self, topic: str, partition: int) -> int | None:
        """Return the newest end met since the partition was added; ``None`` before the first."""
        return self._ends.get((topic, partition))

    def poll(self, max_records: int, timeout_s: float) -> Batch:
        """Return what is there; wait up to ``timeout_s`` seconds for the first of it only.

        Raises:
            ClientFatalError: the client is beyond repair; end the process.
        """
        with self._watchdog.guard("read", timeout_s + self._config.call_deadline_s):
            messages = self._consumer.consume(max_records, 0)
            if not messages:
                first = self._consumer.poll(timeout_s)
                if first is not None:
                    messages = [first, *self._consumer.consume(max_records - 1, 0)]
        batch = Batch()
        records = batch.records
        for message in messages:
            if message.error() is None:
                records.append(_incoming(message))
            else:
                self._note(message, batch)
        self._ends.update(batch.ends)
        self._errors.check()
        return batch

    def close(self, deadline_s: float) -> None:
        """Close the client, waiting at most ``deadline_s`` seconds."""
        if not run_bounded("close reader", self._consumer.close, deadline_s):
            LOGGER.warning("log reader did not close within %g s", deadline_s)

    def _note(self, message: Message, batch: Batch) -> None:
        error = message.error()
        topic, number, offset = message.topic(), message.partition(), message.offset()
        invariant(error is not None, "an event without an error")
        if error is None:
            return
        if topic is not None and number is not None and (topic, number) in self._places:
            if error.code() == KafkaError._PARTITION_EOF and offset is not None:
                batch.ends[(topic, number)] = offset
                return
            if error.code() in _OUTSIDE:
                batch.lost.append((topic, number))
                return
        if error.fatal():
            raise ClientFatalError("log reader", f"{error.name()}: {error.str()}")
        LOGGER.warning("log reader: %s[%s]: %s: %s", topic, number, error.name(), error.str())


def _incoming(message: Message) -> Incoming:
    headers = message.headers()
    return Incoming(
        message.topic(),  # type: ignore[arg-type]  # a record has all three
        message.partition(),  # type: ignore[arg-type]
        message.offset(),  # type: ignore[arg-type]
        message.timestamp()[1],
        message.key(),
        message.value(),
        _headers(headers) if headers else (),
    )


def _headers(headers: Any) -> Headers:
    return tuple((name, value or b"") for name, value in headers)


def _options(config: ReaderConfig) -> dict[str, Any]:
    own: dict[str, str | int | float | bool] = {
        "group.id": config.group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": True,
        "allow.auto.create.topics": False,
        "fetch.wait.max.ms": config.fetch_wait_ms,
        "fetch.min.bytes": 1,
        "fetch.error.backoff.ms": 100,
        "fetch.queue.backoff.ms": 20,  # a full queue is looked at again; the default waits 1 s
        "queued.min.messages": 100_000,
        "queued.max.messages.kbytes": config.queued_kbytes,
    }
    return client_options(config.bootstrap_servers, config.extra, own)
