"""What came of an attempt, as values; and whether the next attempt starts here, later or never."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from executor.core.table import Event
from scheduler.core.backoff import DELAY_MS_MAX, backoff_ms

if TYPE_CHECKING:
    from random import Random

    from executor.core.state import OpenRun

ERROR_CHARS_MAX = 4096
"""Errors are cut here in history and dead letters (contract)."""

RETRYABLE_STATUS = frozenset({408, 425, 429})
"""HTTP answers below 500 that say "later", not "never" (RFC 9110, RFC 8470, RFC 6585)."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The target did its work."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The target did not do its work.

    Attributes:
        retry_after_ms: the target asked not to be tried earlier; ``None`` if it did not.
    """

    error: str
    retryable: bool = True
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler asked for no further attempt, without it being a failure."""

    reason: str


Result = Succeeded | Failed | Cancelled


@dataclass(frozen=True, slots=True)
class Verdict:
    """An event of the table, and the delay before the next attempt (0 where there is none)."""

    event: Event
    delay_ms: int = 0


def judge(run: "OpenRun", result: Result, soon_ms: int, rng: "Random") -> Verdict:
    """What ``result`` of the current attempt does to ``run``.

    A delay below ``soon_ms`` is waited for in this process; a longer one by the scheduler.
    """
    match result:
        case Succeeded():
            return Verdict(Event.SUCCEEDED)
        case Cancelled():
            return Verdict(Event.CANCEL)
        case Failed(retryable=retryable, retry_after_ms=after_ms):
            if not retryable or run.unretried or run.attempt >= run.attempt_limit:
                return Verdict(Event.FAILED_FOR_GOOD)
            command = run.command
            jitter_ms = backoff_ms(run.attempt, command.retry_base_s, command.retry_cap_s, rng)
            # Every client of a struggling target gets the same Retry-After: the jitter goes on
            # top of it, else they would all come back in one wave.
            delay_ms = min(jitter_ms + (after_ms or 0), DELAY_MS_MAX)
            soon = delay_ms < soon_ms
            return Verdict(Event.FAILED_SOON if soon else Event.FAILED_LATER, delay_ms)


def retryable_status(code: int) -> bool:
    """Whether an HTTP answer that is no success is worth another attempt.

    >>> [code for code in (301, 400, 404, 408, 409, 425, 429, 500, 503) if retryable_status(code)]
    [408, 425, 429, 500, 503]
    """
    return code in RETRYABLE_STATUS or 500 <= code <= 599


def cut(error: str, chars_max: int = ERROR_CHARS_MAX) -> str:
    """``error`` at the length history allows."""
    return error if len(error) <= chars_max else error[: chars_max - 1] + "…"
