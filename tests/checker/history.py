"""What a user can see of a run of the system, as plain data.

A history is judged by `tests.checker.rules` and read by `tests.checker.read`; it knows neither
Kafka nor the code under test beyond the compiled definition. Instants are epoch milliseconds.
Every value keeps where it lay (``partition``, ``offset``), because order within a partition is
the only order that several topics agree on.
"""

from dataclasses import dataclass

from scheduler.core.definition import CompiledJob


@dataclass(frozen=True, slots=True)
class Definition:
    """A user's record of ``jobs``: a definition or a deletion.

    Attributes:
        offset: the ``definition_offset`` that statuses and runs name.
        appended_ms: the broker's append time.
        job: the definition, compiled; ``None`` for a deletion or a value that is refused.
        deletes: the record is a tombstone.
        target_kind: ``none``, ``kafka``, ``http``, ...
    """

    job_id: str
    offset: int
    appended_ms: int
    job: CompiledJob | None
    deletes: bool = False
    target_kind: str = "none"


@dataclass(frozen=True, slots=True)
class Status:
    """A record of ``job-status``. ``effective_from_ms`` is the beginning of a version."""

    job_id: str
    offset: int
    written_ms: int
    state: str
    definition_offset: int | None
    effective_from_ms: int | None
    command_id: str | None = None


RunKey = tuple[str, int, str | None]
"""Job id, nominal instant, command id (manual runs alone have one)."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run command of ``runs``. ``sent_ms`` is the record's timestamp, the dispatch time."""

    job_id: str
    scheduled_ms: int
    run_at_ms: int
    attempt: int
    deferral: int
    trigger: str
    command_id: str | None
    definition_offset: int
    settled_below_ms: int | None
    target_kind: str
    partition: int
    offset: int
    sent_ms: int

    @property
    def key(self) -> RunKey:
        return (self.job_id, self.scheduled_ms, self.command_id)


@dataclass(frozen=True, slots=True)
class JobDeleted:
    """A record of kind ``job-deleted`` of ``runs``: tells executors, keeps its order."""

    job_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of ``run-history``. ``through_ms`` and ``count`` span several instants."""

    job_id: str
    scheduled_ms: int
    through_ms: int
    count: int
    command_id: str | None
    definition_offset: int
    status: str
    attempt: int
    reason: str | None
    partition: int
    offset: int

    @property
    def key(self) -> RunKey:
        return (self.job_id, self.scheduled_ms, self.command_id)


@dataclass(frozen=True, slots=True)
class Delayed:
    """A record of ``runs-retry``: a run command that waits for ``not_before_ms``."""

    job_id: str
    scheduled_ms: int
    command_id: str | None
    attempt: int
    deferral: int
    definition_offset: int
    not_before_ms: int
    trigger: str
    offset: int
    appended_ms: int

    @property
    def key(self) -> RunKey:
        return (self.job_id, self.scheduled_ms, self.command_id)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of ``runs-dead-letter``."""

    job_id: str
    scheduled_ms: int
    command_id: str | None
    attempt: int
    definition_offset: int
    offset: int

    @property
    def key(self) -> RunKey:
        return (self.job_id, self.scheduled_ms, self.command_id)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the test did to a process, e.g. ``kill`` of ``worker-2``."""

    kind: str
    victim: str
    began_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class History:
    """Everything that is judged.

    Attributes:
        settled_ms: what was due at or before this instant has had the time to be decided and,
            with executors, to be finished; nothing later is demanded, but all is judged.
        executors: runs were executed, so outcomes are demanded as well.
    """

    settled_ms: int
    definitions: tuple[Definition, ...] = ()
    statuses: tuple[Status, ...] = ()
    runs: tuple[Run, ...] = ()
    deleted: tuple[JobDeleted, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    delayed: tuple[Delayed, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()
    faults: tuple[Fault, ...] = ()
    executors: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold, with the records that show it."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.detail}"
