"""A run that used up its attempts, or failed for good: ``runs-dead-letter``."""

from pydantic import Field

from scheduler.contract.message import Instant
from scheduler.contract.run import Attempt, RunCommand


class DeadLetter(RunCommand):
    """The run command, so that it can be replayed, and what became of it."""

    attempts: tuple[Attempt, ...] = ()
    last_error: str | None = None
    first_started_at: Instant | None = None
    dead_at: Instant
    replays: int = Field(default=0, ge=0)
