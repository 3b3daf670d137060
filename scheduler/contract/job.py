"""The job definition: what users produce to ``jobs``."""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Self
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from scheduler.contract.duration import format_duration, parse_duration
from scheduler.contract.limits import JOB_ID_CHARS_MAX, LIMITS, Limits
from scheduler.contract.message import (
    AnyCase,
    Fault,
    Instant,
    StrictMessage,
    faults_of,
    join_faults,
    nearest,
)
from scheduler.contract.strict_json import read_object
from scheduler.contract.target import NoTarget, Target
from scheduler.core.definition import MisfirePolicy
from scheduler.core.instant import MAX_MS
from scheduler.errors import DefinitionError, RequestError

LABELS_MAX = 100
_JOB_ID = re.compile(rf'[!"$-?A-~]{{1,{JOB_ID_CHARS_MAX}}}')


class DstGapChoice(StrEnum):
    """What becomes of a local time that does not exist."""

    AUTO = "auto"
    SKIP = "skip"
    RUN_AFTER = "run_after"
    SHIFT = "shift"


class DstOverlapChoice(StrEnum):
    """What becomes of a local time that occurs twice."""

    AUTO = "auto"
    FIRST = "first"
    LAST = "last"
    BOTH = "both"


class Concurrency(StrEnum):
    """What a new instant does while a run of the same job is unfinished."""

    ALLOW = "allow"
    FORBID = "forbid"
    QUEUE = "queue"
    REPLACE = "replace"


class ResumePolicy(StrEnum):
    """What of a pause is made up when it ends."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


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


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _known_zone(name: str) -> str:
    if name in _zones():
        return name
    guess = nearest(name, sorted(_zones()))
    hint = f"; did you mean {guess}?" if guess else ""
    raise ValueError(f"{name[:60]!r} is not a time zone of the IANA database{hint}")


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


def check_defined_instant(ms: int) -> int:
    """Return ``ms`` if a definition may name it: with a day of jitter it can still be written."""
    if ms > MAX_MS - 2 * 86_400_000:
        raise ValueError("lies too close to the end of the year 9999")
    return ms


DefinedInstant = Annotated[Instant, AfterValidator(check_defined_instant)]
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


def refusal(faults: Sequence[Fault]) -> DefinitionError:
    """One error for all faults of a definition: the first by path, the others told with it."""
    (path, reason), *others = faults
    more = f" (also: {join_faults(others)})" if others else ""
    return DefinitionError(path, reason + more)


class JobDefinition(StrictMessage):
    """When a job runs, and what is to be done then. Exactly one of schedule, every, run_at."""

    job_id: JobId | None = Field(default=None, description="must equal the record's key")
    schedule: str | None = Field(
        default=None, min_length=1, max_length=1_000, description="cron expression"
    )
    every: EverySeconds | None = Field(default=None, description="interval in elapsed time")
    run_at: DefinedInstant | None = Field(
        default=None, description="one-shot; in the past: due at once"
    )
    time_zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        default="UTC", description="zone of schedule"
    )
    dst_gap: Annotated[DstGapChoice, AnyCase] = DstGapChoice.AUTO
    dst_overlap: Annotated[DstOverlapChoice, AnyCase] = DstOverlapChoice.AUTO
    start_at: DefinedInstant | None = Field(default=None, description="nothing before")
    end_at: DefinedInstant | None = Field(default=None, description="nothing after")
    jitter_seconds: int = Field(default=0, ge=0, le=86_400, description="bound of the stable delay")
    exclude: tuple[Name, ...] = Field(default=(), max_length=20, description="names of calendars")
    misfire_policy: Annotated[MisfirePolicy, AnyCase] = MisfirePolicy.RUN_ONCE
    misfire_grace_seconds: int = Field(default=60, ge=0, le=31_536_000)
    misfire_window_seconds: int = Field(default=86_400, ge=0, le=31_536_000)
    concurrency: Annotated[Concurrency, AnyCase] = Concurrency.ALLOW
    target: Target = NoTarget()
    payload: JsonValue = Field(default=None, description="handed to the target")
    queue: Queue = "default"
    owner: Name = "default"
    type: Annotated[str, StringConstraints(max_length=200)] | None = None
    labels: dict[str, str] = Field(default_factory=dict, max_length=LABELS_MAX)
    max_attempts: int = Field(default=5, ge=1, le=100, description="attempts in all")
    timeout_seconds: int = Field(default=60, ge=1, le=86_400, description="of one attempt")
    retry_base_seconds: int = Field(default=10, ge=0, le=604_800)
    retry_cap_seconds: int = Field(default=3_600, ge=0, le=604_800)
    max_open_runs: int = Field(default=100, ge=1, le=1_000_000)
    expect_success_within_seconds: int | None = Field(default=None, ge=1, le=315_360_000)
    paused: bool = False
    resume_policy: Annotated[ResumePolicy, AnyCase] = ResumePolicy.NONE

    @classmethod
    def decode(cls, value: bytes, limits: Limits = LIMITS) -> Self:
        """Read and check a definition.

        Raises:
            DefinitionError: it is refused; path and reason of the first fault, and all the
                others in the reason.
        """
        if len(value) > limits.definition_bytes_max:
            raise DefinitionError(
                "", f"is {len(value)} bytes, above the limit of {limits.definition_bytes_max}"
            )
        try:
            read_object(value, limits)
            return cls.model_validate_json(value)
        except RequestError as error:
            raise DefinitionError("", str(error)) from None
        except ValidationError as error:
            raise refusal(faults_of(error, cls)) from None

    @model_validator(mode="after")
    def _one_schedule(self) -> Self:
        names = ("schedule", "every", "run_at")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "none"
            raise ValueError(f"exactly one of schedule, every and run_at is needed, not {found}")
        return self

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.start_at is not None and self.end_at is not None and self.end_at < self.start_at:
            raise ValueError("end_at lies before start_at: it would never run")
        if self.run_at is not None:
            early = self.start_at is not None and self.run_at < self.start_at
            late = self.end_at is not None and self.run_at > self.end_at
            if early or late:
                raise ValueError("run_at lies outside of start_at to end_at: it would never run")
        return self
