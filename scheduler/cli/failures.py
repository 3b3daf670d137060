"""Expected errors become one line on standard error and an exit code; bugs keep their trace."""

from typing import Any

import typer
from confluent_kafka import KafkaException
from typer.core import TyperGroup

from scheduler.errors import (
    ClientFatalError,
    ConfigError,
    DuewheelError,
    ExitCode,
    InvariantViolation,
)


class OneLineErrors(TyperGroup):
    """The root command: whatever a command raises on purpose ends it with one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn its expected errors into an exit code."""
        try:
            return super().invoke(ctx)
        except InvariantViolation:
            raise
        except (DuewheelError, KafkaException) as error:
            typer.echo(f"duewheel: {one_line(error)}", err=True)
            raise typer.Exit(exit_code(error)) from error


def exit_code(error: BaseException) -> ExitCode:
    """The exit code an error ends a command with."""
    if isinstance(error, ConfigError):
        return ExitCode.CONFIG
    return ExitCode.CLIENT_FATAL if isinstance(error, ClientFatalError) else ExitCode.FAILURE


def one_line(error: BaseException) -> str:
    """An error's message on a single line.

    >>> one_line(ConfigError("no such topic\\n  jobs"))
    'no such topic jobs'
    """
    if isinstance(error, KafkaException):
        return f"Kafka: {' '.join(error.args[0].str().split())}"
    return " ".join(str(error).split()) or type(error).__name__
