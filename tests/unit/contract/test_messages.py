"""Messages are written as the contract says, read back, and accepted in both spellings."""

import json

import pytest

from scheduler.contract.calendar import Calendar
from scheduler.contract.command import (
    BackfillCommand,
    CancelRunsCommand,
    TriggerCommand,
    decode_command,
)
from scheduler.contract.deadletter import DeadLetter
from scheduler.contract.history import RunHistory, RunStatus
from scheduler.contract.job import JobDefinition
from scheduler.contract.message import Message
from scheduler.contract.report import RunReport
from scheduler.contract.run import (
    CancelCommand,
    DelayedRun,
    JobDeletedCommand,
    RunCommand,
    decode_run_topic,
)
from scheduler.contract.status import JobStatus
from scheduler.core.instant import parse_instant
from scheduler.core.reports import (
    Undispatched,
    cancel_value,
    job_deleted_value,
    status_value,
    undispatched_value,
)
from scheduler.errors import RequestError

NINE = "2030-01-01T09:00:00.000Z"
NINE_MS = parse_instant(NINE)
RUN = {
    "kind": "run",
    "job_id": "a",
    "scheduled_at": NINE,
    "run_at": NINE,
    "run_id": f"a@{NINE}",
    "definition_offset": 3,
}
ATTEMPT = {"attempt": 1, "started_at": NINE, "finished_at": NINE, "status": "failed"}

EXAMPLES: list[tuple[type[Message], dict[str, object]]] = [
    (JobDefinition, {"every": "PT90S", "end_at": NINE, "labels": {"team": "x"}}),
    (RunCommand, RUN),
    (DelayedRun, RUN | {"not_before": NINE, "attempts": [ATTEMPT], "last_error": "boom"}),
    (DeadLetter, RUN | {"dead_at": NINE, "attempts": [ATTEMPT], "replays": 2}),
    (CancelCommand, {"kind": "cancel", "job_id": "a", "run_id": None}),
    (JobDeletedCommand, {"kind": "job-deleted", "job_id": "a"}),
    (RunReport, {"job_id": "a", "scheduled_at": NINE, "attempt": 1, "kind": "failed"}),
    (
        RunHistory,
        {"job_id": "a", "run_id": f"a@{NINE}", "scheduled_at": NINE, "status": "running"},
    ),
    (JobStatus, {"job_id": "a", "state": "active", "observed_at": NINE}),
    (
        Calendar,
        {
            "dates": ["2026-12-25"],
            "ranges": [{"from": "2026-12-28", "to": "2026-12-31"}],
            "weekdays": ["SAT"],
        },
    ),
]


@pytest.mark.parametrize(("message", "plain"), EXAMPLES, ids=lambda value: str(value)[:40])
def test_what_is_written_is_read_back(message: type[Message], plain: dict[str, object]) -> None:
    read = message.decode(json.dumps(plain).encode())
    written = read.encode()
    assert json.loads(written).items() >= plain.items() or "attempts" in plain
    assert b": " not in written
    assert message.decode(written) == read


def test_camel_case_and_upper_case_are_the_same_definition() -> None:
    camel = JobDefinition.decode(
        b'{"jobId":"a","runAt":"2030-01-01T12:00:00+03:00","timeZone":"Europe/Istanbul",'
        b'"misfirePolicy":"RUN_ONCE","concurrency":"FORBID","maxAttempts":3,'
        b'"target":{"kind":"EXTERNAL","startWithinSeconds":5}}'
    )
    snake = JobDefinition.decode(
        b'{"job_id":"a","run_at":"2030-01-01T09:00:00.000Z","time_zone":"Europe/Istanbul",'
        b'"misfire_policy":"run_once","concurrency":"forbid","max_attempts":3,'
        b'"target":{"kind":"external","start_within_seconds":5}}'
    )
    assert camel == snake
    assert camel.run_at == NINE_MS


