"""``duewheel next`` as typed, without any Kafka."""

import json

import pytest
from typer.testing import CliRunner

from scheduler.cli.main import build_app
from scheduler.errors import ExitCode

AFTER = ["--after", "2026-03-28T12:00:00Z"]


def test_instants_are_shown_in_both_times_with_what_the_clocks_do() -> None:
    result = CliRunner().invoke(
        build_app(), ["next", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "2", *AFTER]
    )
    assert result.exit_code == ExitCode.OK
    assert [line.split("   ")[:2] for line in result.stdout.splitlines()[1:]] == [
        ["2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00"],
        ["2026-03-30T00:30:00Z", "2026-03-30T02:30:00+02:00"],
    ]
    assert "does not exist" in result.stdout.splitlines()[1]


def test_a_policy_can_be_named() -> None:
    arguments = ["next", "30 2 * * *", "--tz", "Europe/Berlin", "--gap", "skip", "-n", "1"]
    result = CliRunner().invoke(build_app(), [*arguments, *AFTER, "-o", "json"])
    answer = json.loads(result.stdout)
    assert answer["dst_gap"] == "skip"
    assert [each["utc"] for each in answer["instants"]] == ["2026-03-30T00:30:00Z"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["99 * * * *"], "99"),
        (["0 0 30 2 *"], "0 0 30 2 *"),
        (["* * * * *", "--tz", "Mars/Olympus"], "Mars/Olympus"),
        (["* * * * *", "--after", "tomorrow"], "--after"),
        ([], "name an expression"),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(build_app(), ["next", *arguments])
    assert result.exit_code == ExitCode.FAILURE
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr


def test_a_batch_is_answered_line_by_line() -> None:
    cases = [
        {"id": 1, "expr": "0 * * * *", "after": "2026-01-01T00:30:00Z", "count": 1},
        {"id": 2, "expr": "0 0 31 2 *", "after": "2026-01-01T00:30:00Z"},
    ]
    lines = "\n".join([*map(json.dumps, cases), "", "no json", "[]"])
    result = CliRunner().invoke(build_app(), ["next", "--batch"], input=lines)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers[0] == {"id": 1, "instants": ["2026-01-01T01:00:00Z"]}
    assert (answers[1]["id"], answers[1]["error"]["class"]) == (2, "impossible")
    assert [answer["error"]["class"] for answer in answers[2:]] == ["request", "request"]
    assert "line 4" in answers[2]["error"]["message"]
