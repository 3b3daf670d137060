"""Runs and answers of the scheduler as they happen, one line each, for a person who watches."""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.cli.answers import decoded
from scheduler.cli.cluster import Tail
from scheduler.cli.views import FINAL_RUN_STATUSES, late_text
from scheduler.core.instant import format_instant

_SHOWN = FINAL_RUN_STATUSES | {"retrying"}
"""Being claimed is no news; how it ended is."""

_RECORDS_MAX = 500


def lines(tail: Tail, timeout_s: float) -> Iterator[str]:
    """Lines for the records that lie ready; waits for the first only, at most ``timeout_s``.

    A bounded number of records: whoever prints them has other things to look at as well.
    """
    for n in range(_RECORDS_MAX):
        record = tail.poll(timeout_s if n == 0 else 0.0)
        if record is None:
            return
        value = decoded(record)
        line = status_line(value) if "state" in value else run_line(value, record.appended_ms)
        if line:
            yield line


def status_line(status: Mapping[str, Any]) -> str:
    """What the scheduler says of a job, for people.

    >>> status_line({"job_id": "tick", "state": "active",
    ...     "next_run_at": "2026-11-30T09:00:05.000Z", "observed_at": "2026-11-30T09:00:01.000Z"})
    '09:00:01.000  tick                      active, next run 2026-11-30T09:00:05.000Z'
    """
    what = str(status.get("state"))
    if following := status.get("next_run_at"):
        what += f", next run {following}"
    if error := status.get("error"):
        what += f": {error}"
    return f"{str(status.get('observed_at'))[11:23]}  {status.get('job_id')!s:<24}  {what}"


def run_line(row: Mapping[str, Any], written_ms: int) -> str | None:
    """One run for people; ``None`` for a change that is not worth a line.

    >>> print(run_line({"job_id": "tick", "scheduled_at": "2026-11-30T09:00:05.000Z",
    ...     "status": "succeeded", "late_ms": 31}, 0))
    00:00:00.000  tick                      2026-11-30T09:00:05.000Z  succeeded   31 ms late
    """
    status = row.get("status")
    if status not in _SHOWN:
        return None
    time_of_day = format_instant(written_ms)[11:23]
    job_id, scheduled_at = str(row.get("job_id")), str(row.get("scheduled_at"))
    return f"{time_of_day}  {job_id:<24}  {scheduled_at}  {status:<10}  {_remark(row)}".rstrip()


def _remark(row: Mapping[str, Any]) -> str:
    if reason := row.get("reason") or row.get("last_error"):
        return str(reason)
    late = late_text(row)
    return f"{late} late" if late else ""
