"""Every error of Duewheel, sorted by what the caller must do.

    DuewheelError
     ├── ConfigError          operator: fix the setting or the cluster, start again
     │    └── TzdataError       this process has older time zone data than the cursor
     ├── RequestError         client: change the request (definition, command, argument)
     │    └── DefinitionError    a job definition is refused, with the path of the faulty field
     ├── RetryableError       loop: back off, step again
     ├── FencedError          shard: drop its state, another member owns it
     ├── CorruptRecordError   quarantine the record, carry its coordinates, go on
     ├── StoreLostError       process: end; the next one rebuilds the store from the log
     ├── ClientFatalError     process: end; a Kafka client is beyond repair
     └── InvariantViolation   a bug: crash the process

Messages say what is wrong, which one, and what to do now.
"""

from enum import IntEnum
from typing import TypeVar

Value = TypeVar("Value")


class ExitCode(IntEnum):
    """Exit codes of every ``duewheel`` process; documented in docs/operations.md."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    CONFIG = 3
    """A setting or a topic would break the guarantees: mend it, then start again."""
    CLIENT_FATAL = 4
    """A Kafka client is beyond repair: start the process again."""
    WATCHDOG = 5
    """A blocking call outlived its deadline: start the process again."""
    TZDATA = 6
    """The cursor was written with a newer tzdata than this process has: upgrade it."""
    INVARIANT = 7
    """A bug: the state was not what the code relies on. Start again and report it."""


class DuewheelError(Exception):
    """Root of all errors that Duewheel raises on purpose."""


class ConfigError(DuewheelError):
    """A setting or the cluster's state makes it unsafe or impossible to start."""


class TzdataError(ConfigError):
    """Deciding with older time zone data than the cursor would contradict what was decided."""

    def __init__(self, cursor: str, own: str) -> None:
        super().__init__(
            f"the cursor was written with tzdata {cursor}, this process has {own}: upgrade the "
            "tzdata package, or set DUEWHEEL_ALLOW_OLDER_TZDATA=true for a rollback"
        )


class RequestError(DuewheelError):
    """The client's request cannot be done as it stands."""


class DefinitionError(RequestError):
    """A job definition is refused.

    Attributes:
        path: field path in the definition, e.g. ``target.url``; empty for the whole.
        reason: what is wrong with it and what would be right.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class RetryableError(DuewheelError):
    """Nothing is lost; back off and step again."""


class FencedError(DuewheelError):
    """This process may no longer act for the partitions it believed to own."""


class CorruptRecordError(DuewheelError):
    """A record cannot be read; it is set aside and the partition goes on.

    Attributes:
        topic, partition, offset: where the record lies.
        reason: what is wrong with it.
    """

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(f"{topic}[{partition}]@{offset}: {reason}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason


class StoreLostError(DuewheelError):
    """The local store fails or is corrupt; only a new process can go on with it or without it."""


class ClientFatalError(DuewheelError):
    """A Kafka client reports a fatal error; only a new process has a working one."""


class InvariantViolation(DuewheelError):
    """The state is not what the code relies on: a bug, not an input."""


def invariant(condition: object, message: str) -> None:
    """Raise `InvariantViolation` unless ``condition`` holds; kept under ``python -O``."""
    if not condition:
        raise InvariantViolation(message)


def present(value: Value | None, message: str) -> Value:
    """Return ``value``; raise `InvariantViolation` if it is ``None``, under ``python -O`` too."""
    if value is None:
        raise InvariantViolation(message)
    return value


def exit_code_of(error: DuewheelError) -> ExitCode:
    """The exit code with which a process ends on an error."""
    match error:
        case TzdataError():
            return ExitCode.TZDATA
        case ConfigError():
            return ExitCode.CONFIG
        case RequestError():
            return ExitCode.USAGE
        case ClientFatalError() | StoreLostError() | RetryableError():
            return ExitCode.CLIENT_FATAL
        case InvariantViolation():
            return ExitCode.INVARIANT
        case _:
            return ExitCode.FAILURE
