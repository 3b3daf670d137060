"""What a command prints: a table for people, JSON for programs.

Tables are plain columns, never cut or wrapped to a terminal's width, so that they can be piped.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import typer

Row = Sequence[object]
"""Cells of one line; ``None`` is shown as ``-``."""

_GAP = "   "


class OutputFormat(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"


OUTPUT_OPTION = typer.Option(
    OutputFormat.TABLE, "--output", "-o", help="Table for people, json for programs."
)


def table(header: Sequence[str], rows: Iterable[Row]) -> str:
    """Align ``rows`` under ``header``.

    >>> print(table(["JOB", "STATE"], [["nightly", "active"], ["x", None]]))
    JOB       STATE
    nightly   active
    x         -
    """
    lines = [[*header], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def facts(pairs: Mapping[str, object]) -> str:
    """Show one thing as ``name: value`` lines; absent values are left out.

    >>> print(facts({"Job": "a", "Error": None, "Schedule": "every PT5S"}))
    Job:        a
    Schedule:   every PT5S
    """
    shown = {f"{name}:": _cell(value) for name, value in pairs.items() if value is not None}
    width = max((len(name) for name in shown), default=0)
    return "\n".join(f"{name.ljust(width)}{_GAP}{value}" for name, value in shown.items())


def as_json(value: object) -> str:
    """Indented JSON in UTF-8 characters."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return " ".join(str(value).split())
