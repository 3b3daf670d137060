"""What whoever executes a run it does not own reports to ``run-reports``."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from scheduler.contract.fields import JobId
from scheduler.contract.message import AnyCase, Instant, Message


class ReportKind(StrEnum):
    """What happened to the attempt."""

    STARTED = "started"
    HEARTBEAT = "heartbeat"
    CHECKPOINT = "checkpoint"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunReport(Message):
    """One report of one attempt; counts only while that attempt is the current one."""

    job_id: JobId
    scheduled_at: Instant
    command_id: str | None = None
    attempt: int = Field(ge=1)
    kind: Annotated[ReportKind, AnyCase]
    retryable: bool = True
    error: str | None = None
    result: JsonValue = None
    checkpoint: JsonValue = None
    retry_after_seconds: int | None = Field(default=None, ge=0)
    executor: str | None = None
    reported_at: Instant | None = None
