"""What comes in beside definitions, as the core sees it: commands and delayed runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DelayedRun:
    """A run command to be dispatched not earlier than ``not_before_ms``.

    Attributes:
        nominal_ms: ``scheduled_at`` of its run.
        ours: the scheduler wrote it (an instant waiting for its jitter at an edit).
        command: the whole run command, encoded, as it is to be sent.
    """

    job_id: bytes
    nominal_ms: int
    not_before_ms: int
    definition_offset: int
    ours: bool
    queue: str
    command: bytes


@dataclass(frozen=True, slots=True)
class Trigger:
    """Run a job now, beside its schedule. ``payload`` (JSON) replaces the job's."""

    command_id: str
    payload: bytes | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel one run, or (``run_id`` absent) the job's open runs."""

    command_id: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A command of the contract that this version does not do yet."""

    command_id: str
    command: str


Command = Trigger | Cancel | Unsupported
