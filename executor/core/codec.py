"""Values of ``run-state`` as JSON. Written and read by executors alone.

The format carries a version. A record of a later one ends the process: it holds what this
executor does not know, and state that is guessed would run things twice. What is no record of
ours at all is refused, and its key stays unknown.
"""

import json
from functools import lru_cache
from typing import cast

from executor.core.command import run_command
from executor.core.state import (
    Attempt,
    FinishedRun,
    JobSummary,
    OpenRun,
    StateChange,
    StateValue,
)
from executor.core.table import AttemptStatus, Phase, Status
from scheduler.core.instant import format_instant, parse_instant
from scheduler.errors import ConfigError, RequestError

VERSION = 1

Plain = dict[str, object]

instant_text = lru_cache(maxsize=4096)(format_instant)
"""A transaction writes the same few instants again and again."""

_UTF8 = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_ASCII = json.JSONEncoder(separators=(",", ":")).encode


def json_bytes(plain: object) -> bytes:
    """Compact JSON in UTF-8; escaped where a text has no UTF-8 (half of a surrogate pair)."""
    try:
        return _UTF8(plain).encode()
    except UnicodeEncodeError:
        return _ASCII(plain).encode()


def encode_state(value: StateValue) -> bytes:
    """JSON of a state value, its kind and version first."""
    match value:
        case OpenRun():
            plain = _open(value)
        case FinishedRun():
            plain = {"kind": "finished", "version": VERSION, **_finished(value)}
        case JobSummary():
            plain = _summary(value)
    return json_bytes(plain)


def decode_state(key: bytes | None, value: bytes | None) -> StateChange:
    """Inverse of `encode_state`; a ``None`` value forgets the key.

    Raises:
        RequestError: it is no record of ours.
        ConfigError: a later version of Duewheel wrote it.
    """
    try:
        text = (key or b"").decode("ascii")
        if value is None:
            return StateChange(text, None)
        return StateChange(text, _value(json.loads(value)))
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(f"run-state is not readable: {error!r}") from error


def _value(plain: Plain) -> StateValue:
    version = _int(plain["version"])
    if version > VERSION:
        raise ConfigError(
            f"run-state holds records of version {version}, this executor reads {VERSION}: "
            "upgrade it, all executors of the queue alike"
        )
    match plain["kind"]:
        case "open":
            return _read_open(plain)
        case "finished":
            return _read_finished(plain)
        case "job":
            return _read_summary(plain)
        case kind:
            raise ValueError(f"kind {kind!r}")


def _open(run: OpenRun) -> Plain:
    return {
        "kind": "open", "version": VERSION, "job_id": run.command.job_id, "phase": run.phase,
        "attempt": run.attempt, "deferral": run.deferral, "attempt_limit": run.attempt_limit,
        "idempotency_key": run.idempotency_key,
        "attempts": [attempt_plain(one) for one in run.attempts], "replays": run.replays,
        "reopened": run.reopened, "unretried": run.unretried,
        "not_before": optional_instant(run.not_before_ms), "last_error": run.last_error,
        "command": run.command.plain,
    }  # fmt: skip


def _read_open(plain: Plain) -> OpenRun:
    return OpenRun(
        command=run_command(cast("Plain", plain["command"])),
        phase=Phase(str(plain["phase"])),
        attempt=_int(plain["attempt"]),
        deferral=_int(plain["deferral"]),
        attempt_limit=_int(plain["attempt_limit"]),
        idempotency_key=str(plain["idempotency_key"]),
        attempts=tuple(_read_attempt(one) for one in cast("list[Plain]", plain["attempts"])),
        replays=_int(plain["replays"]),
        reopened=plain["reopened"] is True,
        unretried=plain["unretried"] is True,
        not_before_ms=_instant(plain["not_before"]),
        last_error=cast("str | None", plain["last_error"]),
    )


def attempt_plain(attempt: Attempt) -> Plain:
    """An attempt as history, dead letters and run-state show it."""
    return {
        "attempt": attempt.attempt, "started_at": instant_text(attempt.started_ms),
        "finished_at": optional_instant(attempt.finished_ms), "status": attempt.status,
        "error": attempt.error, "executor": attempt.executor,
    }  # fmt: skip


def _read_attempt(plain: Plain) -> Attempt:
    return Attempt(
        attempt=_int(plain["attempt"]),
        started_ms=parse_instant(str(plain["started_at"])),
        executor=str(plain["executor"]),
        finished_ms=_instant(plain["finished_at"]),
        status=AttemptStatus(str(plain["status"])),
        error=cast("str | None", plain["error"]),
    )


def _finished(run: FinishedRun) -> Plain:
    return {
        "run_id": run.run_id, "job_id": run.job_id,
        "scheduled_at": instant_text(run.scheduled_ms),
        "definition_offset": run.definition_offset, "attempt": run.attempt,
        "deferral": run.deferral, "status": run.status,
        "finished_at": instant_text(run.finished_ms), "replays": run.replays,
    }  # fmt: skip


def _read_finished(plain: Plain) -> FinishedRun:
    return FinishedRun(
        run_id=str(plain["run_id"]),
        job_id=str(plain["job_id"]),
        scheduled_ms=parse_instant(str(plain["scheduled_at"])),
        definition_offset=_int(plain["definition_offset"]),
        attempt=_int(plain["attempt"]),
        deferral=_int(plain["deferral"]),
        status=Status(str(plain["status"])),
        finished_ms=parse_instant(str(plain["finished_at"])),
        replays=_int(plain["replays"]),
    )


def _summary(summary: JobSummary) -> Plain:
    return {
        "kind": "job", "version": VERSION, "job_id": summary.job_id,
        "settled": [{"settled_below": instant_text(below), "definition_offset": offset}
                    for below, offset in summary.promises],
        "finished": [_finished(run) for run in summary.finished], "runs": summary.runs,
        "last_success_at": optional_instant(summary.last_success_ms),
        "failures_in_a_row": summary.failures_in_a_row, "deleted": summary.deleted,
        "updated_at": instant_text(summary.updated_ms),
    }  # fmt: skip


def _read_summary(plain: Plain) -> JobSummary:
    return JobSummary(
        job_id=str(plain["job_id"]),
        promises=tuple((parse_instant(str(one["settled_below"])), _int(one["definition_offset"]))
                       for one in cast("list[Plain]", plain["settled"])),
        finished=tuple(_read_finished(one) for one in cast("list[Plain]", plain["finished"])),
        runs=_int(plain["runs"]),
        last_success_ms=_instant(plain["last_success_at"]),
        failures_in_a_row=_int(plain["failures_in_a_row"]),
        deleted=plain["deleted"] is True,
        updated_ms=parse_instant(str(plain["updated_at"])),
    )  # fmt: skip


def optional_instant(ms: int | None) -> str | None:
    """RFC 3339 text, ``None`` for ``None``."""
    return None if ms is None else instant_text(ms)


def _instant(value: object) -> int | None:
    return None if value is None else parse_instant(str(value))


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"a number is needed, not {value!r}")
    return value
