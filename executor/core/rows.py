"""What others read: rows of ``run-history``, delayed runs, dead letters. JSON of the contract."""

from executor.core.codec import attempt_plain, instant_text, json_bytes, optional_instant
from executor.core.command import Json, RunCommand
from executor.core.outcome import cut
from executor.core.routes import ExecutorRoutes
from executor.core.state import Attempt, OpenRun
from executor.core.table import Status
from scheduler.core.records import Outgoing

_IDENTIFYING = ("job_id", "scheduled_at", "run_at", "trigger", "command_id", "definition_offset",
                "owner", "type", "queue")  # fmt: skip

ATTEMPT_ERROR_CHARS_MAX = 512
"""Of each attempt in a list of up to 100 (the last error is kept at full length beside it), so
that a row stays far below Kafka's 1 MB."""


def history_record(routes: ExecutorRoutes, run: OpenRun, status: Status, now_ms: int,
                   reason: str | None = None) -> Outgoing:  # fmt: skip
    """The whole row of a run as it is now."""
    final = status in (Status.SUCCEEDED, Status.DEAD, Status.CANCELLED)
    first = run.attempts[0].started_ms if run.attempts else None
    row = _identity(run.command) | {
        "status": status,
        "attempt": run.attempt,
        "attempts": _attempts(run.attempts),
        "executor": run.attempts[-1].executor if run.attempts else None,
        "next_attempt_at": optional_instant(run.not_before_ms),
        "last_error": run.last_error,
        "started_at": optional_instant(first),
        "finished_at": instant_text(now_ms) if final else None,
        "late_ms": None if first is None else first - run.command.run_ms,
        "reason": reason,
    }
    return _history(routes, run.command, row)


def dispatched_record(routes: ExecutorRoutes, command: RunCommand, now_ms: int) -> Outgoing:
    """The one row of a run whose target is ``none``: dispatch was all."""
    row = _identity(command) | {
        "status": Status.DISPATCHED, "attempt": command.attempt, "attempts": [],
        "executor": None, "next_attempt_at": None, "last_error": None, "started_at": None,
        "finished_at": instant_text(now_ms), "late_ms": now_ms - command.run_ms, "reason": None,
    }  # fmt: skip
    return _history(routes, command, row)


def delayed_record(routes: ExecutorRoutes, run: OpenRun, not_before_ms: int) -> Outgoing:
    """The next attempt, handed to the scheduler's wheel."""
    value = dict(run.command.plain) | {
        "run_id": run.run_id,
        "attempt": run.attempt + 1,
        "deferral": 0,
        "trigger": "retry",
        "settled_below": None,
        "not_before": instant_text(not_before_ms),
        "last_error": run.last_error,
        "attempts": _attempts(run.attempts),
    }
    return _keyed(routes, routes.retries, routes.retry_partitions, run.command.job_id, value)


def dead_letter_record(routes: ExecutorRoutes, run: OpenRun, now_ms: int) -> Outgoing:
    """A run that failed for good, with all that is needed to replay it."""
    first = run.attempts[0].started_ms if run.attempts else now_ms
    value = dict(run.command.plain) | {
        "run_id": run.run_id,
        "attempt": run.attempt,
        "attempts": _attempts(run.attempts),
        "last_error": run.last_error,
        "first_started_at": instant_text(first),
        "dead_at": instant_text(now_ms),
        "replays": run.replays,
    }
    count = routes.dead_letter_partitions
    return _keyed(routes, routes.dead_letters, count, run.command.job_id, value)


def _identity(command: RunCommand) -> dict[str, object]:
    plain = command.plain
    identifying = {name: plain.get(name) for name in _IDENTIFYING}
    return {"kind": "run", "run_id": command.run_id} | identifying


def _attempts(attempts: tuple[Attempt, ...]) -> list[Json]:
    return [attempt_plain(one) | {"error": one.error and cut(one.error, ATTEMPT_ERROR_CHARS_MAX)}
            for one in attempts]  # fmt: skip


def _history(routes: ExecutorRoutes, command: RunCommand, row: Json) -> Outgoing:
    partition = routes.partition_of(command.job_id.encode(), routes.history_partitions)
    return Outgoing(routes.history, partition, command.run_id.encode(), json_bytes(row))


def _keyed(routes: ExecutorRoutes, topic: str, count: int, job_id: str, value: Json) -> Outgoing:
    key = job_id.encode()
    return Outgoing(topic, routes.partition_of(key, count), key, json_bytes(value))
