"""Kafka as the command line needs it: read a topic to its end, follow it, write a few records.

Everything is read with ``read_committed`` and bounded by a deadline. A question about one job
reads that job's partition only.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from scheduler.core.records import Incoming, Outgoing
from scheduler.errors import ConfigError, DuewheelError, RetryableError

_POLL_S = 0.2
"""One wait for a record; short, so that Ctrl-C and deadlines are heard."""

# The leading underscore is librdkafka's mark for errors of the client itself.
_PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_UNKNOWN_TOPIC = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)

_QUIET = {"log_level": 0}
"""The client's own log lines say nothing that our errors do not."""


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
        return None if message is None else _incoming(_sound(message))

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
        with self._consumer({"enable.partition.eof": True}) as consumer:
            begins = _begins(consumer, topic, partitions, since_ms, deadline)
            consumer.assign(begins)
            unfinished = {place.partition for place in begins}
            while unfinished:
                message = consumer.poll(min(_POLL_S, deadline.left_s))
                deadline.check()
                if message is None:
                    continue
                if _is_end(message):
                    unfinished.discard(message.partition() or 0)
                else:
                    yield _incoming(_sound(message))

    @contextmanager
    def tail(self, partitions: Mapping[str, Iterable[int]], deadline: Deadline) -> Iterator[Tail]:
        """Follow partitions (by topic) from their present ends."""
        with self._consumer() as consumer:
            places = [TopicPartition(topic, n) for topic, ns in partitions.items() for n in ns]
            for place in places:
                place.offset = _bounds(consumer, place, deadline)[1]
            consumer.assign(places)
            yield Tail(consumer)

    def send(self, records: Iterable[Outgoing], deadline: Deadline) -> list[int]:
        """Write records and wait until all replicas have them; their offsets, in order.

        Raises:
            RetryableError: the cluster did not take one of them.
        """
        records = list(records)
        producer = Producer({
            **self._config,
            **_QUIET,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "delivery.timeout.ms": max(1000, int(deadline.left_s * 1000)),
        })  # fmt: skip
        receipts = _Receipts([-1] * len(records))
        for n, record in enumerate(records):
            _produce(producer, record, receipts.of(n), deadline)
        left = producer.flush(max(deadline.left_s, 0.1))
        if receipts.failures or left:
            why = receipts.failures[0] if receipts.failures else "no acknowledgement in time"
            lost = left + len(receipts.failures)
            raise RetryableError(f"{lost} record(s) not written: {why}")
        return receipts.offsets

    @contextmanager
    def _consumer(self, extra: Mapping[str, bool] | None = None) -> Iterator[Consumer]:
        consumer = Consumer({
            **self._config,
            **_QUIET,
            "group.id": "duewheel-cli",  # required by the client; nothing is ever committed
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            **(extra or {}),
        })  # fmt: skip
        try:
            yield consumer
        except KafkaException as error:
            raise self._explained(error) from error
        finally:
            consumer.close()

    def _explained(self, error: KafkaException) -> DuewheelError:
        fault = error.args[0]
        if fault.code() in _UNKNOWN_TOPIC:
            return ConfigError(f"{fault.str()}; create the topics: duewheel topics apply")
        return RetryableError(
            f"Kafka at {self._config.get('bootstrap.servers')}: {fault.str()}; "
            "does it run, and is KAFKA_BOOTSTRAP_SERVERS right?"
        )


@dataclass(frozen=True, slots=True)
class _Receipts:
    """What became of records handed to the client."""

    offsets: list[int]
    failures: list[str] = field(default_factory=list)

    def of(self, n: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.offsets[n] = message.offset() or 0
            else:
                self.failures.append(error.str())

        return note


def _produce(
    producer: Producer, record: Outgoing, done: Callable[..., None], deadline: Deadline
) -> None:
    """Hand a record to the client, waiting while its queue (100,000 records) is full."""
    while True:
        try:
            producer.produce(
                record.topic, key=record.key, value=record.value, partition=record.partition,
                headers=list(record.headers), on_delivery=done,
            )  # fmt: skip
        except BufferError:
            producer.poll(_POLL_S)
            deadline.check()
        else:
            return


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == _PARTITION_EOF


def _sound(message: Message) -> Message:
    """The message, unless it is an error in disguise."""
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    return message


def _begins(
    consumer: Consumer, topic: str, partitions: Iterable[int], since_ms: int | None,
    deadline: Deadline,
) -> list[TopicPartition]:  # fmt: skip
    """Where reading begins in each partition that holds anything.

    Absolute offsets: with the symbolic ones the client pauses half a second before each first
    fetch.
    """
    places = [TopicPartition(topic, number) for number in partitions]
    filled = []
    for place in places:
        first, end = _bounds(consumer, place, deadline)
        if first < end:
            filled.append(TopicPartition(topic, place.partition, first))
    if since_ms is None or not filled:
        return filled
    asked = [TopicPartition(topic, place.partition, since_ms) for place in filled]
    found = consumer.offsets_for_times(asked, timeout=max(deadline.left_s, 0.1))
    return [place for place in found if place.offset >= 0]  # negative: nothing so young


def _bounds(consumer: Consumer, place: TopicPartition, deadline: Deadline) -> tuple[int, int]:
    """First offset and end of a partition."""
    low, high = consumer.get_watermark_offsets(place, timeout=max(deadline.left_s, 0.1))
    return int(low), int(high)


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
