"""Settings of an executor, from the environment; the Kafka part is the scheduler's own."""

from pydantic import Field

from scheduler.contract.topics import DEFAULT_QUEUE
from scheduler.settings import MemberSettings


class ExecutorSettings(MemberSettings):
    """Settings of an executor.

    Attributes:
        queue: whose runs it executes; declared in topics.yaml.
        handlers: modules whose public functions may be called as ``module:function``, separated
            by commas; handlers declared as entry points need no mention.
        max_in_flight: attempts under way or waiting here; beyond it nothing more is claimed.
        handler_threads_max: handlers that are no coroutines, at a time.
        http_connections_max: open connections, to all targets together.
        drain_seconds: after SIGTERM, time for what is under way to finish.
        inherit_seconds: time an open run of a former owner is given before its next attempt.
        retry_here_seconds: next attempts nearer than this wait in this process, others in the
            scheduler's wheel.
        transaction_inputs_max: commands, results and due attempts in one transaction.
    """

    queue: str = Field(default=DEFAULT_QUEUE, min_length=1, max_length=100)
    handlers: str = ""
    max_in_flight: int = Field(default=200, ge=1, le=100_000)
    handler_threads_max: int = Field(default=16, ge=1, le=1_000)
    http_connections_max: int = Field(default=100, ge=1, le=10_000)
    drain_seconds: float = Field(default=20.0, ge=0, le=3_600)
    inherit_seconds: float = Field(default=30.0, ge=0, le=3_600)
    retry_here_seconds: float = Field(default=5.0, ge=0, le=60)
    transaction_inputs_max: int = Field(default=1_000, ge=1, le=10_000)

    def handler_modules(self) -> tuple[str, ...]:
        """The modules named in ``handlers``."""
        names = (name.strip() for name in self.handlers.split(","))
        return tuple(name for name in names if name)
