"""Types of single fields of a definition: ids, names, zones, expressions, durations."""

import re
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)

from scheduler.contract.duration import format_duration, parse_duration
from scheduler.contract.faults import cut, hint
from scheduler.contract.limits import JOB_ID_CHARS_MAX
from scheduler.contract.message import Instant
from scheduler.core.cron import CronError, normalise
from scheduler.core.instant import MAX_MS
from scheduler.core.zone import zone_names

_JOB_ID = re.compile(rf'[!"$-?A-~]{{1,{JOB_ID_CHARS_MAX}}}')


def check_job_id(text: str) -> str:
    """Return ``text`` if it is a job id: 1 to 200 ASCII characters 0x21-0x7E but @ and #.

    Raises:
        ValueError: it is none; the message says why.
    """
    if _JOB_ID.fullmatch(text) is not None:
        return text
    if not text:
        raise ValueError("a job id must not be empty")
    if len(text) > JOB_ID_CHARS_MAX:
        raise ValueError(f"a job id has at most {JOB_ID_CHARS_MAX} characters, not {len(text)}")
    wrong = next(character for character in text if _JOB_ID.fullmatch(character) is None)
    raise ValueError(
        f"a job id is ASCII without spaces, control characters, @ and #; it holds {wrong!r}"
    )


def check_defined_instant(ms: int) -> int:
    """Return ``ms`` if a definition may name it: with a day of jitter it can still be written."""
    if ms > MAX_MS - 2 * 86_400_000:
        raise ValueError("lies too close to the end of the year 9999")
    return ms


def _known_zone(name: str) -> str:
    if name in zone_names():
        return name
    raise ValueError(
        f"{cut(name)} is not a time zone of the IANA database{hint(name, sorted(zone_names()))}"
    )


def _known_cron(expression: str) -> str:
    try:
        normalise(expression, "any")  # which id chooses ``H`` makes it no more or less valid
    except CronError as error:
        raise ValueError(error.reason) from None
    return expression


def _to_seconds(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str):
        return parse_duration(value)
    if info.mode == "json":
        raise ValueError("should be an ISO 8601 duration; write e.g. PT30S")
    return value


JobId = Annotated[
    str,
    AfterValidator(check_job_id),
    WithJsonSchema({"type": "string", "pattern": f'^[!"$-?A-~]{{1,{JOB_ID_CHARS_MAX}}}$'}),
]


DefinedInstant = Annotated[Instant, AfterValidator(check_defined_instant)]
"""An instant that a definition may name."""

CronExpression = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_known_cron)]
"""A cron expression that fires some day."""

ZoneName = Annotated[str, AfterValidator(_known_zone)]
"""Name of a zone in the IANA database."""

EverySeconds = Annotated[
    int,
    BeforeValidator(_to_seconds),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "format": "duration"}),
]
"""Seconds inside, an ISO 8601 duration outside."""

Queue = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
"""Name of a queue; becomes part of topic names."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
