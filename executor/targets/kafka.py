"""Targets of kind ``kafka``: a message in the very transaction that records the success.

There is nothing to claim and nothing to lose: command in, message out, history, state and
offset are one transaction, so a reader with ``read_committed`` sees the effect exactly once.
"""

import re
from collections.abc import Callable, Mapping

from executor.core.codec import json_bytes
from executor.core.outcome import Failed
from executor.core.state import OpenRun
from executor.targets.order import order_of
from scheduler.core.records import Outgoing

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

MESSAGE_BYTES_MAX = 900_000
"""Below the broker's default ``max.message.bytes`` (1,048,588) with room for headers: one
oversized message would abort the whole transaction, everybody else's runs included."""


class KafkaTarget:
    """Turns a run into its message.

    Args:
        partitions: partition count of an existing topic, ``None`` for an unknown one.
        is_own: whether a topic is Duewheel's own, which is never a target.
        partition_of: murmur2 of a key modulo a count.
    """

    def __init__(self, partitions: Callable[[str], int | None], is_own: Callable[[str], bool],
                 partition_of: Callable[[bytes, int], int]) -> None:  # fmt: skip
        self._partitions = partitions
        self._is_own = is_own
        self._partition_of = partition_of

    def message(self, run: OpenRun) -> Outgoing | Failed:
        """The message of the current attempt, or why there can be none.

        Without a key in the definition the job id is the key: a job's messages keep their order.
        """
        target = run.command.target
        topic = target.get("topic")
        if not isinstance(topic, str) or _TOPIC.fullmatch(topic) is None:
            return Failed(f"{str(topic)[:100]!r} is no name of a topic", retryable=False)
        if self._is_own(topic):
            return Failed(f"topic {topic} is Duewheel's own, never a target", retryable=False)
        count = self._partitions(topic)
        if count is None:
            return Failed(f"topic {topic} does not exist or is not open to us")
        try:
            return self._checked(run, topic, count)
        except UnicodeEncodeError as error:
            return Failed(f"key or headers are not text: {error}", retryable=False)

    def _checked(self, run: OpenRun, topic: str, count: int) -> Outgoing | Failed:
        value = json_bytes(run.command.payload)
        if len(value) > MESSAGE_BYTES_MAX:
            size = f"{len(value)} bytes, at most {MESSAGE_BYTES_MAX}"
            return Failed(f"the payload is too large: {size}", retryable=False)
        key = str(run.command.target.get("key") or run.command.job_id).encode()
        return Outgoing(topic, self._partition_of(key, count), key, value, _headers(run))


def _headers(run: OpenRun) -> tuple[tuple[str, bytes], ...]:
    own = run.command.target.get("headers")
    chosen = own if isinstance(own, Mapping) else {}
    merged = {str(name): str(value) for name, value in chosen.items()} | order_of(run).headers()
    return tuple((name, value.encode()) for name, value in merged.items())
