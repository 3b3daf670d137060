"""Taking up what lies in the other logs: delayed runs and commands.

The rule of acceptance is the same as for definitions: once, in the transaction that commits
the position of its log; what is due at or before the new cursor is sent with it.
"""

import json

from scheduler.core.cursor import Position
from scheduler.core.definition import CompiledJob
from scheduler.core.draft import Draft, Due
from scheduler.core.intake import Cancel, Command, DelayedRun, Trigger
from scheduler.core.layout import (
    COMMAND,
    DELAYED,
    PURGE,
    Waiting,
    command_key,
    encode_instant,
    wheel_key,
)
from scheduler.core.placement import hold_delayed
from scheduler.core.records import Incoming
from scheduler.core.reports import cancel_value
from scheduler.errors import DefinitionError, RequestError


def accept_delayed(draft: Draft, record: Incoming) -> None:
    """Hold a delayed run until it is due, or send it at once if it is."""
    try:
        run = draft.decoder.delayed(record)
    except RequestError as error:
        refuse_record(draft, record, error, None)
        return
    if run.ours:
        # Counted when it was written by this owner; what another owner wrote is not.
        draft.held.append((run.job_id, run.nominal_ms, -1))
    if _void(draft, run):
        draft.miss_delayed(run)
    elif delayed_position(run, record.offset) <= draft.until:
        draft.to_runs(run.job_id, run.queue, run.command)
    else:
        hold_delayed(draft.stage, draft.partition, _due(run), record.offset, _waiting(run))
        draft.waiting_offsets.append(record.offset)
        if run.ours:
            draft.held.append((run.job_id, run.nominal_ms, 1))


def absorb_delayed(draft: Draft, record: Incoming) -> None:
    """A delayed run that was accepted already: waiting if it lies beyond the cursor."""
    try:
        run = draft.decoder.delayed(record)
    except RequestError:
        return
    if delayed_position(run, record.offset) > draft.before and not _void(draft, run):
        hold_delayed(draft.stage, draft.partition, _due(run), record.offset, _waiting(run))


def delayed_position(run: DelayedRun, offset: int) -> Position:
    """Where a delayed run lies on the wheel."""
    return (_due(run), DELAYED + offset.to_bytes(8, "big"))


def _due(run: DelayedRun) -> int:
    return max(run.not_before_ms, 0)


def _waiting(run: DelayedRun) -> Waiting:
    return Waiting(run.job_id, run.nominal_ms, run.definition_offset, run.ours, run.queue,
                   run.command)  # fmt: skip


def _void(draft: Draft, run: DelayedRun) -> bool:
    """Older than the job's last deletion by a user. Absence alone voids nothing."""
    fact = draft.facts(run.job_id)
    deletion = draft.entry(run.job_id).deletion_offset
    if fact is not None:
        deletion = max(deletion, fact.deletion_offset)
    return run.definition_offset < deletion


def accept_command(draft: Draft, record: Incoming) -> None:
    """Do a command, once: its id is remembered for as long as the log keeps it."""
    command: Command | None = None
    try:
        key = record.key or b""
        job_id = draft.decoder.job_id(record.key)
        if draft.decoder.partition(key) != draft.partition:
            raise RequestError(f"command for {job_id!r} lies in the wrong partition; "
                               "use murmur2 of the job id")  # fmt: skip
        command = draft.decoder.command(record)
        seen = command_key(draft.partition, f"{job_id} {command.command_id}")
        if draft.stage.get(seen) is not None:
            return
        _remember(draft, f"{job_id} {command.command_id}", record.appended_ms)
        _do(draft, key, job_id, command, record.appended_ms)
    except RequestError as error:
        refuse_record(draft, record, error, command)


def absorb_command(draft: Draft, record: Incoming) -> None:
    """A command that was done already: only its id counts."""
    try:
        job_id = draft.decoder.job_id(record.key)
        command = draft.decoder.command(record)
    except RequestError:
        return
    _remember(draft, f"{job_id} {command.command_id}", record.appended_ms)


def _remember(draft: Draft, name: str, appended_ms: int) -> None:
    """Note that a command is done, until the log itself has forgotten it."""
    due = appended_ms + draft.setting.forget_ms
    if due <= draft.before[0]:
        return
    draft.stage.put(command_key(draft.partition, name), encode_instant(appended_ms))
    draft.stage.put(wheel_key(draft.partition, due, PURGE + COMMAND + name.encode()), b"")


def _do(draft: Draft, key: bytes, job_id: str, command: Command, appended_ms: int) -> None:
    version = draft.entry(key).version
    if version is None:
        raise RequestError(f"there is no job {job_id!r}")
    job = draft.decoder.job(job_id, version.value, version.offset)
    match command:
        case Trigger():
            body = job.body if command.payload is None else _with_payload(job, command.payload)
            due = Due(appended_ms, appended_ms, "manual", command_id=command.command_id)
            draft.send(key, job.cohort.queue, body, due)
            draft.status(key, "paused" if version.paused else "active",
                         definition_offset=version.offset, effective_from_ms=version.begin_ms,
                         command_id=command.command_id)  # fmt: skip
        case Cancel():
            draft.to_runs(key, job.cohort.queue, cancel_value(job_id, command.run_id))
            draft.status(key, "paused" if version.paused else "active",
                         definition_offset=version.offset, effective_from_ms=version.begin_ms,
                         command_id=command.command_id)  # fmt: skip
        case _:
            raise RequestError(f"command {command.command!r} is not supported by this version")


def _with_payload(job: CompiledJob, payload: bytes) -> bytes:
    """A body with another payload."""
    plain = json.loads(b"{" + job.body + b'"}')
    run_id = plain.pop("run_id")
    plain["payload"] = json.loads(payload)
    plain["run_id"] = run_id
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()[1:-2]


def refuse_record(
    draft: Draft, record: Incoming, error: RequestError, command: Command | None
) -> None:
    """Tell ``job-status`` why a record of another log than ``jobs`` is not taken up."""
    where = f"{record.topic}[{record.partition}]@{record.offset}: "
    path = error.path if isinstance(error, DefinitionError) else None
    key = record.key or b""
    version = draft.entry(key).version
    draft.status(
        key,
        "rejected",
        definition_offset=None if version is None else version.offset,
        error=where + str(error),
        path=path,
        command_id=None if command is None else command.command_id,
    )
