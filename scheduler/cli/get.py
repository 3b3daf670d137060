"""``duewheel get jobs | runs`` and ``duewheel describe job``: what the topics say."""

from typing import Annotated

import typer

from scheduler.cli.cluster import Deadline
from scheduler.cli.output import OUTPUT_OPTION, OutputFormat, as_json, facts, table
from scheduler.cli.session import DEADLINE_OPTION, Session, open_session
from scheduler.cli.upcoming import upcoming
from scheduler.cli.views import (
    JobView,
    Plain,
    late_text,
    runs,
    schedule_text,
    target_text,
)
from scheduler.contract.history import RunStatus
from scheduler.core.instant import format_instant
from scheduler.errors import RequestError

get_app = typer.Typer(help="List jobs or runs.", no_args_is_help=True)
describe_app = typer.Typer(help="Show one job with all that is known of it.", no_args_is_help=True)

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_RECENT_RUNS = 5
_UPCOMING = 3


@get_app.command("jobs")
def get_jobs(deadline_s: float = DEADLINE_OPTION, output: OutputFormat = OUTPUT_OPTION) -> None:
    """List every job with its state and next run."""
    session = open_session()
    views = session.jobs(Deadline.after(deadline_s, "reading the jobs"))
    now_ms = session.clock.now_ms()
    if output is OutputFormat.JSON:
        typer.echo(as_json([_job_json(view, now_ms) for view in views]))
        return
    header = ["JOB", "SCHEDULE", "TARGET", "STATE", "NEXT RUN", "PROBLEM"]
    typer.echo(table(header, [_job_row(view, now_ms) for view in views]))


@get_app.command("runs")
def get_runs(
    job_id: Annotated[str | None, typer.Option("--job", help="Of this job only.")] = None,
    status: Annotated[RunStatus | None, typer.Option(help="With this status only.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, latest first.")] = 20,
    since_hours: Annotated[
        float, typer.Option("--since-hours", min=0, help="How far back to read history.")
    ] = 1.0,
    deadline_s: float = DEADLINE_OPTION,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """List the latest runs, each with its newest status."""
    session = open_session()
    since_ms = session.clock.now_ms() - int(since_hours * _HOUR_MS)

    def wanted(row: Plain) -> bool:
        return job_id in (None, row.get("job_id")) and status in (None, row.get("status"))

    deadline = Deadline.after(deadline_s, "reading the history")
    rows = runs(session.history(deadline, job_id, since_ms), wanted, limit)
    typer.echo(as_json(rows) if output is OutputFormat.JSON else _run_table(rows))


@describe_app.command("job")
def describe_job(
    job_id: Annotated[str, typer.Argument(metavar="ID")],
    deadline_s: float = DEADLINE_OPTION,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show a job: definition, status, next instants and the latest runs of a day."""
    session = open_session()
    deadline = Deadline.after(deadline_s, "reading the job")
    view = existing_job(session, job_id, deadline)
    now_ms = session.clock.now_ms()
    next_runs = [format_instant(ms) for ms in upcoming(view, now_ms, _UPCOMING)]
    history = session.history(deadline, job_id, now_ms - _DAY_MS)
    latest = runs(history, lambda row: row.get("job_id") == job_id, _RECENT_RUNS)
    if output is OutputFormat.JSON:
        typer.echo(as_json({**_job_json(view, now_ms), "next_runs": next_runs, "runs": latest}))
        return
    typer.echo(_description(view, next_runs))
    typer.echo(f"\nLatest runs:\n{_run_table(latest)}" if latest else "\nNo runs within a day.")


def existing_job(session: Session, job_id: str, deadline: Deadline) -> JobView:
    """The job called ``job_id``.

    Raises:
        RequestError: there is none.
    """
    found = session.jobs(deadline, job_id)
    if not found:
        raise RequestError(f"there is no job {job_id}; `duewheel get jobs` lists them")
    return found[0]


def _job_row(view: JobView, now_ms: int) -> list[object]:
    definition = view.definition
    following = upcoming(view, now_ms, 1)
    return [
        view.job_id,
        schedule_text(definition) if definition else None,
        target_text(definition) if definition else None,
        view.state,
        format_instant(following[0]) if following else None,
        view.problem,
    ]


def _job_json(view: JobView, now_ms: int) -> Plain:
    following = upcoming(view, now_ms, 1)
    return {
        "job_id": view.job_id,
        "state": view.state,
        "next_run_at": format_instant(following[0]) if following else None,
        "definition": view.definition,
        "status": view.status,
    }


def _description(view: JobView, next_runs: list[str]) -> str:
    definition, status = view.definition or {}, view.status or {}
    return facts({
        "Job": view.job_id,
        "State": view.state,
        "Schedule": schedule_text(definition) if definition else None,
        "Target": target_text(definition) if definition else None,
        "Effective from": status.get("effective_from"),
        "Problem": view.problem,
        "Warnings": "; ".join(status.get("warnings") or ()) or None,
        "Next runs": ", ".join(next_runs) or None,
        "Definition": view.definition,
    })  # fmt: skip


def _run_table(rows: list[Plain]) -> str:
    header = ["SCHEDULED AT", "JOB", "STATUS", "ATTEMPT", "LATE", "FINISHED AT", "REASON"]
    return table(header, [_run_row(row) for row in rows])


def _run_row(row: Plain) -> list[object]:
    return [
        row.get("scheduled_at"),
        row.get("job_id"),
        row.get("status"),
        row.get("attempt"),
        late_text(row),
        row.get("finished_at"),
        row.get("reason") or row.get("last_error"),
    ]
