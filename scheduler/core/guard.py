"""The guard header: what marks our own writes to ``jobs`` and when they are void.

A guarded record acts on one record of a user. It is void when a later record of a user
exists for its key. One mechanism serves finished one-shots, moved records, good definitions
kept after bad ones, deletions written again, and bad definitions without a predecessor.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.records import Headers

GUARD_HEADER = "duewheel-guard"
IF_OFFSET_HEADER = "duewheel-if-offset"

_BYTES_MAX = 1_024
_NUMBER_MAX = 1 << 62
_DIGITS_MAX = 18


class Why(StrEnum):
    """What a guarded record does."""

    FINISHED = "finished"
    MOVED = "moved"
    KEPT = "kept"
    DELETED = "deleted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Guard:
    """Content of the header.

    Attributes:
        acts_on: offset of the key's newest user's record when this was written.
        source: offset of the user's record whose definition (or deletion) this repeats.
        appended_ms: original append time of that record, epoch milliseconds.
        why: what the record does.
    """

    acts_on: int
    source: int
    appended_ms: int
    why: Why


def guard_headers(guard: Guard) -> Headers:
    """The record headers that carry a guard."""
    value = {"acts_on": guard.acts_on, "source": guard.source,
             "appended_at": guard.appended_ms, "why": guard.why}  # fmt: skip
    return ((GUARD_HEADER, json.dumps(value, separators=(",", ":")).encode()),)


def guard_of(headers: Headers) -> Guard | None:
    """The guard a record carries, ``None`` for a user's record.

    Raises:
        ValueError: the header is there but cannot be read.

    >>> guard_of(guard_headers(Guard(3, 1, 99, Why.KEPT)))
    Guard(acts_on=3, source=1, appended_ms=99, why=<Why.KEPT: 'kept'>)
    """
    for name, value in headers:
        if name == GUARD_HEADER:
            return _parse(value)
    return None


def if_offset_of(headers: Headers) -> int | None:
    """The ``definition_offset`` that a conditional edit replaces; ``None`` if unconditional.

    Raises:
        ValueError: the header is there but is not an offset.
    """
    for name, value in headers:
        if name == IF_OFFSET_HEADER:
            if not (value or b"").isdigit() or len(value) > _DIGITS_MAX:
                raise ValueError(f"header {IF_OFFSET_HEADER} must be an offset, got {value!r}")
            return int(value)
    return None


def _parse(value: bytes) -> Guard:
    if len(value or b"") > _BYTES_MAX:
        raise ValueError(f"header {GUARD_HEADER} has {len(value)} bytes, above {_BYTES_MAX}")
    try:
        plain = json.loads(value)
        acts_on, source, appended = (
            _number(plain[name]) for name in ("acts_on", "source", "appended_at")
        )
        return Guard(acts_on, source, appended, Why(plain["why"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"header {GUARD_HEADER} cannot be read: {error!r}") from error


def _number(value: object) -> int:
    """An offset or an instant as we write them; whoever forges one gets no further."""
    if type(value) is not int or not -1 <= value < _NUMBER_MAX:
        raise ValueError(f"{str(value)[:40]} is no offset and no instant")
    return value
