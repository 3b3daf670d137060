"""What the scheduler tells: job-status and run-history values, cursor backups, facts.

Plain JSON of the contract (the models there decode every one of them; a test holds them
together). They are built here because the core decides them and imports no pydantic.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.core.instant import format_instant


@dataclass(frozen=True, slots=True)
class Fact:
    """What a rebuild could not work out: durable in ``cursors`` under ``<p>/<job_id>``.

    Attributes:
        definition_offset: the version whose beginning this is; -1 for none.
        begin_ms: its beginning.
        deletion_offset: the job's last accepted deletion by a user; -1 for none.
    """

    definition_offset: int
    begin_ms: int
    deletion_offset: int


def encode_fact(fact: Fact) -> bytes:
    """A value of ``cursors`` under ``<partition>/<job_id>``."""
    return _json({"definition_offset": fact.definition_offset, "begin_ms": fact.begin_ms,
                  "deletion_offset": fact.deletion_offset})  # fmt: skip


def decode_fact(value: bytes) -> Fact | None:
    """Inverse of `encode_fact`; ``None`` if it cannot be read."""
    try:
        plain = json.loads(value)
        return Fact(int(plain["definition_offset"]), int(plain["begin_ms"]),
                    int(plain["deletion_offset"]))  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None


def status_value(  # noqa: PLR0913  every field of the contract, all but three by name
    job_id: str,
    state: str,
    observed_ms: int,
    *,
    definition_offset: int | None = None,
    effective_from_ms: int | None = None,
    next_run_ms: int | None = None,
    error: str | None = None,
    path: str | None = None,
    warnings: Sequence[str] = (),
    command_id: str | None = None,
) -> bytes:
    """A value of ``job-status``; errors are cut at 4 KB."""
    return _json({
        "job_id": job_id,
        "state": state,
        "definition_offset": definition_offset,
        "effective_from": _instant(effective_from_ms),
        "next_run_at": _instant(next_run_ms),
        "error": None if error is None else error[:4096],
        "path": path,
        "warnings": list(warnings),
        "command_id": command_id,
        "changed_by": None,
        "observed_at": format_instant(observed_ms),
    })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Undispatched:
    """Consecutive instants that were not dispatched, for one reason.

    Attributes:
        attempt: of a delayed run that will not be dispatched again: attempts it has had.
    """

    first_ms: int
    through_ms: int
    count: int
    status: str
    reason: str
    attempt: int = 0


def undispatched_value(
    job_id: str, definition_offset: int, span: Undispatched, observed_ms: int
) -> bytes:
    """A value of ``run-history`` for instants that were not dispatched."""
    scheduled_at = format_instant(span.first_ms)
    return _json({
        "kind": "run",
        "job_id": job_id,
        "scheduled_at": scheduled_at,
        "run_id": f"{job_id}@{scheduled_at}",
        "definition_offset": definition_offset,
        "status": span.status,
        "reason": span.reason,
        "through": format_instant(span.through_ms),
        "count": span.count,
        "attempt": span.attempt,
        "attempts": [],
        "finished_at": format_instant(observed_ms),
    })  # fmt: skip


def backup_value(position: int, cursor: str) -> bytes:
    """A cursor's backup record: the offset and the metadata as they were committed."""
    return _json({"position": position, "cursor": cursor})


def decode_backup(value: bytes) -> tuple[int, str] | None:
    """(position, cursor text), ``None`` if it cannot be read."""
    try:
        plain = json.loads(value)
        return int(plain["position"]), str(plain["cursor"])
    except (KeyError, TypeError, ValueError):
        return None


def cancel_value(job_id: str, run_id: str | None) -> bytes:
    """A value of ``runs``: cancel one run, or the job's open runs."""
    return _json({"kind": "cancel", "job_id": job_id, "run_id": run_id})


def job_deleted_value(job_id: str) -> bytes:
    """A value of ``runs``: the job is gone."""
    return _json({"kind": "job-deleted", "job_id": job_id})


def _instant(ms: int | None) -> str | None:
    return None if ms is None else format_instant(ms)


def _json(plain: object) -> bytes:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
