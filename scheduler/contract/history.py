"""What people read about runs in ``run-history``: the whole row at each change."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from scheduler.contract.fields import JobId
from scheduler.contract.message import AnyCase, Instant, Message
from scheduler.contract.run import Attempt, RunTrigger


class RunStatus(StrEnum):
    """Where a run stands; see docs/glossary.md."""

    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    DISPATCHED = "dispatched"

    @property
    def final(self) -> bool:
        """Whether nothing follows (but a replay or backfill)."""
        return self not in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.RETRYING)


class RunHistory(Message):
    """A run as it stands after a change.

    Consecutive instants that were not run for the same reason share one record:
    ``scheduled_at`` is the first, ``through`` the last, ``count`` how many.
    """

    kind: str = "run"
    job_id: JobId
    run_id: str
    scheduled_at: Instant
    run_at: Instant | None = None
    trigger: Annotated[RunTrigger, AnyCase] | None = None
    command_id: str | None = None
    definition_offset: int | None = None
    owner: str | None = None
    type: str | None = None
    queue: str | None = None
    status: Annotated[RunStatus, AnyCase]
    attempt: int = Field(default=0, ge=0)
    attempts: tuple[Attempt, ...] = ()
    executor: str | None = None
    next_attempt_at: Instant | None = None
    last_error: str | None = None
    result: JsonValue = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    late_ms: int | None = None
    reason: str | None = None
    through: Instant | None = None
    count: int | None = Field(default=None, ge=1)
