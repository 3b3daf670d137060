"""``duewheel apply``: definitions from files, all checked before any is sent, each answered."""

from pathlib import Path
from typing import Annotated

import typer

from scheduler.cli import answers, documents
from scheduler.cli.cluster import Deadline
from scheduler.cli.documents import Definition
from scheduler.cli.output import OUTPUT_OPTION, OutputFormat, as_json, table
from scheduler.cli.session import DEADLINE_OPTION, Session, open_session
from scheduler.cli.views import Plain
from scheduler.core.records import Outgoing
from scheduler.errors import RequestError, RetryableError

_HEADER = ["JOB", "STATE", "EFFECTIVE FROM", "NEXT RUN", "REASON"]


def apply(
    files: Annotated[
        list[Path],
        typer.Option("--filename", "-f", help="YAML or JSON file, or a folder of them."),
    ],
    wait: Annotated[
        bool, typer.Option(help="Wait until the scheduler has accepted or refused each.")
    ] = True,
    deadline_s: float = DEADLINE_OPTION,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Create or change jobs from files. Nothing is sent unless every definition is valid."""
    definitions = valid_definitions(files)
    session = open_session()
    rows = apply_definitions(session, definitions, wait=wait, deadline_s=deadline_s)
    typer.echo(as_json(rows) if output is OutputFormat.JSON else _table(rows))
    _check(rows, wait, deadline_s)


def valid_definitions(files: list[Path]) -> list[Definition]:
    """Load every definition; say all that is wrong before refusing the lot.

    Raises:
        RequestError: there are faults (each was printed on standard error), or no definitions.
    """
    definitions, faults = documents.load(files)
    for fault in faults:
        typer.echo(f"duewheel: {fault}", err=True)
    if faults:
        raise RequestError(f"nothing was sent: {len(faults)} fault(s) to mend")
    if not definitions:
        raise RequestError("nothing was sent: the files hold no definitions")
    return definitions


def apply_definitions(
    session: Session, definitions: list[Definition], *, wait: bool, deadline_s: float
) -> list[Plain]:
    """Produce definitions; with ``wait``, the scheduler's answer to each.

    Returns:
        One row a definition: its status, or ``sent`` / ``unanswered`` as ``state``.
    """
    deadline = Deadline.after(deadline_s, "applying the definitions")
    ids = [definition.job_id for definition in definitions]
    records = [
        Outgoing(session.catalog.name("jobs"), session.home(d.job_id), d.job_id.encode(), d.value)
        for d in definitions
    ]
    watched = {session.catalog.name("job-status"): session.partitions_of("job-status", ids)}
    with session.cluster.tail(watched if wait else {}, deadline) as tail:
        offsets = dict(zip(ids, session.cluster.send(records, deadline), strict=True))
        found = answers.statuses(tail, offsets, deadline) if wait else {}
    missing = "unanswered" if wait else "sent"
    return [
        found.get(job_id)
        or {"job_id": job_id, "state": missing, "definition_offset": offsets[job_id]}
        for job_id in ids
    ]


def _table(rows: list[Plain]) -> str:
    return table(
        _HEADER,
        [
            [
                row["job_id"],
                row["state"],
                row.get("effective_from"),
                row.get("next_run_at"),
                row.get("error") or "; ".join(row.get("warnings") or ()),
            ]
            for row in rows
        ],
    )


def _check(rows: list[Plain], wait: bool, deadline_s: float) -> None:
    unanswered = [row["job_id"] for row in rows if row["state"] == "unanswered"]
    if wait and unanswered:
        raise RetryableError(
            f"no scheduler answered for {len(unanswered)} of {len(rows)} definitions within "
            f"{deadline_s:g} s; they are written and count once one runs (duewheel scheduler)"
        )
    refused = [row["job_id"] for row in rows if row["state"] == "rejected"]
    if refused:
        raise RequestError(f"{len(refused)} of {len(rows)} definitions were refused")
