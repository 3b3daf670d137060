"""Expected errors end a command with one line and an exit code, bugs keep their trace."""

import pytest
import typer
from confluent_kafka import KafkaError, KafkaException
from typer.testing import CliRunner

from scheduler.cli.failures import OneLineErrors
from scheduler.errors import (
    ConfigError,
    DefinitionError,
    ExitCode,
    InvariantViolation,
    RequestError,
    RetryableError,
)


def _failing(error: Exception) -> typer.Typer:
    app = typer.Typer(cls=OneLineErrors)

    @app.command()
    def fail() -> None:
        raise error

    @app.command()
    def other() -> None:
        """Make the app a group."""

    return app


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (RequestError("no such job"), ExitCode.FAILURE, "duewheel: no such job"),
        (RetryableError("try\n  again"), ExitCode.FAILURE, "duewheel: try again"),
        (ConfigError("bad prefix"), ExitCode.CONFIG, "duewheel: bad prefix"),
        (DefinitionError("every", "too short"), ExitCode.FAILURE, "duewheel: every: too short"),
        (
            KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)),
            ExitCode.FAILURE,
            "duewheel: Kafka: Broker: Topic authorization failed",
        ),
    ],
)
def test_an_expected_error_is_one_line(error: Exception, code: ExitCode, line: str) -> None:
    result = CliRunner().invoke(_failing(error), ["fail"])
    assert result.exit_code == code
    assert result.stderr.splitlines() == [line]
    assert result.stdout == ""


def test_a_bug_keeps_its_trace() -> None:
    result = CliRunner().invoke(_failing(InvariantViolation("impossible")), ["fail"])
    assert isinstance(result.exception, InvariantViolation)


def test_a_wrong_option_is_a_usage_error() -> None:
    result = CliRunner().invoke(_failing(RequestError("")), ["fail", "--no-such-option"])
    assert result.exit_code == ExitCode.USAGE
