"""What the tests of the Kafka edge share: topics of their own, plain clients, waiting."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from scheduler.core.records import Incoming
from scheduler.kafka.ownership import Ownership, OwnershipConfig
from scheduler.kafka.positions import Positions, PositionsConfig
from scheduler.kafka.reader import LogReader, ReaderConfig
from scheduler.kafka.transaction import ProducerConfig, TransactionalProducer

DEADLINE_S = 40.0
"""Longer than anything here takes, the broker's abort of a timed-out transaction included."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Makes clients of one cluster, all names under one prefix."""

    bootstrap: str
    prefix: str

    @property
    def group(self) -> str:
        return self.prefix + "group"

    def topic(self, name: str, partitions: int = 4, **settings: str) -> str:
        """Create a topic and wait until it can be written to."""
        full = self.prefix + name
        config = {"message.timestamp.type": "LogAppendTime"}
        config |= {key.replace("_", "."): value for key, value in settings.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        new = NewTopic(full, num_partitions=partitions, replication_factor=1, config=config)
        admin.create_topics([new])[full].result(timeout=30)
        until(lambda: self._served(full, partitions), f"leaders of {full}")
        return full

    def _served(self, topic: str, partitions: int) -> bool:
        plain = Producer({"bootstrap.servers": self.bootstrap})
        found = plain.list_topics(topic, timeout=10).topics[topic]
        leaders = [each.leader for each in found.partitions.values()]
        return len(leaders) == partitions and min(leaders) >= 0

    def ownership(self, topic: str, group: str | None = None) -> Ownership:
        return Ownership(OwnershipConfig(self.bootstrap, group or self.group, topic))

    def member(self, topic: str, partitions: int, group: str | None = None) -> Ownership:
        """A member that owns all partitions."""
        ownership = self.ownership(topic, group)
        poll_until(ownership, lambda: len(ownership.owned) == partitions)
        return ownership

    def producer(self, name: str = "tx", **options: object) -> TransactionalProducer:
        config = ProducerConfig(self.bootstrap, self.prefix + name, **options)  # type: ignore[arg-type]
        producer = TransactionalProducer(config)
        assert producer.connect()
        return producer

    def plain_transactional(self, name: str, timeout_ms: int = 60_000) -> Producer:
        """A user's own producer, its transactional id taken."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.prefix + name,
                "transaction.timeout.ms": timeout_ms,
            }
        )
        producer.init_transactions(30)
        return producer

    def reader(self) -> LogReader:
        return LogReader(ReaderConfig(self.bootstrap, self.group + "-reader"))

    def positions(self, topic: str, **options: object) -> Positions:
        return Positions(PositionsConfig(self.bootstrap, self.group, topic, **options))  # type: ignore[arg-type]

    def write(self, topic: str, partition: int, values: Sequence[bytes]) -> None:
        """Records without a transaction, acknowledged."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value, b"k" + value, partition)
        assert producer.flush(30) == 0


def until(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Ask again until it holds; the condition itself does the waiting."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s:g} s: {what}"


def poll_until(ownership: Ownership, condition: Callable[[], bool]) -> None:
    def step() -> bool:
        ownership.poll(0.1)
        return condition()

    until(step, "ownership")


def read_until(
    reader: LogReader, condition: Callable[[list[Incoming]], bool], deadline_s: float = DEADLINE_S
) -> list[Incoming]:
    """Read until the condition holds of everything read."""
    records: list[Incoming] = []

    def step() -> bool:
        records.extend(reader.poll(1_000, 0.1).records)
        return condition(records)

    until(step, "records", deadline_s)
    return records
