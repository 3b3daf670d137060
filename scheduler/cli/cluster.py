"""Kafka as the command line needs it: read a topic to its end, follow it, write a few records.

Everything is read with ``read_committed`` and bounded by a deadline. A question about one job
reads that job's partition only.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from scheduler.core.records import Incoming, Outgoing
from scheduler.errors import ConfigError, RetryableError

_POLL_S = 0.2
"""One wait for a record; short, so that Ctrl-C and deadlines are heard."""

# The leading underscore is librdkafka's mark for errors of the client itself.
_PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant of the monotonic clock. ``what`` names the wait in the error."""

    seconds: float
    what: str
    _until: float = field(default=0.0)

    @staticmethod
    def after(seconds: float, what: str) -> "Deadline":
        """The deadline ``seconds`` from now."""
        return Deadline(seconds, what, time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._until - time.monotonic())

    def check(self) -> None:
        """Raise `RetryableError` once the deadline has passed."""
        if self.left_s == 0.0:
            raise RetryableError(
                f"{self.what} took longer than {self.seconds:g} s; "
                "try again, or allow more with --deadline"
            )


class Tail:
    """Records appended to some partitions after this was made, in the order of arrival."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def poll(self, timeout_s: float = _POLL_S) -> Incoming | None:
        """The next record, ``None`` if there is none within ``timeout_s``."""
        message = self._consumer.poll(timeout_s)
        return None if message is None or _at_end(message) else _incoming(message)

    def until(self, deadline: Deadline) -> Iterator[Incoming]:
        """Records as they come; raises `RetryableError` when the deadline passes."""
        while True:
            record = self.poll(min(_POLL_S, deadline.left_s))
            if record is not None:
                yield record
            deadline.check()


class Cluster:
    """The Kafka cluster a command talks to.

    Args:
        config: librdkafka settings every client gets: ``bootstrap.servers`` and security.
    """

    def __init__(self, config: Mapping[str, str | int | float | bool]) -> None:
        self._config = dict(config)

    def partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """Partitions of a topic, ascending.

        Raises:
            ConfigError: there is no such topic.
        """
        with self._consumer() as consumer:
            found = consumer.list_topics(topic, timeout=max(deadline.left_s, 0.1)).topics[topic]
        if found.error is not None or not found.partitions:
            raise ConfigError(f"topic {topic} does not exist; create it: duewheel topics apply")
        return sorted(found.partitions)

    def scan(
        self, topic: str, partitions: Iterable[int], deadline: Deadline,
        since_ms: int | None = None,
    ) -> Iterator[Incoming]:  # fmt: skip
        """Every record of the partitions, up to the end each has when it is reached.

        Args:
            topic: its full name.
            partitions: those to read.
            deadline: bounds the whole reading.
            since_ms: leave out records with an earlier timestamp (epoch ms); ``None`` for none.

        Raises:
            RetryableError: the end was not reached within the deadline.
        """
        with self._consumer() as consumer:
            wanted = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions]
            if since_ms is not None:
                wanted = _offsets_at(consumer, wanted, since_ms, deadline)
            consumer.assign(wanted)
            unfinished = {tp.partition for tp in wanted}
            while unfinished:
                message = consumer.poll(min(_POLL_S, deadline.left_s))
                deadline.check()
                if message is None:
                    continue
                if _at_end(message):
                    unfinished.discard(message.partition())
                else:
                    yield _incoming(message)

    @contextmanager
    def tail(self, partitions: Mapping[str, Iterable[int]], deadline: Deadline) -> Iterator[Tail]:
        """Follow partitions (by topic) from their present ends."""
        with self._consumer() as consumer:
            positions = []
            for topic, numbers in partitions.items():
                for number in numbers:
                    place = TopicPartition(topic, number)
                    ends = consumer.get_watermark_offsets(place, timeout=max(deadline.left_s, 0.1))
                    positions.append(TopicPartition(topic, number, ends[1]))
            consumer.assign(positions)
            yield Tail(consumer)

    def send(self, records: Iterable[Outgoing], deadline: Deadline) -> list[int]:
        """Write records and wait until all replicas have them; their offsets, in order.

        Raises:
            RetryableError: the cluster did not take one of them.
        """
        records = list(records)
        producer = Producer({
            **self._config,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "delivery.timeout.ms": max(1000, int(deadline.left_s * 1000)),
        })  # fmt: skip
        offsets = [-1] * len(records)
        failures: list[str] = []

        def delivered(n: int) -> Callable[[KafkaError | None, Message], None]:
            def note(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failures.append(f"{records[n].key.decode(errors='replace')}: {error.str()}")
                else:
                    offsets[n] = message.offset() or 0

            return note

        for n, record in enumerate(records):
            producer.produce(
                record.topic, key=record.key, value=record.value, partition=record.partition,
                headers=list(record.headers), on_delivery=delivered(n),
            )  # fmt: skip
        left = producer.flush(max(deadline.left_s, 0.1))
        if failures or left:
            why = failures[0] if failures else "no acknowledgement in time"
            raise RetryableError(f"{left + len(failures)} record(s) not written: {why}")
        return offsets

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        consumer = Consumer({
            **self._config,
            "group.id": "duewheel-cli",  # required by the client; nothing is ever committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        })  # fmt: skip
        try:
            yield consumer
        finally:
            consumer.close()


def _at_end(message: Message) -> bool:
    """Whether this only says that a partition's end is reached; raises on a fault."""
    error = message.error()
    if error is None:
        return False
    if error.code() == _PARTITION_EOF:
        return True
    raise KafkaException(error)


def _offsets_at(
    consumer: Consumer, places: list[TopicPartition], since_ms: int, deadline: Deadline
) -> list[TopicPartition]:
    asked = [TopicPartition(p.topic, p.partition, since_ms) for p in places]
    return list(consumer.offsets_for_times(asked, timeout=max(deadline.left_s, 0.1)))


def _incoming(message: Message) -> Incoming:
    headers = message.headers() or []
    if isinstance(headers, dict):
        headers = list(headers.items())
    key, value = message.key(), message.value()
    return Incoming(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        key if isinstance(key, bytes) else None,
        value if isinstance(value, bytes) else None,
        tuple((name, v if isinstance(v, bytes) else b"") for name, v in headers),
    )
