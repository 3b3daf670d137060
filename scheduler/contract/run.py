"""What lies in ``runs`` and ``runs-retry``: run commands and what keeps their order."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from scheduler.contract.faults import faults_of, join_faults
from scheduler.contract.fields import JobId
from scheduler.contract.job import Concurrency
from scheduler.contract.message import AnyCase, Instant, Message
from scheduler.contract.target import NoTarget, Target
from scheduler.core.instant import format_instant
from scheduler.errors import RequestError


class RunTrigger(StrEnum):
    """Why a run was dispatched."""

    SCHEDULE = "schedule"
    MISFIRE = "misfire"
    MANUAL = "manual"
    BACKFILL = "backfill"
    RETRY = "retry"
    REPLAY = "replay"


CommandId = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
"""Id of a command: 1 to 200 printable ASCII characters without spaces."""


def run_id_of(job_id: str, scheduled_at_ms: int, command_id: str | None = None) -> str:
    """Id of a run, derived from what it is a run of, so that doing it twice is harmless.

    >>> run_id_of("report", 0, "c1")
    'report@1970-01-01T00:00:00.000Z#c1'
    """
    suffix = "" if command_id is None else f"#{command_id}"
    return f"{job_id}@{format_instant(scheduled_at_ms)}{suffix}"


class RunCommand(Message):
    """Run this job for this instant, now.

    Attributes:
        scheduled_at: the nominal instant; of a manual run the moment of its command.
        run_at: the effective instant: nominal plus jitter.
        attempt: which try this is, from 1; also the fencing token.
        deferral: how often the run was handed back without an attempt.
        settled_below: every earlier nominal instant of the job was sent or decided.
    """

    kind: Literal["run"] = "run"
    job_id: JobId
    scheduled_at: Instant
    run_at: Instant
    attempt: int = Field(default=1, ge=1)
    deferral: int = Field(default=0, ge=0)
    trigger: Annotated[RunTrigger, AnyCase] = RunTrigger.SCHEDULE
    run_id: str
    command_id: str | None = None
    definition_offset: int = Field(ge=0)
    settled_below: Instant | None = None
    owner: str = "default"
    type: str | None = None
    queue: str = "default"
    target: Target = NoTarget()
    payload: JsonValue = None
    max_attempts: int = Field(default=5, ge=1)
    timeout_seconds: int = Field(default=60, ge=1)
    retry_base_seconds: int = Field(default=10, ge=0)
    retry_cap_seconds: int = Field(default=3_600, ge=0)
    concurrency: Annotated[Concurrency, AnyCase] = Concurrency.ALLOW
    max_open_runs: int = Field(default=100, ge=1)
    expect_success_within_seconds: int | None = None


class CancelCommand(Message):
    """Cancel one run, or without ``run_id`` the job's open runs."""

    kind: Literal["cancel"] = "cancel"
    job_id: JobId
    run_id: str | None = None


class JobDeletedCommand(Message):
    """The job is gone: its running runs finish and are not tried again."""

    kind: Literal["job-deleted"] = "job-deleted"
    job_id: JobId


class Attempt(Message):
    """One try of a run, as history and dead letters list it."""

    attempt: int = Field(ge=0)
    started_at: Instant | None = None
    finished_at: Instant | None = None
    status: str | None = None
    """How it ended; ``None`` while it is under way."""
    error: str | None = None
    executor: str | None = None


class DelayedRun(RunCommand):
    """A run command as it is to be sent, not before an instant at most 7 days ahead."""

    not_before: Instant
    last_error: str | None = None
    attempts: tuple[Attempt, ...] = ()


RunTopicMessage = RunCommand | CancelCommand | JobDeletedCommand

_KINDS = (RunCommand, CancelCommand, JobDeletedCommand)
_RUN_TOPIC: TypeAdapter[RunTopicMessage] = TypeAdapter(
    Annotated[RunTopicMessage, Field(discriminator="kind")]
)


def decode_run_topic(value: bytes) -> RunTopicMessage | None:
    """Read a value of ``runs``; ``None`` for a kind this version does not know.

    Raises:
        RequestError: it is not what the contract says; the message names each field.
    """
    try:
        return _RUN_TOPIC.validate_json(value)
    except ValidationError as error:
        details: list[Any] = error.errors(include_url=False)
        if details[0]["type"] == "union_tag_invalid" and details[0]["loc"] == ():
            return None
        raise RequestError(join_faults(faults_of(error, _KINDS))) from None
