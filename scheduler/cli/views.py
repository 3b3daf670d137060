"""What topics say about jobs and runs, folded into the present. Pure: records in, rows out."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.contract.history import RunStatus
from scheduler.core.guard import Why, guard_of
from scheduler.core.records import Incoming

Plain = dict[str, Any]
"""A decoded JSON object."""

FINAL_RUN_STATUSES = frozenset(str(status) for status in RunStatus if status.final)
"""No further record follows one of these, unless the run is replayed or filled in again."""


@dataclass(slots=True)
class JobView:
    """A job as its topics show it.

    Attributes:
        definition: the definition in force, as far as ``jobs`` tells; ``None`` when deleted.
        offset: where in ``jobs`` it lies.
        status: the newest value of ``job-status``.
    """

    job_id: str
    definition: Plain | None = None
    offset: int | None = None
    status: Plain | None = None
    _user_offset: int = field(default=-1, repr=False)
    _user_ms: int = field(default=-1, repr=False)

    @property
    def state(self) -> str:
        """What is in force; ``pending`` while no scheduler has answered.

        ``rejected`` only where no good version is: else the last change was refused and the
        version before it goes on, see `problem`.
        """
        if self.status is None:
            return "pending"
        state = str(self.status.get("state"))
        if state == "rejected" and self.definition is not None:
            return "paused" if self.definition.get("paused") else "active"
        return state

    @property
    def problem(self) -> str | None:
        """Why the last change was refused; ``None`` if it was not."""
        return None if self.status is None else self.status.get("error")

    @property
    def exists(self) -> bool:
        """Whether there is anything to show beyond the memory of a deletion."""
        return self.definition is not None or self.state not in ("deleted", "pending")

    def absorb_definition(self, record: Incoming) -> None:
        """Take in the next record of ``jobs``; void guarded records change nothing."""
        try:
            guard = guard_of(record.headers)
        except ValueError:
            return
        if guard is None:
            self._user_offset, self._user_ms = record.offset, record.appended_ms
        elif guard.why is Why.MOVED:
            if guard.appended_ms < self._user_ms:
                return
            self._user_offset, self._user_ms = record.offset, guard.appended_ms
        elif guard.acts_on < self._user_offset:
            return
        self.definition = _object(record.value)
        self.offset = record.offset if self.definition is not None else None

    def absorb_status(self, record: Incoming) -> None:
        """Take in the next record of ``job-status``."""
        self.status = _object(record.value)


def jobs(
    definitions: Iterable[Incoming], statuses: Iterable[Incoming], home: Callable[[bytes], int]
) -> list[JobView]:
    """Fold both topics into one view a job, sorted by job id.

    Args:
        definitions: records of ``jobs``, in order within each partition.
        statuses: records of ``job-status``, likewise.
        home: partition of ``jobs`` a key belongs to; records elsewhere are not in force.
    """
    views: dict[bytes, JobView] = {}
    for record in definitions:
        if record.key is not None and home(record.key) == record.partition:
            _view(views, record.key).absorb_definition(record)
    for record in statuses:
        if record.key is not None:
            _view(views, record.key).absorb_status(record)
    return sorted((v for v in views.values() if v.exists), key=lambda v: v.job_id)


def runs(history: Iterable[Incoming], keep: Callable[[Plain], bool], limit: int) -> list[Plain]:
    """The newest row of each run that ``keep`` wants, latest ``scheduled_at`` first."""
    newest: dict[str, Plain] = {}
    for record in history:
        row = _object(record.value)
        if row is not None:
            newest[str(row.get("run_id"))] = row
    wanted = [row for row in newest.values() if keep(row)]
    wanted.sort(key=lambda row: (str(row.get("scheduled_at")), str(row.get("run_id"))))
    return wanted[: -limit - 1 : -1]


def schedule_text(definition: Mapping[str, Any]) -> str:
    """When a job runs, in a few words.

    >>> schedule_text({"schedule": "0 2 * * *", "time_zone": "Europe/Istanbul"})
    '0 2 * * * Europe/Istanbul'
    >>> schedule_text({"runAt": "2026-11-30T09:00:00Z"})
    'once 2026-11-30T09:00:00Z'
    """
    if cron := definition.get("schedule"):
        zone = definition.get("time_zone") or definition.get("timeZone") or "UTC"
        return f"{cron} {zone}"
    if every := definition.get("every"):
        return f"every {every}"
    return f"once {definition.get('run_at') or definition.get('runAt')}"


def target_text(definition: Mapping[str, Any]) -> str:
    """Where a job's runs go, in a few words.

    >>> target_text({"target": {"kind": "kafka", "topic": "orders"}})
    'kafka orders'
    >>> target_text({})
    'none'
    """
    target = definition.get("target") or {}
    kind = str(target.get("kind", "none")).lower()
    place = target.get("topic") or target.get("url") or target.get("handler")
    return f"{kind} {place}" if place else kind


def late_text(row: Mapping[str, Any]) -> str | None:
    """How late a run began, for people; ``None`` where history does not say.

    >>> late_text({"late_ms": 45}), late_text({"late_ms": 73_400}), late_text({})
    ('45 ms', '73.4 s', None)
    """
    late_ms = row.get("late_ms")
    if not isinstance(late_ms, int):
        return None
    return f"{late_ms} ms" if late_ms < 1000 else f"{late_ms / 1000:.1f} s"


def _view(views: dict[bytes, JobView], key: bytes) -> JobView:
    return views.setdefault(key, JobView(key.decode("utf-8", errors="replace")))


def _object(value: bytes | None) -> Plain | None:
    if value is None:
        return None
    try:
        plain = json.loads(value)
    except ValueError:
        return None
    return plain if isinstance(plain, dict) else None
