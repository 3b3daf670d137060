"""Which targets this executor serves, by kind.

``none`` never gets here: its runs are dispatched and no more. ``external`` runs belong to
workers that report for themselves; this executor does not follow them yet, and says so in a
dead letter rather than leaving them open for ever.
"""

from collections.abc import Collection

from executor.core.outcome import Failed
from executor.core.state import OpenRun
from executor.targets.kafka import KafkaTarget
from executor.targets.topics import TopicCounts
from scheduler.core.records import Outgoing


class Directory:
    """The core's `Delivery`: what is done within the transaction, and what needs a handler."""

    def __init__(self, kafka: KafkaTarget, topics: TopicCounts, handled: Collection[str]) -> None:
        self._kafka = kafka
        self._topics = topics
        self._handled = frozenset(handled)
        self._refused: dict[str, str] = {}

    def deliver(self, run: OpenRun) -> Outgoing | Failed | None:
        """The message of a Kafka target, ``None`` for kinds with a handler, or why neither."""
        kind = run.command.target_kind
        reason = self._refused.pop(run.run_id, None)
        if reason is not None:
            return Failed(reason, retryable=False)
        if kind == "kafka":
            return self._kafka.message(run)
        if kind in self._handled:
            return None
        return Failed(f"targets of kind {kind} are not supported by this executor", retryable=False)

    def doubt(self) -> None:
        """A transaction was aborted: a topic that was there may be there no more."""
        self._topics.forget()

    def refuse(self, run_id: str, reason: str) -> None:
        """Let the next delivery of a run fail for good: its message aborts transactions."""
        self._refused[run_id] = reason
