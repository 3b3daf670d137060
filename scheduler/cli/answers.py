"""Waiting for what the scheduler says about a record that was just written."""

import json
from collections.abc import Iterator, Mapping
from typing import Protocol

from scheduler.cli.cluster import Deadline
from scheduler.cli.views import FINAL_RUN_STATUSES, Plain
from scheduler.core.records import Incoming
from scheduler.errors import RequestError, RetryableError


class Follower(Protocol):
    """Records as they are appended: `scheduler.cli.cluster.Tail`, or a list in a test."""

    def until(self, deadline: Deadline) -> Iterator[Incoming]:
        """Yield records; raise `RetryableError` when the deadline passes."""
        ...


def statuses(tail: Follower, offsets: Mapping[str, int], deadline: Deadline) -> dict[str, Plain]:
    """The status of each job once its record has been decided.

    Args:
        tail: follows ``job-status`` from before the records were written.
        offsets: offset in ``jobs`` of each job's record. An answer that names a later one counts:
            somebody has already replaced the record.
        deadline: when to return with what has come.
    """
    answers: dict[str, Plain] = {}
    try:
        for record in tail.until(deadline):
            status = decoded(record)
            job_id = str(status.get("job_id"))
            offset = status.get("definition_offset")
            if isinstance(offset, int) and offset >= offsets.get(job_id, offset + 1):
                answers.setdefault(job_id, status)
            if len(answers) == len(offsets):
                break
    except RetryableError:
        return answers  # the caller says which ones are missing
    return answers


def run_of_command(
    tail: Follower, job_id: str, command_id: str, deadline: Deadline
) -> Plain | None:
    """The last history row seen of a command's run; ``None`` if only its status was answered.

    Args:
        tail: follows ``job-status`` and ``run-history`` from before the command was written.
        job_id: the job the command is for.
        command_id: the command's id.
        deadline: when to return with what has come.

    Raises:
        RequestError: the scheduler refused the command.
        RetryableError: nobody answered at all.
    """
    row: Plain | None = None
    answered = False
    try:
        for record in tail.until(deadline):
            value = decoded(record)
            if value.get("job_id") != job_id or value.get("command_id") != command_id:
                continue
            if "state" in value:
                _check_accepted(value)
                answered = True
            else:
                row = value
                if row.get("status") in FINAL_RUN_STATUSES:
                    break
    except RetryableError:
        if row is None and not answered:
            raise
    return row


def decoded(record: Incoming) -> Plain:
    """A record's JSON object; empty for a tombstone or anything else."""
    try:
        value = json.loads(record.value or b"null")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _check_accepted(status: Plain) -> None:
    if error := status.get("error"):
        raise RequestError(f"the scheduler refused the command: {error}")
