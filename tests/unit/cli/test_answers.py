"""Which records answer a question, and which do not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.cli.answers import run_of_command, statuses
from scheduler.cli.cluster import Deadline
from scheduler.core.records import Incoming
from scheduler.errors import RequestError, RetryableError

DEADLINE = Deadline.after(0, "the answer")


class Appended:
    """A topic's next records; then silence until the deadline."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def until(self, deadline: Deadline) -> Iterator[Incoming]:
        for offset, value in enumerate(self._values):
            encoded = None if value is None else json.dumps(value).encode()
            yield Incoming("t", 0, offset, 0, b"key", encoded)
        raise RetryableError(deadline.what)


def _status(job_id: str, offset: int | None, state: str = "active", **more: Any) -> dict[str, Any]:
    return {"job_id": job_id, "state": state, "definition_offset": offset, **more}


def test_the_status_of_the_record_itself_is_the_answer() -> None:
    tail = Appended(_status("a", 4, "paused"), _status("b", 7, "rejected"), _status("a", 5))
    answers = statuses(tail, {"a": 5, "b": 7}, DEADLINE)
    assert {job_id: each["state"] for job_id, each in answers.items()} == {
        "a": "active",
        "b": "rejected",
    }


def test_a_later_record_answers_too_and_the_first_answer_counts() -> None:
    tail = Appended(_status("a", 9, "deleted"), _status("a", 10), _status("b", 1))
    assert statuses(tail, {"a": 5, "b": 1}, DEADLINE)["a"]["state"] == "deleted"


def test_what_was_not_answered_is_missing() -> None:
    tail = Appended(None, _status("other", 5), _status("a", None), _status("a", 4))
    assert statuses(tail, {"a": 5}, DEADLINE) == {}


def test_a_commands_run_is_followed_to_its_final_status() -> None:
    row = {"job_id": "a", "command_id": "c", "run_id": "a@1#c"}
    tail = Appended(
        _status("a", 5, command_id="c", error=None),
        {**row, "status": "running"},
        {**row, "status": "succeeded"},
        {**row, "status": "running"},
    )
    found = run_of_command(tail, "a", "c", DEADLINE)
    assert found is not None
    assert found["status"] == "succeeded"


def test_a_run_that_takes_longer_is_told_as_it_was_last_seen() -> None:
    row = {"job_id": "a", "command_id": "c", "status": "running"}
    assert run_of_command(Appended(row), "a", "c", DEADLINE) == row


def test_an_accepted_command_without_a_run_yet_is_no_failure() -> None:
    tail = Appended(_status("a", 5, command_id="c", error=None))
    assert run_of_command(tail, "a", "c", DEADLINE) is None


def test_a_refused_command_is_an_error_with_the_reason() -> None:
    tail = Appended(_status("a", None, "rejected", command_id="c", error="there is no job 'a'"))
    with pytest.raises(RequestError, match="refused the command: there is no job 'a'"):
        run_of_command(tail, "a", "c", DEADLINE)


def test_silence_is_an_error() -> None:
    others = Appended(_status("a", 5, command_id="d"), _status("b", 5, command_id="c"))
    with pytest.raises(RetryableError, match="the answer"):
        run_of_command(others, "a", "c", DEADLINE)
