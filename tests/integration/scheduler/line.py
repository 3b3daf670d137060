"""A user of Duewheel with plain clients: produces definitions, reads topics to find answers."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog

Row = dict[str, Any]


@dataclass(slots=True)
class User:
    """Plain clients of one Duewheel.

    Attributes:
        seen: every record read so far, by topic and key.
    """

    bootstrap: str
    catalog: TopicCatalog
    seen: dict[str, dict[bytes, list[Message]]] = field(default_factory=dict)
    _producer: Producer = field(init=False)
    _consumers: dict[str, Consumer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._producer = Producer(
            {"bootstrap.servers": self.bootstrap, "acks": "all", "message.max.bytes": 2_000_000}
        )

    def produce(
        self,
        key: bytes,
        value: bytes | Row | None,
        *,
        topic: str = "jobs",
        partition: int | None = None,
        headers: dict[str, str | bytes | None] | None = None,
    ) -> tuple[int, int]:
        """Produce one record; its partition and offset."""
        place = (
            partition_of(key, self.catalog.partitions(topic)) if partition is None else partition
        )
        plain = json.dumps(value).encode() if isinstance(value, dict) else value
        acknowledged: list[Message] = []

        def done(error: object, message: Message) -> None:
            assert error is None, error
            acknowledged.append(message)

        self._producer.produce(
            self.catalog.name(topic), plain, key, place, done, headers=headers or {}
        )
        self._producer.flush(30)
        offset = acknowledged[0].offset()
        assert offset is not None
        return place, offset

    def records(self, topic: str, key: bytes) -> list[Message]:
        """Everything that can be read of a key by now, oldest first."""
        if topic not in self._consumers:
            self._consumers[topic] = self._consumer(topic)
            self.seen[topic] = defaultdict(list)
        message = self._consumers[topic].poll(0.1)
        while message is not None:
            if message.error() is None:
                self.seen[topic][message.key() or b""].append(message)
            message = self._consumers[topic].poll(0.0)
        return self.seen[topic][key]

    def guarded(self, key: bytes, why: str, deadline_s: float = 30.0) -> Row:
        """The first guard of this kind that the scheduler wrote for a key of ``jobs``."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            for message in self.records("jobs", key):
                guard = json.loads(dict(message.headers() or []).get("duewheel-guard") or "{}")
                if guard.get("why") == why:
                    return {**guard, "value": message.value()}
        raise AssertionError(f"jobs: no guarded record of {key!r} that says {why}")

    def rows(self, topic: str, key: bytes) -> list[Row]:
        """The values of a key by now, as JSON, oldest first."""
        values = [message.value() for message in self.records(topic, key)]
        return [json.loads(value) for value in values if value is not None]

    def find(
        self, topic: str, key: bytes, wanted: Callable[[Row], bool], deadline_s: float = 30.0
    ) -> Row:
        """The first value of a key that is wanted; fails when none comes in time."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            for row in self.rows(topic, key):
                if wanted(row):
                    return row
        raise AssertionError(f"{topic}: nothing wanted of {key!r}: {self.rows(topic, key)}")

    def status(self, key: bytes, state: str, deadline_s: float = 30.0) -> Row:
        """The first job-status of a key with this state."""
        return self.find("job-status", key, lambda row: row["state"] == state, deadline_s)

    def runs(self, key: bytes) -> Iterator[Row]:
        """Run commands of a job by now."""
        return (row for row in self.rows("runs", key) if row["kind"] == "run")

    def close(self) -> None:
        """Close every client."""
        for consumer in self._consumers.values():
            consumer.close()

    def _consumer(self, topic: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "user",  # required by the client, never joined
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        count = self.catalog.partitions(topic)
        name = self.catalog.name(topic)
        consumer.assign([TopicPartition(name, number, 0) for number in range(count)])
        return consumer
