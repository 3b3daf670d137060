"""Run commands as bytes: a member's stored body joined with what depends on the instant.

Nothing is validated or re-encoded on the way out (pydantic would cut the dispatch rate to a
third, design section 4). A command is three pieces: ``head + body + tail``. The head is made
once for a cohort and an instant, the body lies with the member, the tail closes the run id.
"""

import json

from scheduler.core.instant import format_instant


def command_head(
    scheduled_at: str,
    run_at: str,
    trigger: str,
    settled_below: str | None,
    attempt: int = 1,
    command_id: str | None = None,
) -> bytes:
    """Opening of a run command. Texts must need no JSON escaping, except ``command_id``."""
    settled = f'"{settled_below}"' if settled_below else "null"
    command = _quoted(command_id) if command_id is not None else "null"
    return (
        f'{{"scheduled_at":"{scheduled_at}","run_at":"{run_at}","attempt":{attempt},'
        f'"deferral":0,"trigger":"{trigger}","command_id":{command},"settled_below":{settled},'
    ).encode()


def command_tail(scheduled_at: str, command_id: str | None = None) -> bytes:
    """Closing of a run command: the rest of the open ``run_id`` and the brace."""
    suffix = "" if command_id is None else "#" + _quoted(command_id)[1:-1]
    return f'{scheduled_at}{suffix}"}}'.encode()


def run_command(body: bytes, nominal_ms: int, effective_ms: int, trigger: str,
                settled_below_ms: int | None) -> bytes:  # fmt: skip
    """A whole scheduled run command.

    >>> run_command(b'"kind":"run","job_id":"a","run_id":"a@', 0, 5, "schedule", None)[-38:]
    b'"run_id":"a@1970-01-01T00:00:00.000Z"}'
    """
    scheduled_at = format_instant(nominal_ms)
    settled = None if settled_below_ms is None else format_instant(settled_below_ms)
    head = command_head(scheduled_at, format_instant(effective_ms), trigger, settled)
    return head + body + command_tail(scheduled_at)


def _quoted(text: str) -> str:
    return json.dumps(text)
