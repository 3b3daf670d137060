"""A record that cannot be read is named by topic, partition, offset and field."""

import pytest

from scheduler.contract.decode import decode_record
from scheduler.contract.job import JobDefinition
from scheduler.contract.run import CancelCommand
from scheduler.core.records import Incoming
from scheduler.errors import CorruptRecordError


def record(topic: str, value: bytes | None) -> Incoming:
    return Incoming(topic, 5, 77, 0, b"a", value)


def test_the_topic_chooses_the_message() -> None:
    assert isinstance(decode_record(record("jobs", b'{"every":"PT1S"}')), JobDefinition)
    cancel = b'{"kind":"cancel","job_id":"a"}'
    assert decode_record(record("p.runs.bulk", cancel), prefix="p.") == CancelCommand(job_id="a")


def test_a_tombstone_has_no_message() -> None:
    assert decode_record(record("jobs", None)) is None


@pytest.mark.parametrize(
    ("topic", "value", "message"),
    [
        ("jobs", b'{"evry":"PT1S"}', "jobs[5]@77: evry: unknown field; did you mean every?"),
        (
            "run-reports",
            b'{"job_id":"a","scheduled_at":"x","attempt":1,"kind":"started"}',
            "run-reports[5]@77: scheduled_at: 'x' is not an instant; "
            "write e.g. 2026-11-30T09:00:00Z",
        ),
        ("calendars", b'{"dates":["25.12."]}', "calendars[5]@77: dates.0: "),
        ("runs", b"\xff", "runs[5]@77: "),
        ("elsewhere", b"{}", "elsewhere[5]@77: there is no message of the contract in elsewhere"),
    ],
)
def test_errors_name_the_record(topic: str, value: bytes, message: str) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        decode_record(record(topic, value))
    assert str(caught.value).startswith(message)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == (topic, 5, 77)
