"""Which target topics exist, and with how many partitions.

One record for a topic that does not exist aborts its whole transaction after some ten seconds,
so it is asked first. "Yes" is remembered until a transaction fails, "no" for a short while:
somebody will create the topic.
"""

from collections.abc import Callable, Mapping

Lookup = Callable[[str], int | None]
"""Partition count of a topic in the cluster, ``None`` when it does not exist; may block."""

ABSENT_MS = 2_000
"""Lets many runs for one absent topic share a question."""


class TopicCounts:
    """Remembers partition counts.

    Args:
        lookup: asks the cluster.
        monotonic_ms: for how long, not for when.
    """

    def __init__(self, lookup: Lookup, monotonic_ms: Callable[[], int]) -> None:
        self._lookup = lookup
        self._monotonic_ms = monotonic_ms
        self._counts: dict[str, int] = {}
        self._absent: dict[str, int] = {}

    def __call__(self, topic: str) -> int | None:
        """Partition count, ``None`` for a topic that does not exist."""
        count = self._counts.get(topic)
        if count is not None:
            return count
        now_ms = self._monotonic_ms()
        if self._absent.get(topic, now_ms) > now_ms:
            return None
        count = self._lookup(topic)
        if count is None:
            self._absent[topic] = now_ms + ABSENT_MS
        else:
            self._counts[topic] = count
        return count

    def known(self) -> Mapping[str, int]:
        """The topics remembered."""
        return dict(self._counts)

    def forget(self) -> None:
        """Ask again from now on."""
        self._counts.clear()
        self._absent.clear()
