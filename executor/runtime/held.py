"""The partitions of ``runs`` that this executor holds, and the steps of taking one over.

    assigned ──► ASKED ──committed offset, end of run-state──► RESTORING ──read to that end──► LIVE

The offset is asked for first and the end of ``run-state`` afterwards (read uncommitted): what
a former owner committed up to that offset lies before that end. Only a live partition claims.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from executor.core.partition import Partition
from executor.core.table import Event
from executor.runtime.attempts import Ended, Place
from scheduler.core.records import Incoming


class Stage(StrEnum):
    """How far a take-over has come."""

    ASKED = "asked"
    RESTORING = "restoring"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Due:
    """The next attempt of a run is to start, unless it has moved on from ``attempt``."""

    run_id: str
    attempt: int
    event: Event


@dataclass(slots=True)
class Held:
    """One assigned partition and what is to be decided for it, each queue in its order.

    Attributes:
        epoch: number of the assignment, unique in the process.
        position: next offset of ``runs`` to be committed; ``None`` until one is known.
        read_to: offset that reading has reached, transaction markers included.
        state_end: offset of ``run-state`` up to which the state must be read before it counts.
    """

    number: int
    epoch: int
    stage: Stage = Stage.ASKED
    state: Partition = field(default_factory=Partition)
    results: deque[Ended] = field(default_factory=deque)
    dues: deque[Due] = field(default_factory=deque)
    inbox: deque[Incoming] = field(default_factory=deque)
    position: int | None = None
    read_to: int | None = None
    state_end: int = 0

    @property
    def place(self) -> Place:
        """Partition and assignment, as attempts carry it."""
        return (self.number, self.epoch)

    @property
    def pending(self) -> int:
        """How much is to be decided."""
        return len(self.results) + len(self.dues) + len(self.inbox)

    def received(self, record: Incoming) -> None:
        """A record of ``runs`` was read."""
        self.inbox.append(record)
        self.read_to = record.offset + 1

    def offset_after(self, commands: int) -> int | None:
        """Offset to commit once the first ``commands`` of the inbox are decided; ``None`` while
        none is known. With nothing left over it steps over transaction markers, too.
        """
        if commands < len(self.inbox):
            return self.inbox[commands].offset
        return self.position if self.read_to is None else self.read_to

    def forget(self) -> None:
        """Begin the take-over anew: what is in memory may not be what was committed. Results
        stay: they are judged by the state that will be read.
        """
        self.stage = Stage.ASKED
        self.state = Partition()
        self.inbox.clear()
        self.position = self.read_to = None
