"""JSON Schema of every message: ``python -m scheduler.contract.schema [--check]``.

Writes ``docs/schema/*.json``; with ``--check`` it writes nothing and fails where the committed
files differ from the models.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from scheduler.contract.calendar import Calendar
from scheduler.contract.command import BackfillCommand, CancelRunsCommand, TriggerCommand
from scheduler.contract.deadletter import DeadLetter
from scheduler.contract.history import RunHistory
from scheduler.contract.job import JobDefinition
from scheduler.contract.report import RunReport
from scheduler.contract.run import CancelCommand, DelayedRun, JobDeletedCommand, RunCommand
from scheduler.contract.status import JobStatus
from scheduler.errors import ExitCode

MESSAGES: Mapping[str, type[BaseModel]] = {
    "backfill-command": BackfillCommand,
    "calendar": Calendar,
    "cancel-command": CancelCommand,
    "cancel-runs-command": CancelRunsCommand,
    "dead-letter": DeadLetter,
    "delayed-run": DelayedRun,
    "job-definition": JobDefinition,
    "job-deleted-command": JobDeletedCommand,
    "job-status": JobStatus,
    "run-command": RunCommand,
    "run-history": RunHistory,
    "run-report": RunReport,
    "trigger-command": TriggerCommand,
}
"""File name (without ``.json``) of each message."""

FOLDER = Path(__file__).parents[2] / "docs" / "schema"


def schema_text(message: type[BaseModel]) -> str:
    """JSON Schema (draft 2020-12) of a message, with the snake_case names of the topics."""
    schema = message.model_json_schema(by_alias=False)
    for part in (schema, *schema.get("$defs", {}).values()):
        _mend(part)
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def _mend(schema: dict[str, Any]) -> None:
    """Say what the models leave to Python: the name ``from``, and that a tag has to be there."""
    properties = {name.rstrip("_"): value for name, value in schema.get("properties", {}).items()}
    required = {name.rstrip("_") for name in schema.get("required", [])}
    required |= {name for name in ("kind", "command") if "const" in properties.get(name, {})}
    if properties:
        schema["properties"] = properties
        schema["required"] = sorted(required)


def stale_files(folder: Path) -> list[str]:
    """Names of files in ``folder`` that differ from the models, are missing or too many."""
    wanted = {f"{name}.json": schema_text(message) for name, message in MESSAGES.items()}
    found = {path.name: path.read_text() for path in folder.glob("*.json")}
    return sorted(n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n))


def write_files(folder: Path) -> None:
    """Write the schema of every message into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale_files(folder):
        message = MESSAGES.get(name.removesuffix(".json"))
        if message is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(schema_text(message))


def main(arguments: list[str]) -> ExitCode:
    """Write the files, or check them."""
    if "--check" not in arguments:
        write_files(FOLDER)
        return ExitCode.OK
    stale = stale_files(FOLDER)
    if stale:
        names = ", ".join(stale)
        sys.stderr.write(f"docs/schema is stale ({names}): python -m scheduler.contract.schema\n")
        return ExitCode.FAILURE
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
