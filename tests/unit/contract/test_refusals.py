"""Every refusal of a definition, with its message: whoever wrote it must know what to do."""

import json

import pytest

from scheduler.contract.compile import compile_job
from scheduler.contract.limits import Limits
from scheduler.errors import DefinitionError


def refusal(value: bytes | str, job_id: str = "job", limits: Limits | None = None) -> str:
    raw = value if isinstance(value, bytes) else value.encode()
    with pytest.raises(DefinitionError) as caught:
        compile_job(job_id, raw, 0, limits or Limits())
    assert str(caught.value).startswith(caught.value.path)
    return str(caught.value)


BYTES = {
    "empty": (b"", "not JSON: expecting value at line 1 column 1"),
    "cut": (b'{"every":', "not JSON: expecting value at line 1 column 10"),
    "garbage after": (b'{"every":"PT1S"}x', "not JSON: extra data at line 1 column 17"),
    "array": (b"[]", "a JSON object is expected, not an array"),
    "null": (b"null", "a JSON object is expected, not null"),
    "boolean": (b"true", "a JSON object is expected, not a boolean"),
    "number": (b"1", "a JSON object is expected, not a number"),
    "string": (b'"x"', "a JSON object is expected, not a string"),
    "invalid UTF-8": (b'{"type":"\xff"}', "not UTF-8: byte 9 is 0xff"),
    "UTF-16": ('{"every":"PT1S"}'.encode("utf-16"), "not UTF-8: byte 0 is 0xff"),
    "NUL": (b'{"type":"\x00"}', "not JSON: invalid control character at line 1 column 10"),
    "NaN": (b'{"payload":NaN}', "NaN is not JSON"),
    "infinity": (b'{"payload":-Infinity}', "-Infinity is not JSON"),
    "huge float": (b'{"payload":1e999}', "the number 1e999 is beyond what a double can hold"),
    "huge integer": (
        b'{"payload":' + b"9" * 5_000 + b"}",
        "a number has too many digits (more than 4,300)",
    ),
    "duplicate key": (
        b'{"every":"PT1S","every":"PT2S"}',
        'the key "every" is given twice in one object',
    ),
    "duplicate key inside": (
        b'{"every":"PT1S","payload":[{"a":1,"a":1}]}',
        'the key "a" is given twice in one object',
    ),
    "lone surrogate": (
        b'{"every":"PT1S","payload":"\\ud800"}',
        "a string holds half of a surrogate pair (\\ud800 to \\udfff on its own)",
    ),
    "deep": (
        b'{"every":"PT1S","payload":' + b"[" * 64 + b"]" * 64 + b"}",
        "objects and arrays are nested more than 64 deep",
    ),
    "bottomless": (
        b'{"payload":' + b"[" * 100_000,
        "objects and arrays are nested more than 64 deep",
    ),
}


@pytest.mark.parametrize(("value", "message"), BYTES.values(), ids=BYTES)
def test_bytes_that_are_no_definition(value: bytes, message: str) -> None:
    assert refusal(value) == message


