"""A job definition as the core sees it: compiled once when it comes in, never parsed again.

The *cohort* of a job is everything that decides when its runs are due. All jobs of a
partition with the same cohort share one entry of the wheel. What differs between members
(valid range, run command) lies with the member.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cached_property

FOREVER_MS = (1 << 62) - 1
"""Later than every instant; means "no end"."""


class DstGap(StrEnum):
    """What becomes of a local time that does not exist (resolved, never ``auto``)."""

    SKIP = "skip"
    RUN_AFTER = "run_after"
    SHIFT = "shift"


class DstOverlap(StrEnum):
    """What becomes of a local time that occurs twice (resolved, never ``auto``)."""

    FIRST = "first"
    LAST = "last"
    BOTH = "both"


class MisfirePolicy(StrEnum):
    """What becomes of instants missed for longer than the grace."""

    RUN_ONCE = "run_once"
    SKIP = "skip"
    RUN_ALL = "run_all"


@dataclass(frozen=True, slots=True)
class CronSpec:
    """A normalised cron expression (``H`` resolved, aliases expanded) in a zone."""

    expression: str
    zone: str
    gap: DstGap
    overlap: DstOverlap


@dataclass(frozen=True, slots=True)
class EverySpec:
    """Instants ``anchor_ms + k * every_ms`` for every integer k (k >= 0 if ``anchored``)."""

    every_ms: int
    anchor_ms: int
    anchored: bool


@dataclass(frozen=True, slots=True)
class OnceSpec:
    """A one-shot: its instant belongs to the member, not to the cohort."""


ScheduleSpec = CronSpec | EverySpec | OnceSpec
_KINDS: dict[str, type[CronSpec] | type[EverySpec] | type[OnceSpec]] = {
    "cron": CronSpec, "every": EverySpec, "once": OnceSpec,
}  # fmt: skip


@dataclass(frozen=True)
class Cohort:
    """All that decides when runs are due, and where they are dispatched to.

    Attributes:
        jitter_ms: effective instant minus nominal instant.
        grace_ms: up to this late is simply late, not a misfire.
        window_ms: instants older than this are never run.
        queue: name of the queue the runs go to.
        exclude: names of calendars, sorted.
    """

    schedule: ScheduleSpec
    jitter_ms: int
    misfire: MisfirePolicy
    grace_ms: int
    window_ms: int
    queue: str
    exclude: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that identify the cohort within a partition (truncated SHA-256)."""
        return hashlib.sha256(self.encoded).digest()[:16]

    @cached_property
    def encoded(self) -> bytes:
        """Canonical JSON of the cohort; equal cohorts have equal bytes."""
        kind = next(k for k, t in _KINDS.items() if isinstance(self.schedule, t))
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["schedule"] = {"kind": kind, **asdict(self.schedule)}
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> "Cohort":
        """Inverse of `encoded`."""
        plain = json.loads(data)
        schedule = dict(plain.pop("schedule"))
        kind = schedule.pop("kind")
        if kind == "cron":
            schedule["gap"] = DstGap(schedule["gap"])
            schedule["overlap"] = DstOverlap(schedule["overlap"])
        plain["misfire"] = MisfirePolicy(plain["misfire"])
        plain["exclude"] = tuple(plain["exclude"])
        return Cohort(schedule=_KINDS[kind](**schedule), **plain)


@dataclass(frozen=True, slots=True)
class CompiledJob:
    """One accepted-as-valid definition, ready for the wheel.

    Attributes:
        run_at_ms: nominal instant of a one-shot; ``None`` for a recurring job.
        start_ms: no nominal instant before this one (inclusive bound); ``None`` for none.
        end_ms: no nominal instant after this one (inclusive bound); ``None`` for none.
        paused: keeps the definition, fires nothing.
        body: the run command's JSON members that do not depend on the instant, without
            braces, ending in the open string ``"run_id":"<job_id>@`` (see core/command.py).
        warnings: for job-status: things a user should know about this definition.
    """

    job_id: str
    cohort: Cohort
    run_at_ms: int | None
    start_ms: int | None
    end_ms: int | None
    paused: bool
    body: bytes
    warnings: tuple[str, ...] = ()
