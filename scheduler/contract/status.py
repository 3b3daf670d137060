"""What people read about jobs in ``job-status``: the answer to each definition and command."""

from enum import StrEnum
from typing import Annotated

from scheduler.contract.message import AnyCase, Instant, Message


class JobState(StrEnum):
    """Where a job stands."""

    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"
    REJECTED = "rejected"
    DELETED = "deleted"


class JobStatus(Message):
    """A definition or command was taken up, refused or finished.

    ``job_id`` is any text: the answer to a refused key has to name that key.
    ``next_run_at`` is as of ``observed_at``.
    """

    job_id: str
    state: Annotated[JobState, AnyCase]
    definition_offset: int | None = None
    effective_from: Instant | None = None
    next_run_at: Instant | None = None
    error: str | None = None
    path: str | None = None
    warnings: tuple[str, ...] = ()
    command_id: str | None = None
    changed_by: str | None = None
    observed_at: Instant
