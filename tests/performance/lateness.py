"""How late runs reach a reader: now minus ``run_at``, seen by a polling read_committed consumer."""

import time
from collections.abc import Iterator
from functools import lru_cache

from confluent_kafka import Consumer, Message, TopicPartition

from scheduler.core.instant import parse_instant
from tests.performance.figure import Figure, quantile

_RUN_AT = b'"run_at":"'
_INSTANT_CHARS = 24
"""Of ``2026-11-30T09:00:00.000Z``."""


class LatenessReader:
    """Reads a run topic from its present end on, one record a ``poll``."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench-lateness",  # required by the client, never joined
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": False,
            }
        )
        self._consumer.assign([self._at_end(topic, number) for number in range(partitions)])

    def lateness_ms(self, for_s: float) -> list[float]:
        """Lateness of every run command that arrives within ``for_s`` seconds, sorted."""
        return sorted(late for _, late in self.arrivals(for_s))

    def arrivals(self, for_s: float) -> Iterator[tuple[Message, float]]:
        """Each run command that arrives within ``for_s`` seconds, with its lateness in ms."""
        end_s = time.monotonic() + for_s
        while (left_s := end_s - time.monotonic()) > 0:
            message = self._consumer.poll(left_s)
            if message is None:
                continue
            if message.error() is not None:
                raise RuntimeError(f"the lateness reader failed: {message.error()}")
            due_ms = run_at_ms(message.value() or b"")
            if due_ms > 0:  # warm-up records say 1970
                yield message, time.time() * 1000 - due_ms

    def close(self) -> None:
        """Release the consumer."""
        self._consumer.close()

    def _at_end(self, topic: str, partition: int) -> TopicPartition:
        _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        return TopicPartition(topic, partition, end)


def run_at_ms(command: bytes) -> int:
    """The effective instant of an encoded run command, epoch milliseconds.

    >>> run_at_ms(b'{"scheduled_at":"...","run_at":"1970-01-01T00:00:01.500Z","attempt":1}')
    1500
    """
    begin = command.index(_RUN_AT) + len(_RUN_AT)
    return _parse(command[begin : begin + _INSTANT_CHARS])


def lateness_figures(name: str, late_ms: list[float], conditions: str) -> tuple[Figure, Figure]:
    """Median and 99th percentile of sorted lateness."""
    conditions = f"{len(late_ms):,} runs, {conditions}"
    return (
        Figure(f"{name} p50", quantile(late_ms, 0.5), "ms", conditions),
        Figure(f"{name} p99", quantile(late_ms, 0.99), "ms", conditions),
    )


@lru_cache(maxsize=1024)
def _parse(instant: bytes) -> int:
    return parse_instant(instant.decode())
