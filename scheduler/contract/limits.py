"""Bounds of the contract, in one place."""

from dataclasses import dataclass

JOB_ID_CHARS_MAX = 200
ERROR_BYTES_MAX = 4_096
"""Errors in status, history and dead letters are cut at this."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large an input may be.

    Attributes:
        definition_bytes_max: of one definition as it was produced.
        record_bytes_max: of every later envelope of it (run command, dead letter); below the
            broker's default ``message.max.bytes`` of 1,048,588.
        depth_max: levels of nested objects and arrays; far below what any JSON reader takes.
    """

    definition_bytes_max: int = 262_144
    record_bytes_max: int = 1_000_000
    depth_max: int = 64


LIMITS = Limits()
