"""The life of a run at its executor: one table that code, documents and tests read.

    UNKNOWN ──command──► RUNNING ──succeeded──────────► FINISHED   succeeded
                           │ ▲ ▲──due, taken over── WAITING       (short delay, in this process)
                           │ └──command────── RETRYING            (long delay, in the wheel)
                           └──failed for good─────────► FINISHED   dead
    FINISHED ──command──► RUNNING                                 (replay, backfill: next attempt)

What is not in the table is ignored: a command for a run that is already running (no second
attempt starts beside a live one), a result of an attempt that is no longer the current one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where a run key stands."""

    UNKNOWN = "unknown"
    RUNNING = "running"
    WAITING = "waiting"
    """Failed; the next attempt starts in this process after a short delay."""
    RETRYING = "retrying"
    """Failed; the next attempt is a delayed run in ``runs-retry``."""
    FINISHED = "finished"


OPEN_PHASES = frozenset({Phase.RUNNING, Phase.WAITING, Phase.RETRYING})


class Event(StrEnum):
    """What can happen to a run key. Duplicates never become an event."""

    COMMAND = "command"
    SUCCEEDED = "succeeded"
    FAILED_SOON = "failed, next attempt here"
    FAILED_LATER = "failed, next attempt by the wheel"
    FAILED_FOR_GOOD = "failed for good"
    DUE = "due"
    TAKEN_OVER = "taken over"
    CANCEL = "cancel"


class Status(StrEnum):
    """Status of a run in ``run-history``, as far as an executor writes it."""

    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DISPATCHED = "dispatched"


class AttemptStatus(StrEnum):
    """Status of one attempt in a list of attempts."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Transition:
    """Next phase, and the status that history shows from then on."""

    phase: Phase
    status: Status


_RUN = Transition(Phase.RUNNING, Status.RUNNING)
_CANCELLED = Transition(Phase.FINISHED, Status.CANCELLED)

TABLE: Mapping[tuple[Phase, Event], Transition] = {
    (Phase.UNKNOWN, Event.COMMAND): _RUN,
    (Phase.RETRYING, Event.COMMAND): _RUN,
    (Phase.FINISHED, Event.COMMAND): _RUN,
    (Phase.RUNNING, Event.SUCCEEDED): Transition(Phase.FINISHED, Status.SUCCEEDED),
    (Phase.RUNNING, Event.FAILED_SOON): Transition(Phase.WAITING, Status.RETRYING),
    (Phase.RUNNING, Event.FAILED_LATER): Transition(Phase.RETRYING, Status.RETRYING),
    (Phase.RUNNING, Event.FAILED_FOR_GOOD): Transition(Phase.FINISHED, Status.DEAD),
    (Phase.WAITING, Event.FAILED_FOR_GOOD): Transition(Phase.FINISHED, Status.DEAD),
    (Phase.WAITING, Event.DUE): _RUN,
    (Phase.RUNNING, Event.TAKEN_OVER): _RUN,
    (Phase.WAITING, Event.TAKEN_OVER): _RUN,
    (Phase.RUNNING, Event.CANCEL): _CANCELLED,
    (Phase.WAITING, Event.CANCEL): _CANCELLED,
    (Phase.RETRYING, Event.CANCEL): _CANCELLED,
}


def transition(phase: Phase, event: Event) -> Transition | None:
    """What ``event`` does in ``phase``; ``None``: nothing.

    >>> transition(Phase.RUNNING, Event.COMMAND) is None
    True
    """
    return TABLE.get((phase, event))
