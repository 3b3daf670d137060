"""Instants: epoch milliseconds inside, RFC 3339 UTC with milliseconds outside."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MAX_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last instant that RFC 3339 can write."""


def format_instant(ms: int) -> str:
    """RFC 3339 text of an instant, UTC, always with milliseconds.

    >>> format_instant(1764493200000)
    '2025-11-30T09:00:00.000Z'
    """
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def parse_instant(text: str) -> int:
    """Epoch milliseconds of an RFC 3339 instant with any offset (finer digits are cut).

    Raises:
        ValueError: not an RFC 3339 instant, or without an offset.

    >>> parse_instant("2025-11-30T12:00:00+03:00")
    1764493200000
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no UTC offset; write e.g. 2026-11-30T09:00:00Z")
    return (moment - _EPOCH) // timedelta(milliseconds=1)
