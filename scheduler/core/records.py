"""Records as plain values: what was read from a log, and what is to be written to one."""

from dataclasses import dataclass

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Incoming:
    """One record read from a log.

    Attributes:
        appended_ms: the record's timestamp, epoch milliseconds; the broker's own append
            time on topics with ``message.timestamp.type=LogAppendTime``.
        value: ``None`` for a tombstone.
    """

    topic: str
    partition: int
    offset: int
    appended_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to be written. ``observe`` asks for its broker append time at the commit."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: Headers = ()
    observe: bool = False


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Many records for one partition, without headers: the hot path of a fire."""

    topic: str
    partition: int
    messages: list[tuple[bytes, bytes]]
    """(key, value) pairs, in the order in which they are to be produced."""
