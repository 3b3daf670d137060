"""Why a cron expression is refused."""

from enum import StrEnum

from scheduler.errors import DefinitionError


class CronFault(StrEnum):
    """Class of a fault; part of the output of ``duewheel next --batch``."""

    LENGTH = "length"
    """Longer than `scheduler.core.cron.LENGTH_MAX` characters."""
    CHARSET = "charset"
    """A character beside printable ASCII, blank and tab."""
    FIELDS = "fields"
    """Not 5, 6 or 7 fields on one line."""
    ALIAS = "alias"
    """An ``@`` form that does not exist here."""
    SYNTAX = "syntax"
    """Not a value of its field."""
    RANGE = "range"
    """A value outside its field."""
    STEP = "step"
    """A step that is not a whole number from 1."""
    SPECIAL = "special"
    """``L``, ``W`` or ``#`` where or how it has no meaning."""
    POLICY = "policy"
    """Understood, and refused: random, or read differently by every engine."""
    IMPOSSIBLE = "impossible"
    """No instant of the calendar matches, or none survives the gap policy."""
    EXHAUSTED = "exhausted"
    """Its last instant has passed."""


class CronError(DefinitionError):
    """A cron expression is refused.

    Attributes:
        kind: class of the fault.
    """

    def __init__(self, kind: CronFault, reason: str) -> None:
        super().__init__("schedule", reason)
        self.kind = kind
