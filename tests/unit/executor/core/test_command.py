"""Run commands as they come in from ``runs``: what is taken, what is refused, never a crash."""

import json

import pytest

from executor.core.command import RunCommand, decode_command
from scheduler.errors import RequestError
from tests.unit.executor.building import T0, plain


def test_a_command_names_its_instant() -> None:
    command = decode_command(json.dumps(plain()).encode())
    assert isinstance(command, RunCommand)
    assert command.scheduled_ms == T0


@pytest.mark.parametrize("field", ["scheduled_at", "run_at", "settled_below"])
@pytest.mark.parametrize(
    "instant", ["0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00"]
)
def test_an_instant_that_cannot_be_written_is_refused(field: str, instant: str) -> None:
    """It would end the process when the run is told of, long after it was read."""
    value = {**plain(), field: instant}
    if field == "scheduled_at":
        value["run_id"] = f"job@{instant}"
    with pytest.raises(RequestError, match=field):
        decode_command(json.dumps(value).encode())
