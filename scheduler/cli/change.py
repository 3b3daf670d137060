"""``duewheel delete job`` and ``duewheel trigger``: one record each, and the answer to it."""

import json
import os
from typing import Annotated

import typer

from scheduler.cli import answers
from scheduler.cli.cluster import Deadline
from scheduler.cli.get import existing_job
from scheduler.cli.output import OUTPUT_OPTION, OutputFormat, as_json
from scheduler.cli.session import DEADLINE_OPTION, Session, open_session
from scheduler.cli.views import Plain
from scheduler.core.records import Outgoing
from scheduler.errors import RequestError, RetryableError

delete_app = typer.Typer(help="Delete a job.", no_args_is_help=True)


@delete_app.command("job")
def delete_job(
    job_id: Annotated[str, typer.Argument(metavar="ID")],
    deadline_s: float = DEADLINE_OPTION,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Delete a job and wait until the scheduler has let go of it."""
    session = open_session()
    deadline = Deadline.after(deadline_s, "deleting the job")
    existing_job(session, job_id, deadline)
    status = _delete(session, job_id, deadline)
    if output is OutputFormat.JSON:
        typer.echo(as_json(status))
    else:
        typer.echo(f"job {job_id} {status['state']} from {status.get('effective_from')}")


def trigger(
    job_id: Annotated[str, typer.Argument(metavar="ID")],
    payload: Annotated[
        str | None, typer.Option(help="JSON that replaces the job's payload for this run.")
    ] = None,
    command_id: Annotated[
        str | None, typer.Option(help="Makes a repeated call harmless; chosen if left out.")
    ] = None,
    deadline_s: float = DEADLINE_OPTION,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Run a job once, now, beside its schedule, and wait for the outcome."""
    command: Plain = {"command": "trigger"}
    if payload is not None:
        command["payload"] = _json(payload)
    session = open_session()
    deadline = Deadline.after(deadline_s, "the scheduler's answer")
    existing_job(session, job_id, deadline)
    command["command_id"] = command_id or f"cli-{session.clock.now_ms()}-{os.getpid()}"
    row = _trigger(session, job_id, command, deadline)
    if output is OutputFormat.JSON:
        typer.echo(as_json(row or {"job_id": job_id, "command_id": command["command_id"]}))
    else:
        typer.echo(_outcome(job_id, command["command_id"], row))
    if row is not None and row.get("status") == "dead":
        raise RequestError(f"the run failed: {row.get('last_error')}")


def _delete(session: Session, job_id: str, deadline: Deadline) -> Plain:
    watched = {session.catalog.name("job-status"): [session.home(job_id, "job-status")]}
    tombstone = Outgoing(session.catalog.name("jobs"), session.home(job_id), job_id.encode(), None)
    with session.cluster.tail(watched, deadline) as tail:
        offset = session.cluster.send([tombstone], deadline)[0]
        status = answers.statuses(tail, {job_id: offset}, deadline).get(job_id)
    if status is None:
        raise RetryableError(
            "the deletion is written but no scheduler has answered; "
            "it counts once one runs (duewheel scheduler)"
        )
    return status


def _trigger(session: Session, job_id: str, command: Plain, deadline: Deadline) -> Plain | None:
    catalog = session.catalog
    watched = {
        catalog.name(base): [session.home(job_id, base)] for base in ("job-status", "run-history")
    }
    record = Outgoing(
        catalog.name("job-commands"),
        session.home(job_id, "job-commands"),
        job_id.encode(),
        json.dumps(command).encode(),
    )
    with session.cluster.tail(watched, deadline) as tail:
        session.cluster.send([record], deadline)
        return answers.run_of_command(tail, job_id, command["command_id"], deadline)


def _outcome(job_id: str, command_id: str, row: Plain | None) -> str:
    if row is None:
        return f"job {job_id}: command {command_id} accepted; the run has not begun yet"
    return f"run {row.get('run_id')} {row.get('status')}"


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RequestError(f"--payload is not JSON: {error}") from error
