"""Fill ``jobs`` with many definitions, fast: a plain producer, explicit partitions."""

import time
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import KafkaError, Message, Producer

from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog

_QUEUE_MESSAGES = 500_000


def load_definitions(
    bootstrap: str, catalog: TopicCatalog, definitions: Iterable[tuple[bytes, bytes]]
) -> float:
    """Produce (job id, definition) pairs to ``jobs`` and wait for them; returns the seconds."""
    topic, partitions = catalog.name("jobs"), catalog.partitions("jobs")
    refused: list[KafkaError] = []
    producer = Producer(_settings(bootstrap, lambda error, _: _note(refused, error)))
    began = time.monotonic()
    for key, value in definitions:
        _produce(producer, topic, partition_of(key, partitions), key, value)
    left = producer.flush(120)
    if left or refused:
        raise RuntimeError(f"{left} definitions not written, {len(refused)} refused: {refused[:1]}")
    return time.monotonic() - began


def same_definition(count: int, value: bytes) -> Iterator[tuple[bytes, bytes]]:
    """``count`` jobs, ``bench-0000000`` and so on, with one definition: one cohort."""
    return ((b"bench-%07d" % number, value) for number in range(count))


def _settings(
    bootstrap: str, on_delivery: Callable[[KafkaError | None, Message], None]
) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "compression.type": "lz4",
        "linger.ms": 20,
        "batch.num.messages": 10_000,
        "queue.buffering.max.messages": _QUEUE_MESSAGES,
        "delivery.report.only.error": True,
        "on_delivery": on_delivery,
    }


def _produce(producer: Producer, topic: str, partition: int, key: bytes, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
        except BufferError:
            producer.poll(0.05)
        else:
            return


def _note(refused: list[KafkaError], error: KafkaError | None) -> None:
    if error is not None:
        refused.append(error)