FIELDS = {
    "none of the three": ("{}", "exactly one of schedule, every and run_at is needed, not none"),
    "two of the three": (
        '{"every":"PT1S","run_at":"2030-01-01T00:00:00Z"}',
        "exactly one of schedule, every and run_at is needed, not every and run_at",
    ),
    "unknown": ('{"every":"PT1S","zzz":1}', "zzz: unknown field"),
    "unknown and near": (
        '{"every":"PT1S","jiter_seconds":1}',
        "jiter_seconds: unknown field; did you mean jitter_seconds?",
    ),
    "unknown in a target": (
        '{"every":"PT1S","target":{"kind":"none","urll":1}}',
        "target.urll: unknown field",
    ),
    "near in a target": (
        '{"every":"PT1S","target":{"kind":"HTTP","url":"http://a","sucess":[]}}',
        "target.sucess: unknown field; did you mean success?",
    ),
    "both spellings": (
        '{"runAt":"2030-01-01T00:00:00Z","run_at":"2030-01-01T00:00:00Z"}',
        "run_at: is given twice: run_at and runAt are the same field",
    ),
    "no kind": ('{"every":"PT1S","target":{}}', "target: needs a kind"),
    "unknown kind": (
        '{"every":"PT1S","target":{"kind":"kafak"}}',
        "target: 'kafak' is none of none, kafka, http, python, external; did you mean kafka?",
    ),
    "missing": (
        '{"every":"PT1S","target":{"kind":"kafka"}}',
        "target.topic: is required",
    ),
    "null labels": (
        '{"every":"PT1S","labels":null}',
        "labels: should be an object, not None",
    ),
    "internal topic": (
        '{"every":"PT1S","target":{"kind":"kafka","topic":"__transaction_state"}}',
        "target.topic: topics whose names begin with __ are Kafka's own",
    ),
    "null target": ('{"every":"PT1S","target":null}', "target: needs a kind"),
    "a boolean for a number": (
        '{"every":"PT1S","jitter_seconds":true}',
        "jitter_seconds: should be a valid integer, not True",
    ),
    "a string for a number": (
        '{"every":"PT1S","max_attempts":"5"}',
        "max_attempts: should be a valid integer, not '5'",
    ),
    "out of range": (
        '{"every":"PT1S","max_attempts":101}',
        "max_attempts: should be less than or equal to 100, not 101",
    ),
    "wrong choice": (
        '{"every":"PT1S","misfire_policy":"once"}',
        "misfire_policy: should be 'run_once', 'skip' or 'run_all', not 'once'",
    ),
    "month": (
        '{"every":"P1M"}',
        "every: 'P1M' is not an ISO 8601 duration in whole weeks, days, hours, minutes and "
        "seconds; write e.g. PT30S or P1DT12H",
    ),
    "zero": ('{"every":"PT0S"}', "every: 'PT0S' lies outside of PT1S to P3650D"),
    "fraction": (
        '{"every":"PT1.5S"}',
        "every: 'PT1.5S' is not an ISO 8601 duration in whole weeks, days, hours, minutes and "
        "seconds; write e.g. PT30S or P1DT12H",
    ),
    "a number for a duration": (
        '{"every":5}',
        "every: should be an ISO 8601 duration; write e.g. PT30S",
    ),
    "a number for an instant": (
        '{"run_at":1764493200000}',
        "run_at: should be an instant; write e.g. 2026-11-30T09:00:00Z",
    ),
    "no offset": (
        '{"run_at":"2030-01-01T00:00:00"}',
        "run_at: '2030-01-01T00:00:00' is not an instant; write e.g. 2026-11-30T09:00:00Z",
    ),
    "year 0": (
        '{"run_at":"0000-01-01T00:00:00Z"}',
        "run_at: '0000-01-01T00:00:00Z' names no moment of the calendar",
    ),
    "30 February": (
        '{"run_at":"2030-02-30T00:00:00Z"}',
        "run_at: '2030-02-30T00:00:00Z' names no moment of the calendar",
    ),
    "before 1970": (
        '{"run_at":"1969-12-31T23:59:59Z"}',
        "run_at: '1969-12-31T23:59:59Z' lies outside of 1970 to 9999",
    ),
    "beyond 9999": (
        '{"run_at":"9999-12-31T23:59:59-01:00"}',
        "run_at: '9999-12-31T23:59:59-01:00' lies outside of 1970 to 9999",
    ),
    "end of 9999": (
        '{"run_at":"9999-12-31T23:59:59Z"}',
        "run_at: lies too close to the end of the year 9999",
    ),
    "never runs": (
        '{"every":"PT1S","start_at":"2030-01-02T00:00:00Z","end_at":"2030-01-01T00:00:00Z"}',
        "end_at lies before start_at: it would never run",
    ),
    "one-shot out of bounds": (
        '{"run_at":"2030-01-02T00:00:00Z","end_at":"2030-01-01T00:00:00Z"}',
        "run_at lies outside of start_at to end_at: it would never run",
    ),
    "zone": (
        '{"schedule":"0 2 * * *","time_zone":"europe/istambul"}',
        "time_zone: 'europe/istambul' is not a time zone of the IANA database; "
        "did you mean Europe/Istanbul?",
    ),
    "queue": (
        '{"every":"PT1S","queue":"A b"}',
        "queue: should match pattern '^[a-z0-9][a-z0-9_-]{0,62}$', not 'A b'",
    ),
    "ftp": (
        '{"every":"PT1S","target":{"kind":"http","url":"ftp://host"}}',
        "target.url: is not an http or https address with a host",
    ),
    "credentials": (
        '{"every":"PT1S","target":{"kind":"http","url":"http://u:p@host"}}',
        "target.url: must hold neither credentials nor a fragment",
    ),
    "header name": (
        '{"every":"PT1S","target":{"kind":"http","url":"http://h","headers":{"a b":"c"}}}',
        "target.headers: 'a b' is not the name of a header",
    ),
    "header of the client": (
        '{"every":"PT1S","target":{"kind":"http","url":"http://h","headers":{"Host":"c"}}}',
        "target.headers: Host is set by the HTTP client itself",
    ),
    "header with a line break": (
        '{"every":"PT1S","target":{"kind":"http","url":"http://h","headers":{"a":"b\\nc"}}}',
        "target.headers: the value of a must be printable ASCII",
    ),
    "calendars": (
        '{"every":"PT1S","exclude":["holidays"]}',
        "exclude: calendars are not supported yet",
    ),
    "concurrency": (
        '{"every":"PT1S","concurrency":"FORBID"}',
        "concurrency: forbid is not supported yet; only allow is",
    ),
    "resume policy": (
        '{"every":"PT1S","resume_policy":"all"}',
        "resume_policy: all is not supported yet; only none is",
    ),
    "external": (
        '{"every":"PT1S","target":{"kind":"external"}}',
        "target.kind: external is not supported yet",
    ),
    "several faults": (
        '{"every":"PT1S","target":{"kind":"http","uri":"http://a"},"max_attempts":0}',
        "target.url: is required (also: target.uri: unknown field; did you mean url?; "
        "max_attempts: should be greater than or equal to 1, not 0)",
    ),
    "several things not done yet": (
        '{"every":"PT1S","target":{"kind":"external"},"concurrency":"queue"}',
        "concurrency: queue is not supported yet; only allow is "
        "(also: target.kind: external is not supported yet)",
    ),
    "another job's id": (
        '{"every":"PT1S","job_id":"other"}',
        "job_id: is 'other' but the key is 'job'",
    ),
}


