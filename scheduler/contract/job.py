"""The job definition: what users produce to ``jobs``."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, JsonValue, StringConstraints, ValidationError, model_validator

from scheduler.contract.faults import Fault, faults_of, join_faults
from scheduler.contract.fields import (
    CronExpression,
    DefinedInstant,
    EverySeconds,
    JobId,
    Name,
    Queue,
    ZoneName,
)
from scheduler.contract.limits import LIMITS, Limits
from scheduler.contract.message import AnyCase, StrictMessage
from scheduler.contract.strict_json import read_object
from scheduler.contract.target import NoTarget, Target
from scheduler.core.definition import MisfirePolicy
from scheduler.errors import DefinitionError, RequestError

LABELS_MAX = 100


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


def refusal(faults: Sequence[Fault]) -> DefinitionError:
    """One error for all faults of a definition: the first by path, the others told with it."""
    (path, reason), *others = faults
    more = f" (also: {join_faults(others)})" if others else ""
    return DefinitionError(path, reason + more)


class JobDefinition(StrictMessage):
    """When a job runs, and what is to be done then. Exactly one of schedule, every, run_at."""

    job_id: JobId | None = Field(default=None, description="must equal the record's key")
    schedule: CronExpression | None = Field(default=None, description="cron expression")
    every: EverySeconds | None = Field(default=None, description="interval in elapsed time")
    run_at: DefinedInstant | None = Field(
        default=None, description="one-shot; in the past: due at once"
    )
    time_zone: ZoneName = Field(default="UTC", description="zone of schedule")
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
            raise refusal(faults_of(error, [cls])) from None

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