def test_payload_and_labels_keep_their_spelling() -> None:
    read = JobDefinition.decode(b'{"every":"PT1S","payload":{"runAt":1},"labels":{"timeZone":"X"}}')
    assert read.payload == {"runAt": 1}
    assert read.labels == {"timeZone": "X"}


def test_what_people_write_is_strict_and_what_machines_write_is_not() -> None:
    assert RunCommand.decode(json.dumps(RUN | {"new_field": 1}).encode()).job_id == "a"
    with pytest.raises(RequestError, match="comand: unknown field; did you mean command"):
        decode_command(b'{"command":"trigger","command_id":"c","comand":1}')


def test_kinds_of_the_run_topic() -> None:
    assert isinstance(decode_run_topic(json.dumps(RUN).encode()), RunCommand)
    assert decode_run_topic(cancel_value("a", None)) == CancelCommand(job_id="a")
    assert decode_run_topic(job_deleted_value("a")) == JobDeletedCommand(job_id="a")
    assert decode_run_topic(b'{"kind":"something-new"}') is None
    with pytest.raises(RequestError, match="^needs a kind$"):
        decode_run_topic(b"{}")
    with pytest.raises(RequestError, match="job_id: is required"):
        decode_run_topic(b'{"kind":"run"}')


def test_commands() -> None:
    trigger = decode_command(b'{"command":"TRIGGER","commandId":"c1","payload":null}')
    assert isinstance(trigger, TriggerCommand)
    assert trigger.overrides_payload
    plain = decode_command(b'{"command":"trigger","command_id":"c1"}')
    assert isinstance(plain, TriggerCommand)
    assert not plain.overrides_payload
    backfill = decode_command(
        b'{"command":"backfill","command_id":"c","from":"2030-01-01T09:00:00Z",'
        b'"to":"2030-01-02T00:00:00Z"}'
    )
    assert isinstance(backfill, BackfillCommand)
    assert backfill.from_ == NINE_MS
    assert b'"from":"2030-01-01T09:00:00.000Z"' in backfill.encode()
    cancel = decode_command(b'{"command":"cancel","command_id":"c","run_id":"r"}')
    assert cancel == CancelRunsCommand(command_id="c", run_id="r")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"{}", "needs a command"),
        (
            b'{"command":"triger","command_id":"c"}',
            "'triger' is none of trigger, backfill, cancel; did you mean trigger?",
        ),
        (b'{"command":"cancel"}', "command_id: is required"),
        (
            b'{"command":"cancel","command_id":"c","run_id":"r","of_command":"b"}',
            "run_id and of_command exclude each other",
        ),
        (
            b'{"command":"backfill","command_id":"c","from":"2030-01-01T09:00:00Z"}',
            "either instants or both from and to are needed",
        ),
        (
            b'{"command":"trigger","command_id":"c d"}',
            "command_id: should match pattern '^[!-~]{1,200}$', not 'c d'",
        ),
    ],
)
def test_commands_that_are_refused(value: bytes, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode_command(value)
    assert str(caught.value) == message


def test_final_statuses() -> None:
    assert {status for status in RunStatus if status.final} == {
        "succeeded", "dead", "cancelled", "skipped", "missed", "dispatched",
    }  # fmt: skip


def test_what_the_core_writes_is_what_the_models_say() -> None:
    status = status_value(
        "a", "rejected", NINE_MS, definition_offset=4, error="no", path="every", next_run_ms=NINE_MS
    )
    assert JobStatus.decode(status).encode() == status
    span = Undispatched(NINE_MS, NINE_MS + 1_000, 2, "missed", "window")
    row = RunHistory.decode(undispatched_value("a", 4, span, NINE_MS + 5_000))
    assert (row.status, row.count, row.through) == (RunStatus.MISSED, 2, NINE_MS + 1_000)


def test_an_attempt_under_way_has_no_status_yet() -> None:
    row = RUN | {"status": "running", "attempts": [{"attempt": 1, "status": None}]}
    assert RunHistory.decode(json.dumps(row).encode()).attempts[0].status is None
