"""Reading topics in bulk, read_committed, from chosen positions; not for latencies."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Message, TopicPartition

FETCH = 1_000
POLL_S = 0.2


class TopicReader:
    """All partitions of one topic, from the beginning or from their present ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, at_end: bool) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench-reader",  # required by the client, never joined
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        low_high = [self._consumer.get_watermark_offsets(p, timeout=10) for p in self._places]
        for place, (low, high) in zip(self._places, low_high, strict=True):
            place.offset = high if at_end else low
        self._from = sum(place.offset for place in self._places)
        self._assigned = False

    def grown(self) -> int:
        """Offsets added since this reader was made, markers of transactions included."""
        ends = [self._consumer.get_watermark_offsets(p, timeout=10)[1] for p in self._places]
        return sum(ends) - self._from

    def messages(self, deadline_s: float) -> Iterator[Message]:
        """Every record that arrives until the deadline; stop iterating to stop reading."""
        if not self._assigned:
            self._consumer.assign(self._places)
            self._assigned = True
        end_s = time.monotonic() + deadline_s
        while time.monotonic() < end_s:
            for message in self._consumer.consume(FETCH, POLL_S):
                if message.error() is not None:
                    raise RuntimeError(f"reading failed: {message.error()}")
                yield message

    def close(self) -> None:
        """Release the consumer."""
        self._consumer.close()


def wait_accepted(
    bootstrap: str, topic: str, partitions: int, count: int, deadline_s: float
) -> float:
    """Wait until ``job-status`` calls ``count`` jobs active; returns the seconds it took.

    Raises:
        TimeoutError: fewer jobs became active in time.
    """
    began = time.monotonic()
    reader = TopicReader(bootstrap, topic, partitions, at_end=False)
    active: set[bytes] = set()
    try:
        for message in reader.messages(deadline_s):
            if b'"active"' in (message.value() or b""):
                active.add(message.key() or b"")
                if len(active) == count:
                    return time.monotonic() - began
    finally:
        reader.close()
    raise TimeoutError(f"{len(active):,} of {count:,} definitions accepted in {deadline_s:g} s")
