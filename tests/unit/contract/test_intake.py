"""What the core gets of the records it takes in."""

import json

import pytest

from scheduler.contract.intake import ContractDecoder
from scheduler.contract.run import RunCommand
from scheduler.core.instant import format_instant
from scheduler.core.intake import Cancel, Trigger, Unsupported
from scheduler.core.records import Incoming
from scheduler.errors import DefinitionError, RequestError

DECODER = ContractDecoder(256, ("default", "bulk", "reports"))
NINE = "2030-01-01T09:00:00.000Z"
NOW_MS = 1_893_488_400_000
DAY_MS = 86_400_000
RUN: dict[str, object] = {
    "kind": "run",
    "job_id": "a",
    "scheduled_at": NINE,
    "run_at": NINE,
    "run_id": f"a@{NINE}",
    "definition_offset": 3,
    "queue": "bulk",
    "payload": {"b": [1, 0.5]},
    "attempt": 2,
    "trigger": "retry",
    "not_before": format_instant(NOW_MS + 1_000),
    "last_error": "boom",
    "attempts": [{"attempt": 1, "status": "failed"}],
}


def record(value: object, key: bytes | None = b"a") -> Incoming:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Incoming("topic", DECODER.partition(key or b""), 9, NOW_MS, key, raw)


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"a b", b"x" * 201])
def test_a_key_that_is_no_job_id(key: bytes | None) -> None:
    with pytest.raises(DefinitionError) as caught:
        DECODER.job_id(key)
    assert caught.value.path == "job_id"


def test_a_delayed_run_is_sent_without_what_delayed_it() -> None:
    run = DECODER.delayed(record(RUN))
    assert (run.job_id, run.queue, run.definition_offset) == (b"a", "bulk", 3)
    assert (run.nominal_ms, run.not_before_ms) == (NOW_MS, NOW_MS + 1_000)
    sent = json.loads(run.command)
    assert not {"not_before", "last_error", "attempts"} & sent.keys()
    command = RunCommand.decode(run.command)
    assert (command.attempt, command.payload) == (2, {"b": [1, 0.5]})


def test_no_run_is_delayed_by_more_than_a_week() -> None:
    late = RUN | {"not_before": format_instant(NOW_MS + 30 * DAY_MS)}
    assert DECODER.delayed(record(late)).not_before_ms == NOW_MS + 7 * DAY_MS


@pytest.mark.parametrize(
    ("fields", "ours"),
    [
        ({"trigger": "schedule", "attempt": 1}, True),
        ({"trigger": "misfire", "attempt": 1}, True),
        ({"trigger": "schedule", "attempt": 1, "deferral": 1}, False),
        ({"trigger": "retry", "attempt": 2}, False),
        ({"trigger": "replay", "attempt": 1}, False),
    ],
)
def test_first_attempts_of_the_schedule_are_ours(fields: dict[str, object], ours: bool) -> None:
    assert DECODER.delayed(record(RUN | fields)).ours is ours


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        (RUN, b"b", "job_id is 'a' but the key is 'b'"),
        (b"{", b"a", "not JSON"),
        (RUN | {"not_before": None}, b"a", "not_before: should be an instant"),
        (
            b'{"payload":[' + b",".join([b"1e15"] * 100_000) + b"],"
            + json.dumps({k: v for k, v in RUN.items() if k != "payload"}).encode()[1:],
            b"a",
            "above the limit of 1000000",
        ),
    ],
)  # fmt: skip
def test_delayed_runs_that_are_refused(value: object, key: bytes, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        DECODER.delayed(record(value, key))
    assert message in str(caught.value)


def test_a_delayed_run_in_the_wrong_partition() -> None:
    right = record(RUN)
    wrong = Incoming("topic", right.partition + 1, 9, NOW_MS, b"a", right.value)
    with pytest.raises(RequestError, match="lies in the wrong partition"):
        DECODER.delayed(wrong)


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"command": "trigger"}, Trigger("c", None)),
        ({"command": "trigger", "payload": None}, Trigger("c", b"null")),
        ({"command": "TRIGGER", "payload": {"a": 1}}, Trigger("c", b'{"a":1}')),
        ({"command": "cancel"}, Cancel("c", None)),
        ({"command": "cancel", "run_id": "r"}, Cancel("c", "r")),
        ({"command": "cancel", "of_command": "b"}, Unsupported("c", "cancel of a backfill")),
        ({"command": "backfill", "instants": [NINE]}, Unsupported("c", "backfill")),
    ],
)
def test_commands(fields: dict[str, object], command: object) -> None:
    assert DECODER.command(record(fields | {"command_id": "c"})) == command


def test_a_payload_that_grows_beyond_the_limit_when_written_out() -> None:
    payload = b",".join([b"1e15"] * 50_000)
    value = b'{"command":"trigger","command_id":"c","payload":[' + payload + b"]}"
    with pytest.raises(RequestError, match="above the limit of 262144"):
        DECODER.command(record(value))
