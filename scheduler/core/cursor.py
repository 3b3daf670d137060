"""The cursor of a partition: "every instant up to here is decided".

It travels as the metadata of the transactional offset commit, so that runs, recorded outcomes,
retries taken up, cursor and offset are all or nothing. A *position* on the wheel is a pair
``(due_ms, key)``; the cursor is a position plus what else the partition's state depends on.

Source: Kafka Streams keeps its stream time in offset metadata the same way
(TopicPartitionMetadata); unknown versions and garbage read as "no cursor".
"""

import base64
import binascii
import struct
from dataclasses import dataclass

Position = tuple[int, bytes]
"""Due instant (epoch ms) and key; compared as tuples."""

WHOLE = b"\xff" * 32
"""Sorts above every key: the whole instant is decided."""

_VERSION = 1
_HEAD = struct.Struct(">BqqqqqQ16s")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a partition stands. Everything at or before ``(due_ms, resume)`` is decided.

    Attributes:
        due_ms: effective instant of the hand, epoch milliseconds.
        resume: key within that instant up to which it is decided; `WHOLE` for all of it.
        commands: next offset to accept from ``job-commands[p]``.
        retries: next offset to accept from ``runs-retry[p]``.
        oldest_retry: offset of the oldest accepted delayed run still waiting, or ``retries``.
        calendars: next offset to accept from ``calendars[0]``.
        sequence: number of transactions so far; grows by one each.
        topic_id: 16 bytes, the id of the ``jobs`` topic this cursor belongs to.
        tzdata: version of the time zone data the decisions were made with.
    """

    due_ms: int
    resume: bytes = WHOLE
    commands: int = 0
    retries: int = 0
    oldest_retry: int = 0
    calendars: int = 0
    sequence: int = 0
    topic_id: bytes = bytes(16)
    tzdata: str = ""

    @property
    def position(self) -> Position:
        """The hand as a position on the wheel."""
        return (self.due_ms, self.resume)


def encode_cursor(cursor: Cursor) -> str:
    """ASCII text for offset metadata; well under 1 KB (broker's limit is 4 KB)."""
    head = _HEAD.pack(_VERSION, cursor.due_ms, cursor.commands, cursor.retries,
                      cursor.oldest_retry, cursor.calendars, cursor.sequence,
                      cursor.topic_id)  # fmt: skip
    resume = b"" if cursor.resume == WHOLE else cursor.resume
    tzdata = cursor.tzdata.encode()
    parts = (head, bytes([len(tzdata)]), tzdata, resume)
    return base64.b64encode(b"".join(parts)).decode()


def decode_cursor(text: str | None) -> Cursor | None:
    """Inverse of `encode_cursor`; ``None`` for anything this version cannot read.

    >>> decode_cursor(encode_cursor(Cursor(5, b"x" * 16))).resume
    b'xxxxxxxxxxxxxxxx'
    >>> decode_cursor("garbage") is None
    True
    """
    if not text:
        return None
    try:
        data = base64.b64decode(text, validate=True)
        version, due, *positions, topic = _HEAD.unpack_from(data)
        if version != _VERSION:
            return None
        commands, retries, oldest, calendars, sequence = positions
        rest = data[_HEAD.size :]
        tzdata = rest[1 : 1 + rest[0]].decode()
        resume = rest[1 + rest[0] :] or WHOLE
    except (binascii.Error, struct.error, IndexError, UnicodeDecodeError, ValueError):
        return None
    return Cursor(due, resume, commands, retries, oldest, calendars, sequence, topic, tzdata)
