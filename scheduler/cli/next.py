"""``duewheel next``: what an expression means, before anybody saves it."""

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated

import typer

from scheduler.cli.output import OUTPUT_OPTION, OutputFormat, as_json, table
from scheduler.core.cron import CronError, normalise
from scheduler.core.definition import CronSpec
from scheduler.core.instant import parse_instant
from scheduler.core.preview import Upcoming, evaluate_case, preview, spec_of
from scheduler.errors import RequestError
from scheduler.runtime.clock import SystemClock

_COUNT_MAX = 1_000


class Gap(StrEnum):
    """What becomes of local times that do not exist."""

    AUTO = "auto"
    SKIP = "skip"
    RUN_AFTER = "run_after"
    SHIFT = "shift"


class Overlap(StrEnum):
    """What becomes of local times that occur twice."""

    AUTO = "auto"
    FIRST = "first"
    LAST = "last"
    BOTH = "both"


def next_instants(
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPR", help="A cron expression, in quotes.")
    ] = None,
    zone: Annotated[str, typer.Option("--tz", help="IANA time zone.")] = "UTC",
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=_COUNT_MAX)] = 5,
    after: Annotated[
        str | None, typer.Option(help="RFC 3339 instant to start after; now if left out.")
    ] = None,
    gap: Annotated[Gap, typer.Option(help="Local times that do not exist.")] = Gap.AUTO,
    overlap: Annotated[Overlap, typer.Option(help="Local times that occur twice.")] = Overlap.AUTO,
    job_id: Annotated[
        str | None, typer.Option("--job", help="The job whose id chooses what H stands for.")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="JSON lines on standard input, one answer a line.")
    ] = False,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show the next instants of a cron expression, in UTC and local time."""
    if batch:
        for answer in answer_lines(sys.stdin):
            typer.echo(answer)
        return
    if expression is None:
        raise RequestError("name an expression, e.g. duewheel next '0 2 * * *' --tz Europe/Paris")
    after_ms = SystemClock().now_ms() if after is None else _instant(after)
    try:
        spec = spec_of(expression, zone, gap, overlap, job_id)
        warnings = normalise(expression, job_id).warnings
    except CronError as error:
        raise RequestError(f"{expression!r}: {error.reason}") from error
    found = preview(spec, after_ms, count)
    if output is OutputFormat.JSON:
        typer.echo(as_json(_json(spec, found, warnings)))
        return
    rows = [[each.utc, each.local, each.note] for each in found]
    typer.echo(table(["UTC", f"LOCAL ({zone})", "NOTE"], rows))
    for warning in warnings:
        typer.echo(f"note: {warning}", err=True)


def answer_lines(lines: Iterable[str]) -> Iterator[str]:
    """One JSON answer for each JSON case; a line that is no case is answered with an error."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield json.dumps(_answer(line, number), ensure_ascii=False)


def _answer(line: str, number: int) -> dict[str, object]:
    try:
        case = json.loads(line)
    except ValueError as error:
        return _no_case(f"line {number} is not JSON: {error}")
    if not isinstance(case, dict):
        return _no_case(f"line {number} is not a JSON object")
    return evaluate_case(case)


def _no_case(message: str) -> dict[str, object]:
    return {"id": None, "error": {"class": "request", "message": message}}


def _json(spec: CronSpec, found: list[Upcoming], warnings: tuple[str, ...]) -> dict[str, object]:
    return {
        "expression": spec.expression,
        "time_zone": spec.zone,
        "dst_gap": spec.gap,
        "dst_overlap": spec.overlap,
        "warnings": list(warnings),
        "instants": [{"utc": e.utc, "local": e.local, "note": e.note} for e in found],
    }


def _instant(text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise RequestError(f"--after: {error}") from error
