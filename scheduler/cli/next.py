"""``duewheel next``: what an expression means, before anybody saves it."""

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from scheduler.cli.output import OUTPUT_OPTION, OutputFormat, as_json, table
from scheduler.core.instant import format_instant
from scheduler.core.preview import evaluate_case
from scheduler.errors import RequestError
from scheduler.runtime.clock import SystemClock


def next_instants(
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPR", help="A cron expression, in quotes.")
    ] = None,
    zone: Annotated[str, typer.Option("--tz", help="IANA time zone.")] = "UTC",
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1000)] = 5,
    after: Annotated[
        str | None, typer.Option(help="RFC 3339 instant to start after; now if left out.")
    ] = None,
    gap: Annotated[
        str, typer.Option(help="Local times that do not exist: auto skip run_after shift.")
    ] = "auto",
    overlap: Annotated[
        str, typer.Option(help="Local times that occur twice: auto first last both.")
    ] = "auto",
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
    case: dict[str, Any] = {
        "id": "next",
        "expr": expression,
        "tz": zone,
        "after": after or format_instant(SystemClock().now_ms()),
        "gap_policy": gap,
        "overlap_policy": overlap,
        "count": count,
    }
    answer = evaluate_case(case)
    if error := answer.get("error"):
        raise RequestError(f"{error['class']}: {error['message']}")
    instants = answer["instants"]
    if output is OutputFormat.JSON:
        typer.echo(as_json({"expression": expression, "time_zone": zone, "instants": instants}))
    else:
        typer.echo(table(["UTC", zone], [[utc, _local(utc, zone)] for utc in instants]))


def answer_lines(lines: Iterable[str]) -> Iterator[str]:
    """One JSON answer for each JSON case; a line that is no case is answered with an error."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield json.dumps(_answer(line, number), ensure_ascii=False)


def _answer(line: str, number: int) -> dict[str, Any]:
    try:
        case = json.loads(line)
    except ValueError as error:
        return _no_case(f"line {number} is not JSON: {error}")
    if not isinstance(case, dict):
        return _no_case(f"line {number} is not a JSON object")
    return evaluate_case(case)


def _no_case(message: str) -> dict[str, Any]:
    return {"id": None, "error": {"class": "syntax", "message": message}}


def _local(utc: str, zone: str) -> str:
    local = datetime.fromisoformat(utc).astimezone(ZoneInfo(zone))
    return f"{local:%a %Y-%m-%d %H:%M:%S %z}"
