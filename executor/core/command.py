"""What comes out of ``runs``: run commands, cancels, deletions, and kinds not known here.

Decoded once per record, by hand: the scheduler writes these bytes from validated definitions,
and a model per run would cost more than the claim itself. What a hand-written record may get
wrong (absent field, wrong type) is still refused, with the field's name.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.instant import MAX_MS, parse_instant
from scheduler.errors import RequestError

Json = Mapping[str, object]

_JOB_ID = re.compile(r"[!-~]{1,200}")
"""1 to 200 ASCII characters without spaces (and without ``@`` and ``#``, see `_job_id`)."""

_RUN_ID = re.compile(r"[!-~]{1,500}")

INTEGER_MAX = 10**12
"""Above every offset, count and duration; what is larger could not be calculated with."""


class Trigger(StrEnum):
    """Why a run was sent."""

    SCHEDULE = "schedule"
    MISFIRE = "misfire"
    MANUAL = "manual"
    BACKFILL = "backfill"
    RETRY = "retry"
    REPLAY = "replay"


REOPENING = frozenset({Trigger.BACKFILL, Trigger.REPLAY})
"""Triggers that may run an instant again although it is settled."""


@dataclass(frozen=True, slots=True)
class RunCommand:
    """One run to be executed.

    Attributes:
        plain: the record as it was sent; history, retries and dead letters are made from it.
        scheduled_ms: nominal instant; with ``job_id`` the run key (manual runs: ``command_id``).
        run_ms: effective instant (nominal and jitter), what lateness is measured from.
        settled_below_ms: every earlier nominal instant of the job was sent or decided;
            ``None`` when the scheduler promises nothing.
    """

    plain: Json
    job_id: str
    run_id: str
    scheduled_ms: int
    run_ms: int
    attempt: int
    deferral: int
    trigger: Trigger
    command_id: str | None
    definition_offset: int
    settled_below_ms: int | None
    target: Json
    max_attempts: int
    timeout_ms: int
    retry_base_s: int
    retry_cap_s: int

    @property
    def target_kind(self) -> str:
        """``kafka``, ``http``, ``python``, ``none`` or a kind this executor does not know."""
        return str(self.target.get("kind", "none"))

    @property
    def manual(self) -> bool:
        """Its key is ``(job_id, command_id)``: no promise about instants binds it.

        A retry of a manual run says ``retry``, but keeps the run id; job ids have no ``#``.
        """
        return self.trigger is Trigger.MANUAL or "#" in self.run_id

    @property
    def payload(self) -> object:
        """Any JSON; handed to the target untouched."""
        return self.plain.get("payload")


@dataclass(frozen=True, slots=True)
class CancelCommand:
    """Cancel one run, or (``run_id`` is ``None``) every open run of the job."""

    job_id: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class JobDeleted:
    """The job is gone: what runs finishes unretried, what waits is cancelled."""

    job_id: str


@dataclass(frozen=True, slots=True)
class UnknownKind:
    """A kind of a later version: skipped."""

    kind: str


Command = RunCommand | CancelCommand | JobDeleted | UnknownKind


def decode_command(value: bytes | None) -> Command:
    """A value of ``runs``.

    Raises:
        RequestError: not JSON, or a field is absent or of the wrong type.

    >>> decode_command(b'{"kind":"job-deleted","job_id":"a"}')
    JobDeleted(job_id='a')
    """
    plain = _object(value)
    kind = plain.get("kind", "run")
    match kind:
        case "run":
            return run_command(plain)
        case "cancel":
            return CancelCommand(_job_id(plain), _optional_text(plain, "run_id"))
        case "job-deleted":
            return JobDeleted(_job_id(plain))
        case _:
            return UnknownKind(str(kind))


def run_command(plain: Json) -> RunCommand:
    """A run command from its decoded JSON. Raises `RequestError`."""
    job_id, scheduled_at = _job_id(plain), _text(plain, "scheduled_at")
    trigger = _trigger(plain)
    command_id = _optional_text(plain, "command_id")
    settled_below = _optional_text(plain, "settled_below")
    settled_below_ms = None if settled_below is None else _instant("settled_below", settled_below)
    return RunCommand(
        plain=plain,
        job_id=job_id,
        run_id=_run_id(plain, job_id, scheduled_at, trigger, command_id),
        scheduled_ms=_instant("scheduled_at", scheduled_at),
        run_ms=_instant("run_at", _optional_text(plain, "run_at") or scheduled_at),
        attempt=_integer(plain, "attempt", 1),
        deferral=_integer(plain, "deferral", 0),
        trigger=trigger,
        command_id=command_id,
        definition_offset=_integer(plain, "definition_offset", 0),
        settled_below_ms=settled_below_ms,
        target=_target(plain),
        max_attempts=_integer(plain, "max_attempts", 5),
        timeout_ms=1000 * _integer(plain, "timeout_seconds", 60),
        retry_base_s=_integer(plain, "retry_base_seconds", 10),
        retry_cap_s=_integer(plain, "retry_cap_seconds", 3600),
    )


def _run_id(plain: Json, job_id: str, scheduled_at: str, trigger: Trigger,
            command_id: str | None) -> str:  # fmt: skip
    """The id the record carries, else derived. A retry of a manual run keeps its ``#`` part."""
    suffix = f"#{command_id}" if trigger is Trigger.MANUAL and command_id is not None else ""
    run_id = _optional_text(plain, "run_id") or f"{job_id}@{scheduled_at}{suffix}"
    if not run_id.startswith(f"{job_id}@") or _RUN_ID.fullmatch(run_id) is None:
        raise RequestError(f"run_id: {run_id[:100]!r} is not <job_id>@<scheduled_at>")
    return run_id


def _job_id(plain: Json) -> str:
    job_id = _text(plain, "job_id")
    if _JOB_ID.fullmatch(job_id) is None or "@" in job_id or "#" in job_id:
        raise RequestError(f"job_id: {job_id[:100]!r} is not 1 to 200 of !-~ without @ and #")
    return job_id


def _object(value: bytes | None) -> Json:
    try:
        plain = json.loads(value or b"")
    except (ValueError, RecursionError) as error:
        raise RequestError(f"a run command must be JSON: {error}") from error
    if not isinstance(plain, dict):
        raise RequestError("a run command must be a JSON object")
    return plain


def _text(plain: Json, field: str) -> str:
    value = plain.get(field)
    if not isinstance(value, str) or not value:
        raise RequestError(f"{field}: a text is needed, not {str(value)[:100]!r}")
    return value


def _optional_text(plain: Json, field: str) -> str | None:
    return None if plain.get(field) is None else _text(plain, field)


def _integer(plain: Json, field: str, default: int) -> int:
    value = plain.get(field)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INTEGER_MAX:
        raise RequestError(f"{field}: a whole number from 0 to {INTEGER_MAX} is needed")
    return value


def _instant(field: str, text: str) -> int:
    try:
        ms = parse_instant(text)
    except (ValueError, OverflowError) as error:
        raise RequestError(f"{field}: {error}") from error
    if not 0 <= ms <= MAX_MS:
        raise RequestError(f"{field}: {text[:40]!r} lies outside of 1970 to 9999")
    return ms


def _trigger(plain: Json) -> Trigger:
    value = plain.get("trigger", "schedule")
    try:
        return Trigger(str(value))
    except ValueError:
        known = ", ".join(Trigger)
        raise RequestError(f"trigger: {str(value)[:100]!r} is not one of {known}") from None


def _target(plain: Json) -> Json:
    value = plain.get("target")
    if value is None:
        return {"kind": "none"}
    if not isinstance(value, dict):
        raise RequestError("target: an object is needed")
    return value
