"""The cron dialect: validate, normalise, read.

5 fields (minute hour day month weekday), 6 with leading seconds, 7 with a trailing year, or an
``@`` form. What one field may hold is in `cron_field`, how the two day fields combine in
`cron_days`. A stored expression is always `CronText.expression`: plain, its ``H`` resolved, so
that it means the same to every later version of this code.

Nothing here is slow on purpose-made input: the length is bounded before anything is read, and
each step is linear in it.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from scheduler.core.cron_days import DayRule
from scheduler.core.cron_fault import CronError, CronFault
from scheduler.core.cron_field import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    FieldKind,
    FieldValues,
    read_field,
)
from scheduler.core.cron_warnings import warnings_of
from scheduler.core.definition import DstGap, DstOverlap
from scheduler.core.wall import CronFields, WallClock

__all__ = ["LENGTH_MAX", "CronError", "CronFault", "CronFields", "CronText", "normalise", "parse"]

LENGTH_MAX: Final = 256
"""Characters. The longest sensible expression lists all 60 minutes: 170 characters."""

_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_KINDS: Final[dict[int, tuple[FieldKind, ...]]] = {
    5: (MINUTE, HOUR, DAY, MONTH, WEEKDAY),
    6: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY),
    7: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR),
}
_MIDNIGHT_SECOND: Final = FieldValues("0", 1)
_LINE_ENDS: Final = frozenset("\n\r\v\f")


@dataclass(frozen=True, slots=True)
class CronText:
    """A normalised expression.

    Attributes:
        expression: canonical text; `normalise` of it is itself.
        wildcard: second, minute or hour begins with ``*``: under ``auto`` such an expression
            follows elapsed time, any other fires once a date.
        warnings: what a user should know, e.g. where other engines read it differently.
    """

    expression: str
    wildcard: bool
    warnings: tuple[str, ...] = ()

    @property
    def auto(self) -> tuple[DstGap, DstOverlap]:
        """What the policies ``auto`` stand for."""
        if self.wildcard:
            return DstGap.SKIP, DstOverlap.BOTH
        return DstGap.RUN_AFTER, DstOverlap.FIRST


def normalise(expression: str, job_id: str | None = None) -> CronText:
    """Check an expression and bring it into its one stored form.

    Args:
        expression: as a user writes it.
        job_id: chooses ``H``; without it ``H`` is refused.

    Raises:
        CronError: with the class of the fault and what to write instead.

    >>> normalise(" 0 9 * jan-mar MON-fri").expression
    '0 9 * 1-3 1-5'
    >>> normalise("H H(1-5) * * *", "nightly-report").expression
    '23 3 * * *'
    """
    texts = _split(expression)
    values = _read(texts, None if job_id is None else _digest(job_id))
    fields = _fields(values)
    _require_possible(fields)
    clock = values[: 2 if len(values) == 5 else 3]
    return CronText(
        expression=" ".join(value.text for value in values),
        wildcard=any(value.starred for value in clock),
        warnings=warnings_of(texts, fields.days),
    )


def parse(expression: str) -> CronFields:
    """Sets of a normalised expression.

    Raises:
        CronError: the text is not in the dialect (or holds an ``H``).
    """
    return _fields(_read(_split(expression), None))


def _split(expression: str) -> list[str]:
    """The 5, 6 or 7 fields, upper case."""
    if len(expression) > LENGTH_MAX:
        raise CronError(
            CronFault.LENGTH,
            f"{len(expression)} characters are more than {LENGTH_MAX}; use ranges and steps",
        )
    if _LINE_ENDS.intersection(expression):
        raise CronError(CronFault.FIELDS, "an expression is one line; write one job for each")
    strange = next((c for c in expression if not (" " <= c <= "~" or c == "\t")), None)
    if strange is not None:
        raise CronError(
            CronFault.CHARSET,
            f"character U+{ord(strange):04X}: only printable ASCII, blanks and tabs are allowed",
        )
    text = expression.strip(" \t")
    if text.startswith("@"):
        text = _alias(text)
    texts = text.upper().split()
    if len(texts) not in _KINDS:
        raise CronError(
            CronFault.FIELDS,
            f"{len(texts)} fields; write 5 (minute hour day month weekday), 6 (second first) "
            "or 7 (year last)",
        )
    if any(field.startswith("#") for field in texts):
        raise CronError(CronFault.FIELDS, "a comment is not part of an expression; remove it")
    return texts


def _alias(text: str) -> str:
    plain = _ALIASES.get(text.lower())
    if plain is not None:
        return plain
    word = text.split(maxsplit=1)[0]
    hint = "use the field `every`" if word.lower() == "@every" else f"known: {', '.join(_ALIASES)}"
    raise CronError(CronFault.ALIAS, f"{word[:40]!r} is not known; {hint}")


def _read(texts: list[str], digest: int | None) -> list[FieldValues]:
    kinds = _KINDS[len(texts)]
    return [read_field(kind, text, digest) for kind, text in zip(kinds, texts, strict=True)]


def _fields(values: list[FieldValues]) -> CronFields:
    second, *rest = values if len(values) > 5 else [_MIDNIGHT_SECOND, *values]
    minute, hour, day, month, weekday, *year = rest
    return CronFields(
        seconds=second.mask,
        minutes=minute.mask,
        hours=hour.mask,
        months=month.mask,
        days=DayRule(day, weekday),
        years=_years(year[0]) if year else None,
    )


def _years(year: FieldValues) -> tuple[int, ...] | None:
    if year.text == "*":
        return None
    return tuple(y for y in range(YEAR.low, YEAR.high + 1) if year.mask >> y & 1)


def _digest(job_id: str) -> int:
    """First 8 bytes of SHA-256: murmur2 would follow the job's partition."""
    return int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:8], "big")


def _require_possible(fields: CronFields) -> None:
    """Refuse what no date matches. Exact: a leap February begins on every weekday in time."""
    if WallClock(fields).ever():
        return
    raise CronError(
        CronFault.IMPOSSIBLE,
        "no date of the calendar matches its days, months and years (like 30 February)",
    )