@pytest.mark.parametrize(("value", "message"), FIELDS.values(), ids=FIELDS)
def test_fields(value: str, message: str) -> None:
    assert refusal(value) == message


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "nonsense", "* * * *", "61 * * * *", "@often"])
def test_a_cron_expression_that_is_wrong_or_never_fires(schedule: str) -> None:
    message = refusal(json.dumps({"schedule": schedule, "paused": 1}))
    assert message.startswith("schedule: ")
    assert message.endswith("(also: paused: should be a valid boolean, not 1)")


JOB_IDS = {
    "": "job_id: a job id must not be empty",
    "a" * 201: "job_id: a job id has at most 200 characters, not 201",
    **{
        wrong: "job_id: a job id is ASCII without spaces, control characters, @ and #; "
        f"it holds {wrong[1:2]!r}"
        for wrong in ("a b", "a@b", "a#b", "a\x00b", "a\x7fb", "a\nb", "aéb")
    },
}


@pytest.mark.parametrize(("job_id", "message"), JOB_IDS.items())
def test_job_ids(job_id: str, message: str) -> None:
    assert refusal('{"every":"PT1S"}', job_id) == message


def test_a_definition_above_the_limit() -> None:
    value = b'{"every":"PT1S","payload":"' + b"x" * 262_144 + b'"}'
    assert refusal(value) == f"is {len(value)} bytes, above the limit of 262144"


def test_a_definition_whose_dead_letter_would_not_fit() -> None:
    payload = b",".join([b"1e15"] * 52_000)  # written out each takes 18 characters
    message = refusal(b'{"every":"PT1S","payload":[' + payload + b"]}")
    assert message == (
        "payload: its dead letter could take 1013403 bytes, above the limit of 1000000; "
        "make the payload smaller or max_attempts lower"
    )
